"""The bounded queue of one channel's envelopes, in order.

When it is full, chunks of one message are joined first; then the oldest that may be missed are replaced by one
`agent.gap` that names the hole, so that a reader fetches them. Status and interrupt envelopes are never shed.
Pure: no clock, no waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from runcast.broadcast.envelopes.agui import AGUI, ends_or_begins
from runcast.broadcast.envelopes.envelope import CHUNKS, Envelope
from runcast.broadcast.envelopes.rollup import join, joins

KEPT = frozenset({"agent.status", "agent.interrupt"})


def must_arrive(envelope: Envelope) -> bool:
    """Whether every watcher needs this one: it is never shed, and waits for its target."""
    return envelope.type in KEPT or (envelope.type == AGUI and ends_or_begins(envelope.payload))


class EnvelopeQueue:
    """A bounded queue of envelopes that never breaks the chain of `prev`."""

    def __init__(self, limit: int, *, fits: Callable[[Envelope], bool] | None = None) -> None:
        self._limit = limit  # envelopes; those that are never shed may go beyond
        self._fits = fits
        self._queue: list[Envelope] = []
        self._flying = 0  # the first so many are on their way and must not change
        self.merged = 0  # envelopes joined because the queue was full
        self.shed = 0  # envelopes replaced by a gap, whatever the reason

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, envelopes: list[Envelope]) -> None:
        """Queue them; make room when there is none."""
        self._queue.extend(envelopes)
        if len(self._queue) > self._limit:
            self._join_chunks()
        if len(self._queue) > self._limit:
            self._shed(lambda envelope: envelope.type in CHUNKS)
        if len(self._queue) > self._limit:
            self._shed(lambda envelope: not must_arrive(envelope))

    def take(self, count: int) -> list[Envelope]:
        """The next to go, at most `count`. They stay, untouched, until `done`, `refuse` or `put_back`."""
        batch = self._queue[:count]
        self._flying = len(batch)
        return batch

    def put_back(self) -> None:
        """None of those taken went out; they may be joined and shed again."""
        self._flying = 0

    def done(self, delivered: int | Collection[int]) -> None:
        """Drop the first so many, or those at these positions: they are delivered. The others stay, as `put_back`."""
        self._flying = 0
        if isinstance(delivered, int):
            delivered = range(delivered)
        if delivered:
            self._queue = [envelope for n, envelope in enumerate(self._queue) if n not in delivered]

    def refuse(self, count: int) -> None:
        """The target refuses the first `count`: a gap takes their place."""
        self._flying = 0
        lost = self._queue[:count]
        if lost:
            self.shed += len(lost)
            self._queue[:count] = [_gap(lost)]

    def _join_chunks(self) -> None:
        flying = self._queue[: self._flying]
        joined: list[Envelope] = []
        for envelope in self._queue[self._flying :]:
            both = join([joined[-1], envelope]) if joined and joins(joined[-1], envelope) else None
            if both is not None and (self._fits is None or self._fits(both)):
                joined[-1] = both
                self.merged += 1
            else:
                joined.append(envelope)
        self._queue = flying + joined

    def _shed(self, may: Callable[[Envelope], bool]) -> None:
        """Replace the oldest run of envelopes that may be missed by one gap, down to three quarters of the limit."""
        room = len(self._queue) - self._limit * 3 // 4
        kept = self._queue[: self._flying]
        hole: list[Envelope] = []
        for envelope in self._queue[self._flying :]:
            if room > 0 and (may(envelope) or envelope.type == "agent.gap") and _whole(envelope, hole):
                hole.append(envelope)
                room -= 1
                continue
            if hole:
                kept.append(self._close(hole))
                hole = []
            kept.append(envelope)
        if hole:
            kept.append(self._close(hole))
        self._queue = kept

    def _close(self, hole: list[Envelope]) -> Envelope:
        if len(hole) == 1 and hole[0].type == "agent.gap":
            return hole[0]
        self.shed += sum(envelope.type != "agent.gap" for envelope in hole)
        return _gap(hole)


def _whole(envelope: Envelope, hole: list[Envelope]) -> bool:
    """Parts of one entry are shed together or not at all: a reader cannot use half of them."""
    if envelope.part is None or envelope.part[0] == 1:
        return True
    return bool(hole) and hole[-1].seq == envelope.seq


def _gap(lost: list[Envelope]) -> Envelope:
    first, last = lost[0], lost[-1]
    start = first.payload["from_seq"] if first.type == "agent.gap" else first.prev + 1
    return replace(
        last,
        type="agent.gap",
        prev=first.prev,
        payload={"from_seq": start, "to_seq": last.seq},
        part=None,
    )
