"""Runs that are asked for on one node and begun by another: how they are written down, and what the asker sees of them.

A want waits as a note in its agent's box until a worker has begun it; its run id makes sure that this happens once.
Knows the log; does not know who takes a want up (`node.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import orjson
from ag_ui.core import (
    AgentCapabilities,
    IdentityCapabilities,
    Message,
    ResumeEntry,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
)

from runcast.adapters import Adapter
from runcast.app.errors import AppError
from runcast.app.run import Run, RunResult
from runcast.slim import Entry, ReaderTooSlow, RunLog, StoreError, decode_input, encode_input

SILENCE = 2.0  # seconds without an entry before the log is asked whether the run was cut short
PAUSE = 0.5  # seconds before a log that cannot be read is asked again

Edge = Literal["continue", "branch", "resume"]


def note_id(what: str, tenant: str, *names: str) -> str:
    """The name of a note: there is one of each at a time. Short, whatever the names are."""
    text = "".join(f"{len(each)}:{each}" for each in (tenant, *names))
    return f"{what} {blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=20).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Want:
    """A run that somebody asked for. Without an input it goes on from what its parent left."""

    agent: str
    input: RunAgentInput | None = None
    edge: Edge = "continue"
    parent: str | None = None
    unfinished: bool = False  # take up what was cut short, rather than answer
    recovery: bool = False  # nobody waits for it: it is let go when the thread has gone on

    def encode(self) -> bytes:
        """As a note's body: a line of JSON, and the input behind it as it came."""
        head = {
            "agent": self.agent,
            "edge": self.edge,
            "parent": self.parent,
            "unfinished": self.unfinished,
            "recovery": self.recovery,
        }
        return orjson.dumps(head) + b"\n" + (b"" if self.input is None else encode_input(self.input))

    @classmethod
    def decode(cls, body: bytes) -> Want:
        """Read a note's body."""
        head, _, given = body.partition(b"\n")
        return cls(input=decode_input(given) if given else None, **orjson.loads(head))


def input_for(
    thread_id: str,
    run_id: str,
    messages: Sequence[Message],
    *,
    parent: str | None = None,
    resume: Sequence[ResumeEntry] = (),
) -> RunAgentInput:
    """What a run is given that nobody has written an input for."""
    given: dict[str, Any] = {"resume": list(resume)} if resume else {}
    if parent is not None:
        given["parent_run_id"] = parent
    said: list[Message] = [message for message in messages if message.role != "activity"]
    return RunAgentInput(thread_id=thread_id, run_id=run_id, messages=said, tools=[], context=[], **given)


class Far:
    """An agent of other nodes, as they tell of it."""

    def __init__(self, name: str, capabilities: dict[str, Any] | None = None) -> None:
        self.name = name
        self._capabilities = capabilities

    def run(self, input: RunAgentInput, *, resume: Any = None) -> Any:
        """Not here."""
        raise AppError(f"agent {self.name!r} is run by other nodes; this one hands runs over")

    async def stop(self, run_id: str, *, hard: bool = False) -> None:
        """Not here."""
        raise AppError(f"agent {self.name!r} is run by other nodes")

    def capabilities(self) -> AgentCapabilities:
        """What it can do, as its nodes say."""
        if self._capabilities is None:
            return AgentCapabilities(identity=IdentityCapabilities(name=self.name))
        return AgentCapabilities.model_validate(self._capabilities)


class Wanted(Run):
    """A run that another node begins: what is known of it here is what the log tells."""

    def __init__(  # pyright: ignore[reportMissingSuperCall]  # nothing of it is driven here
        self,
        log: RunLog,
        adapter: Adapter,
        input: RunAgentInput,
        *,
        after: int,  # where the thread ended when it was asked for
        stop: Callable[[bool], Awaitable[object]],
    ) -> None:
        self.adapter = adapter
        self.input = input
        self.thread_id = input.thread_id
        self.run_id = input.run_id
        self.attempt = 1
        self.epoch = ""
        self.first_seq = 0
        self.last_seq = 0
        self._log = log
        self._after = after
        self._stop = stop
        self._begun = asyncio.get_running_loop().create_future()
        self._terminal = None
        self._task = None
        self._cut = False

    def begin(self) -> None:
        """Watch the log for it, in a task of its own."""
        if self._task is None:
            name = f"runcast wanted {self.thread_id} {self.run_id}"
            self._task = asyncio.create_task(self._watch(), name=name)

    async def begun(self) -> None:
        """Wait until a worker has begun it, however long that takes."""
        self.begin()
        await asyncio.shield(self._begun)

    @property
    def active(self) -> bool:
        """Whether its end has not been seen."""
        return self._terminal is None and not self._cut

    @property
    def state(self) -> Any:
        """Not known here."""
        raise AppError("this run is another node's: ask the cast for the thread's state")

    async def result(self) -> RunResult:
        """Wait for the end. Cancelling the wait does not stop the run."""
        self.begin()
        return await super().result()

    async def over(self) -> None:
        """Wait for the end, whatever it is. Cancelling the wait does not stop the run."""
        self.begin()
        await super().over()

    async def stop(self, *, hard: bool = False) -> None:
        """Have its owner end it."""
        await self._stop(hard)

    async def abandon(self) -> None:
        """Watch it no more; it goes on."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _watch(self) -> RunResult:
        while True:
            try:
                async with aclosing(self._log.attach(self.thread_id, self._after)) as entries:
                    await self._read(entries)
                return self._finished()
            except ReaderTooSlow:
                continue
            except StoreError:  # it is away, or the thread is
                await asyncio.sleep(PAUSE)

    async def _read(self, entries: AsyncGenerator[Entry]) -> None:
        """Take entries up to the run's last one."""
        coming: asyncio.Task[Entry | None] | None = None
        try:
            while self.active:
                coming = coming or asyncio.create_task(_next(entries))
                await asyncio.wait({coming}, timeout=SILENCE)
                if coming.done():
                    entry, coming = coming.result(), None
                    self._take(entry)
                else:
                    self._cut = await self._is_cut()
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)

    def _take(self, entry: Entry | None) -> None:
        if entry is None:
            raise StoreError("the log was closed")
        self._after = entry.seq
        if entry.run_id != self.run_id:
            return
        self.last_seq = entry.seq
        if not self._begun.done():
            self.first_seq, self.epoch = entry.seq, entry.epoch
            self._begun.set_result(None)
        if isinstance(entry.event, RunFinishedEvent | RunErrorEvent):
            self._terminal = entry.event

    async def _is_cut(self) -> bool:
        found = [
            run for thread, run in await self._log.find(self.run_id) if thread.thread_id == self.thread_id
        ]
        return bool(found) and found[0].status == "truncated" and found[0].last_seq <= self.last_seq


async def _next(entries: AsyncGenerator[Entry]) -> Entry | None:
    return await anext(entries, None)
