"""What a channel remembers: its newest envelopes, an unbroken chain, so that a short absence costs no log read.

Pure: time is an argument, in seconds. Does not know sockets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import orjson

from runcast.broadcast.envelope import Envelope
from runcast.broadcast.hub.auth import Position

Place = tuple[int, int, int]  # seq, part, parts: what a reader has, down to the part of an entry
_EPOCHS = 8  # incarnations that are over and still known, so that their late envelopes are told from news


class Fit(Enum):
    """How a published envelope follows what a channel has seen."""

    NEXT = "next"  # it continues the chain, or begins it
    DOUBLE = "double"  # it was seen, or belongs to an incarnation that is over
    HOLE = "hole"  # something between is missing here
    RESTART = "restart"  # the thread's log has another incarnation


@dataclass(frozen=True, slots=True)
class Kept:
    """An envelope and its encoded form, encoded once for everybody."""

    envelope: Envelope
    body: bytes
    at: float


@dataclass(frozen=True, slots=True)
class Replay:
    """What a reader missed: everything after its position, or nothing at all (`recovered` False).

    `head` is the seq the log has reached.
    """

    recovered: bool
    epoch: str
    head: int
    envelopes: Sequence[Envelope] = ()


def read_envelope(data: str) -> Envelope | None:
    """The envelope in a text from outside, or None when it is something else."""
    try:
        wire: dict[str, Any] = orjson.loads(data)
        envelope = Envelope.from_dict(wire)
    except (orjson.JSONDecodeError, LookupError, TypeError, AttributeError):
        return None
    texts = [wire[name] for name in ("type", "session_id", "execution_id", "timestamp", "epoch")]
    numbers = [wire["seq"], wire["prev"], *(wire.get("part") or ())]
    if not all(isinstance(text, str) for text in texts) or not envelope.epoch:
        return None
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
        return None
    return envelope if 0 <= envelope.prev < envelope.seq else None


def place_of(envelope: Envelope) -> Place:
    """Where a reader stands after this envelope."""
    part, parts = envelope.part or (1, 1)
    return envelope.seq, part, parts


def advance(place: Place, envelope: Envelope) -> Place | None:
    """The place after this envelope, or None when it does not come next."""
    seq, part, parts = place
    following = place_of(envelope)
    if part < parts:
        return following if following == (seq, part + 1, parts) else None
    return following if envelope.prev == seq < envelope.seq and following[1] == 1 else None


def follow(envelopes: Iterable[Envelope], last: int) -> int:
    """How many of these continue, one after the other, from a reader's place."""
    place: Place = (last, 1, 1)
    count = 0
    for envelope in envelopes:
        following = advance(place, envelope)
        if following is None:
            break
        place = following
        count += 1
    return count


def sound(replay: Replay, position: Position) -> bool:
    """Whether a replay is what was asked for: the same log, from the position on, whole and without a hole."""
    envelopes = replay.envelopes
    if position.epoch not in ("", replay.epoch) or position.offset > replay.head:
        return False
    if any(envelope.epoch != replay.epoch for envelope in envelopes):
        return False
    if envelopes and place_of(envelopes[-1])[1] != place_of(envelopes[-1])[2]:
        return False
    return follow(envelopes, position.offset) == len(envelopes)


class Ring:
    """The chain of one channel's newest envelopes, bounded in number, bytes and age."""

    def __init__(self, *, most: int, most_bytes: int, age: float) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._age = age
        self._kept: deque[Kept] = deque()
        self._place: Place = (0, 1, 1)
        self._before = 0  # where the last envelope's entry begins
        self._over: deque[str] = deque(maxlen=_EPOCHS)
        self._expected = ""  # the epoch that the log itself told of
        self._anew = False  # and that is not what earlier readers were told
        self.size = 0  # bytes
        self.epoch = ""
        self.touched = 0.0

    @property
    def head(self) -> int:
        """The seq of the last envelope seen."""
        return self._place[0]

    @property
    def whole(self) -> bool:
        """Whether the last entry's envelopes have all been seen."""
        return self._place[1] == self._place[2]

    @property
    def stands(self) -> int:
        """The seq of the last entry that was seen whole."""
        return self.head if self.whole else self._before

    def judge(self, envelope: Envelope) -> Fit:
        """How this envelope follows; nothing changes."""
        if envelope.epoch in self._over:
            return Fit.DOUBLE
        if self._anew or envelope.epoch != (self.epoch or self._expected or envelope.epoch):
            return Fit.RESTART
        if not self.epoch:
            return Fit.NEXT
        if place_of(envelope)[:2] <= self._place[:2]:
            return Fit.DOUBLE
        return Fit.NEXT if advance(self._place, envelope) else Fit.HOLE

    def add(self, envelope: Envelope, body: bytes, now: float) -> Kept:
        """Take an envelope; after a hole or a restart the chain begins anew with it."""
        fit = self.judge(envelope)
        if fit is not Fit.NEXT:
            self._kept.clear()
            self.size = 0
        if fit is Fit.RESTART:
            self._end(self.epoch or self._expected, envelope.epoch)
            self._anew = False
        self.epoch, self.touched = envelope.epoch, now
        self._place, self._before = place_of(envelope), envelope.prev
        kept = Kept(envelope, body, now)
        self._kept.append(kept)
        self.size += len(body)
        while len(self._kept) > self._most or self.size > self._most_bytes:
            self._drop()
        self.expire(now)
        return kept

    def expect(self, epoch: str) -> None:
        """The log itself says which incarnation it is in: what still comes of another is late."""
        if not epoch or epoch in self._over:
            return
        told = self._expected or self.epoch
        if told not in ("", epoch):
            self._end(told, epoch)
            self._anew = True
        self._expected = epoch

    def _end(self, epoch: str, following: str) -> None:
        if epoch != following and epoch not in self._over:
            self._over.append(epoch)

    def expire(self, now: float) -> None:
        """Forget what is too old."""
        while self._kept and now - self._kept[0].at > self._age:
            self._drop()

    def clear(self) -> int:
        """Forget all but the place; how many bytes that set free."""
        freed, self.size = self.size, 0
        self._kept.clear()
        return freed

    def _drop(self) -> None:
        """Forget the oldest, with the other parts of its entry: half an entry is of no use."""
        first = self._kept.popleft()
        self.size -= len(first.body)
        while self._kept and self._kept[0].envelope.seq == first.envelope.seq:
            self.size -= len(self._kept.popleft().body)

    def after(self, position: Position, *, most: int, most_bytes: int) -> list[Kept] | None:
        """Everything after a position, or None when this memory cannot say it without a hole."""
        if not self.epoch or position.epoch not in ("", self.epoch) or position.offset > self.head:
            return None
        if position.offset == self.head:
            return [] if self.whole else None
        tail: list[Kept] = []
        size = 0
        for kept in reversed(self._kept):
            if kept.envelope.seq <= position.offset:
                break
            tail.append(kept)
            size += len(kept.body)
        tail.reverse()
        if not tail or tail[0].envelope.prev != position.offset or len(tail) > most or size > most_bytes:
            return None
        return tail

    def last(self) -> Kept | None:
        """The newest envelope, for a cache channel."""
        return self._kept[-1] if self._kept else None
