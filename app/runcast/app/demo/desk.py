"""The demo's web node, and the worker process beside it.

The page, the hub and the API stay up while the worker is killed, because both only share a log. Knows `Cast`; does not
know frameworks.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from runcast.app.demo import script
from runcast.app.demo.shared import LEASE_MS, NAMES, log_url
from runcast.app.errors import Busy, Closing
from runcast.app.host.cast import Cast
from runcast.broadcast import BroadcastConfig
from runcast.slim import RunInfo

PATIENCE = 30.0  # seconds for a worker to start, and for its agent to be known
UNFINISHED = {"in_progress", "truncated"}


class Worker:
    """The worker's process: started, killed, ended."""

    def __init__(self, folder: Path, kind: str, pace: float) -> None:
        self._command = [sys.executable, "-m", "runcast.app.demo.worker", str(folder), kind, str(pace)]
        self._process: asyncio.subprocess.Process | None = None

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int | None:
        """The process id, while it runs."""
        return self._process.pid if self._process is not None and self.alive else None

    async def start(self) -> None:
        """Start the process, unless it runs; returns when it takes requests."""
        if self.alive:
            return
        self._process = process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the page's process, which then ends this one
        )
        async with asyncio.timeout(PATIENCE):
            if process.stdout is None or await process.stdout.readline() != b"ready\n":
                raise Closing("the worker did not start: see its error above")

    async def kill(self) -> None:
        """Kill -9: nothing is flushed, no lease is given back."""
        if self._process is not None and self.alive:
            os.kill(self._process.pid, signal.SIGKILL)
            await self._process.wait()

    async def end(self) -> None:
        """Let the process finish in order."""
        if self._process is not None and self.alive and self._process.stdin is not None:
            self._process.stdin.close()
            try:
                async with asyncio.timeout(5):
                    await self._process.wait()
            except TimeoutError:
                await self.kill()


class Desk:
    """A web node and its worker."""

    def __init__(self, folder: Path, kind: str = "langgraph", *, pace: float = 0.04) -> None:
        self.cast = Cast.open(
            log_url(folder), work=False, lease_ms=LEASE_MS, config=BroadcastConfig.debug(), redact=False
        )
        self.log = self.cast.log
        self.worker = Worker(folder, kind, pace)
        self._agent = NAMES[kind]
        self._bringing = asyncio.Lock()  # the page and the terminal may both ask for it

    async def start(self) -> None:
        """Start the worker; returns when its agent is known here."""
        await self.worker.start()
        async with asyncio.timeout(PATIENCE):
            while self._agent not in self.cast.agents:  # noqa: ASYNC110  announced by the other process
                await asyncio.sleep(0.02)

    async def ask(self, thread_id: str) -> None:
        """Start a run with the demo's question; returns when the worker has started it."""
        run = await self.cast.say(thread_id, script.QUESTION, agent=self._agent)
        await run.begun()

    async def answer(self, thread_id: str, answers: Mapping[str, Any]) -> None:
        """Answer a run's questions; returns when the worker has started the run that continues."""
        run = await self.cast.resume(thread_id, answers)
        await run.begun()

    async def watched(self) -> None:
        """Wait until somebody watches: a page has opened its socket."""
        while self.cast.hub is None or not self.cast.hub.stats()["connections"]:  # noqa: ASYNC110  no event for it
            await asyncio.sleep(0.05)

    async def newest(self, thread_id: str) -> RunInfo:
        """The thread's newest run."""
        return (await self.log.runs(thread_id))[-1]

    async def bring_back(self) -> list[str]:
        """Start the worker again, and resume what the dead one left once its lease has expired; returns the new runs."""
        async with self._bringing:
            return await self._bring_back()

    async def _bring_back(self) -> list[str]:
        left = {} if self.worker.alive else await self._left()
        await self.start()
        resumed: list[str] = []
        async with asyncio.timeout(PATIENCE):
            for thread_id, run_id in left.items():
                while (run := await self.newest(thread_id)).status == "in_progress" and run.run_id == run_id:  # noqa: ASYNC110  a lease has no event
                    await asyncio.sleep(0.05)
                with suppress(Busy):  # it was resumed on the page
                    if run.run_id == run_id and run.status == "truncated":
                        again = await self.cast.resume(thread_id)
                        await again.begun()
                        resumed.append(again.run_id)
        return resumed

    async def _left(self) -> dict[str, str]:
        """By thread, the runs that have no end."""
        threads = [thread.thread_id for thread in await self.log.threads()]
        newest = {thread_id: await self.newest(thread_id) for thread_id in threads}
        return {thread_id: run.run_id for thread_id, run in newest.items() if run.status in UNFINISHED}
