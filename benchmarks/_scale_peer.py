"""One node of an installation, in a process of its own: it runs graphs, serves watchers, or both.

Run as `python -m benchmarks._scale_peer ROLE STORE REDIS FLUSH_MS`, `-` for no Redis; prints its port, 0 where it serves
none. On stdin: `run STEPS THREAD COUNT` runs so many graphs at once and answers as `_end_to_end_peer` does, for the first.
"""

from __future__ import annotations

import asyncio
import sys

from benchmarks._end_to_end_peer import WithCast, obey
from benchmarks._hub_peer import LIMITS
from runcast.app import Cast
from runcast.broadcast import Hub
from runcast.slim import Redactor, RunLog, open_store


class Node(WithCast):
    """A cast with the engines of its size."""

    def __init__(self, role: str, store: str, redis: str, flush_ms: str) -> None:
        self.role = role
        hub = Hub("1001", "app-key", "app-secret", public=True, prefix="agent.", limits=LIMITS)
        redactor = Redactor()
        self.cast = Cast(
            RunLog(open_store(store), redactor=redactor, flush_ms=float(flush_ms)),
            None,
            hub,  # of a worker too: it names the channels
            redactor=redactor,
            redis=None if redis == "-" else redis,
        )

    async def run(self, steps: int, thread: str, count: int = 1) -> list[int]:
        first, *_ = await asyncio.gather(
            *(super(Node, self).run(steps, f"{thread}{'' if at == 0 else f'-{at}'}") for at in range(count))
        )
        return first

    async def serve(self) -> None:
        if self.role == "worker":
            async with self.cast:
                print(0, flush=True)
                await obey(self)
        else:
            await super().serve()


if __name__ == "__main__":
    asyncio.run(Node(*sys.argv[1:]).serve())
