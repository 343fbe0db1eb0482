"""A watcher that follows the reader's rule and drops its connection now and then; it must end with the log's envelopes.

Uses the plain socket and the HTTP API, as any client would; does not know the host's internals.
"""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import suppress
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from runcast.broadcast import Envelope, Reader, Take

CHUNKS = ("agent.stream.chunk", "agent.reasoning.chunk")


class Watcher:
    """Watches one thread over a connection that breaks."""

    def __init__(
        self, url: str, thread_id: str, *, token: str, chance: random.Random, drops: float = 0.02
    ) -> None:
        self.envelopes: list[Envelope] = []
        self.reader = Reader(last=0)
        self.dropped = 0  # connections
        self.fetched = 0  # times that the log was read
        self._url = url
        self._thread = thread_id
        self._token = token
        self._chance = chance
        self._drops = drops  # the probability that the connection breaks after an envelope

    async def watch(self) -> None:
        """Watch until this is cancelled."""
        while True:
            with suppress(OSError, WebSocketException):
                await self._listen()
            await asyncio.sleep(self._chance.uniform(0, 0.05))

    async def _listen(self) -> None:
        query = f"channel=agent.{quote(self._thread)}&{self._query}"
        async with connect(f"{self._url.replace('http', 'ws', 1)}/ws?{query}") as socket:
            async for frame in socket:
                message = json.loads(frame)
                if message.get("type") == "hub.subscribed" and not message["recovered"]:
                    await self.fetch()
                elif "seq" in message:
                    await self._take(Envelope.from_dict(message))
                    if self._chance.random() < self._drops:
                        self.dropped += 1
                        socket.transport.abort()
                        return

    @property
    def _query(self) -> str:
        return f"after={self.reader.last or 0}&epoch={self.reader.epoch or ''}&token={self._token}"

    async def _take(self, envelope: Envelope) -> None:
        match self.reader.take(envelope):
            case Take.APPLY:
                self.envelopes.append(envelope)
            case Take.DROP:
                pass
            case Take.FETCH:
                await self.fetch()
            case Take.RESTART:
                raise RuntimeError("the log was replaced during the demo")

    async def fetch(self) -> None:
        """Read what is missing from the log."""
        self.fetched += 1
        more = True
        while more:
            page = await asyncio.to_thread(
                read_json, f"{self._url}/threads/{quote(self._thread, safe='')}/envelopes?{self._query}"
            )
            for row in page["envelopes"]:
                envelope = Envelope.from_dict(row)
                if self.reader.take(envelope, fetched=True) is Take.APPLY:
                    self.envelopes.append(envelope)
            more = page["more"]


def in_order(envelopes: list[Envelope]) -> list[Any]:
    """Envelopes as comparable rows, chunks of a message joined: where text is cut depends on the connection."""
    found: list[Any] = []
    texts: dict[tuple[str, str, str], list[Any]] = {}
    for each in envelopes:
        if each.type not in CHUNKS:
            found.append([each.type, each.execution_id, each.seq, each.part, _steady(each.payload)])
            continue
        key = (each.type, each.execution_id, each.payload["message_id"])
        if key not in texts:
            texts[key] = [*key, ""]
            found.append(texts[key])
        before = "" if each.payload.get("replace") else texts[key][3]
        texts[key][3] = before + each.payload["chunk"]
    return found


def _steady(payload: Any) -> Any:
    return {name: value for name, value in payload.items() if name != "chunk_index"}


def read_json(url: str) -> Any:
    """The JSON at a URL of this machine."""
    with urlopen(url, timeout=10) as answer:
        return json.loads(answer.read())
