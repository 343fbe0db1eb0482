"""The frameworks that have an adapter, found by looking into this package's folders.

A framework's folder announces itself in `announcement.py`, which holds one `Framework` named `FRAMEWORK` and imports
nothing of the framework. It is loaded by its path, because importing the folder's package needs the framework. So a new
adapter touches only its folder, and a host can recognise its agents without loading any other framework.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import runcast.adapters
from runcast.adapters.adapter import Adapter

ANNOUNCEMENT = "announcement"


@dataclass(frozen=True, slots=True)
class Hosting:
    """How a host is asked to run an agent from the command line."""

    url: str
    """The log's store; what the framework keeps itself goes into the same database where that is possible."""
    name: str | None = None
    fallback: str = "agent"
    """The name of an agent that has none of its own."""
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Project:
    """The agents of a folder or file in a framework's own layout."""

    agents: Mapping[str, str | Callable[[], Any]]
    """By name: `path.py:name` or `module:name`, or a function that loads the agent."""
    paths: Sequence[Path] = ()
    """Folders to import from."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: Sequence[str] = ()
    """Sentences about settings of the project that are not applied."""


def no_project(path: Path) -> Project | None:
    """For a framework without a layout of its own."""
    return None


@dataclass(frozen=True, slots=True)
class Framework:
    """What a host needs to know of a framework before it loads it."""

    name: str
    extra: str
    """`pip install "runcast[<extra>]"` installs it."""
    distributions: Sequence[str]
    """The distributions that an installation of it consists of, in the order of their weight."""
    agents: str
    """What its adapter runs, for an error message: `a compiled LangGraph graph`."""
    recognises: Callable[[object], bool]
    """Whether this object is one of its agents; must not import the framework."""
    wrap: Callable[[Any, str | None], Adapter]
    """The adapter for an agent, under a name or the agent's own; may import the framework."""
    project: Callable[[Path], Project | None] = no_project
    """Reads a folder or file in the framework's layout; None if it is not one."""
    host: Callable[[Any, Hosting], AbstractAsyncContextManager[Adapter]] | None = None
    """The adapter as the framework's own server would run it; None if `wrap` is all there is."""


@cache
def frameworks() -> tuple[Framework, ...]:
    """All frameworks that announce themselves, by name."""
    found = (file for place in runcast.adapters.__path__ for file in Path(place).glob(f"*/{ANNOUNCEMENT}.py"))
    return tuple(sorted(map(_announced, found), key=lambda framework: framework.name))


def _announced(file: Path) -> Framework:
    spec = spec_from_file_location(f"runcast.adapters.{file.parent.name}.{ANNOUNCEMENT}", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} cannot be loaded as a module")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    framework: Framework = module.FRAMEWORK
    return framework


def defined_in(agent: object, package: str) -> bool:
    """Whether one of the object's classes is defined in this package or below it."""
    return any(f"{cls.__module__}.".startswith(f"{package}.") for cls in type(agent).__mro__)
