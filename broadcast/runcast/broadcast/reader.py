"""The reader's side of the envelope: what to do with one that arrived, whatever the line did to it.

The whole rule: `seq <= last` drop, `prev == last` apply, else fetch `after=last`. Parts of one entry count up and move
the position after the last one; a gap is fetched; another epoch starts over from the snapshot. Pure; the page's
`runcast.js` is the same machine in JavaScript, and one test drives both.
"""

from __future__ import annotations

from enum import Enum

from runcast.broadcast.envelope import Envelope


class Take(Enum):
    """What to do with an envelope."""

    APPLY = "apply"
    DROP = "drop"  # it was applied before
    FETCH = "fetch"  # something before it is missing: read the thread after `last`, and take what comes
    RESTART = "restart"  # the thread's log has another incarnation: begin from the snapshot


class Reader:
    """One thread's position at a reader. `last` and `epoch` are what it sends when it comes back."""

    def __init__(self, *, last: int | None = None, epoch: str | None = None) -> None:
        self.last = last  # seq of the last entry told in whole; None: the first envelope decides
        self.epoch = epoch
        self._seq: int = 0  # the entry of which parts were told
        self._part: int = 0  # and how many of them

    def take(self, envelope: Envelope, *, fetched: bool = False) -> Take:
        """Judge one envelope and move on if it is to be applied. `fetched`: it came from the log, a gap is final."""
        if self.epoch is None:
            self.epoch = envelope.epoch
        elif envelope.epoch != self.epoch:
            return Take.RESTART
        if self.last is None:
            self.last = envelope.prev
        if envelope.seq <= self.last:
            return Take.DROP
        part, of = envelope.part or (1, 1)
        told = self._part if envelope.seq == self._seq else 0
        if part <= told:
            return Take.DROP
        if envelope.prev != self.last or part != told + 1:
            return Take.FETCH
        if envelope.type == "agent.gap" and not fetched:
            return Take.FETCH
        if part == of:
            self.last = envelope.seq
            self._seq = self._part = 0
        else:
            self._seq, self._part = envelope.seq, part
        return Take.APPLY

    def start(self, *, last: int, epoch: str) -> None:
        """Stand at a snapshot: everything up to `last` is in it."""
        self.last, self.epoch = last, epoch
        self._seq = self._part = 0
