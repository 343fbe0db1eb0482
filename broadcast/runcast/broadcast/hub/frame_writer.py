"""Writes frames to connections: each is encoded once for all of them, and no write waits.

Before each write it compares the bytes that the reader has not taken with the limit: a ping would only wait behind them.
A write costs a system call here, and a wake-up there, however small it is. So envelopes for many readers wait about as long
as their writes will take, and what is published meanwhile goes with them; those for a few are written at once.
Knows connections and frames; does not know the readers of a channel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from runcast.broadcast.hub.connection import Connection, Skin, Transport
from runcast.broadcast.hub.limits import HubStats
from runcast.broadcast.hub.memory.ring import Kept
from runcast.broadcast.hub.protocol import event_frame

TOGETHER = 64_000  # bytes of envelopes that are written at once
FEW = 300  # readers who wait for nothing: their writes are done within a millisecond
A_READER = 5e-6  # seconds that a round waits for each of its readers
LONGEST = 0.01  # seconds


class Writer:
    """Writes to many connections at once and cuts off those that do not read."""

    def __init__(
        self, *, buffer: int, event_name: str | None, stats: HubStats, gone: Callable[[Connection], None]
    ) -> None:
        self._buffer = buffer
        self._event_name = event_name  # None: the envelope's type
        self._stats = stats
        self.names: dict[str, set[str]] = {}  # channel -> older names that readers asked for
        self._gone = gone  # called after a connection was cut off

    def event(self, channel: str, kept: Kept) -> str:
        """An envelope's frame for Pusher clients."""
        return event_frame(self._event_name or kept.envelope.type, channel, kept.body)

    def send_kept(self, readers: Sequence[Connection], channel: str, kept: Sequence[Kept]) -> None:
        """Encode once for each mode, not once for each reader; what is small travels together."""
        if not readers:
            return
        if len(kept) > 1 and sum(len(each.body) for each in kept) > TOGETHER:
            for each in kept:
                self.send_kept(readers, channel, [each])
            return
        self._stats.delivered += len(readers) * len(kept)
        plain = [each for each in readers if each.plain]
        if len(plain) < len(readers):
            pusher = [each for each in readers if not each.plain] if plain else readers
            for name in self.names.get(channel, ()):  # those that subscribed by an older name
                known = [each for each in pusher if each.names.get(channel) == name]
                self.send(known, *(self.event(name, each) for each in kept))
                pusher = [each for each in pusher if each not in known]
            self.send(pusher, *(self.event(channel, each) for each in kept))
        if plain:
            self.send(plain, *(each.body.decode() for each in kept))

    def deliver(self, connection: Connection, channel: str, kept: Sequence[Kept]) -> None:
        """Send several to one reader, as long as it is connected."""
        for each in kept:
            if connection.gone:
                return
            self.send_kept([connection], channel, [each])

    def send(self, readers: Sequence[Connection], *texts: str) -> None:
        """Write to each, and cut off those that have left too much unread."""
        size = sum(len(text) if text.isascii() else len(text.encode()) for text in texts)
        most = self._buffer - size
        skins: dict[Skin, list[Transport]] = {}
        slow: list[Connection] = []
        last: Skin | None = None
        into: list[Transport] = []
        for connection in readers:
            if connection.gone:
                continue
            transport = connection.transport
            if transport.buffered() > most:
                slow.append(connection)
                continue
            if transport.skin is not last:  # as a rule all have the same
                last = transport.skin
                into = skins.setdefault(last, [])
            into.append(transport)
        for skin, transports in skins.items():
            skin.send(transports, texts)
            self._stats.bytes_out += size * len(transports)
        for connection in slow:
            self.cut_off(connection)

    def hold(self, connection: Connection, channel: str, kept: Kept) -> None:
        """Hold an envelope for a reader that is being caught up, within the same bound."""
        behind = connection.behind(channel)
        if behind is None:
            return
        behind.waiting.append(kept)
        behind.more.set()
        if connection.held > self._buffer:
            self.cut_off(connection)

    def cut_off(self, connection: Connection) -> None:
        """Drop a reader that does not read. It comes back with its position."""
        if connection.gone:
            return
        self._stats.slow_cuts += 1
        connection.transport.abort()
        self._gone(connection)


class _Round:
    """Envelopes on their way to the readers that were live when they were published."""

    __slots__ = ("kept", "readers", "size", "timer")

    def __init__(self, readers: Sequence[Connection], timer: asyncio.TimerHandle) -> None:
        self.readers = readers
        self.timer = timer
        self.kept: list[Kept] = []
        self.size = 0  # bytes


class Rounds:
    """At most one round a channel is waiting, for `LONGEST` and with `TOGETHER` bytes at most."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._waiting: dict[str, _Round] = {}

    def add(self, channel: str, readers: Sequence[Connection], kept: Sequence[Kept]) -> None:
        """Write these envelopes to these readers, now or with those that follow in a moment."""
        waiting = self._waiting.get(channel)
        if waiting is not None and waiting.readers is not readers and waiting.readers != readers:
            self.leave(channel)  # others have come or gone: nobody gets an envelope twice, or too early
            waiting = None
        if waiting is None:
            if len(readers) <= FEW:
                self._writer.send_kept(readers, channel, kept)
                return
            after = min(len(readers) * A_READER, LONGEST)
            timer = asyncio.get_running_loop().call_later(after, self.leave, channel)
            waiting = self._waiting[channel] = _Round(readers, timer)
        waiting.kept += kept
        waiting.size += sum(len(each.body) for each in kept)
        if waiting.size > TOGETHER:
            self.leave(channel)

    def leave(self, channel: str) -> None:
        """Write what waits for a channel's readers: something else is about to be sent to them."""
        waiting = self._waiting.pop(channel, None)
        if waiting is not None:
            waiting.timer.cancel()
            self._writer.send_kept(waiting.readers, channel, waiting.kept)

    def leave_all(self) -> None:
        """Write everything that waits."""
        for channel in list(self._waiting):
            self.leave(channel)
