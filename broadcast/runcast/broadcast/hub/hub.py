"""The hub: a publisher like any other (`Broadcaster(hub)`), and the server side of the sockets that the skins hold.

It joins the pure parts (protocol, channels, ring) with those that wait: history, `authorize`, timers. All of it runs on
one event loop. A reader that is behind is caught up from the ring or from `history`; one that does not read is cut off
and comes back with its position.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from runcast.broadcast.envelopes.budget import HUB, Budget
from runcast.broadcast.envelopes.envelope import Envelope
from runcast.broadcast.errors import ConfigError, HubError
from runcast.broadcast.hub import protocol as p
from runcast.broadcast.hub.access import Access, Authorize, Identify
from runcast.broadcast.hub.audience import Audience
from runcast.broadcast.hub.channels import PRIVATE, channel_for, kind_of, valid_name
from runcast.broadcast.hub.connection import Connection, Transport
from runcast.broadcast.hub.frame_writer import Writer
from runcast.broadcast.hub.gate import Gate
from runcast.broadcast.hub.limits import HubLimits, HubStats
from runcast.broadcast.hub.memory.channel_memory import History, Memory
from runcast.broadcast.hub.memory.ring import Fit, Kept, read_envelope
from runcast.broadcast.hub.signatures import Position
from runcast.broadcast.json_bytes import dumps
from runcast.slim.tasks import end

if TYPE_CHECKING:
    import ssl

    from runcast.broadcast.hub.skins.asgi import HubApp
    from runcast.broadcast.hub.skins.websockets_server import HubServer


class HubOptions(TypedDict, total=False):
    """The hub's other keyword arguments, all of them optional."""

    public: bool  # channels without a signature may be watched
    client_events: bool  # clients may send events to the others on private and presence channels
    event_name: str | None  # of every envelope's frame; by default the envelope's type
    snapshot_url: str | None  # with {session_id}: the state of a thread, for a reader beyond replay
    prefix: str  # of the threads' channels, as the broadcaster names them


class Hub:
    """Channels over WebSockets by the Pusher protocol: Echo and pusher-js work unchanged, and recover what they missed.

    `authorize(user, session_id)` decides whether a user may watch a thread; `identify(headers)` names the user of a
    request (by default none, and `authorize` gets None). `history` answers for what the hub no longer remembers.
    """

    name = "hub"
    budget: Budget = HUB

    def __init__(
        self,
        app_id: str,
        key: str,
        secret: str,
        *,
        authorize: Authorize | None = None,
        identify: Identify | None = None,
        history: History | None = None,
        limits: HubLimits | None = None,
        **options: Unpack[HubOptions],
    ) -> None:
        if not app_id or not key or not secret:
            raise ConfigError("a hub needs an app id, a key and a secret; Laravel calls them REVERB_APP_*")
        self.app_id = app_id
        self.key = key
        self.secret = secret
        self.limits = limits or HubLimits()
        self.prefix = options.get("prefix", PRIVATE)
        self.public = options.get("public", False)
        self._client_events = options.get("client_events", False)
        event_name = options.get("event_name")
        self._event_names = {event_name, "agent.event"}  # of envelopes over HTTP, besides their type
        self._gate = Gate(self.limits)
        self.access = Access(secret, self._gate, authorize=authorize, identify=identify)
        self._connections: dict[str, Connection] = {}
        self._stats = HubStats()
        self._memory = Memory(self.limits, self._stats, history, prefix=self.prefix)
        writer = Writer(buffer=self.limits.buffer, event_name=event_name, stats=self._stats, gone=self.gone)
        self._writer = writer
        self._audience = Audience(
            self._connections,
            self._memory,
            writer,
            self._stats,
            give_up=lambda reader: self.dismiss(reader, p.RECONNECT, "could not catch up; come back"),
            watched=self._watched,
            prefix=self.prefix,
            snapshot_url=options.get("snapshot_url"),
        )
        self._heartbeat: asyncio.Task[None] | None = None
        self._closing = False
        # Each is called when a channel gets its first reader (True) and when its last has left (False).
        self.on_watch: list[Callable[[str, bool], None]] = []

    # ----------------------------------------------------------- connections

    def session(self, channel: str) -> str | None:
        """The thread of a channel, if it is a thread's."""
        return self._memory.session(channel)

    def refuses(self, *, origin: str | None, address: str) -> p.Close | None:
        """The reason why a new connection may not come in; None when it may."""
        if self._closing:
            return p.Close(p.RECONNECT, "the hub is closing; come back at once")
        refusal = self._gate.refuses(origin=origin, address=address, connections=len(self._connections))
        if refusal is not None:
            self._stats.refused += 1
        return refusal

    def open_pusher(self, transport: Transport, *, address: str) -> Connection:
        """Let a Pusher client in; its first frame is sent."""
        socket = p.PusherSocket(
            f"{secrets.randbelow(10**9)}.{secrets.randbelow(10**9)}",
            key=self.key,
            secret=self.secret,
            limits=self.limits,
            client_events=self._client_events,
            public=self.public,
        )
        connection = self._open(socket, transport, address)
        self._writer.send([connection], socket.opened())
        return connection

    async def open_plain(
        self, transport: Transport, wanted: p.PlainRequest, *, address: str, headers: Mapping[str, str]
    ) -> Connection | p.Close:
        """Let a plain socket in and put it on its channel, or return the refusal."""
        session_id = wanted.session_id or (
            self.session(wanted.channel) if valid_name(wanted.channel) else None
        )
        # `agent.{id}` is enough for the thread's channel, whatever its prefix is.
        channel = wanted.channel if session_id is None else channel_for(session_id, prefix=self.prefix)
        try:
            allowed = await self._may_watch(channel, session_id, wanted.token, headers)
        except HubError as error:
            self._stats.authorize_errors += 1
            return p.Close(p.CANNOT_TELL, str(error))
        if not allowed:
            self._stats.auth_failures += 1
            return p.Close(p.MAY_NOT, "this channel may not be watched; ask for a token")
        # Others may have come in while `authorize` was running.
        refusal = self.refuses(origin=headers.get("origin"), address=address)
        if refusal is not None:
            return refusal
        socket = p.PlainSocket(secrets.token_hex(8), channel, limits=self.limits)
        connection = self._open(socket, transport, address)
        self._audience.join(connection, p.Subscribe(channel, wanted.position))
        return connection

    async def _may_watch(
        self, channel: str, session_id: str | None, token: str | None, headers: Mapping[str, str]
    ) -> bool:
        if self.public and not kind_of(channel).private and valid_name(channel):
            return True
        if session_id is None:
            return False
        return await self.access.admits(session_id, token=token, headers=headers, now=int(time.time()))

    def _open(self, socket: p.PusherSocket | p.PlainSocket, transport: Transport, address: str) -> Connection:
        now = time.monotonic()
        connection = Connection(socket, transport, address, now, now)
        self._connections[socket.socket_id] = connection
        self._gate.enter(address)
        self._stats.opened += 1
        if self._heartbeat is None or self._heartbeat.done():
            self._heartbeat = asyncio.create_task(self._beat(), name="hub heartbeat")
        return connection

    def received(self, connection: Connection, text: str | bytes) -> None:
        """A frame came in on this connection."""
        now = time.monotonic()
        connection.heard, connection.asked = now, None
        for action in connection.socket.feed(text, now):
            if connection.gone:
                return
            self._act(connection, action)

    def _act(self, connection: Connection, action: p.Action) -> None:
        match action:
            case p.Send(text):
                self._writer.send([connection], text)
            case p.Subscribe():
                self._audience.join(connection, action)
            case p.Unsubscribe(channel):
                self._audience.leave(connection, channel)
            case p.Whisper():
                self._audience.whisper(connection, action)
            case p.Refused():
                self._stats.auth_failures += 1
            case p.Nonsense():
                self._stats.bad_frames += 1
            case p.Limited():
                self._stats.limited += 1
            case p.Close(code, reason):
                self._stats.struck_out += 1
                self.dismiss(connection, code, reason)

    def dismiss(self, connection: Connection, code: int, reason: str) -> None:
        """Close a connection; the code decides whether the client comes back."""
        if connection.gone:
            return
        self._stats.closed(code)
        if code == p.NO_PONG and connection.transport.buffered():
            connection.transport.abort()  # it reads nothing, a closing frame included
        else:
            connection.transport.close(code, reason)
        self.gone(connection)

    def gone(self, connection: Connection) -> None:
        """The connection has ended on either side. Harmless to call twice."""
        if connection.gone:
            return
        connection.end()
        socket_id = connection.socket.socket_id
        del self._connections[socket_id]
        self._gate.leave(connection.address)
        for channel in self._audience.table.channels_of(socket_id):
            self._audience.leave(connection, channel)

    def terminate(self, user_id: str) -> None:
        """Close every connection of a user for good: its client does not reconnect by itself."""
        for connection in self._audience.of_user(user_id):
            self.dismiss(connection, p.MAY_NOT, "your connections were terminated; sign in again")

    async def _beat(self) -> None:
        """Ping silent clients and dismiss the dead and the idle, as long as there are connections."""
        limits = self.limits
        while self._connections:
            await asyncio.sleep(min(1.0, limits.activity / 4, limits.pong / 4, limits.unsubscribed / 4))
            now = time.monotonic()
            for connection in list(self._connections.values()):
                if not connection.gone:
                    self._look_after(connection, now)

    def _look_after(self, connection: Connection, now: float) -> None:
        limits = self.limits
        if not connection.socket.channels and now - connection.opened > limits.unsubscribed:
            self._stats.timeouts += 1
            self.dismiss(connection, p.WATCHES_NOTHING, "subscribe to a channel, or do not connect")
        elif connection.asked is not None:
            if now - connection.asked > limits.pong:
                self._stats.timeouts += 1
                self.dismiss(connection, p.NO_PONG, "no answer to a ping")
        elif now - connection.heard > limits.activity * 1.5:
            connection.asked = now
            ping = '{"type":"ping"}' if connection.plain else '{"event":"pusher:ping","data":{}}'
            self._writer.send([connection], ping)

    # ------------------------------------------------------------ publishing

    async def publish(self, channel: str, envelopes: Sequence[Envelope]) -> None:
        """Send envelopes to every reader of a channel. Those that were published before are dropped."""
        self._publish(channel, envelopes)

    async def erase(self, channel: str) -> None:
        """Forget the channel of a thread that was forgotten: its readers get one last frame, and leave it."""
        self._memory.erase(channel)
        for reader in self._audience.dismissed(channel):
            self.dismiss(reader, p.FORGOTTEN, "this thread was forgotten")

    def _publish(self, channel: str, envelopes: Sequence[Envelope]) -> None:
        """Those that follow each other go to every reader together."""
        together: list[Kept] = []
        for envelope in envelopes:
            if self._memory.is_erased(channel, envelope.epoch):
                continue
            ring = self._memory.ring(channel)
            fit = ring.judge(envelope)
            if fit is Fit.DOUBLE:
                self._stats.doubles += 1
                continue
            before = ring.stands if fit is Fit.HOLE else None
            kept = self._memory.add(channel, envelope, busy=self.watches, fit=fit)
            self._stats.published += 1
            self._stats.holes += fit is Fit.HOLE
            if fit in (Fit.RESTART, Fit.HOLE):
                self._audience.publish(channel, together)
                together = []
            if fit is Fit.RESTART:
                self._audience.begin_anew(channel, envelope)
            elif before is not None and self._memory.has_history:
                self._audience.mend(channel, before)
            together.append(kept)
        self._audience.publish(channel, together)

    def _watched(self, channel: str, watched: bool) -> None:
        for call in self.on_watch:
            call(channel, watched)

    def watches(self, channel: str) -> bool:
        """Whether the channel has a reader."""
        return self._audience.table.count(channel) > 0

    async def trigger(
        self, channels: Sequence[str], event: str, data: str, *, exclude: str | None = None
    ) -> None:
        """Send any event to channels, as the HTTP API of the protocol does; `data` is a string."""
        for name in channels:
            channel = self._audience.canonical(name)
            envelope = self._envelope_in(channel, event, data)
            if envelope is not None:
                self._publish(channel, [envelope])
                continue
            if kind_of(channel).cache:
                self._memory.keep_event(channel, _event(event, channel, data))
            self._stats.published += 1
            self._stats.delivered += self._audience.send(
                channel,
                lambda known: _event(event, known, data),
                exclude=None if exclude is None else self._connections.get(exclude),
                plain=False,
            )

    def _envelope_in(self, channel: str, event: str, data: str) -> Envelope | None:
        """An envelope of this channel's thread that another process published, or None for any other event."""
        envelope = read_envelope(data)
        if envelope is None or event not in (envelope.type, *self._event_names):
            return None
        known = self.session(channel)
        named = channel == channel_for(envelope.session_id, prefix=self.prefix)
        return envelope if named or known == envelope.session_id else None

    def position(self, channel: str) -> Position:
        """The position of a channel here; an empty epoch where nothing was published."""
        return self._memory.stands(channel)

    async def catch_up(self, channel: str) -> None:
        """Publish the envelopes that history has beyond those published here: for a node that may have missed some."""
        position = self.position(channel)
        if position.epoch:
            replay = await self._memory.read(channel, position)
            await self.publish(channel, replay.envelopes)

    # ------------------------------------------------------------------ life

    def serve(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        tls: ssl.SSLContext | None = None,
        deflate: bool = False,
        metrics: bool = False,
        grace: float = 5.0,
    ) -> HubServer:
        """`async with hub.serve(host, port) as server:` the fast skin, on `websockets`."""
        from runcast.broadcast.hub.skins.websockets_server import HubServer

        return HubServer(self, host, port, tls=tls, deflate=deflate, metrics=metrics, grace=grace)

    def asgi(self, *, metrics: bool = False) -> HubApp:
        """The hub as an ASGI app, to be mounted anywhere: sockets, auth endpoint, HTTP API."""
        from runcast.broadcast.hub.skins.asgi import HubApp

        return HubApp(self, metrics=metrics)

    def stats(self) -> dict[str, Any]:
        """Plain numbers, since the start and right now."""
        numbers = asdict(self._stats)
        numbers["connections"] = len(self._connections)
        numbers["channels"] = len(self._audience.table.channels())
        numbers["addresses"] = len(self._gate)
        numbers["remembered"] = len(self._memory)
        numbers["remembered_bytes"] = self._memory.size
        numbers["buffered"] = sum(each.transport.buffered() for each in self._connections.values())
        return numbers

    def occupied(self) -> dict[str, int]:
        """Channels that have sockets, and the number of them."""
        table = self._audience.table
        return {channel: table.count(channel) for channel in table.channels()}

    def members(self, channel: str) -> dict[str, Any]:
        """The users on a presence channel."""
        return self._audience.table.members(channel)

    async def aclose(self) -> None:
        """Close every connection with a code that brings the client back at once, to the next server."""
        self._closing = True
        self._audience.rounds.leave_all()
        for connection in list(self._connections.values()):
            self.dismiss(connection, p.RECONNECT, "the hub is closing; come back at once")
        await end([self._heartbeat])
        self._heartbeat = None


def _event(event: str, channel: str, data: str) -> str:
    return dumps({"event": event, "channel": channel, "data": data}).decode()
