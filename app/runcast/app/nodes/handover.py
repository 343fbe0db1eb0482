"""Runs that are requested on one node and driven by another: the request, and the handle the requester gets.

A request waits as a note in its agent's mailbox until a worker has started the run; the run id makes sure that this
happens once. Knows the log; does not know which worker takes a request (`node.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Literal

import orjson
from ag_ui.core import (
    AgentCapabilities,
    CustomEvent,
    IdentityCapabilities,
    Message,
    ResumeEntry,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    Tool,
)

from runcast.adapters import Adapter, AgentSchemas, Drawing
from runcast.app.errors import AppError, Over
from runcast.app.runs.handle import Accepted, RunResult, Terminal, result_of, truncated
from runcast.slim import Entry, Forgotten, ReaderTooSlow, RunLog, StoreError, decode_input, encode_input
from runcast.slim.tasks import end
from runcast.slim.values.type_guards import as_mapping

SILENCE = 2.0  # seconds without an entry before the log is asked whether the run was cut short
PAUSE = 0.5  # seconds before a log that cannot be read is asked again

Edge = Literal["continue", "branch", "resume"]
OnBusy = Literal["refuse", "queue", "steer", "interrupt", "rollback"]  # for a message while a run is active
STEERED = "runcast.steered"  # the CUSTOM event behind a message that a running agent was handed


def note_id(kind: str, tenant: str, *names: str) -> str:
    """The unique id of a note. Short, however long the names are."""
    text = "".join(f"{len(each)}:{each}" for each in (tenant, *names))
    return f"{kind} {blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=20).hexdigest()}"


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run that was asked for. What it continues from is read when it starts, under the thread's lease."""

    agent: str
    input: RunAgentInput | None = None  # None: the thread's own messages
    edge: Edge = "continue"
    parent: str | None = None  # for "continue" and "resume" it must still be the thread's newest run
    unfinished: bool = False  # finish what was cut short, rather than answer
    recovery: bool = False  # asked for by a node: dropped without a trace when the thread has moved on
    append: bool = False  # the input's messages follow those of the thread
    on_busy: OnBusy = "refuse"  # how it came to wait
    over: str | None = None  # the run that was active then
    begins: bool = (
        False  # a worker starts it under the thread's lease: it is neither edited nor withdrawn any more
    )

    def encode(self) -> bytes:
        """A note's body: a line of JSON, then the input unchanged."""
        head = {
            "agent": self.agent,
            "edge": self.edge,
            "parent": self.parent,
            "unfinished": self.unfinished,
            "recovery": self.recovery,
            **({"append": True} if self.append else {}),
            **({"on_busy": self.on_busy, "over": self.over} if self.on_busy != "refuse" else {}),
            **({"begins": True} if self.begins else {}),
        }
        return orjson.dumps(head) + b"\n" + (b"" if self.input is None else encode_input(self.input))

    @classmethod
    def decode(cls, body: bytes) -> RunRequest:
        """Read a note's body."""
        head, _, given = body.partition(b"\n")
        return cls(input=decode_input(given) if given else None, **orjson.loads(head))

    @property
    def by_host(self) -> bool:
        """Whether no client gives tools, context or forwarded properties with it."""
        return self.input is None or self.append

    def as_before(self, thread_id: str, run_id: str, before: RunAgentInput) -> RunRequest:
        """The request with what a client gave the run that this one resumes, and its state if that run was cut short."""
        given = self._given(thread_id, run_id)
        same = {"tools": before.tools, "context": before.context, "forwarded_props": before.forwarded_props}
        state = {"state": before.state} if self.unfinished else {}
        return replace(self, input=given.model_copy(update={**same, **state}), append=True)

    def _given(self, thread_id: str, run_id: str) -> RunAgentInput:
        return self.input or input_for(thread_id, run_id, parent=self.parent)

    def with_history(self, thread_id: str, run_id: str, history: Sequence[Message]) -> RunAgentInput:
        """The input to run, with the thread's messages where the request has none of its own."""
        given = self._given(thread_id, run_id)
        if self.input is not None and not self.append:
            return given
        own = [message for message in history if message.role != "activity"]
        new = given.messages if self.on_busy == "refuse" else new_messages(given.messages, own)
        return given.model_copy(update={"messages": [*own, *new]})


def steered_run(event: object) -> str | None:
    """The run that will not begin, by the event behind a message that the active run was handed."""
    if not isinstance(event, CustomEvent) or event.name != STEERED:
        return None
    return as_mapping(event.value).get("run_id")


def new_messages(messages: Sequence[Message], history: Sequence[Message]) -> list[Message]:
    """The client's messages after the last one that the thread holds: what it had when a queued message was sent."""
    known = {each.id for each in history}
    last = max((at for at, each in enumerate(messages) if each.id in known), default=-1)
    return [each for each in messages[last + 1 :] if each.role != "assistant"]


def input_for(
    thread_id: str,
    run_id: str,
    messages: Sequence[Message] = (),
    *,
    parent: str | None = None,
    resume: Sequence[ResumeEntry] = (),
    forwarded_props: Mapping[str, Any] | None = None,
    tools: Sequence[Tool] = (),
) -> RunAgentInput:
    """The input of a run that no AG-UI client wrote one for."""
    given: dict[str, Any] = {"resume": list(resume)} if resume else {}
    if parent is not None:
        given["parent_run_id"] = parent
    if forwarded_props is not None:
        given["forwarded_props"] = forwarded_props
    return RunAgentInput(
        thread_id=thread_id, run_id=run_id, messages=list(messages), tools=list(tools), context=[], **given
    )


class RemoteAgent:
    """An agent that other nodes have, as they announce it."""

    reconciles_history = False  # the worker's own adapter decides

    def __init__(
        self,
        name: str,
        capabilities: dict[str, Any] | None = None,
        schemas: AgentSchemas | None = None,
        drawing: dict[str, Any] | None = None,
    ) -> None:
        self.name = name
        self._capabilities = capabilities
        self._schemas = schemas
        self._drawing = drawing

    def run(self, input: RunAgentInput, *, resume: Any = None) -> Any:
        """Not possible here."""
        raise AppError(f"agent {self.name!r} runs on other nodes: start it through the cast")

    async def stop(self, run_id: str, *, hard: bool = False) -> None:
        """Not possible here."""
        raise AppError(f"agent {self.name!r} runs on other nodes: stop it through the cast")

    def capabilities(self) -> AgentCapabilities:
        """As its nodes announce them."""
        if self._capabilities is None:
            return AgentCapabilities(identity=IdentityCapabilities(name=self.name))
        return AgentCapabilities.model_validate(self._capabilities)

    def schemas(self) -> AgentSchemas:
        """As its nodes announce them."""
        return self._schemas or AgentSchemas()

    def drawing(self) -> Drawing:
        """As its nodes announce it."""
        return Drawing() if self._drawing is None else Drawing.read(self._drawing)


class RemoteRun:
    """A run that another node drives; all that is known of it here comes from the log."""

    def __init__(
        self,
        log: RunLog,
        adapter: Adapter,
        input: RunAgentInput,
        *,
        after: int,  # the thread's last seq before the request
        stop: Callable[[bool], Awaitable[object]],
        waits: Callable[[], Awaitable[bool]] | None = None,  # whether a queued message will still begin
        accepted: Accepted = "started",
    ) -> None:
        self.accepted: Accepted = accepted
        self.adapter = adapter
        self.input = input
        self.thread_id = input.thread_id
        self.run_id = input.run_id
        self.attempt = 1
        self.epoch = ""
        self.first_seq = 0
        self.last_seq = 0
        self.into: str | None = None  # the run that was handed this message
        self._log = log
        self._after = after
        self._stop = stop
        self._waits = waits
        self._begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._terminal: Terminal | None = None
        self._truncated = False
        self._task: asyncio.Task[RunResult] | None = None

    @property
    def active(self) -> bool:
        """Whether no end of the run was seen."""
        return self._terminal is None and not self._truncated

    @property
    def state(self) -> Any:
        """Not known here."""
        raise AppError("this run is on another node: ask the cast for the thread's state")

    async def begun(self) -> None:
        """Wait until a worker has started the run, or the active run was handed its message (`into`)."""
        self._watching()
        await asyncio.shield(self._begun)

    async def result(self) -> RunResult:
        """Wait for the end. Cancelling the wait does not stop the run."""
        return await asyncio.shield(self._watching())

    async def over(self) -> None:
        """As `result`, without raising or returning anything."""
        await asyncio.wait({self._watching()})

    async def stop(self, *, hard: bool = False) -> None:
        """Ask the run's owner to end it."""
        await self._stop(hard)

    async def abandon(self) -> None:
        """Stop watching; the run goes on."""
        await end([self._task])

    def _watching(self) -> asyncio.Task[RunResult]:
        if self._task is None:
            name = f"runcast remote {self.thread_id} {self.run_id}"
            self._task = asyncio.create_task(self._watch(), name=name)
        return self._task

    async def _watch(self) -> RunResult:
        while True:
            try:
                async with aclosing(self._log.attach(self.thread_id, self._after)) as entries:
                    await self._read(entries)
                if not self._begun.done():
                    self._begun.set_exception(Forgotten(f"thread {self.thread_id!r} was forgotten"))
                    self._begun.exception()  # retrieved here, because there may be no waiter
                gone = self._begun.exception() if self._begun.done() else None
                if isinstance(gone, Over):
                    return truncated(self, str(gone), "withdrawn")
                return replace(result_of(self, self._terminal), run_id=self.into or self.run_id)
            except ReaderTooSlow:
                continue
            except StoreError:  # the store is away, or the thread was deleted
                await asyncio.sleep(PAUSE)
                with suppress(StoreError):
                    self._truncated = await self._log.archive.is_forgotten(self.thread_id)

    async def _read(self, entries: AsyncGenerator[Entry]) -> None:
        """Read entries up to the run's last one."""
        coming: asyncio.Task[Entry | None] | None = None
        try:
            while self.active:
                coming = coming or asyncio.create_task(_next(entries))
                await asyncio.wait({coming}, timeout=SILENCE)
                if coming.done():
                    entry, coming = coming.result(), None
                    self._take(entry)
                else:
                    self._truncated = await self._is_truncated() or await self._is_withdrawn()
        finally:
            await end([coming])

    def _take(self, entry: Entry | None) -> None:
        if entry is None:
            raise StoreError("the log was closed")
        self._after = entry.seq
        if steered_run(entry.event) == self.run_id:
            self.into = entry.run_id
        elif entry.run_id == self.run_id:  # it begins after all: the run that was handed it has died
            self.into = None
        if entry.run_id != (self.into or self.run_id):
            return
        self.last_seq = entry.seq
        if not self._begun.done():
            self.first_seq, self.epoch = entry.seq, entry.epoch
            self._begun.set_result(None)
        if isinstance(entry.event, RunFinishedEvent | RunErrorEvent):
            self._terminal = entry.event

    async def _is_withdrawn(self) -> bool:
        if self._begun.done() or self._waits is None or await self._waits():
            return False
        self._begun.set_exception(Over("the message was taken back, or handed to the run that was active"))
        self._begun.exception()  # retrieved here, because there may be no waiter
        return True

    async def _is_truncated(self) -> bool:
        if self.into is not None and self._waits is not None and await self._waits():
            return False  # the run that was handed it has not kept it: another one takes it
        found = [
            run
            for thread, run in await self._log.find(self.into or self.run_id)
            if thread.thread_id == self.thread_id
        ]
        if not found:
            return await self._log.archive.is_forgotten(self.thread_id)
        return found[0].status == "truncated" and found[0].last_seq <= self.last_seq


async def _next(entries: AsyncGenerator[Entry]) -> Entry | None:
    return await anext(entries, None)
