"""The process that shows the runs: page, hub and API over the same log, with the work done elsewhere.

It hands orders to a worker process over a pipe and watches the log for what comes of them, so the page stays up
while the worker is killed. Knows `Cast`; does not know frameworks.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from itertools import count
from pathlib import Path
from typing import Any

from ag_ui.core import AgentCapabilities, IdentityCapabilities

from runcast.app.auth import Door
from runcast.app.cast import Cast
from runcast.app.demo.shared import LEASE_MS, NAMES, log_url
from runcast.app.errors import AppError, BadRequest, Busy, Closing, NotFound
from runcast.app.outlets import own_hub
from runcast.broadcast import BroadcastConfig
from runcast.slim import RunLog, open_store

ERRORS: dict[str, type[AppError]] = {each.__name__: each for each in (BadRequest, Busy, NotFound, Closing)}


class Worker:
    """The other process: started, given orders, killed."""

    def __init__(self, folder: Path, kind: str, pace: float) -> None:
        self._command = [sys.executable, "-m", "runcast.app.demo.worker", str(folder), kind, str(pace)]
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._numbers = count(1)

    @property
    def alive(self) -> bool:
        """Whether it is there."""
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int | None:
        """Its process id, while it is there."""
        return self._process.pid if self._process is not None and self.alive else None

    async def start(self) -> None:
        """Start it, unless it is there; returns when it takes orders."""
        if not self.alive:
            self._ready.clear()
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the desk, which then ends it in order
            )
            self._reader = asyncio.create_task(self._read(self._process))
        await self._ready.wait()
        if not self.alive:
            raise Closing("the worker did not start")

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        stdout = process.stdout
        while stdout is not None and (line := await stdout.readline()):
            told = json.loads(line)
            if "ready" in told:
                self._ready.set()
            elif (waiting := self._waiting.pop(told["id"], None)) is not None:
                waiting.set_result(told)
        await process.wait()
        self._ready.set()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(Closing("the worker died; press r, or ask again"))
        self._waiting.clear()

    async def ask(self, do: str, **given: Any) -> Any:
        """Give it an order and wait for what it says."""
        if not self.alive or self._process is None or self._process.stdin is None:
            raise Closing("the worker is not running; press r in the terminal to bring it back")
        number = next(self._numbers)
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._process.stdin.write(json.dumps({"id": number, "do": do, "given": given}).encode() + b"\n")
        told = await waiting
        if "error" in told:
            raise ERRORS.get(told["error"], BadRequest)(told["text"])
        return told["ok"]

    async def kill(self) -> None:
        """As the power would: no goodbye, nothing flushed."""
        if self._process is not None and self.alive:
            os.kill(self._process.pid, signal.SIGKILL)
        await self._gone()

    async def end(self) -> None:
        """Let it finish in order."""
        if self._process is not None and self.alive and self._process.stdin is not None:
            self._process.stdin.close()
            try:
                async with asyncio.timeout(5):
                    await self._process.wait()
            except TimeoutError:
                await self.kill()
        await self._gone()

    async def _gone(self) -> None:
        if self._reader is not None:
            await self._reader


class Ordered:
    """A run that was ordered: its ids are all the desk knows of it."""

    def __init__(self, desk: Desk, thread_id: str, run_id: str) -> None:
        self._desk = desk
        self.thread_id = thread_id
        self.run_id = run_id

    async def stop(self, *, hard: bool = False) -> None:
        """Have the worker stop it."""
        await self._desk.stop(self.run_id, hard, thread_id=self.thread_id)


class Remote:
    """The agent as the page lists it; the worker has the real one."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, input: Any, *, resume: Any = None) -> Any:
        """Not here."""
        raise AppError("the worker runs this agent")

    async def stop(self, run_id: str, *, hard: bool = False) -> None:
        """Not here."""

    def capabilities(self) -> AgentCapabilities:
        """Its name; the worker knows the rest."""
        return AgentCapabilities(identity=IdentityCapabilities(name=self.name))


class Desk(Cast):
    """A cast whose runs are another process's."""

    def __init__(self, folder: Path, kind: str = "langgraph", *, pace: float = 0.04) -> None:
        config, door = BroadcastConfig.debug(), Door()
        log = RunLog(open_store(log_url(folder)), lease_ms=LEASE_MS)
        hub = own_hub(log, config, door)
        super().__init__(log, None, hub, agents=[Remote(NAMES[kind])], config=config, door=door, work=False)
        self.worker = Worker(folder, kind, pace)
        self._tails: dict[str, asyncio.Task[None]] = {}

    async def say(
        self, thread_id: str, text: str, *, agent: str | None = None, from_run: str | None = None
    ) -> Any:
        """Have the worker start a run."""
        self.watch(thread_id)
        return self._ordered(await self.worker.ask("say", thread_id=thread_id, text=text, from_run=from_run))

    async def resume(self, thread_id: str, answers: Any = None, *, agent: Any = None) -> Any:
        """Have the worker answer, or go on."""
        self.watch(thread_id)
        given = None if answers is None else _plain(answers)
        return self._ordered(await self.worker.ask("resume", thread_id=thread_id, answers=given))

    async def take(self, agent: Any, input: Any) -> Any:
        """The AG-UI endpoint streams runs of its own process, and this one has none."""
        raise BadRequest("the demo's agent is asked by its page; `runcast attach` has the AG-UI endpoint")

    def _ordered(self, told: dict[str, str]) -> Ordered:
        return Ordered(self, told["thread_id"], told["run_id"])

    def watch(self, thread_id: str) -> None:
        """Carry this thread's entries to the hub, whoever writes them."""
        if thread_id not in self._tails:
            self._tails[thread_id] = asyncio.create_task(self.tail(thread_id))

    async def recover_runs(self) -> list[str]:
        """Bring the worker back and have it take up what was cut short, once the dead one's lease is over."""
        await self.worker.start()
        async with asyncio.timeout(LEASE_MS / 1000 * 4):
            while True:
                found: list[str] = (await self.worker.ask("recover"))["found"]
                runs = [await self.log.runs(thread_id) for thread_id in self._tails]
                if found or not any(each and each[-1].status == "in_progress" for each in runs):
                    return found
                await asyncio.sleep(0.1)

    async def aclose(self, *, grace: float = 10.0) -> None:
        """End the worker, then the page."""
        await self.worker.end()
        for task in self._tails.values():
            task.cancel()
        await super().aclose(grace=grace)


def _plain(answers: Any) -> Any:
    if isinstance(answers, dict):
        return answers  # pyright: ignore[reportUnknownVariableType]  # ids and JSON
    return [
        each if isinstance(each, dict) else each.model_dump(mode="json", by_alias=True) for each in answers
    ]
