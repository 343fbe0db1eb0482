"""The connections on each channel: joining, the greeting, leaving, members and client events.

A channel of a thread has one entry in the table, whatever name of it a client subscribed to: older names are read,
and their frames carry the name that the client knows. Knows connections and the ring; does not know admission.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from runcast.broadcast.envelopes.envelope import Envelope
from runcast.broadcast.hub import protocol as p
from runcast.broadcast.hub.catchup import CatchUp
from runcast.broadcast.hub.channels import ChannelTable, canonical, kind_of
from runcast.broadcast.hub.connection import Connection
from runcast.broadcast.hub.frame_writer import Rounds, Writer
from runcast.broadcast.hub.limits import HubStats
from runcast.broadcast.hub.memory.channel_memory import Memory
from runcast.broadcast.hub.memory.ring import Kept, Replay
from runcast.broadcast.hub.signatures import Position
from runcast.broadcast.json_bytes import dumps


class Audience:
    """The readers of every channel."""

    def __init__(
        self,
        connections: dict[str, Connection],
        memory: Memory,
        writer: Writer,
        stats: HubStats,
        *,
        give_up: Callable[[Connection], None],
        watched: Callable[[str, bool], None],
        prefix: str,
        snapshot_url: str | None,
    ) -> None:
        self.table = ChannelTable()
        self._connections = connections
        self._memory = memory
        self._writer = writer
        self.rounds = Rounds(writer)
        self._stats = stats
        # By channel, while none of its readers is behind: made anew when one comes, leaves or falls behind, never changed.
        self._live: dict[str, Sequence[Connection]] = {}
        self._watched = watched  # a channel's first reader came, or its last left
        self._prefix = prefix
        self._snapshot_url = (
            snapshot_url  # with {session_id}: the state of a thread, for a reader beyond replay
        )
        self._catch_up = CatchUp(memory, writer, greet=self.greet, give_up=give_up)

    def canonical(self, channel: str) -> str:
        """The current name of a channel."""
        return canonical(channel, prefix=self._prefix)

    # ------------------------------------------------------ joining, leaving

    def join(self, connection: Connection, subscribe: p.Subscribe) -> None:
        """Put a reader on a channel; envelopes published meanwhile wait until it is caught up."""
        channel, position = self.canonical(subscribe.channel), subscribe.position
        if not self.table.join(channel, connection.socket.socket_id):
            why = "this socket is in the channel already, by another name"
            self._writer.send([connection], p.error_frame(None, why))
            return
        self._live.pop(channel, None)
        if channel != subscribe.channel:
            connection.names[channel] = subscribe.channel
            self._writer.names.setdefault(channel, set()).add(subscribe.channel)
        self._stats.subscriptions += 1
        if self.table.count(channel) == 1:
            self._watched(channel, True)
        if subscribe.user_id is not None:
            self._join_members(connection, channel, subscribe.user_id, subscribe.user_info)
        wanted = position or self._memory.stands(channel)
        # Without a position, the parts of an entry that is not whole yet are all there is to send.
        kept = self._memory.recent(channel, wanted)
        if position is not None and kept is None:
            self._bring(connection, channel, position, greeted=False)
            return
        replay = None if position is None else Replay.at(self._memory.stands(channel), recovered=True)
        self.greet(connection, channel, replay)
        self._writer.deliver(connection, channel, kept or ())

    def _join_members(self, connection: Connection, channel: str, user_id: str, info: Any) -> None:
        if self.table.join_member(channel, connection.socket.socket_id, user_id, info):
            data = {"user_id": user_id, "user_info": info}
            self.send(
                channel,
                lambda name: p.frame("pusher_internal:member_added", channel=name, data=data),
                exclude=connection,
            )

    def leave(self, connection: Connection, name: str) -> None:
        """Take a reader off a channel, by the name that it joined by."""
        channel = self.canonical(name)
        if not connection.gone and connection.names.get(channel, channel) != name:
            return  # the join by this name was refused
        self.rounds.leave(channel)
        self._live.pop(channel, None)
        connection.caught_up(channel)
        connection.names.pop(channel, None)
        member = self.table.leave(channel, connection.socket.socket_id)
        if not self.table.count(channel):
            self._writer.names.pop(channel, None)
            self._watched(channel, False)
        if member is not None:
            data = {"user_id": member.user_id}
            self.send(
                channel, lambda name: p.frame("pusher_internal:member_removed", channel=name, data=data)
            )

    # -------------------------------------------------------------- greeting

    def greet(self, connection: Connection, channel: str, replay: Replay | None) -> None:
        """Confirm the subscription, with the channel's position and whether the missed envelopes will follow."""
        recovery = self._recovery(channel, replay)
        name = connection.names.get(channel, channel)
        if connection.plain:
            greeting = {"type": "hub.subscribed", "channel": name, **recovery}
            self._writer.send([connection], dumps(greeting).decode())
            return
        data: dict[str, Any] = {} if self._memory.session(channel) is None else {"recovery": recovery}
        kind = kind_of(channel)
        if kind.presence:
            members = self.table.members(channel)
            data["presence"] = {"count": len(members), "ids": list(members), "hash": members}
        self._writer.send([connection], p.subscribed_frame(name, data))
        if kind.cache and (replay is None or not replay.recovered):
            self._send_cached(connection, channel, name)

    def _recovery(self, channel: str, replay: Replay | None) -> dict[str, Any]:
        if replay is None:
            place = self._memory.stands(channel)
            recovery: dict[str, Any] = {"was_recovering": False, "recovered": False}
            return recovery | _wire(place)
        recovery = {"was_recovering": True, "recovered": replay.recovered}
        recovery |= _wire(Position(replay.epoch, replay.head, replay.mark))
        if replay.recovered:
            self._stats.recovered += 1
            return recovery
        self._stats.not_recovered += 1
        session_id = self._memory.session(channel)
        if self._snapshot_url is not None and session_id is not None:
            recovery["snapshot"] = self._snapshot_url.replace("{session_id}", quote(session_id, safe=""))
        return recovery

    def _send_cached(self, connection: Connection, channel: str, name: str) -> None:
        ring = self._memory.find(channel)
        last = ring.last() if ring else None
        text = self._memory.last_event(channel) if last is None else self._writer.event(name, last)
        self._writer.send([connection], text or p.frame("pusher:cache_miss", channel=name))

    # --------------------------------------------------------------- sending

    def readers(self, channel: str) -> list[Connection]:
        """The connections on a channel."""
        return [self._connections[socket_id] for socket_id in self.table.sockets(channel)]

    def send(
        self,
        channel: str,
        text: Callable[[str], str],
        *,
        exclude: Connection | None = None,
        plain: bool = True,
    ) -> int:
        """Send a frame, made once for each name that readers know the channel by; returns the number of readers."""
        self.rounds.leave(channel)
        names: dict[str, list[Connection]] = {}
        for each in self.readers(channel):
            if each is not exclude and (plain or not each.plain):
                names.setdefault(each.names.get(channel, channel), []).append(each)
        for name, readers in names.items():
            self._writer.send(readers, text(name))
        return sum(map(len, names.values()))

    def dismissed(self, channel: str) -> list[Connection]:
        """Take every reader off the channel of a forgotten thread, with a last frame; returns the sockets to close."""
        self.send(channel, lambda name: p.frame("agent.forgotten", channel=name, data={}), plain=False)
        readers = self.readers(channel)
        for each in readers:
            name = each.names.get(channel, channel)
            each.socket.channels.discard(name)
            self.leave(each, name)
        return [each for each in readers if each.plain]

    def publish(self, channel: str, kept: Sequence[Kept]) -> None:
        """Send envelopes that follow each other to every reader, in rounds, or hold them for those that are behind."""
        if not kept:
            return
        live = self._live.get(channel)
        if live is None:
            live = self._held(channel, kept)
        self.rounds.add(channel, live, kept)

    def _held(self, channel: str, kept: Sequence[Kept]) -> Sequence[Connection]:
        """Hold envelopes for the readers that are behind; returns the others."""
        live: list[Connection] = []
        readers = self.readers(channel)
        for connection in readers:
            if connection.behind(channel) is None:
                live.append(connection)
            else:
                for each in kept:
                    self._writer.hold(connection, channel, each)
        if live and len(live) == len(readers):
            self._live[channel] = live
        return live

    def _bring(self, connection: Connection, channel: str, position: Position, *, greeted: bool) -> None:
        """Catch a reader up from this position: it is not live until then."""
        self._live.pop(channel, None)
        self._catch_up.start(connection, channel, position, greeted=greeted)

    def mend(self, channel: str, missed_after: Position) -> None:
        """This node missed envelopes after that position: readers get those from history first."""
        self.rounds.leave(channel)
        for connection in self.readers(channel):
            if connection.behind(channel) is None:
                self._bring(connection, channel, missed_after, greeted=True)

    def begin_anew(self, channel: str, envelope: Envelope) -> None:
        """The thread's log has a new epoch: greet every reader as if it had just reconnected, and continue from here."""
        self.rounds.leave(channel)
        self._stats.restarts += 1
        for connection in self.readers(channel):
            connection.caught_up(channel)
            self.greet(connection, channel, Replay(False, envelope.epoch, envelope.prev))

    def whisper(self, connection: Connection, whisper: p.Whisper) -> None:
        """Relay a client event to the others on its channel."""
        channel = self.canonical(whisper.channel)
        user_id = self.table.member_of(channel, connection.socket.socket_id)
        by = {} if user_id is None else {"user_id": user_id}
        self._stats.whispers += 1
        self.send(
            channel,
            lambda name: dumps(
                {"event": whisper.event, "channel": name, "data": whisper.data, **by}
            ).decode(),
            exclude=connection,
        )

    def of_user(self, user_id: str) -> Sequence[Connection]:
        """The connections of a user who signed in or is a member of a presence channel."""
        sockets = self.table.sockets_of(user_id)
        return [
            each
            for key, each in self._connections.items()
            if key in sockets or each.socket.user_id == user_id
        ]


def _wire(position: Position) -> dict[str, Any]:
    wire: dict[str, Any] = {"epoch": position.epoch, "offset": position.offset}
    return wire | {"mark": position.mark} if position.mark else wire
