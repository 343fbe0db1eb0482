"""The reader's side of the envelope: what to do with one that arrived, after any loss, doubling or reordering.

The whole rule is in `judge`: `seq <= last` drop, `prev == last` apply, else fetch `after=last`. Parts of one entry count
up and move the position after the last one. A gap is fetched; another epoch starts over from the snapshot. The hub's
memory keeps its chain by the same function. Pure; `runcast.js` is the same machine in JavaScript, and one test drives
both.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from runcast.broadcast.envelopes.envelope import Envelope


class Take(Enum):
    """What to do with an envelope."""

    APPLY = "apply"
    DROP = "drop"  # it was applied before
    FETCH = "fetch"  # something before it is missing: read the thread after `last`
    RESTART = "restart"  # the thread's log has another incarnation: begin from the snapshot


class Place(NamedTuple):
    """How far a chain of envelopes has come: the last whole entry, and the parts of the next one."""

    last: int
    seq: int = 0  # the entry of which some parts came
    part: int = 0  # and how many of them; 0: none


def judge(place: Place, envelope: Envelope) -> tuple[Take, Place]:
    """Whether the envelope comes next, came before or leaves a hole; and the place after it."""
    if envelope.seq <= place.last:
        return Take.DROP, place
    part, _ = envelope.part or (1, 1)
    seen = place.part if envelope.seq == place.seq else 0
    if part <= seen:
        return Take.DROP, place
    if envelope.prev != place.last or part != seen + 1:
        return Take.FETCH, place
    return Take.APPLY, after(envelope)


def after(envelope: Envelope) -> Place:
    """The place of a chain that ends with this envelope."""
    part, parts = envelope.part or (1, 1)
    return Place(envelope.seq) if part == parts else Place(envelope.prev, envelope.seq, part)


class Reader:
    """One thread's position at a reader. `last` and `epoch` are what it sends when it comes back."""

    def __init__(self, *, last: int | None = None, epoch: str | None = None) -> None:
        self.epoch = epoch
        self._place = None if last is None else Place(last)  # None: the first envelope decides

    @property
    def last(self) -> int | None:
        """The seq of the last entry applied in whole; None before the first envelope."""
        return None if self._place is None else self._place.last

    def take(self, envelope: Envelope, *, fetched: bool = False) -> Take:
        """Judge one envelope and move on if it is to be applied. `fetched`: it came from the log, a gap is final."""
        if self.epoch is None:
            self.epoch = envelope.epoch
        elif envelope.epoch != self.epoch:
            return Take.RESTART
        if self._place is None:
            self._place = Place(envelope.prev)
        take, place = judge(self._place, envelope)
        if take is Take.APPLY and envelope.type == "agent.gap" and not fetched:
            return Take.FETCH
        self._place = place
        return take

    def start(self, *, last: int, epoch: str) -> None:
        """Stand at a snapshot: everything up to `last` is in it."""
        self._place, self.epoch = Place(last), epoch
