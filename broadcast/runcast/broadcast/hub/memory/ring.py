"""A channel's newest envelopes, an unbroken chain, so that a short absence costs no log read.

Pure: time is an argument, in seconds. Does not know sockets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import orjson

from runcast.broadcast.envelopes.envelope import Envelope
from runcast.broadcast.hub.signatures import Position
from runcast.broadcast.reader import Place, Take, after, judge

_EPOCHS = 8  # ended incarnations that are still known, so that their late envelopes are dropped


class Fit(Enum):
    """The relation of a published envelope to a channel's chain."""

    NEXT = "next"  # it continues the chain, or begins it
    DOUBLE = "double"  # it was seen, or belongs to an ended incarnation
    HOLE = "hole"  # an envelope before it is missing here
    RESTART = "restart"  # the thread's log has another incarnation or history


_FITS = {Take.APPLY: Fit.NEXT, Take.DROP: Fit.DOUBLE, Take.FETCH: Fit.HOLE, Take.RESTART: Fit.RESTART}


@dataclass(frozen=True, slots=True)
class Kept:
    """An envelope and its encoded form, encoded once for all readers."""

    envelope: Envelope
    body: bytes
    at: float


@dataclass(frozen=True, slots=True)
class Replay:
    """The envelopes after a reader's position: all of them, or none (`recovered` False).

    `head` is the seq the log has reached, `mark` that of its run.
    """

    recovered: bool
    epoch: str
    head: int
    envelopes: Sequence[Envelope] = ()
    mark: str = ""

    @classmethod
    def at(cls, position: Position, *, recovered: bool) -> Replay:
        """Without envelopes, at a position."""
        return cls(recovered, position.epoch, position.offset, mark=position.mark)


def read_envelope(data: str) -> Envelope | None:
    """The envelope in a text from outside, or None when it is something else."""
    try:
        wire: dict[str, Any] = orjson.loads(data)
        envelope = Envelope.from_dict(wire)
    except (orjson.JSONDecodeError, LookupError, TypeError, AttributeError):
        return None
    texts: set[type] = {
        type(wire[name]) for name in ("type", "session_id", "execution_id", "timestamp", "epoch")
    }
    numbers: set[type] = {type(number) for number in (wire["seq"], wire["prev"], *(wire.get("part") or ()))}
    if texts != {str} or numbers != {int} or not envelope.epoch:  # as JSON has them
        return None
    return envelope if 0 <= envelope.prev < envelope.seq else None


def vouched(position: Position, at: Iterable[Envelope], following: Envelope | None) -> bool:
    """Whether envelopes prove that a bound position is of their history: `at` are those of its seq."""
    if not position.mark:
        return True
    marks = [*(each.mark for each in at if each.seq == position.offset), following.mark if following else ""]
    return marks[0] == position.mark


def follow(envelopes: Iterable[Envelope], last: int) -> int:
    """The number of these that continue, one after the other, from a reader's seq."""
    place = Place(last)
    count = 0
    for envelope in envelopes:
        take, place = judge(place, envelope)
        if take is not Take.APPLY:
            break
        count += 1
    return count


def sound(replay: Replay, position: Position) -> bool:
    """Whether a replay continues from the position: the same log, whole entries, without a hole."""
    envelopes = replay.envelopes
    if position.epoch not in ("", replay.epoch) or position.offset > replay.head:
        return False
    if any(envelope.epoch != replay.epoch for envelope in envelopes):
        return False
    if envelopes and after(envelopes[-1]).part:
        return False
    return follow(envelopes, position.offset) == len(envelopes)


class Ring:
    """The chain of one channel's newest envelopes, bounded in number, bytes and age."""

    def __init__(self, *, most: int, most_bytes: int, age: float) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._age = age
        self._kept: deque[Kept] = deque()
        self._place = Place(0)
        self._over: deque[str] = deque(maxlen=_EPOCHS)
        self._expected = ""  # the epoch that the log itself gave
        self._anew = False  # it differs from the one that readers were greeted with
        self.size = 0  # bytes
        self.epoch = ""
        self.touched = 0.0

    @property
    def head(self) -> int:
        """The seq of the last envelope seen."""
        return self._place.seq or self._place.last

    @property
    def whole(self) -> bool:
        """Whether the last entry's envelopes have all been seen."""
        return not self._place.part

    @property
    def stands(self) -> Position:
        """The position behind the last entry that was seen whole; an empty epoch before the first envelope."""
        return Position(self.epoch, self._place.last, self._place.mark)

    def judge(self, envelope: Envelope) -> Fit:
        """The relation of this envelope to the chain, without adding it."""
        if envelope.epoch in self._over or envelope.history in self._over:
            return Fit.DOUBLE
        if self._anew or envelope.epoch != (self.epoch or self._expected or envelope.epoch):
            return Fit.RESTART
        if not self.epoch:
            return Fit.NEXT
        return _FITS[judge(self._place, envelope)[0]]

    def add(self, envelope: Envelope, body: bytes, now: float, fit: Fit | None = None) -> Kept:
        """Take an envelope; after a hole or a restart the chain begins anew with it. `fit`: as it was just judged."""
        fit = fit or self.judge(envelope)
        if fit is not Fit.NEXT:
            self._kept.clear()
            self.size = 0
        if fit is Fit.RESTART:
            self._end(self.epoch or self._expected, envelope.epoch)
            if self.epoch == envelope.epoch and self._place.mark:
                self._end(self.stands.history, envelope.history)
            self._anew = False
        self.epoch, self.touched = envelope.epoch, now
        self._place = after(envelope, self._place.mark if fit is Fit.NEXT else "")
        kept = Kept(envelope, body, now)
        self._kept.append(kept)
        self.size += len(body)
        while len(self._kept) > self._most or self.size > self._most_bytes:
            self._drop()
        self.expire(now)
        return kept

    def expect(self, epoch: str) -> None:
        """Set the log's own epoch: envelopes of another one are late from now on."""
        if not epoch or epoch in self._over:
            return
        known = self._expected or self.epoch
        if known not in ("", epoch):
            self._end(known, epoch)
            self._anew = True
        self._expected = epoch

    def _end(self, epoch: str, following: str) -> None:
        if epoch != following and epoch not in self._over:
            self._over.append(epoch)

    def expire(self, now: float) -> None:
        """Drop envelopes that are too old."""
        while self._kept and now - self._kept[0].at > self._age:
            self._drop()

    def clear(self) -> int:
        """Drop all envelopes and keep the position; returns the bytes that were freed."""
        freed, self.size = self.size, 0
        self._kept.clear()
        return freed

    def _drop(self) -> None:
        """Drop the oldest with the other parts of its entry: a reader cannot use half an entry."""
        first = self._kept.popleft()
        self.size -= len(first.body)
        while self._kept and self._kept[0].envelope.seq == first.envelope.seq:
            self.size -= len(self._kept.popleft().body)

    def after(self, position: Position, *, most: int, most_bytes: int) -> list[Kept] | None:
        """Every envelope after a position, or None when this memory has a hole there."""
        if not self.epoch or position.epoch not in ("", self.epoch) or position.offset > self.head:
            return None
        if position.offset == self.head:
            return [] if self.whole and position.mark in ("", self._place.mark) else None
        tail: list[Kept] = []
        size = 0
        there: tuple[Envelope, ...] = ()  # the position's own
        for kept in reversed(self._kept):
            if kept.envelope.seq <= position.offset:
                there = (kept.envelope,)
                break
            tail.append(kept)
            size += len(kept.body)
        tail.reverse()
        if not tail or tail[0].envelope.prev != position.offset or len(tail) > most or size > most_bytes:
            return None
        return tail if vouched(position, there, tail[0].envelope) else None

    def last(self) -> Kept | None:
        """The newest envelope, for a cache channel."""
        return self._kept[-1] if self._kept else None
