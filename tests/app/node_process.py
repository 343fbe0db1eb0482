"""A worker in a process of its own, to be killed: `python -m tests.app.node_process URL REDIS`.

Says `ready` once it listens, and works until it is killed.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from runcast.app import Cast
from tests.app.agents import asker, parrot, steady

LEASE_MS = 1_500
ROOT = Path(__file__).parents[2]


class WorkerProcess:
    """Use it with `async with`; `kill` is kill -9."""

    def __init__(self, url: str, redis: str | None = None) -> None:
        self._command = [sys.executable, "-m", "tests.app.node_process", url, *([redis] if redis else [])]
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *self._command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        async with asyncio.timeout(60):
            assert await self._process.stdout.readline() == b"ready\n"
        return self

    async def kill(self) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.kill()
        transport = getattr(self._process, "_transport", None)
        if transport is not None:
            transport.close()


async def work(url: str, redis: str | None) -> None:
    cast = Cast.open(
        url, agents=[parrot, asker, steady], watch=False, redis=redis, lease_ms=LEASE_MS, recover="continue",
        recover_every=0.4,
    )  # fmt: skip
    async with cast:
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None))
