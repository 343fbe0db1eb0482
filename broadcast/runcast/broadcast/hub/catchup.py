"""Brings a reader from its position to the live stream, without a hole and without a double.

Envelopes published meanwhile wait. History is read up to this hub's last published envelope, so that the next live one
continues from there; where the log is ahead of the hub, the reader waits until the live stream reaches it, and the rest
of an envelope that begins before its position is read from the log again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from enum import Enum

from runcast.broadcast.envelopes.envelope import Envelope
from runcast.broadcast.hub.connection import Behind, Connection
from runcast.broadcast.hub.frame_writer import Writer
from runcast.broadcast.hub.memory.channel_memory import Memory
from runcast.broadcast.hub.memory.ring import Kept, Replay
from runcast.broadcast.hub.signatures import Position

log = logging.getLogger("runcast.hub")

_ROUNDS = 5  # readings of history before a reader that does not catch up is dismissed
_PAUSE = 0.05  # seconds before the second reading; longer before each later one


class _Now(Enum):
    LIVE = 1  # the reader is at the channel's position
    AHEAD = 2  # the log was ahead of what was published here
    ASTRIDE = 3  # the next envelope begins before the reader's position


class CatchUp:
    """Catches readers up from `history`."""

    def __init__(
        self,
        memory: Memory,
        writer: Writer,
        *,
        greet: Callable[[Connection, str, Replay], None],
        give_up: Callable[[Connection], None],
    ) -> None:
        self._memory = memory
        self._writer = writer
        self._greet = greet  # confirms a subscription
        self._give_up = give_up  # dismisses a reader that cannot be caught up

    def start(self, connection: Connection, channel: str, position: Position, *, greeted: bool) -> None:
        """From here on, envelopes published on this channel wait until this reader is caught up."""
        behind = connection.fall_behind(channel, greeted=greeted)
        connection.spawn(self._bring(connection, channel, position, behind))

    async def _bring(self, connection: Connection, channel: str, position: Position, behind: Behind) -> None:
        try:
            for attempt in range(_ROUNDS):
                await asyncio.sleep(_PAUSE * attempt)
                replay = await self._memory.read(channel, position)
                if connection.behind(channel) is not behind:
                    return  # it left, or began anew
                if not self._deliver(connection, channel, position, behind, replay):
                    break
                position = _after(position, replay)
                position = await self._meet(connection, channel, position, behind)
                if connection.behind(channel) is not behind:
                    return
        except Exception:
            log.exception("a reader could not be caught up on %r", channel)
        if connection.behind(channel) is behind:
            self._give_up(connection)

    def _deliver(
        self, connection: Connection, channel: str, position: Position, behind: Behind, replay: Replay
    ) -> bool:
        """Deliver a replay. False when history has none, although the reader's greeting promised it."""
        if not behind.greeted:
            behind.greeted = True
            # The greeting names the end of this replay; the log may be further.
            stands = Replay.at(_after(position, replay), recovered=True)
            greeted = stands if replay.recovered else replay
            self._greet(connection, channel, greeted)
            if not replay.recovered:
                connection.caught_up(channel)
                self._writer.deliver(connection, channel, behind.waiting)
                return True
        self._writer.deliver(connection, channel, [_kept(envelope) for envelope in replay.envelopes])
        return replay.recovered

    async def _meet(
        self, connection: Connection, channel: str, position: Position, behind: Behind
    ) -> Position:
        """Join the live stream, or wait until it gets here; returns the reader's position."""
        while connection.behind(channel) is behind:
            kept = behind.next_ones(position)
            self._writer.deliver(connection, channel, kept)
            if kept:
                last = kept[-1].envelope
                position = replace(position, offset=last.seq, mark=last.mark)
            match self._now(channel, position, behind, mid=bool(kept)):
                case _Now.LIVE:
                    connection.caught_up(channel)
                case _Now.AHEAD:
                    await behind.more.wait()
                case _Now.ASTRIDE:
                    break
        return position

    def _now(self, channel: str, position: Position, behind: Behind, *, mid: bool) -> _Now:
        if behind.waiting:
            return _Now.ASTRIDE
        ring = self._memory.find(channel)
        if ring is None or (ring.epoch, ring.head) != (position.epoch, position.offset):
            return _Now.AHEAD
        # In the middle of an entry, only a reader that has its first parts goes live with the rest.
        return _Now.LIVE if ring.whole or mid else _Now.AHEAD


def _after(position: Position, replay: Replay) -> Position:
    if not replay.envelopes:
        return replace(position, epoch=replay.epoch)
    last = replay.envelopes[-1]
    return Position(replay.epoch, last.seq, last.mark)


def _kept(envelope: Envelope) -> Kept:
    return Kept(envelope, envelope.encode(), 0.0)
