"""What the hub still knows of its channels, and where it asks for what it does not.

One ring a channel, the threads behind names that do not tell, and `history`, which answers for the rest. Nothing is
ever replayed with a hole: what cannot be told whole is not told.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Protocol

from runcast.broadcast.envelope import Envelope
from runcast.broadcast.hub.auth import Position
from runcast.broadcast.hub.channels import PRIVATE, session_of
from runcast.broadcast.hub.limits import HubLimits, HubStats
from runcast.broadcast.hub.ring import Kept, Replay, Ring, sound

log = logging.getLogger("runcast.hub")
_LOOKS = 16  # channels looked at for each envelope, to find one that may be forgotten
_EVENTS = 1_000  # cache channels whose last foreign event is kept


class History(Protocol):
    """Answers for what the hub no longer remembers; the log's in practice."""

    async def __call__(self, session_id: str, position: Position, *, until: int | None, most: int) -> Replay:
        """The envelopes of a thread after a position, the first one's `prev` being the position's offset.

        With `until`, an envelope ends exactly there and none goes beyond, so that the live stream can go on from it.
        More than `most`, another epoch or an offset that the log has not reached: `Replay(False, epoch, head)`.
        """
        ...


class Memory:
    """Rings by channel; quiet ones without watchers are forgotten first."""

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
        self._sessions: dict[str, str] = {}  # channel -> thread, where the name does not tell
        self._events: OrderedDict[str, str] = OrderedDict()  # cache channel -> its last foreign event
        self._reads: dict[tuple[str, Position, int | None], asyncio.Future[Replay]] = {}

    def __len__(self) -> int:
        return len(self._rings)

    def session(self, channel: str) -> str | None:
        """The thread a channel belongs to, if it is a thread's."""
        return self._sessions.get(channel) or session_of(channel, prefix=self._prefix)

    def find(self, channel: str) -> Ring | None:
        """The ring of a channel that something was published on."""
        return self._rings.get(channel)

    def stands(self, channel: str) -> tuple[str, int]:
        """Epoch and place of a channel; empty and 0 where nothing was published."""
        ring = self._rings.get(channel)
        return (ring.epoch, ring.stands) if ring is not None else ("", 0)

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

    def add(self, channel: str, envelope: Envelope, *, busy: Callable[[str], bool]) -> Kept:
        """Remember an envelope, and forget what there is no room for."""
        ring = self.ring(channel)
        before = ring.size
        kept = ring.add(envelope, envelope.encode(), time.monotonic())
        self.size += ring.size - before
        if session_of(channel, prefix=self._prefix) is None:
            self._sessions[channel] = envelope.session_id
        self._make_room(channel, busy)
        return kept

    def _make_room(self, newest: str, busy: Callable[[str], bool]) -> None:
        stale = time.monotonic() - self._limits.ring_age
        for name in list(islice(self._rings, _LOOKS)):
            if busy(name):
                self._rings.move_to_end(name)
            elif name != newest and (self._crowded() or self._rings[name].touched < stale):
                self._forget(name)
            else:
                break
        # When every channel is being watched, the longest untouched keep their place and lose what they remember.
        for name in [] if self.size <= self._limits.memory else list(self._rings):
            if self.size <= self._limits.memory:
                break
            self.size -= self._rings[name].clear()

    def _crowded(self) -> bool:
        return len(self._rings) > self._limits.channels or self.size > self._limits.memory

    def _forget(self, channel: str) -> None:
        self.size -= self._rings.pop(channel).size
        self._sessions.pop(channel, None)

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
        """What came after a position, as far as the ring has it all."""
        ring = self._rings.get(channel)
        if ring is None:
            return None
        before = ring.size
        ring.expire(time.monotonic())
        self.size += ring.size - before
        return ring.after(position, most=self._limits.replay, most_bytes=self._limits.replay_bytes)

    async def read(self, channel: str, position: Position) -> Replay:
        """What came after a position, from history: all of it, or the word that it cannot be had.

        As far as this hub has published, when that is further; so what it publishes next goes on from there. Readers
        that come back in a crowd to one place share one read.
        """
        place = self.stands(channel)[1]
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
            return Replay(False, *self.stands(channel))
        most = self._limits.replay
        try:
            replay = await self._history(session_id, position, until=until, most=most)
            size = sum(len(envelope.encode()) for envelope in replay.envelopes)
        except Exception:  # a broken history must not take the hub down
            self._stats.history_errors += 1
            log.exception("history of thread %r could not be read", session_id)
            return Replay(False, *self.stands(channel))
        self.ring(channel).expect(replay.epoch)
        if not replay.recovered:
            return Replay(False, replay.epoch, replay.head)
        if not sound(replay, position):
            self._stats.history_errors += 1
            log.error("history of thread %r is not what was asked for: it has a hole", session_id)
            return Replay(False, replay.epoch, replay.head)
        if size > self._limits.replay_bytes or len(replay.envelopes) > most:
            return Replay(False, replay.epoch, replay.head)
        return replay
