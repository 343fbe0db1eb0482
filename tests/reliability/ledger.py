"""The ledger of a scene: what was planned, acknowledged and delivered, and by value what of it was lost or doubled.

A token is `node.attempt.number`, and `!` when its node ends there; the agents of `counting.py` say them. Nothing is
believed of `seq`: that a reader has everything, once and in order, is decided by the tokens it holds. A node that was
cut off is told again under the next attempt; a node that was told to its end may never begin again.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path

TOKEN = re.compile(r"(\d+)\.(\d+)\.(\d+)(!?)")


@dataclass(frozen=True, slots=True)
class Token:
    """One word that an agent said."""

    node: int
    attempt: int
    number: int
    last: bool

    @classmethod
    def read(cls, text: str) -> Token:
        found = TOKEN.fullmatch(text)
        assert found is not None, f"no agent said {text!r}"
        return cls(int(found[1]), int(found[2]), int(found[3]), bool(found[4]))

    def __str__(self) -> str:
        return f"{self.node}.{self.attempt}.{self.number}{'!' if self.last else ''}"


@dataclass(slots=True)
class Row:
    """One line of the table."""

    scene: str
    planned: int = 0
    acknowledged: int = 0
    delivered: int = 0
    lost: int = 0
    doubled: int = 0
    disordered: int = 0
    notes: dict[str, float] = field(default_factory=dict)

    def line(self) -> str:
        said = (
            f"{self.scene}: planned {self.planned} / acknowledged {self.acknowledged} / "
            f"delivered {self.delivered} / lost {self.lost} / doubled {self.doubled}"
        )
        notes = ", ".join(f"{name} {value:g}" for name, value in self.notes.items())
        return f"{said} ({notes})" if notes else said

    @property
    def clean(self) -> bool:
        return not (self.lost or self.doubled or self.disordered)


class Ledger:
    """Takes what the scene sees; `settle` counts, says its line, and fails on any loss, double or disorder."""

    def __init__(self, scene: str) -> None:
        self.row = Row(scene)
        self._planned: dict[str, tuple[int, int]] = {}  # thread -> nodes, tokens a node
        self._promised: dict[str, set[str]] = {}
        self._stored: dict[str, list[str]] = {}
        self._where: dict[str, Iterable[str]] = {}
        self._read: list[tuple[str, str, list[str], Iterable[str]]] = []
        self._faults: list[str] = []

    def plan(self, thread: str, nodes: int, size: int) -> None:
        """This thread's agent is to say so much."""
        self._planned[thread] = nodes, size

    @property
    def threads(self) -> list[str]:
        return list(self._planned)

    def promised(self, thread: str, text: str) -> None:
        """Somebody was told that this is durable."""
        self._promised.setdefault(thread, set()).update(text.split())

    def delivered(self, reader: str, thread: str, text: str, seen: Iterable[str] = ()) -> None:
        """All that a reader has applied, in its order, at the end; whatever it was shown was promised too.

        `seen` is what it received last, as lines for the report of a loss.
        """
        self._read.append((reader, thread, text.split(), seen))
        self.promised(thread, text)

    def stored(self, thread: str, text: str, where: Iterable[str] = ()) -> None:
        """All that the log holds at the end; `where` are lines about its runs, for the report of a double."""
        self._stored[thread] = text.split()
        self._where[thread] = where

    def note(self, name: str, value: float) -> None:
        """A number that the line also tells."""
        self.row.notes[name] = value

    def effects(self, written: Path) -> None:
        """What agents wrote down themselves, `thread node attempt` whenever one began a node: see `counting.py`."""
        done = {
            (thread, token.node): token.attempt
            for thread, texts in self._stored.items()
            for token in map(Token.read, texts)
            if token.last
        }
        begun = [line.split() for line in written.read_text().splitlines()]
        for thread, node, attempt in begun:
            if int(attempt) > done.get((thread, int(node)), int(attempt)):
                self._doubled(f"{thread}: node {node} began again after its end")
                told = [text for text in self._stored[thread] if text.startswith(f"{node}.")]
                attempts = [each[2] for each in begun if each[:2] == [thread, node]]
                print(
                    f"{thread}, node {node}: begun as {attempts}, the log holds {told}",
                    *self._where[thread],
                    sep="\n  ",
                )

    # ------------------------------------------------------------- settling

    def settle(self) -> Row:
        """Count, say the line, and fail on anything that is not whole."""
        row = self.row
        row.planned = sum(nodes * size for nodes, size in self._planned.values())
        row.acknowledged = sum(map(len, self._promised.values()))
        row.delivered = sum(len(tokens) for _, _, tokens, _ in self._read)
        for thread, (nodes, size) in self._planned.items():
            self._check_stored(thread, nodes, size)
        for reader, thread, tokens, seen in self._read:
            faults = len(self._faults)
            self._check_reader(reader, thread, tokens)
            if len(self._faults) > faults:
                print(f"{reader} on {thread} received last:", *seen, sep="\n  ")
        print(row.line())
        assert row.clean, "\n".join([row.line(), *self._faults[:20]])
        return row

    def _check_stored(self, thread: str, nodes: int, size: int) -> None:
        texts = self._stored.get(thread, [])
        self._once(f"the log of {thread}", texts)
        missing = self._promised.get(thread, set()) - set(texts)
        if missing:
            self._lost(len(missing), f"the log of {thread} lacks {sorted(missing)[:5]}, which was promised")
        tokens = [Token.read(each) for each in texts]
        done: dict[int, int] = {}  # node -> the attempt that told it to its end
        expected = 0
        for (node, attempt), group in groupby(tokens, key=lambda each: (each.node, each.attempt)):
            said = list(group)
            if [each.number for each in said] != list(range(len(said))):
                self._disordered(f"{thread}: node {node}, attempt {attempt} says {' '.join(map(str, said))}")
            if node in done:
                self._doubled(f"{thread}: node {node} is told again after its end")
            elif node != expected:
                self._disordered(f"{thread}: node {node} is told where {expected} was to come")
            if said[-1].last:
                done[node] = attempt
                expected = node + 1
                if len(said) != size:
                    self._lost(size - len(said), f"{thread}: node {node} ended after {len(said)} tokens")
        if len(done) != nodes:
            self._lost((nodes - len(done)) * size, f"{thread}: only nodes {sorted(done)} of {nodes} ended")

    def _check_reader(self, reader: str, thread: str, tokens: list[str]) -> None:
        stored = self._stored.get(thread, [])
        self._once(f"{reader} on {thread}", tokens)
        missing = Counter(stored) - Counter(tokens)
        if missing:
            self._lost(missing.total(), f"{reader} on {thread} lacks {list(missing)[:5]}")
        elif not _is_doubled(tokens) and tokens != stored:
            self._disordered(f"{reader} on {thread} has another order or more than the log: {tokens[:40]}")

    def _once(self, who: str, tokens: Sequence[str]) -> None:
        twice = [token for token, times in Counter(tokens).items() if times > 1]
        if twice:
            self._doubled(f"{who} has {twice[:5]} twice", len(twice))

    def _lost(self, count: int, sentence: str) -> None:
        self.row.lost += count
        self._faults.append(sentence)

    def _doubled(self, sentence: str, count: int = 1) -> None:
        self.row.doubled += count
        self._faults.append(sentence)

    def _disordered(self, sentence: str) -> None:
        self.row.disordered += 1
        self._faults.append(sentence)


def _is_doubled(tokens: Sequence[str]) -> bool:
    return len(set(tokens)) != len(tokens)


def table(rows: Sequence[Row]) -> list[str]:
    """All scenes, as lines of text."""
    names = ("planned", "acknowledged", "delivered", "lost", "doubled")
    width = max([len(row.scene) for row in rows] + [5])
    lines = [f"{'scene':<{width}}" + "".join(f"{name:>14}" for name in names)]
    return lines + [
        f"{row.scene:<{width}}" + "".join(f"{getattr(row, name):>14,}" for name in names) for row in rows
    ]


def write(rows: Sequence[Row], path: Path) -> None:
    """All scenes, for machines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"scenes": [asdict(row) for row in rows]}, indent=2) + "\n")
