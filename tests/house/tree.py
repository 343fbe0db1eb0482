"""The sources as a tree of files, found by walking, and the rule that says which of them are pure.

Knows where code lives and how to read it without importing it; does not know what any of it does. A new file,
adapter, store or room is found by the next test run: no list here or in the tests has to be edited for it.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOTS = ("adapters", "slim", "broadcast", "app")

# Shells await, keep time and talk to the outside; all else is a core. Patterns are paths below `runcast/`.
SHELLS = tuple(
    re.compile(pattern)
    for pattern in (
        r"adapters/(frameworks|driving/(fault_log|pump|sink_thread))\.py",
        r"adapters/[a-z_]+/(adapter|announcement|callbacks|client|hosting|plugin)\.py",
        r"adapters/langgraph/(graph_stream|preparation|probe)\.py",
        r"adapters/(adk|langgraph)/running/\w+\.py",
        r"slim/(on_demand|outage|tasks|log/\w+)\.py",
        r"slim/archive/(?!lineage)\w+\.py",
        r"slim/stores/.+",
        r"broadcast/(broadcaster|history)\.py",
        r"broadcast/publishers/.+",
        r"broadcast/hub/(?!protocol|channels|signatures|memory/ring|limits)[\w/]+\.py",  # but for its machines
        r"app/(?!skins/(ui_|approvals))[\w/]+\.py",
    )
)
# The drivers: they await a framework's stream, and nothing else.
DRIVERS = ("adapters/translator.py",)
# Within a framework's folder, the files through which its own types come in.
DOORS = ("messages.py", "interrupts.py")


@dataclass(frozen=True)
class Source:
    """One Python file, read and parsed once."""

    path: Path

    @property
    def name(self) -> str:
        """The path a reader knows, from the root of the repository."""
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.name)

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        return (n for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


@dataclass(frozen=True)
class Module(Source):
    """One file of the product."""

    @property
    def inside(self) -> str:
        """The path below `runcast/`: `slim/wire/codec.py`."""
        return self.path.relative_to(ROOT / self.house / "runcast").as_posix()

    @property
    def house(self) -> str:
        return self.path.relative_to(ROOT).parts[0]

    @property
    def dotted(self) -> str:
        """What an import statement says: `runcast.slim.wire.codec`; a package is named without `__init__`."""
        parts = ["runcast", *self.inside.removesuffix(".py").split("/")]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def is_shell(self) -> bool:
        return any(pattern.fullmatch(self.inside) for pattern in SHELLS)

    @property
    def is_driver(self) -> bool:
        return self.inside in DRIVERS

    @property
    def is_core(self) -> bool:
        return not self.is_package and not self.is_shell

    @property
    def framework(self) -> str | None:
        """The folder in `adapters` this file belongs to, where it belongs to one."""
        parts = self.inside.split("/")
        return parts[1] if parts[0] == "adapters" and len(parts) > 2 and parts[1] != "driving" else None

    @property
    def is_door(self) -> bool:
        return self.framework is not None and self.path.name in DOORS


@lru_cache
def modules() -> tuple[Module, ...]:
    """Every file of the product, in the order of the houses."""
    return tuple(Module(p) for house in ROOTS for p in sorted((ROOT / house).rglob("*.py")))


def cores() -> list[Module]:
    return [module for module in modules() if module.is_core]


def packages() -> list[Module]:
    return [module for module in modules() if module.is_package]


@lru_cache
def sources() -> tuple[Source, ...]:
    """Every Python file that is kept: product, tests, benchmarks and examples."""
    return tuple(Source(path) for path in kept() if path.suffix == ".py")


@lru_cache
def kept() -> tuple[Path, ...]:
    """The files git keeps or would keep; without git, all that no tool has made."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    top = subprocess.run(
        ["git", "rev-parse", "--show-prefix"], cwd=ROOT, capture_output=True, check=False, text=True
    )
    if listing.returncode == 0 and top.stdout.strip() == "":
        names = listing.stdout.decode().split("\0")
        found = (ROOT / name for name in names if name)
    else:
        found = ROOT.rglob("*")
    return tuple(sorted(path for path in found if path.is_file() and not _made(path)))


MADE = {"node_modules", "__pycache__", "build", "dist", "results"}


def _made(path: Path) -> bool:
    """Written by a tool, and not for reading: environments, caches, packages."""
    parts = path.relative_to(ROOT).parts[:-1]
    return any(part in MADE or (part.startswith(".") and part != ".ci") for part in parts)
