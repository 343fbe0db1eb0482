"""A fault as data: one text in one file, and what stands there instead."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Fault:
    """`old` stands in the file exactly once, or begins at `at`, where a rule made the fault."""

    path: str
    old: str
    new: str
    at: int | None = None

    def applied(self) -> str:
        """The file's text with the fault; raises where the code has changed and the fault has not."""
        text = self.sound()
        if self.at is None and text.count(self.old) != 1:
            raise LookupError(f"{self.path} has {text.count(self.old)} times, not once:\n{self.old}")
        at = self._begin(text)
        return text[:at] + self.new + text[at + len(self.old) :]

    def lines(self) -> range:
        """The lines that `old` stands on."""
        text = self.sound()
        at = self._begin(text)
        first = text.count("\n", 0, at) + 1
        return range(first, first + self.old.rstrip("\n").count("\n") + 1)

    def around(self) -> range:
        """The lines of the function that holds the fault, or of the whole file."""
        lines, tree = self.lines(), ast.parse(self.sound())
        found = range(1, len(self.sound().splitlines()) + 1)
        for node in ast.walk(tree):  # outer ones first
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.lineno <= lines[0]:
                inside = range(node.body[0].lineno, (node.end_lineno or 0) + 1)
                found = inside if lines[-1] in inside else found
        return found

    @property
    def key(self) -> str:
        """Names it among all faults."""
        return sha256(str(self).encode()).hexdigest()[:16]

    def sound(self) -> str:
        return (ROOT / self.path).read_text()

    def _begin(self, text: str) -> int:
        return text.index(self.old) if self.at is None else self.at

    def __str__(self) -> str:
        return f"{self.path}:{self.lines()[0]}: {self.old!r} -> {self.new!r}"


@cache
def room_of(path: str) -> Path:
    """The folder of the tests that mirror a file's room."""
    house, _, _, *rooms = Path(path).parent.parts
    found = Path("tests", house, *rooms)
    while not (ROOT / found).is_dir():
        found = found.parent
    return found


@cache
def near(path: str) -> tuple[Path, ...]:
    """The test modules of a file's room that begin with its name or import from it; without any, all of them."""
    modules, stem = sorted((ROOT / room_of(path)).glob("test_*.py")), Path(path).stem
    found = [each for each in modules if each.stem.startswith(f"test_{stem}")]
    found += [each for each in modules if each not in found and f".{stem} import " in each.read_text()]
    return tuple(found or modules)


def faults(path: str, *pairs: tuple[str, str]) -> tuple[Fault, ...]:
    """Several faults of one file."""
    return tuple(Fault(path, old, new) for old, new in pairs)
