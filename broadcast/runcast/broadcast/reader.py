"""The reader's side of the envelope: what to do with one that arrived, after any loss, doubling or reordering.

The whole rule is in `judge`: `seq <= last` drop, `prev == last` apply, else fetch `after=last`. Parts of one entry count
up and move the position after the last one. A gap is fetched; another epoch starts over from the snapshot, and so does an
envelope of another history. The hub's memory keeps its chain by the same function. Pure; `runcast.js` is the same machine in JavaScript, and one test drives
both.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from runcast.broadcast.envelopes.envelope import Envelope
from runcast.slim.entry import bound, is_other_history, unbound


class Take(Enum):
    """What to do with an envelope."""

    APPLY = "apply"
    DROP = "drop"  # it was applied before
    FETCH = "fetch"  # something before it is missing: read the thread after `last`
    RESTART = "restart"  # the thread's log has another incarnation or history: begin from the snapshot


class Place(NamedTuple):
    """How far a chain of envelopes has come: the last whole entry, and the parts of the next one."""

    last: int
    seq: int = 0  # the entry of which some parts came
    part: int = 0  # and how many of them; 0: none
    mark: str = ""  # of the last whole entry; empty when it is not known


def judge(place: Place, envelope: Envelope) -> tuple[Take, Place]:
    """Whether the envelope comes next, came before or leaves a hole; and the place after it."""
    if is_other_history(place.last, place.mark, envelope.seq, envelope.mark):
        return Take.RESTART, place
    if envelope.seq <= place.last:
        return Take.DROP, place
    part, _ = envelope.part or (1, 1)
    seen = place.part if envelope.seq == place.seq else 0
    if part <= seen:
        return Take.DROP, place
    if envelope.prev != place.last or part != seen + 1:
        return Take.FETCH, place
    return Take.APPLY, after(envelope, place.mark)


def after(envelope: Envelope, mark: str = "") -> Place:
    """The place of a chain that ends with this envelope, behind an entry with this mark."""
    part, parts = envelope.part or (1, 1)
    if part == parts:
        return Place(envelope.seq, mark=envelope.mark)
    return Place(envelope.prev, envelope.seq, part, mark)


class Reader:
    """One thread's position at a reader. `last` and `epoch` are what it sends when it comes back."""

    def __init__(self, *, last: int | None = None, epoch: str | None = None) -> None:
        self._epoch: str | None = None
        mark = ""
        if epoch is not None:
            self._epoch, mark = unbound(epoch)
        self._place = None if last is None else Place(last, mark=mark)  # None: the first envelope decides

    @property
    def epoch(self) -> str | None:
        """The epoch of the thread's log, bound to the history of the entries applied; None before the first."""
        mark = "" if self._place is None else self._place.mark
        return None if self._epoch is None else bound(self._epoch, mark)

    @property
    def last(self) -> int | None:
        """The seq of the last entry applied in whole; None before the first envelope."""
        return None if self._place is None else self._place.last

    def take(self, envelope: Envelope, *, fetched: bool = False) -> Take:
        """Judge one envelope and move on if it is to be applied. `fetched`: it came from the log, a gap is final."""
        if self._epoch is None:
            self._epoch = envelope.epoch
        elif envelope.epoch != self._epoch:
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
        self._epoch, mark = unbound(epoch)
        self._place = Place(last, mark=mark)
