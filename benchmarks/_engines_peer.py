"""A web node that only listens, in a process of its own: a hub with a reader on each channel that drops what it gets.

Run as `python -m benchmarks._engines_peer URL CHANNELS`; says "ready" when it hears `agent.s0` and so on. On stdin: `until COUNT` answers when it has
heard so many envelopes, with the seconds of processor used since the last answer.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from typing import Self

from benchmarks._hub_peer import LIMITS
from runcast.broadcast import Hub
from runcast.broadcast.hub.fanout import RedisFanout
from runcast.broadcast.hub.protocol import PlainRequest


class Nobody:
    """A socket that takes everything and keeps nothing; its skin is itself."""

    @property
    def skin(self) -> Self:
        return self

    def send(self, transports: Sequence[object], texts: Sequence[str]) -> None:
        """Drop it."""

    def buffered(self) -> int:
        return 0

    def abort(self) -> None:
        """Nothing is open."""

    def close(self, code: int, reason: str) -> None:
        raise RuntimeError(f"the hub closed a reader: {code} {reason}")


async def main(url: str, channels: int) -> None:
    hub = Hub("1001", "app-key", "app-secret", public=True, prefix="agent.", limits=LIMITS)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    for number in range(channels):
        await hub.open_plain(Nobody(), PlainRequest(f"agent.s{number}", None, None), address="a", headers={})
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
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
