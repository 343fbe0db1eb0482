"""Bringing a reader from the place it stood to where the live stream goes on: without a hole, without a double.

What is published meanwhile waits. History is read as far as this hub has published, so that the next live envelope
goes on from there; where the log is ahead of the hub, the reader waits for the live stream to reach it, and gets the
exact rest of an envelope that begins before its place from the log once more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from enum import Enum

from runcast.broadcast.envelope import Envelope
from runcast.broadcast.hub.auth import Position
from runcast.broadcast.hub.connection import Behind, Connection
from runcast.broadcast.hub.memory import Memory
from runcast.broadcast.hub.ring import Kept, Replay
from runcast.broadcast.hub.writer import Writer

log = logging.getLogger("runcast.hub")

_ROUNDS = 5  # readings of history before a reader that never catches up is sent away
_PAUSE = 0.05  # seconds before the second reading, and more before each that follows


class _Now(Enum):
    LIVE = 1  # the reader stands where the channel does
    AHEAD = 2  # the log was ahead of what was published here
    ASTRIDE = 3  # what comes next begins before the reader's place


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
        self._greet = greet  # tells a reader that it is in
        self._give_up = give_up  # sends one away that cannot be caught up

    def start(self, connection: Connection, channel: str, position: Position, *, greeted: bool) -> None:
        """From here on what is published on this channel waits for this reader until it is there."""
        behind = connection.fall_behind(channel, greeted=greeted)
        connection.spawn(self._bring(connection, channel, position, behind))

    async def _bring(self, connection: Connection, channel: str, position: Position, behind: Behind) -> None:
        try:
            for attempt in range(_ROUNDS):
                await asyncio.sleep(_PAUSE * attempt)
                replay = await self._memory.read(channel, position)
                if connection.behind(channel) is not behind:
                    return  # it left, or was told to begin anew
                if not self._hand_over(connection, channel, position, behind, replay):
                    break
                position = _after(position, replay)
                position = await self._meet(connection, channel, position, behind)
                if connection.behind(channel) is not behind:
                    return
        except Exception:
            log.exception("a reader could not be caught up on %s", channel)
        if connection.behind(channel) is behind:
            self._give_up(connection)

    def _hand_over(
        self, connection: Connection, channel: str, position: Position, behind: Behind, replay: Replay
    ) -> bool:
        """Give what history told. False when it could not tell, and the reader was promised that it could."""
        if not behind.greeted:
            behind.greeted = True
            # Told is what is handed over now; the log may have reached further.
            told = replace(replay, head=_after(position, replay).offset) if replay.recovered else replay
            self._greet(connection, channel, told)
            if not replay.recovered:
                connection.caught_up(channel)
                self._writer.deliver(connection, channel, behind.waiting)
                return True
        self._writer.deliver(connection, channel, [_kept(envelope) for envelope in replay.envelopes])
        return replay.recovered

    async def _meet(
        self, connection: Connection, channel: str, position: Position, behind: Behind
    ) -> Position:
        """Join the live stream, waiting for it where it is behind; answers where the reader stands."""
        while connection.behind(channel) is behind:
            kept = behind.next_ones(position)
            self._writer.deliver(connection, channel, kept)
            if kept:
                position = replace(position, offset=kept[-1].envelope.seq)
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
        # In the middle of an entry, only who was given its first parts goes live with the rest.
        return _Now.LIVE if ring.whole or mid else _Now.AHEAD


def _after(position: Position, replay: Replay) -> Position:
    last = replay.envelopes[-1].seq if replay.envelopes else position.offset
    return Position(replay.epoch, last)


def _kept(envelope: Envelope) -> Kept:
    return Kept(envelope, envelope.encode(), 0.0)
