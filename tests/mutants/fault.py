"""A fault as data: one text in one file, and what stands there instead."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Fault:
    """`old` stands in the file exactly once. `tests` are arguments of pytest: those that mirror the file."""

    path: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, root: Path) -> str:
        """The file's text with the fault; raises where the code has changed and the fault has not."""
        text = (root / self.path).read_text()
        if text.count(self.old) != 1:
            raise LookupError(f"{self.path} has {text.count(self.old)} times, not once:\n{self.old}")
        return text.replace(self.old, self.new)

    def __str__(self) -> str:
        return f"{self.path}: {self.old!r} -> {self.new!r}"


def faults(path: str, tests: str, *pairs: tuple[str, str]) -> tuple[Fault, ...]:
    """Several faults of one file."""
    return tuple(Fault(path, old, new, tuple(shlex.split(tests))) for old, new in pairs)
