"""The hub's memory of its channels: a ring each, and `history` for older envelopes.

It also keeps the threads of names that hold only a digest. A replay has no hole: when not all of it can be had, none of
it is sent.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Protocol

from runcast.broadcast.envelopes.envelope import Envelope
from runcast.broadcast.hub.channels import PRIVATE, session_of
from runcast.broadcast.hub.limits import HubLimits, HubStats
from runcast.broadcast.hub.memory.ring import Fit, Kept, Replay, Ring, sound
from runcast.broadcast.hub.signatures import Position

log = logging.getLogger("runcast.hub")
# Channels checked for each envelope, to find one to drop; an envelope adds one at most.
_LOOKS, _CROWDED_LOOKS = 2, 16
_EVENTS = 1_000  # cache channels whose last foreign event is kept


class History(Protocol):
    """Answers for envelopes that the hub no longer remembers; the log's in practice."""

    async def __call__(self, session_id: str, position: Position, *, until: int | None, most: int) -> Replay:
        """The envelopes of a thread after a position, the first one's `prev` being the position's offset.

        With `until`, an envelope ends exactly there and none goes beyond, so that the live stream continues from it.
        More than `most`, another epoch or an offset that the log has not reached: `Replay(False, epoch, head)`.
        """
        ...


class Memory:
    """Rings by channel; quiet ones without watchers are dropped first."""

    def __init__(
        self, limits: HubLimits, stats: HubStats, history: History | None, *, prefix: str = PRIVATE
    ) -> None:
        self.has_history = history is not None
        self.size = 0  # bytes that all rings hold
        self._limits = limits
        self._stats = stats
        self._history = history
        self._prefix = prefix
        self._rings: OrderedDict[str, Ring] = OrderedDict()  # the longest untouched first
        self._sessions: dict[str, str] = {}  # channel -> thread, where the name holds a digest
        self._events: OrderedDict[str, str] = OrderedDict()  # cache channel -> its last foreign event
        self._erased: OrderedDict[str, str] = OrderedDict()  # channel of a forgotten thread -> its epoch
        self._reads: dict[tuple[str, Position, int | None], asyncio.Future[Replay]] = {}

    def __len__(self) -> int:
        return len(self._rings)

    def session(self, channel: str) -> str | None:
        """The thread of a channel, if it is a thread's."""
        return self._sessions.get(channel) or session_of(channel, prefix=self._prefix)

    def find(self, channel: str) -> Ring | None:
        """The ring of a channel, if an envelope was published on it."""
        return self._rings.get(channel)

    def stands(self, channel: str) -> Position:
        """The position of a channel; an empty epoch and 0 where nothing was published."""
        ring = self._rings.get(channel)
        return ring.stands if ring is not None else Position("", 0)

    def ring(self, channel: str) -> Ring:
        """The ring of a channel, made when there is none."""
        ring = self._rings.get(channel)
        if ring is None:
            limits = self._limits
            ring = Ring(most=limits.ring, most_bytes=limits.ring_bytes, age=limits.ring_age)
            ring.touched = time.monotonic()
            self._rings[channel] = ring
        self._rings.move_to_end(channel)
        return ring

    def add(
        self, channel: str, envelope: Envelope, *, busy: Callable[[str], bool], fit: Fit | None = None
    ) -> Kept:
        """Remember an envelope, and drop others to make room. `fit`: as the channel's ring has just judged it."""
        ring = self.ring(channel)
        before, is_new = ring.size, not ring.head
        kept = ring.add(envelope, envelope.encode(), time.monotonic(), fit)
        self.size += ring.size - before
        if is_new and session_of(channel, prefix=self._prefix) is None:
            self._sessions[channel] = envelope.session_id
        self._make_room(channel, busy)
        return kept

    def _make_room(self, newest: str, busy: Callable[[str], bool]) -> None:
        stale = time.monotonic() - self._limits.ring_age
        looks = _CROWDED_LOOKS if self._crowded() else _LOOKS
        for name in list(islice(self._rings, looks)):
            if busy(name):
                self._rings.move_to_end(name)
            elif name != newest and (self._crowded() or self._rings[name].touched < stale):
                self._forget(name)
            else:
                break
        # When every channel is watched, the longest untouched keep their position and lose their envelopes.
        for name in [] if self.size <= self._limits.memory else list(self._rings):
            if self.size <= self._limits.memory:
                break
            self.size -= self._rings[name].clear()

    def _crowded(self) -> bool:
        return len(self._rings) > self._limits.channels or self.size > self._limits.memory

    def _forget(self, channel: str) -> None:
        self.size -= self._rings.pop(channel).size
        self._sessions.pop(channel, None)

    def erase(self, channel: str) -> None:
        """Forget a channel; envelopes of its epoch that are still on their way are dropped."""
        ring = self._rings.get(channel)
        if ring is not None:
            self._erased[channel] = ring.epoch
            self._forget(channel)
        self._events.pop(channel, None)
        if len(self._erased) > _EVENTS:
            self._erased.popitem(last=False)

    def is_erased(self, channel: str, epoch: str) -> bool:
        """Whether the thread of this channel was forgotten in this epoch."""
        return self._erased.get(channel) == epoch

    def keep_event(self, channel: str, text: str) -> None:
        """Keep the last frame of a cache channel that carries no envelopes."""
        self._events[channel] = text
        self._events.move_to_end(channel)
        if len(self._events) > _EVENTS:
            self._events.popitem(last=False)

    def last_event(self, channel: str) -> str | None:
        """The last frame of a cache channel that carries no envelopes."""
        return self._events.get(channel)

    def recent(self, channel: str, position: Position) -> list[Kept] | None:
        """The envelopes after a position; None when the ring does not have them all."""
        ring = self._rings.get(channel)
        if ring is None:
            return None
        before = ring.size
        ring.expire(time.monotonic())
        self.size += ring.size - before
        return ring.after(position, most=self._limits.replay, most_bytes=self._limits.replay_bytes)

    async def read(self, channel: str, position: Position) -> Replay:
        """All envelopes after a position from history, or a `Replay` that is not recovered.

        It ends at this hub's last published envelope when that is further, so that the next one continues from there.
        Readers that come back to one position at the same time share one read.
        """
        place = self.stands(channel).offset
        until = place if place > position.offset else None
        key = (channel, position, until)
        read = self._reads.get(key)
        if read is None:
            read = self._reads[key] = asyncio.ensure_future(self._ask(channel, position, until))
            read.add_done_callback(lambda _: self._reads.pop(key, None))
        return await asyncio.shield(read)

    async def _ask(self, channel: str, position: Position, until: int | None) -> Replay:
        session_id = self.session(channel)
        if self._history is None or session_id is None:
            return Replay.at(self.stands(channel), recovered=False)
        most = self._limits.replay
        try:
            replay = await self._history(session_id, position, until=until, most=most)
            size = sum(len(envelope.encode()) for envelope in replay.envelopes)
        except Exception:  # a broken history must not stop the hub
            self._stats.history_errors += 1
            log.exception("history of thread %r could not be read", session_id)
            return Replay.at(self.stands(channel), recovered=False)
        self.ring(channel).expect(replay.epoch)
        if not replay.recovered:
            return replay
        if not sound(replay, position):
            self._stats.history_errors += 1
            log.error("history of thread %r does not continue from the requested position", session_id)
            return replace(replay, recovered=False, envelopes=())
        if size > self._limits.replay_bytes or len(replay.envelopes) > most:
            return replace(replay, recovered=False, envelopes=())
        return replay
