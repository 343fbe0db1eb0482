"""A fault as data: one text in one file, and what stands there instead."""

from __future__ import annotations

from dataclasses import dataclass
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

    @property
    def key(self) -> str:
        """Names it among all faults."""
        return sha256(str(self).encode()).hexdigest()[:16]

    @property
    def room(self) -> Path:
        """The folder of the tests that mirror the file's room."""
        house, _, _, *rooms = Path(self.path).parent.parts
        found = Path("tests", house, *rooms)
        while not (ROOT / found).is_dir():
            found = found.parent
        return found

    def near(self) -> list[Path]:
        """The test modules of the file's room that begin with its name or import from it; without any, all of them."""
        modules, stem = sorted((ROOT / self.room).glob("test_*.py")), Path(self.path).stem
        near = [each for each in modules if each.stem.startswith(f"test_{stem}")]
        near += [each for each in modules if each not in near and f".{stem} import " in each.read_text()]
        return near or modules

    def sound(self) -> str:
        return (ROOT / self.path).read_text()

    def _begin(self, text: str) -> int:
        return text.index(self.old) if self.at is None else self.at

    def __str__(self) -> str:
        return f"{self.path}:{self.lines()[0]}: {self.old!r} -> {self.new!r}"


def faults(path: str, *pairs: tuple[str, str]) -> tuple[Fault, ...]:
    """Several faults of one file."""
    return tuple(Fault(path, old, new) for old, new in pairs)
