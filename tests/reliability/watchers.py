"""Watchers as they are in the world: over SSE, a plain WebSocket, or the Pusher protocol; each comes back by itself.

A watcher is sent to an address anew whenever it (re)connects, brings its position, and goes by the reader's rule. It
keeps what it has applied as text, by message, so that the ledger can judge it by value. Does not know what is right.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Literal
from urllib.parse import quote

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from runcast.broadcast import Envelope, Reader, Take, channel_for
from runcast.slim.entry import unbound
from tests.reliability.ledger import Ledger

Kind = Literal["sse", "plain", "pusher"]
KINDS: tuple[Kind, ...] = ("sse", "plain", "pusher")
KEY = "runcast"
AGAIN = 0.1  # seconds before it comes back


class Lost(Exception):
    """The connection is of no use any more; come back."""


class Watcher:
    """One reader of one thread, until it was told that the thread's work is completed."""

    def __init__(
        self,
        kind: Kind,
        thread: str,
        address: Callable[[], str],
        http: httpx.AsyncClient,
        *,
        quiet: float = 60.0,
        restless: Callable[[], float] | None = None,
    ) -> None:
        self.kind = kind
        self.thread = thread
        self.connects = 0
        self.fetches = 0
        self.repeated = 0  # envelopes that one connection sent twice
        self.completed = False
        self._address = address
        self._restless = restless  # how many seconds it stays; then it goes and comes back
        self._quiet = quiet  # seconds of silence after which it believes the line to be dead
        self._http = http
        self._reader = Reader(last=0)
        self._texts: dict[str, str] = {}  # by message
        self._fetched = False  # on this connection
        self._seen: deque[str] = deque(maxlen=60)  # what came last, for a failure's report

    @property
    def text(self) -> str:
        """All that it has applied, in order."""
        return "".join(self._texts.values())

    @property
    def last(self) -> int:
        return self._reader.last or 0

    async def watch(self) -> None:
        """Watch until the work is completed, whatever happens to the connection."""
        ways = {"sse": self._sse, "plain": self._plain, "pusher": self._pusher}
        while not self.completed:
            try:
                self.connects += 1
                self._fetched = False
                self._note(f"connects at {self.last}")
                async with asyncio.timeout(None if self._restless is None else self._restless()):
                    await ways[self.kind](self._address())
            except (Lost, OSError, httpx.HTTPError, WebSocketException, TimeoutError):
                pass
            if not self.completed:
                await asyncio.sleep(AGAIN)

    def told(self, ledger: Ledger) -> None:
        """Tell the ledger what this reader has."""
        ledger.delivered(f"{self.kind} watcher", self.thread, self.text, self._seen)
        assert not self.repeated, f"{self.kind}: {self.repeated} envelopes twice on one connection"

    def _note(self, what: str) -> None:
        self._seen.append(f"{time.monotonic():.3f} {what}")

    # ------------------------------------------------------------------- SSE

    async def _sse(self, address: str) -> None:
        headers = {"accept": "text/event-stream"}
        if self.last:
            headers["last-event-id"] = f"{self._reader.epoch}:{self.last}"
        path = f"{address}/threads/{quote(self.thread, safe='')}/events"
        timeout = httpx.Timeout(20, read=self._quiet)
        async with self._http.stream("GET", path, headers=headers, timeout=timeout) as response:
            if response.status_code != 200:
                raise Lost
            place = ""
            async for line in response.aiter_lines():
                if line.startswith("id: "):
                    place = line[4:]
                elif line.startswith("data: "):
                    self._take_event(place, json.loads(line[6:]))
                    if self.completed:
                        return

    def _take_event(self, place: str, event: dict[str, Any]) -> None:
        history, _, seq = place.rpartition(":")
        if int(seq) <= self.last:
            self.repeated += 1
            return
        known = self._reader.epoch
        if int(seq) != self.last + 1 or (known is not None and unbound(known)[0] != unbound(history)[0]):
            raise Lost
        self._reader.start(last=int(seq), epoch=history)
        if event["type"] == "TEXT_MESSAGE_CONTENT":
            self._say(event["messageId"], event["delta"])
        elif event["type"] == "MESSAGES_SNAPSHOT":
            stand = {each["id"] for each in event["messages"]}
            self._texts = {id: text for id, text in self._texts.items() if id in stand}
        self.completed = event["type"] == "RUN_FINISHED"

    # --------------------------------------------------------------- sockets

    async def _plain(self, address: str) -> None:
        channel = quote(f"agent.{self.thread}", safe="")
        target = f"/ws?channel={channel}&after={self.last}&epoch={self._reader.epoch or ''}"
        async with connect(_socket(address) + target, compression=None, ping_interval=None) as socket:
            while True:
                text = await asyncio.wait_for(socket.recv(), self._quiet)
                said = json.loads(text)
                if said["type"] == "hub.subscribed":
                    await self._arrived(address, said)
                elif said["type"] == "ping":
                    await socket.send('{"type":"pong"}')
                elif said["type"] != "pong":
                    await self._take(address, said)
                if self.completed:
                    return

    async def _pusher(self, address: str) -> None:
        channel = channel_for(self.thread)
        target = f"{_socket(address)}/app/{KEY}?protocol=7"
        async with connect(target, compression=None, ping_interval=None) as socket:
            while True:
                text = await asyncio.wait_for(socket.recv(), self._quiet)
                said = json.loads(text)
                data = json.loads(said["data"]) if isinstance(said.get("data"), str) else said.get("data")
                match said["event"]:
                    case "pusher:connection_established":
                        signed = await self._signed(address, data["socket_id"], channel)
                        await socket.send(
                            json.dumps({"event": "pusher:subscribe", "data": {**signed, "channel": channel}})
                        )
                    case "pusher_internal:subscription_succeeded":
                        await self._arrived(address, data["recovery"])
                    case "pusher:ping":
                        await socket.send('{"event":"pusher:pong","data":{}}')
                    case "pusher:error" | "pusher:subscription_error":
                        raise Lost
                    case event if not event.startswith("pusher"):
                        await self._take(address, data)
                if self.completed:
                    return

    async def _signed(self, address: str, socket_id: str, channel: str) -> dict[str, Any]:
        asked = {"socket_id": socket_id, "channel_name": channel, "offset": self.last}
        asked["epoch"] = self._reader.epoch or ""
        answer = await self._http.post(f"{address}/broadcasting/auth", json=asked)
        if answer.status_code != 200:
            raise Lost
        signed: dict[str, Any] = answer.json()
        return signed

    async def _arrived(self, address: str, recovery: dict[str, Any]) -> None:
        self._note(f"is greeted by {address} with {recovery}")
        if not recovery["recovered"]:
            await self._fetch(address)

    async def _take(self, address: str, wire: dict[str, Any]) -> None:
        envelope = Envelope.from_dict(wire)
        take = self._reader.take(envelope)
        self._note(f"{take.value} {envelope.prev}-{envelope.seq} {envelope.part} {envelope.type}")
        match take:
            case Take.APPLY:
                self._apply(envelope)
            case Take.DROP:
                self.repeated += not self._fetched
            case Take.FETCH:
                await self._fetch(address)
            case Take.RESTART:
                raise AssertionError(f"{self.thread} has another epoch: {wire}")

    async def _fetch(self, address: str) -> None:
        """What is missing, from the log."""
        self.fetches += 1
        self._fetched = True
        more = True
        while more and not self.completed:
            query = {"after": str(self.last), "epoch": self._reader.epoch or ""}
            path = f"{address}/threads/{quote(self.thread, safe='')}/envelopes"
            answer = await self._http.get(path, params=query)
            if answer.status_code != 200:
                raise Lost
            found = answer.json()
            assert found["recovered"] or not self.last, f"{self.thread} cannot be fetched after {self.last}"
            more = found["more"]
            places = [(wire["prev"], wire["seq"], wire["type"]) for wire in found["envelopes"]]
            self._note(
                f"fetches after {self.last} from {address}: {places}, more: {more}, head {found['head']}"
            )
            for wire in found["envelopes"]:
                envelope = Envelope.from_dict(wire)
                if self._reader.take(envelope, fetched=True) is Take.APPLY:
                    self._apply(envelope)

    def _apply(self, envelope: Envelope) -> None:
        payload = envelope.payload
        if envelope.type == "agent.stream.chunk" and payload.get("role", "assistant") == "assistant":
            if payload.get("replace"):
                self._texts[payload["message_id"]] = ""
            self._say(payload["message_id"], payload["chunk"])
        elif envelope.type == "agent.status":
            self.completed = payload["status"] == "completed"

    def _say(self, message: str, text: str) -> None:
        self._texts[message] = self._texts.get(message, "") + text


def _socket(address: str) -> str:
    return address.replace("http", "ws", 1)
