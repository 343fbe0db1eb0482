"""The targets, and the inputs kept for each: `corpus/<target>/kept.jsonl`, and `broke.jsonl` for what broke something.

A line is a JSON string with one character a byte, so that inputs are read, compared and merged as text. Kept inputs
are few: each reaches lines that no smaller one does. What broke something once stays for ever.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from tests.fuzz import targets

FOLDER = Path(__file__).parent / "corpus"
LONGEST = 2_000  # bytes of a kept input
MOST = 16_000  # bytes of all that is kept for one target
Check = Callable[[bytes], None]


@dataclass(frozen=True)
class Target:
    """One thing that is fed: `check` raises when it is not as promised, `tokens` are words it knows."""

    name: str
    check: Check
    tokens: tuple[bytes, ...]

    def inputs(self) -> list[bytes]:
        """All that is kept."""
        return [*read(self.name, "broke"), *read(self.name, "kept")]

    def first(self) -> list[bytes]:
        """What a search begins with: all that is kept, and each word by itself. libFuzzer leaves out words of more than 64
        bytes, and the line that opens an export is one."""
        return [*self.inputs(), *self.tokens]


def names() -> list[str]:
    """The targets there are, found by looking."""
    return sorted(each.name for each in pkgutil.iter_modules(targets.__path__))


def target(name: str) -> Target:
    """One target, imported now: a tool that watches imports has to be there before."""
    module = import_module(f"{targets.__name__}.{name}")
    return Target(name, module.check, module.TOKENS)


def read(name: str, kind: str) -> list[bytes]:
    """The inputs of one kind."""
    path = FOLDER / name / f"{kind}.jsonl"
    lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
    return [json.loads(line).encode("latin-1") for line in lines]


def write(name: str, kind: str, inputs: Iterable[bytes]) -> None:
    """Replace the inputs of one kind, in an order that does not depend on how they were found."""
    lines = [json.dumps(each.decode("latin-1")) for each in sorted(set(inputs), key=lambda it: (len(it), it))]
    path = FOLDER / name / f"{kind}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
