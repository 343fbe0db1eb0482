"""Sockets without a network, so that thousands of histories of a hub can be played in a second.

A `Reader` holds the hub to its promise: what comes continues from where the reader stands, always.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from runcast.broadcast import Hub, Position, sign_channel
from runcast.broadcast.hub.connection import Connection
from runcast.broadcast.hub.protocol import Close, PlainRequest
from runcast.broadcast.hub.signatures import position_data

CHANNEL = "private-agent.s1"


class Wires:
    """A skin that delivers at once."""

    def send(self, transports: Sequence[Reader], texts: Sequence[str]) -> None:
        for reader in transports:
            for text in texts:
                reader.take(json.loads(text))


class Reader:
    """One socket, as the hub sees it, and the reader behind it."""

    skin = Wires()

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.connection: Connection | None = None
        self.stuck = False  # it does not read any more
        self.ended: int | None = None  # close code; 1006 when it was dropped
        self.frames: list[Any] = []
        self.greetings: list[dict[str, Any]] = []
        self.epoch = self.mark = ""
        self.last: int | None = None  # what it has applied; None before it knows where it stands
        self.part = (1, 1)
        self.faults: list[str] = []  # promises that were broken

    def buffered(self) -> int:
        return 10**9 if self.stuck else 0

    def abort(self) -> None:
        self.ended = 1006

    def close(self, code: int, reason: str) -> None:
        self.ended = code

    def take(self, frame: Any) -> None:
        self.holds(self.ended is None, "written to after the end")
        self.frames.append(frame)
        data = (
            frame
            if "type" in frame
            else json.loads(frame["data"])
            if isinstance(frame.get("data"), str)
            else {}
        )
        if data.get("type") == "hub.subscribed" or "recovery" in data:
            self.greeted(data.get("recovery", data))
        elif "seq" in data:
            self.apply(data)

    def greeted(self, recovery: dict[str, Any]) -> None:
        self.greetings.append(recovery)
        if not recovery["recovered"]:
            # Who is told that it missed something stands where its snapshot does; a newcomer where the hub says.
            known = recovery["epoch"] and not recovery["was_recovering"]
            self.last, self.part = (recovery["offset"] if known else None), (1, 1)
        self.epoch, self.mark = recovery["epoch"], recovery.get("mark", "")

    def apply(self, data: dict[str, Any]) -> None:
        """The reader's whole rule, with no mercy: nothing may come that it would have to drop or fetch."""
        part = tuple(data.get("part") or (1, 1))
        self.holds(self.epoch in ("", data["epoch"]), f"has epoch {self.epoch}, got {data}")
        if self.last is not None and self.part[0] == self.part[1]:
            self.holds(data["prev"] == self.last < data["seq"], f"has {self.last}, got {data}")
        elif self.last is not None:
            self.holds((data["seq"], part) == (self.last, (self.part[0] + 1, self.part[1])), f"got {data}")
        self.last, self.epoch, self.part = data["seq"], data["epoch"], part
        self.mark = data.get("mark", "")

    def holds(self, kept: bool, what: str) -> None:
        if not kept:
            self.faults.append(f"{self.name} {what}; frames: {self.frames[-6:]}")

    # ----------------------------------------------------------- coming and going

    async def come(self, hub: Hub, position: Position | None = None, *, plain: bool = False) -> None:
        if plain:
            wanted = PlainRequest(CHANNEL, None, position)
            opened = await hub.open_plain(self, wanted, address="a", headers={})
            self.connection = None if isinstance(opened, Close) else opened
            return
        self.connection = hub.open_pusher(self, address="a")
        self.subscribe(hub, position)

    def subscribe(
        self, hub: Hub, position: Position | None = None, *, secret: str = "app-secret", **more: Any
    ) -> None:
        assert self.connection is not None
        data = None if position is None else position_data(position)
        socket_id = self.connection.socket.socket_id
        auth = sign_channel(socket_id, CHANNEL, key="app-key", secret=secret, channel_data=data)
        content = {"channel": CHANNEL, "auth": auth, **({"channel_data": data} if data else {}), **more}
        hub.received(self.connection, json.dumps({"event": "pusher:subscribe", "data": content}))

    def unsubscribe(self, hub: Hub) -> None:
        assert self.connection is not None
        hub.received(
            self.connection, json.dumps({"event": "pusher:unsubscribe", "data": {"channel": CHANNEL}})
        )

    def drop(self, hub: Hub) -> None:
        assert self.connection is not None
        self.ended = 1006
        hub.gone(self.connection)

    @property
    def position(self) -> Position:
        return Position(self.epoch, self.last or 0, self.mark)
