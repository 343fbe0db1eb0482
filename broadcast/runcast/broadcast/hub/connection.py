"""A socket that was let in, and what a skin must be able to do with it.

Knows no channel and no protocol: it is where the hub and the skins (`server.py`, `asgi.py`) meet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from runcast.broadcast.hub.auth import Position
from runcast.broadcast.hub.protocol import PlainSocket, PusherSocket
from runcast.broadcast.hub.ring import Kept, follow


class Skin(Protocol):
    """Writes one text to many of its sockets, encoding it once."""

    def send(self, transports: Sequence[Any], text: str) -> None:
        """Queue the text on each; a socket that is gone is passed over."""
        ...


class Transport(Protocol):
    """One socket, as a skin shows it to the hub. Nothing here waits."""

    @property
    def skin(self) -> Skin:
        """Who writes to this socket."""
        ...

    def buffered(self) -> int:
        """Bytes that the other side has not taken yet."""
        ...

    def abort(self) -> None:
        """Drop the connection at once: whoever does not read does not read a goodbye either."""
        ...

    def close(self, code: int, reason: str) -> None:
        """Begin the closing handshake."""
        ...


@dataclass(slots=True, eq=False)
class Behind:
    """A reader that is being caught up on a channel; what is published meanwhile waits here."""

    greeted: bool  # whether it was told that it is in
    waiting: list[Kept] = field(default_factory=list[Kept])
    more: asyncio.Event = field(default_factory=asyncio.Event)

    def next_ones(self, position: Position) -> list[Kept]:
        """Take what waits and continues from this place; what the reader has already is let go."""
        self.more.clear()
        epoch, last = position.epoch, position.offset
        rest = [kept for kept in self.waiting if kept.envelope.epoch == epoch and kept.envelope.seq > last]
        count = follow((kept.envelope for kept in rest), last)
        self.waiting = rest[count:]
        return rest[:count]


@dataclass(slots=True, eq=False)
class Connection:
    """A socket that was let in."""

    socket: PusherSocket | PlainSocket
    transport: Transport
    address: str
    opened: float
    heard: float  # when it last gave a sign of life
    asked: float | None = None  # when it was asked for one
    gone: bool = False
    plain: bool = field(init=False)  # whether this is the plain JSON mode
    _behind: dict[str, Behind] = field(default_factory=dict[str, Behind])
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    def __post_init__(self) -> None:
        self.plain = isinstance(self.socket, PlainSocket)

    def behind(self, channel: str) -> Behind | None:
        """What waits for this reader while it is caught up on a channel; None when it is live."""
        return self._behind.get(channel)

    def fall_behind(self, channel: str, *, greeted: bool) -> Behind:
        """From here on what is published on a channel waits."""
        behind = self._behind[channel] = Behind(greeted)
        return behind

    def caught_up(self, channel: str) -> Behind | None:
        """The reader goes live, or leaves."""
        return self._behind.pop(channel, None)

    @property
    def held(self) -> int:
        """Bytes that wait until the reader has caught up."""
        return sum(len(kept.body) for behind in self._behind.values() for kept in behind.waiting)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something for this connection, as long as it lives."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def end(self) -> None:
        """The connection is over; what is done for it stops."""
        self.gone = True
        self._behind.clear()
        for task in self._tasks:
            task.cancel()
