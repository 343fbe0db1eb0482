"""Names of a package that load when they are first asked for (PEP 562), so that importing the package costs little.

Knows which module has a name. The package's `__init__` imports the same names for type checkers, under `TYPE_CHECKING`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_demand(
    package: str, places: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's `__getattr__` and `__dir__`. For each of its modules, `places` has the names that it gives."""
    modules = {name: module for module, names in places.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, found)  # from now on it is found without this function
        return found

    def known() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return load, known
