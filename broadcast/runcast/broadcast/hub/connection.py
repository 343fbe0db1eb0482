"""An admitted socket, and the interface through which the hub writes to it.

Knows no channel and no protocol; the hub and the skins (`websockets_server.py`, `asgi.py`) meet here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from runcast.broadcast.hub.memory.ring import Kept, follow
from runcast.broadcast.hub.protocol import PlainSocket, PusherSocket
from runcast.broadcast.hub.signatures import Position


class Skin(Protocol):
    """Writes texts to many of its sockets; each text is encoded once."""

    def send(self, transports: Sequence[Any], texts: Sequence[str]) -> None:
        """Queue the texts on each, in order; a socket that has ended is skipped."""
        ...


class Transport(Protocol):
    """One socket, as a skin presents it to the hub. No method waits."""

    @property
    def skin(self) -> Skin:
        """The skin that writes to this socket."""
        ...

    def buffered(self) -> int:
        """Bytes that the client has not taken yet."""
        ...

    def abort(self) -> None:
        """Drop the connection at once, without a closing frame that the client would not read."""
        ...

    def close(self, code: int, reason: str) -> None:
        """Begin the closing handshake."""
        ...


@dataclass(slots=True, eq=False)
class Behind:
    """A reader that is being caught up on a channel, and the envelopes published meanwhile."""

    greeted: bool  # its subscription was confirmed
    waiting: list[Kept] = field(default_factory=list[Kept])
    more: asyncio.Event = field(default_factory=asyncio.Event)

    def next_ones(self, position: Position) -> list[Kept]:
        """Take the waiting envelopes that continue from this position; those that the reader has are dropped."""
        self.more.clear()
        epoch, last = position.epoch, position.offset
        rest = [kept for kept in self.waiting if kept.envelope.epoch == epoch and kept.envelope.seq > last]
        count = follow((kept.envelope for kept in rest), last)
        self.waiting = rest[count:]
        return rest[:count]


@dataclass(slots=True, eq=False)
class Connection:
    """An admitted socket."""

    socket: PusherSocket | PlainSocket
    transport: Transport
    address: str
    opened: float
    heard: float  # time of its last frame
    asked: float | None = None  # time of the ping that it has not answered
    gone: bool = False
    plain: bool = field(init=False)  # the plain JSON mode
    names: dict[str, str] = field(
        default_factory=dict[str, str]
    )  # channel -> the older name that it asked for
    _behind: dict[str, Behind] = field(default_factory=dict[str, Behind])
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    def __post_init__(self) -> None:
        self.plain = isinstance(self.socket, PlainSocket)

    def behind(self, channel: str) -> Behind | None:
        """The envelopes waiting while this reader is caught up on a channel; None when it is live."""
        return self._behind.get(channel)

    def fall_behind(self, channel: str, *, greeted: bool) -> Behind:
        """From here on, envelopes published on a channel wait."""
        behind = self._behind[channel] = Behind(greeted)
        return behind

    def caught_up(self, channel: str) -> Behind | None:
        """The reader goes live, or leaves."""
        return self._behind.pop(channel, None)

    @property
    def held(self) -> int:
        """Bytes that wait until the reader is caught up."""
        return sum(len(kept.body) for behind in self._behind.values() for kept in behind.waiting)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task for this connection, as long as it is open."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def end(self) -> None:
        """The connection has ended; its tasks are cancelled."""
        self.gone = True
        self._behind.clear()
        for task in self._tasks:
            task.cancel()
