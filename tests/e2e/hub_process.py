"""A hub in a process of its own, told what to do on stdin: for what must be measured or killed from outside.

    publish COUNT SIZE     envelopes of about SIZE bytes on the thread s1, then a line of numbers
    numbers                resident bytes and the hub's stats

Run as `python -m tests.e2e.hub_process websockets|asgi`. SIGTERM ends it as it would end a service.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from pathlib import Path

import uvicorn

from runcast.broadcast import HubLimits, channel_for
from tests.e2e.stage import Log, a_hub, port_of

LIMITS = HubLimits(ring=500, ring_bytes=600_000, replay=2_000, activity=5, pong=5)


def resident() -> int:
    """This process's memory, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class Service:
    def __init__(self) -> None:
        self.log = Log()
        self.hub = a_hub(history=self.log.history, limits=LIMITS)

    def say(self, **numbers: object) -> None:
        print(json.dumps({"rss": resident(), "stats": self.hub.stats(), **numbers}), flush=True)

    async def publish(self, count: int, size: int) -> None:
        text = "x" * max(1, size - 220)
        peak = resident()
        for at in range(count):
            await self.hub.publish(channel_for("s1"), [self.log.next(text=text)])
            if at % 40 == 39:
                await asyncio.sleep(0.0015)
                peak = max(peak, resident())
        self.say(peak=peak)

    async def obey(self) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        async for line in reader:
            match line.decode().split():
                case ["publish", count, size]:
                    await self.publish(int(count), int(size))
                case _:
                    self.say()

    async def by_websockets(self) -> None:
        async with self.hub.serve(grace=2.0) as server:
            self.say(port=server.port)
            obeying = asyncio.create_task(self.obey())
            await server.until_stopped()
            obeying.cancel()
        print(json.dumps({"closes": self.hub.stats()["closes"]}), flush=True)

    async def by_uvicorn(self) -> None:
        server = uvicorn.Server(
            uvicorn.Config(self.hub.asgi(), port=0, log_level="critical", timeout_graceful_shutdown=2)
        )
        serving = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110  uvicorn has a flag, no event
            await asyncio.sleep(0.01)
        self.say(port=port_of(server))
        obeying = asyncio.create_task(self.obey())
        await serving
        obeying.cancel()


if __name__ == "__main__":
    service = Service()
    asyncio.run(service.by_websockets() if sys.argv[1] == "websockets" else service.by_uvicorn())
