"""What is measured, in a process of its own: the hub, the hub under uvicorn, or bare `websockets.broadcast` with the same bytes.

Run as `python -m benchmarks._hub_peer hub|asgi|bare`. On stdin: `plain COUNT` or `pusher COUNT` sends so many envelopes of
500 bytes; `rss` answers with the resident bytes, `cpu` with the seconds of processor used so far.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import sys
import time
from contextlib import suppress
from pathlib import Path

import uvicorn
from websockets.asyncio.server import ServerConnection, broadcast, serve
from websockets.exceptions import ConnectionClosed

from runcast.broadcast import Envelope, Hub, HubLimits
from runcast.broadcast.hub.protocol import event_frame

CHANNEL = "agent.s1"
FIRST = 200_000  # so that every envelope has the same length
LIMITS = HubLimits(connections_per_address=10_000, unsubscribed=600, activity=600)


def envelope(seq: int) -> Envelope:
    """One of exactly 500 bytes."""
    payload = {"message_id": "m1", "chunk": "x" * 257, "chunk_index": 7, "is_complete": False}
    return Envelope(
        "agent.stream.chunk", "s1", "r1", "2026-01-16T10:05:00.123Z", seq, seq - 1, "k3f9x2", payload
    )


def frame_bytes(mode: str) -> int:
    """What one envelope weighs on the wire, the WebSocket header included."""
    body = envelope(FIRST).encode()
    text = event_frame("agent.stream.chunk", CHANNEL, body) if mode == "pusher" else body.decode()
    return len(text) + 4


def resident() -> int:
    """This process's memory, in bytes."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class Peer:
    """Sends; both kinds wait in the same way for readers that have much unread."""

    seq = FIRST

    async def send(self, mode: str, count: int) -> None:
        for at in range(count):
            self.seq += 1
            await self.one(mode, envelope(self.seq))
            if at % 20 == 19:
                await asyncio.sleep(0)
                while self.unread() > 20_000_000:  # noqa: ASYNC110  a benchmark's brake, the same for both
                    await asyncio.sleep(0.001)

    async def one(self, mode: str, each: Envelope) -> None: ...

    def unread(self) -> int: ...

    async def obey(self) -> None:
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
        )
        async for line in reader:
            match line.decode().split():
                case ["rss"]:
                    print(resident(), flush=True)
                case ["cpu"]:
                    print(time.process_time(), flush=True)
                case [mode, count]:
                    await self.send(mode, int(count))
                case _:
                    return


class OurHub(Peer):
    def __init__(self) -> None:
        self.hub = Hub("1001", "app-key", "app-secret", public=True, prefix="agent.", limits=LIMITS)

    async def one(self, mode: str, each: Envelope) -> None:
        await self.hub.publish(CHANNEL, [each])

    def unread(self) -> int:
        return int(self.hub.stats()["buffered"])

    async def run(self) -> None:
        async with self.hub.serve() as server:
            print(server.port, flush=True)
            await self.obey()


class UnderUvicorn(OurHub):
    async def run(self) -> None:
        config = uvicorn.Config(self.hub.asgi(), port=0, log_level="critical", ws_per_message_deflate=False)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110  uvicorn has a flag, no event
            await asyncio.sleep(0.01)
        print(server.servers[0].sockets[0].getsockname()[1], flush=True)
        await self.obey()
        serving.cancel()


class Bare(Peer):
    def __init__(self) -> None:
        self.connections: set[ServerConnection] = set()

    async def one(self, mode: str, each: Envelope) -> None:
        body = each.encode()
        broadcast(
            self.connections, event_frame(each.type, CHANNEL, body) if mode == "pusher" else body.decode()
        )

    def unread(self) -> int:
        return sum(each.transport.get_write_buffer_size() for each in self.connections)

    async def handle(self, websocket: ServerConnection) -> None:
        self.connections.add(websocket)
        with suppress(ConnectionClosed):
            async for _ in websocket:
                pass

    async def run(self) -> None:
        async with serve(self.handle, "127.0.0.1", 0, compression=None, ping_interval=None) as server:
            print(next(iter(server.sockets)).getsockname()[1], flush=True)
            await self.obey()


if __name__ == "__main__":
    asyncio.run({"hub": OurHub, "asgi": UnderUvicorn, "bare": Bare}[sys.argv[1]]().run())
