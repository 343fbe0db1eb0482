"""What a command line names: `module:name`, `path.py:name`, a framework's folder or file, a URL.

Knows how to import and what a factory is; the frameworks recognise their own agents and projects.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from runcast.adapters import Adapter
from runcast.adapters.frameworks import Hosting, Project, frameworks
from runcast.app.cli.printing import complain
from runcast.app.errors import BadRequest
from runcast.app.host.agent_adapters import as_adapter

GENERIC = ("agent", "app", "graph", "make_graph", "root_agent", "workflow")  # name a variable, not an agent
NESTED = 5  # factories that make factories


@dataclass(frozen=True, slots=True)
class Target:
    """An agent that was named, before it is loaded."""

    text: str  # as it was named, for errors
    load: Callable[[], Any]
    fallback: str  # the agent's name if it has none of its own
    name: str | None = None  # its name on purpose

    @property
    def module(self) -> str:
        """The last word of its module's name or path that names no mere variable."""
        words = self.text.rpartition(":")[0].removesuffix(".py").replace(".", "/").split("/")
        return next((word for word in reversed(words) if word and word not in GENERIC), self.fallback)


def find(text: str) -> list[Target]:
    """The agents that a text names; a project may have several."""
    if any(framework.recognises(text) for framework in frameworks()):  # a URL
        return [Target(text, lambda: text, text)]
    if (path := Path(text)).exists():
        return _in_project(text, path)
    return [_imported(text)]


def _in_project(text: str, path: Path) -> list[Target]:
    projects = [found for each in frameworks() if (found := each.project(path)) is not None]
    if not projects:
        example = f"{text}:graph" if path.suffix == ".py" else str(path / "agent.py:graph")
        raise BadRequest(
            f"{text} is no langgraph.json, and no folder with one or with ADK agents; name a variable, e.g. {example}"
        )
    project = projects[-1]  # a folder with a manifest may look like another framework's, too
    _enter(project)
    return [
        Target(f"{text} ({name})", partial(load, each), name, name)
        if isinstance(each, str)
        else Target(f"{text} ({name})", partial(_guarded, name, each), name)
        for name, each in project.agents.items()
    ]


def _enter(project: Project) -> None:
    for note in project.notes:
        complain(note)
    for folder in reversed(project.paths):
        _import_from(folder)
    for name, value in project.env.items():
        os.environ.setdefault(name, value)


def _imported(text: str) -> Target:
    module, _, variable = text.rpartition(":")
    return Target(text, partial(load, text), _stem(module) if variable in GENERIC else variable)


def _stem(module: str) -> str:
    return Path(module).stem if module.endswith(".py") else module.rpartition(".")[2]


def load(text: str) -> Any:
    """What `module:name` or `path/to/file.py:name` means; a name may be dotted."""
    module, _, attribute = text.rpartition(":")
    if not module or not attribute:
        raise BadRequest(f"{text!r} is not module:name, e.g. my_package.agent:graph or agent.py:graph")
    found: Any = _guarded(module, partial(_module, module))
    for part in attribute.split("."):
        if not hasattr(found, part):
            near = get_close_matches(part, map(str, getattr(found, "__dict__", ())), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise BadRequest(f"{module} has no {attribute!r}{hint}")
        found = getattr(found, part)
    return found


async def enter(target: Target, hosting: Hosting, stack: AsyncExitStack) -> Adapter:
    """The target's agent behind its adapter, for as long as the stack is open."""
    agent = await resolved(target, hosting.config, stack)
    host = next((each.host for each in frameworks() if each.recognises(agent)), None)
    hosting = replace(hosting, name=hosting.name or target.name, fallback=target.fallback)
    try:
        adapter = as_adapter(agent) if host is None else await stack.enter_async_context(host(agent, hosting))
    except BadRequest as error:
        raise BadRequest(f"{target.text}: {error}") from error
    if hosting.name is not None:
        adapter.name = hosting.name
    return adapter


async def resolved(target: Target, config: Mapping[str, Any], stack: AsyncExitStack) -> Any:
    """The agent itself: factories are called, and context managers entered."""
    found = target.load()
    for _ in range(NESTED):
        if isinstance(found, Adapter) or any(each.recognises(found) for each in frameworks()):
            break
        if hasattr(found, "__aenter__"):
            found = await stack.enter_async_context(found)
        elif hasattr(found, "__enter__"):
            found = stack.enter_context(found)
        elif inspect.isawaitable(found):
            found = await found
        elif (call := _factory_call(found, config)) is not None:
            found = _guarded(target.text, call)
        else:
            break
    return found


def _factory_call(found: Any, config: Mapping[str, Any]) -> Callable[[], Any] | None:
    """The call that makes an agent: of a function without parameters, or with a `RunnableConfig` alone."""
    if not inspect.isroutine(found) or inspect.isasyncgenfunction(found):
        return None
    parameters = list(inspect.signature(found).parameters.values())
    needed = [each for each in parameters if each.default is each.empty and each.kind < each.VAR_POSITIONAL]
    if not needed:
        return found
    if len(needed) == 1 and _is_config(needed[0]):
        return partial(found, {"configurable": {}, **config})
    if len(needed) > 1:
        names = ", ".join(each.name for each in needed)
        raise BadRequest(
            f"{found.__name__} needs {names}, and runcast gives a factory nothing or a RunnableConfig: "
            "name a function without parameters that calls it"
        )
    return None


def _is_config(parameter: inspect.Parameter) -> bool:
    note = (
        parameter.annotation
        if isinstance(parameter.annotation, str)
        else getattr(parameter.annotation, "__name__", "")
    )
    return note in ("RunnableConfig", "dict") or parameter.name in ("config", "_config")


# ---------------------------------------------------------------- importing


def _guarded(what: str, call: Callable[[], Any]) -> Any:
    """Call the user's code; what it raises becomes one sentence with what to do."""
    try:
        return call()
    except (BadRequest, KeyboardInterrupt):
        raise
    except Exception as error:
        kind, text = type(error).__name__, str(error).partition("\n")[0]
        hint = ""
        if isinstance(error, ModuleNotFoundError):
            hint = f"; {_remedy(error.name or '')}"
        elif "api_key" in text.lower() or "api key" in text.lower():
            hint = "; set the key in the environment, or give --env-file .env"
        raise BadRequest(f"{what} cannot be imported: {kind}: {text}{_place(error)}{hint}") from error


def _place(error: Exception) -> str:
    """The last line of the user's own code that an error passed; nothing when it passed none, or its text has the place."""
    if isinstance(error, SyntaxError):
        return ""
    passed = [
        (Path(frame.f_code.co_filename), line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not frame.f_globals.get("__name__", "").startswith("runcast.")
    ]
    own = [f" ({file}, line {line})" for file, line in passed if file.is_file() and not _is_installed(file)]
    return own[-1] if own else ""


def _is_installed(file: Path) -> bool:
    return "site-packages" in file.parts or file.is_relative_to(sysconfig.get_path("stdlib"))


def _remedy(missing: str) -> str:
    """What to do about a module that is not there: a framework's extra, where it is one."""
    for framework in frameworks():
        module = framework.distributions[0].replace("-", ".")
        if f"{module}.".startswith(f"{missing}."):
            return f'pip install "runcast[{framework.extra}]"'
    here = (path for path in Path.cwd().iterdir() if path.suffix == ".py" or path.is_dir())
    if "." not in missing and (near := get_close_matches(missing, [path.stem for path in here], 1)):
        return f"did you mean {near[0]!r}?"
    return "install it in this environment, or start where it can be imported"


def _module(name: str) -> ModuleType:
    _import_from(Path.cwd())
    if not name.endswith(".py"):
        return importlib.import_module(name)
    path = Path(name).resolve()
    if not path.is_file():
        raise BadRequest(f"there is no file {name}")
    return _in_package(path) if (path.parent / "__init__.py").exists() else _alone(path)


def _in_package(path: Path) -> ModuleType:
    """A file of a package, imported by its dotted name, so that its relative imports work."""
    root, parts = path.parent, [path.stem]
    while (root / "__init__.py").exists():
        parts.insert(0, root.name)
        root = root.parent
    _import_from(root)
    return importlib.import_module(".".join(parts))


def _alone(path: Path) -> ModuleType:
    _import_from(path.parent)
    name = path.stem
    while name in sys.modules and getattr(sys.modules[name], "__file__", None) != str(path):
        name += "_"  # another file of this name is loaded
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadRequest(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _import_from(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
