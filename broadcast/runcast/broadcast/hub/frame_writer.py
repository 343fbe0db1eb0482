"""Writes frames to connections: each is encoded once for all of them, and no write waits.

Before each write it compares the bytes that the reader has not taken with the limit: a ping would only wait behind them.
Knows connections and frames; does not know the readers of a channel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runcast.broadcast.hub.connection import Connection, Skin, Transport
from runcast.broadcast.hub.limits import HubStats
from runcast.broadcast.hub.memory.ring import Kept
from runcast.broadcast.hub.protocol import event_frame

TOGETHER = 64_000  # bytes of envelopes that are written at once


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
