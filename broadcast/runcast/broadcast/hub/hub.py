"""The hub: who watches what, and how envelopes reach them without loss, doubling or waiting for anybody.

A publisher like any other (`Broadcaster(hub)`), and the far end of the sockets that `server.py` and `asgi.py` hold.
It joins the pure parts (protocol, channels, ring) with what waits: history, `authorize`, timers. Everything that
touches its tables runs on one event loop. A reader that is behind is caught up from the ring or from `history`;
one that does not read is cut off and comes back with its position.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from runcast.broadcast.budget import HUB, Budget
from runcast.broadcast.envelope import Envelope
from runcast.broadcast.errors import ConfigError, HubError
from runcast.broadcast.hub import protocol as p
from runcast.broadcast.hub.access import Access, Authorize, Identify
from runcast.broadcast.hub.auth import Position
from runcast.broadcast.hub.catchup import CatchUp
from runcast.broadcast.hub.channels import PRIVATE, ChannelTable, channel_for, kind_of, valid_name
from runcast.broadcast.hub.connection import Connection, Transport
from runcast.broadcast.hub.gate import Gate
from runcast.broadcast.hub.limits import HubLimits, HubStats
from runcast.broadcast.hub.memory import History, Memory
from runcast.broadcast.hub.ring import Fit, Replay, read_envelope
from runcast.broadcast.hub.writer import Writer
from runcast.broadcast.plain import dumps

if TYPE_CHECKING:
    import ssl

    from runcast.broadcast.hub.asgi import HubApp
    from runcast.broadcast.hub.server import HubServer


class Hub:
    """Channels over WebSockets, the Laravel way: Echo and pusher-js work unchanged, and recover what they missed.

    `authorize(user, session_id)` says who may watch a thread; `identify(headers)` says who asks (by default
    nobody knows, and `authorize` gets None). `history` answers for what the hub no longer remembers.
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
        public: bool = False,
        client_events: bool = False,
        event_name: str | None = None,
        snapshot_url: str | None = None,
        prefix: str = PRIVATE,
    ) -> None:
        if not app_id or not key or not secret:
            raise ConfigError("a hub needs an app id, a key and a secret; Laravel calls them REVERB_APP_*")
        self.app_id = app_id
        self.key = key
        self.secret = secret
        self.limits = limits or HubLimits()
        self.public = public  # whether channels without a proof may be watched
        self.snapshot_url = snapshot_url  # with {session_id}: where a reader goes that cannot be caught up
        self.prefix = prefix  # of the threads' channels, as the broadcaster names them
        gate = Gate(self.limits)
        self.access = Access(secret, gate, authorize=authorize, identify=identify)
        self._gate = gate
        self._client_events = client_events
        self._event_names = {
            event_name,
            "agent.event",
        }  # of envelopes that come over HTTP, besides their type
        self._connections: dict[str, Connection] = {}
        self._table = ChannelTable()
        self._stats = HubStats()
        self._memory = Memory(self.limits, self._stats, history, prefix=prefix)
        self._writer = Writer(
            buffer=self.limits.buffer, event_name=event_name, stats=self._stats, gone=self.gone
        )
        self._catch_up = CatchUp(
            self._memory,
            self._writer,
            greet=self._greet,
            give_up=lambda reader: self.dismiss(reader, p.RECONNECT, "could not catch up; come back"),
        )
        self._watch: asyncio.Task[None] | None = None
        self._closing = False
        # Told when a channel gets its first reader, and when it has lost its last.
        self.on_watch: Callable[[str, bool], None] | None = None

    # ----------------------------------------------------------- connections

    def session(self, channel: str) -> str | None:
        """The thread a channel belongs to, if it is a thread's."""
        return self._memory.session(channel)

    def refuses(self, *, origin: str | None, address: str) -> p.Close | None:
        """Why a new connection may not come in; None when it may."""
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
        """Let a plain socket in and put it on its channel; or say why not."""
        session_id = wanted.session_id or (
            self.session(wanted.channel) if valid_name(wanted.channel) else None
        )
        # `agent.{id}` will do for the thread's channel, whatever its prefix is.
        channel = wanted.channel if session_id is None else channel_for(session_id, prefix=self.prefix)
        try:
            allowed = await self._may_watch(channel, session_id, wanted.token, headers)
        except HubError as error:
            self._stats.authorize_errors += 1
            return p.Close(p.CANNOT_TELL, str(error))
        if not allowed:
            self._stats.auth_failures += 1
            return p.Close(p.MAY_NOT, "this channel may not be watched; ask for a token")
        # Others may have come in while `authorize` thought.
        refusal = self.refuses(origin=headers.get("origin"), address=address)
        if refusal is not None:
            return refusal
        socket = p.PlainSocket(secrets.token_hex(8), channel, limits=self.limits)
        connection = self._open(socket, transport, address)
        self._enter(connection, p.Subscribe(channel, wanted.position))
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
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._keep_watch(), name="hub watch")
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
                self._enter(connection, action)
            case p.Unsubscribe(channel):
                self._leave(connection, channel)
            case p.Whisper():
                self._whisper(connection, action)
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
        """Close a connection with a code that tells the client whether to come back."""
        if connection.gone:
            return
        self._stats.closed(code)
        if code == p.NO_PONG and connection.transport.buffered():
            connection.transport.abort()  # it reads nothing, so it would not read the goodbye
        else:
            connection.transport.close(code, reason)
        self.gone(connection)

    def gone(self, connection: Connection) -> None:
        """The connection has ended, whoever ended it. Harmless to say twice."""
        if connection.gone:
            return
        connection.end()
        socket_id = connection.socket.socket_id
        del self._connections[socket_id]
        self._gate.leave(connection.address)
        for channel in self._table.channels_of(socket_id):
            self._leave(connection, channel)

    # -------------------------------------------------------------- watching

    def _enter(self, connection: Connection, subscribe: p.Subscribe) -> None:
        """Put a reader on a channel; what comes meanwhile waits until it is caught up."""
        channel, position = subscribe.channel, subscribe.position
        self._table.join(channel, connection.socket.socket_id)
        self._stats.subscriptions += 1
        if self.on_watch is not None and self._table.count(channel) == 1:
            self.on_watch(channel, True)
        if subscribe.user_id is not None:
            self._enter_presence(connection, subscribe)
        wanted = position or Position(*self._memory.stands(channel))
        # Without a position, what has been seen of an entry that is not whole yet is all there is to send.
        kept = self._memory.recent(channel, wanted)
        if position is not None and kept is None:
            self._catch_up.start(connection, channel, position, greeted=False)
            return
        replay = None if position is None else Replay(True, *self._memory.stands(channel))
        self._greet(connection, channel, replay)
        self._writer.deliver(connection, channel, kept or ())

    def _greet(self, connection: Connection, channel: str, replay: Replay | None) -> None:
        """Say that the reader is in, where the channel stands, and whether what it missed will follow."""
        recovery = self._recovery(channel, replay)
        if connection.plain:
            said = {"type": "hub.subscribed", "channel": channel, **recovery}
            self._writer.send([connection], dumps(said).decode())
            return
        data: dict[str, Any] = {} if self.session(channel) is None else {"recovery": recovery}
        kind = kind_of(channel)
        if kind.presence:
            members = self._table.members(channel)
            data["presence"] = {"count": len(members), "ids": list(members), "hash": members}
        self._writer.send([connection], p.subscribed_frame(channel, data))
        if kind.cache and (replay is None or not replay.recovered):
            self._send_cached(connection, channel)

    def _recovery(self, channel: str, replay: Replay | None) -> dict[str, Any]:
        epoch, place = self._memory.stands(channel)
        if replay is None:
            return {"was_recovering": False, "recovered": False, "epoch": epoch, "offset": place}
        said: dict[str, Any] = {"was_recovering": True, "recovered": replay.recovered}
        said.update(epoch=replay.epoch, offset=replay.head)
        if replay.recovered:
            self._stats.recovered += 1
            return said
        self._stats.not_recovered += 1
        session_id = self.session(channel)
        if self.snapshot_url is not None and session_id is not None:
            said["snapshot"] = self.snapshot_url.replace("{session_id}", quote(session_id, safe=""))
        return said

    def _send_cached(self, connection: Connection, channel: str) -> None:
        ring = self._memory.find(channel)
        last = ring.last() if ring else None
        text = self._memory.last_event(channel) if last is None else self._writer.event(channel, last)
        self._writer.send([connection], text or p.frame("pusher:cache_miss", channel=channel))

    def _leave(self, connection: Connection, channel: str) -> None:
        connection.caught_up(channel)
        member = self._table.leave(channel, connection.socket.socket_id)
        if self.on_watch is not None and not self._table.count(channel):
            self.on_watch(channel, False)
        if member is not None:
            data = {"user_id": member.user_id}
            text = p.frame("pusher_internal:member_removed", channel=channel, data=data)
            self._writer.send(self._readers(channel), text)

    def _enter_presence(self, connection: Connection, subscribe: p.Subscribe) -> None:
        channel, user_id, info = subscribe.channel, subscribe.user_id, subscribe.user_info
        socket_id = connection.socket.socket_id
        if user_id is None or not self._table.join_member(channel, socket_id, user_id, info):
            return
        data = {"user_id": user_id, "user_info": info}
        text = p.frame("pusher_internal:member_added", channel=channel, data=data)
        self._writer.send(self._others(channel, connection), text)

    def _whisper(self, connection: Connection, whisper: p.Whisper) -> None:
        wire: dict[str, Any] = {"event": whisper.event, "channel": whisper.channel, "data": whisper.data}
        user_id = self._table.member_of(whisper.channel, connection.socket.socket_id)
        if user_id is not None:
            wire["user_id"] = user_id
        self._stats.whispers += 1
        self._writer.send(self._others(whisper.channel, connection), dumps(wire).decode())

    def _readers(self, channel: str) -> list[Connection]:
        return [self._connections[socket_id] for socket_id in self._table.sockets(channel)]

    def _others(self, channel: str, connection: Connection) -> list[Connection]:
        return [each for each in self._readers(channel) if each is not connection]

    # ------------------------------------------------------------ publishing

    async def publish(self, channel: str, envelopes: Sequence[Envelope]) -> None:
        """Send envelopes to everybody on a channel. What was published before is passed over."""
        for envelope in envelopes:
            self._publish(channel, envelope)

    def _publish(self, channel: str, envelope: Envelope) -> None:
        ring = self._memory.ring(channel)
        fit = ring.judge(envelope)
        if fit is Fit.DOUBLE:
            self._stats.doubles += 1
            return
        before = Position(ring.epoch, ring.stands)
        kept = self._memory.add(channel, envelope, busy=self.watches)
        self._stats.published += 1
        if fit is Fit.RESTART:
            self._begin_anew(channel, envelope)
        self._stats.holes += fit is Fit.HOLE
        mend = fit is Fit.HOLE and self._memory.has_history
        live: list[Connection] = []
        for connection in self._readers(channel):
            if mend and connection.behind(channel) is None:
                # This node missed something: its readers get that from history before they get this.
                self._catch_up.start(connection, channel, before, greeted=True)
            if connection.behind(channel) is None:
                live.append(connection)
            else:
                self._writer.hold(connection, channel, kept)
        self._writer.send_kept(live, channel, kept)

    def _begin_anew(self, channel: str, envelope: Envelope) -> None:
        """The thread's log has a new epoch: every reader is told as if it had just come back, and goes on from here."""
        self._stats.restarts += 1
        for connection in self._readers(channel):
            connection.caught_up(channel)
            self._greet(connection, channel, Replay(False, envelope.epoch, envelope.prev))

    def watches(self, channel: str) -> bool:
        """Whether anybody is on this channel."""
        return self._table.count(channel) > 0

    async def trigger(
        self, channels: Sequence[str], event: str, data: str, *, exclude: str | None = None
    ) -> None:
        """Send any event to channels, as the HTTP API of the protocol does; `data` is a string."""
        for channel in channels:
            envelope = self._envelope_in(channel, event, data)
            if envelope is not None:
                self._publish(channel, envelope)
                continue
            pusher = [each for each in self._readers(channel) if not each.plain]
            readers = [each for each in pusher if each.socket.socket_id != exclude]
            text = dumps({"event": event, "channel": channel, "data": data}).decode()
            if kind_of(channel).cache:
                self._memory.keep_event(channel, text)
            self._stats.published += 1
            self._stats.delivered += len(readers)
            self._writer.send(readers, text)

    def _envelope_in(self, channel: str, event: str, data: str) -> Envelope | None:
        """An envelope of this channel's thread that another process published, or None when it is something else."""
        envelope = read_envelope(data)
        if envelope is None or event not in (envelope.type, *self._event_names):
            return None
        known = self.session(channel)
        named = channel == channel_for(envelope.session_id, prefix=self.prefix)
        return envelope if named or known == envelope.session_id else None

    def position(self, channel: str) -> Position:
        """Where a channel stands here; an empty epoch where nothing was published."""
        return Position(*self._memory.stands(channel))

    async def catch_up(self, channel: str) -> None:
        """Publish what history has beyond what was published here: for a node that may have missed something."""
        position = self.position(channel)
        if position.epoch:
            replay = await self._memory.read(channel, position)
            await self.publish(channel, replay.envelopes)

    # ------------------------------------------------------------------ life

    async def _keep_watch(self) -> None:
        """Ask silent clients for a sign of life, send the dead and the idle away. Ends when nobody is there."""
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
            self.dismiss(connection, p.WATCHES_NOTHING, "subscribe to something, or do not connect")
        elif connection.asked is not None:
            if now - connection.asked > limits.pong:
                self._stats.timeouts += 1
                self.dismiss(connection, p.NO_PONG, "no sign of life")
        elif now - connection.heard > limits.activity * 1.5:
            connection.asked = now
            ping = '{"type":"ping"}' if connection.plain else '{"event":"pusher:ping","data":{}}'
            self._writer.send([connection], ping)

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
        from runcast.broadcast.hub.server import HubServer

        return HubServer(self, host, port, tls=tls, deflate=deflate, metrics=metrics, grace=grace)

    def asgi(self, *, metrics: bool = False) -> HubApp:
        """The hub as an ASGI app, to be mounted anywhere: sockets, auth endpoint, HTTP API."""
        from runcast.broadcast.hub.asgi import HubApp

        return HubApp(self, metrics=metrics)

    def stats(self) -> dict[str, Any]:
        """Plain numbers, since the start and right now."""
        numbers = asdict(self._stats)
        numbers["connections"] = len(self._connections)
        numbers["channels"] = len(self._table.channels())
        numbers["addresses"] = len(self._gate)
        numbers["remembered"] = len(self._memory)
        numbers["remembered_bytes"] = self._memory.size
        numbers["buffered"] = sum(each.transport.buffered() for each in self._connections.values())
        return numbers

    def occupied(self) -> dict[str, int]:
        """Channels that somebody is in, and how many sockets each has."""
        return {channel: self._table.count(channel) for channel in self._table.channels()}

    def members(self, channel: str) -> dict[str, Any]:
        """The users on a presence channel."""
        return self._table.members(channel)

    async def aclose(self) -> None:
        """Send everybody away with a code that brings them back at once, to whoever serves next."""
        self._closing = True
        for connection in list(self._connections.values()):
            self.dismiss(connection, p.RECONNECT, "the hub is closing; come back at once")
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
            self._watch = None
