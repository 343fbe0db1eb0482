"""A watcher that goes by the reader's rule, and drops its line now and then: what it holds must be the log's.

Knows the plain socket and the HTTP API, as any client would; does not know the host's insides.
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
    """Watches one thread over a line that breaks."""

    def __init__(self, url: str, thread_id: str, *, chance: random.Random, drops: float = 0.02) -> None:
        self.envelopes: list[Envelope] = []
        self.reader = Reader(last=0)
        self.dropped = 0  # lines lost
        self.fetched = 0  # times the log was asked
        self._url = url
        self._thread = thread_id
        self._chance = chance
        self._drops = drops  # how likely an envelope is followed by a lost line

    async def watch(self) -> None:
        """Watch until this is cancelled."""
        while True:
            with suppress(OSError, WebSocketException):
                await self._listen()
            await asyncio.sleep(self._chance.uniform(0, 0.05))

    async def _listen(self) -> None:
        query = f"channel=agent.{quote(self._thread)}&after={self.reader.last or 0}&epoch={self.reader.epoch or ''}"
        async with connect(f"{self._url.replace('http', 'ws', 1)}/ws?{query}") as socket:
            async for frame in socket:
                told = json.loads(frame)
                if told.get("type") == "hub.subscribed" and not told["recovered"]:
                    await self.fetch()
                elif "seq" in told:
                    await self._take(Envelope.from_dict(told))
                    if self._chance.random() < self._drops:
                        self.dropped += 1
                        socket.transport.abort()
                        return

    async def _take(self, envelope: Envelope) -> None:
        match self.reader.take(envelope):
            case Take.APPLY:
                self.envelopes.append(envelope)
            case Take.DROP:
                pass
            case Take.FETCH:
                await self.fetch()
            case Take.RESTART:
                raise RuntimeError("the log began anew, and nobody deleted it")

    async def fetch(self) -> None:
        """Read what is missing from the log."""
        self.fetched += 1
        more = True
        while more:
            query = f"after={self.reader.last or 0}&epoch={self.reader.epoch or ''}"
            page = await asyncio.to_thread(
                read_json, f"{self._url}/threads/{quote(self._thread, safe='')}/envelopes?{query}"
            )
            for told in page["envelopes"]:
                envelope = Envelope.from_dict(told)
                if self.reader.take(envelope, fetched=True) is Take.APPLY:
                    self.envelopes.append(envelope)
            more = page["more"]

    def told(self) -> list[Any]:
        """What was told, however it was cut into chunks."""
        return told(self.envelopes)


def told(envelopes: list[Envelope]) -> list[Any]:
    """Envelopes as one thing after the other, chunks of a message joined: how text is cut depends on the line."""
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
    """What a URL of this machine answers."""
    with urlopen(url, timeout=10) as answer:
        return json.loads(answer.read())
