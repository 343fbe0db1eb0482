"""Things named on a command line: `module:name`, found where the command was given.

Knows how to import; does not know what is imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from typing import Any

from runcast.app.errors import BadRequest


def load(target: str) -> Any:
    """What `module:name` or `path/to/file.py:name` means; a name may be dotted, a factory without arguments is called."""
    module_name, _, attribute = target.rpartition(":")
    if not module_name or not attribute:
        raise BadRequest(f"{target!r} is not module:name, e.g. my_package.agent:graph or agent.py:graph")
    found: Any = _module(module_name)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise BadRequest(f"{module_name} has no {attribute!r}")
        found = getattr(found, part)
    return found


def load_agent(target: str) -> Any:
    """An agent; a function without parameters is taken to make one."""
    found = load(target)
    if (
        inspect.isfunction(found)
        and not inspect.isasyncgenfunction(found)
        and not inspect.signature(found).parameters
    ):
        return found()
    return found


def _module(name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        if name.endswith(".py"):
            return _file(Path(name))
        return importlib.import_module(name)
    except (ImportError, FileNotFoundError) as error:
        raise BadRequest(f"{name} cannot be imported: {error}") from error


def _file(path: Path) -> Any:
    name = path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
