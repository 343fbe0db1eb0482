"""A web node that only listens, in a process of its own: a hub, and what brings it the envelopes of others.

Run as `python -m benchmarks._engines_peer URL`; says "ready" when it hears. On stdin: `until COUNT` answers when it has
heard so many envelopes, with the seconds of processor used since the last answer.
"""

from __future__ import annotations

import asyncio
import sys
import time

from benchmarks._hub_peer import LIMITS
from runcast.broadcast import Hub
from runcast.broadcast.hub.fanout import RedisFanout


async def main(url: str) -> None:
    hub = Hub("1001", "app-key", "app-secret", public=True, prefix="agent.", limits=LIMITS)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    async with RedisFanout(hub, url) as fanout:
        await fanout.connected.wait()
        print("ready", flush=True)
        used = time.process_time()
        async for line in reader:
            match line.decode().split():
                case ["until", count]:
                    async with asyncio.timeout(60):
                        while fanout.stats()["heard"] < int(count):  # noqa: ASYNC110  a counter is all it has
                            await asyncio.sleep(0.02)
                    now = time.process_time()
                    print(now - used, flush=True)
                    used = now
                case _:
                    return


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
