"""One run that this process owns: its life does not depend on who watches.

Drives an adapter, appends every event to the log, grows the thread's picture and keeps snapshots of it. Knows the
log and the adapter; does not know sockets, HTTP or other runs.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ag_ui.core import (
    Event,
    Interrupt,
    Message,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    TokenUsage,
)

from runcast.adapters import Adapter, ResumePoint, failure
from runcast.app.errors import AppError
from runcast.app.telemetry import run_span
from runcast.slim import Conflict, RunLog, SlimError, SlimSerializer, SnapshotTaker

if TYPE_CHECKING:
    from runcast.slim import AgentState

log = logging.getLogger("runcast.app")


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended."""

    thread_id: str
    run_id: str
    status: str  # completed, interrupted, cancelled, failed, or truncated when it could not be recorded
    last_seq: int
    interrupts: tuple[Interrupt, ...] = ()
    usage: tuple[TokenUsage, ...] = ()
    result: Any = None
    error: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Cadence:
    """When a snapshot is kept while a run goes on, counted from the last one; one is always kept at its end."""

    events: int = 500
    seconds: float = 10.0


class Run:
    """A run under way, or over. Watching, leaving and coming back do not touch it."""

    def __init__(
        self,
        store: RunLog,
        adapter: Adapter,
        input: RunAgentInput,
        *,
        serializer: SlimSerializer,
        cadence: Cadence,
        base: AgentState | None = None,  # the thread as the run finds it
        attempt: int = 1,
        resume: ResumePoint | None = None,
        # of the messages that are asked: told right behind RUN_STARTED
        corrections: Callable[[Sequence[Message]], Sequence[Event]] = lambda asked: (),
        ended: Callable[[Run], None] | None = None,
    ) -> None:
        self.adapter = adapter
        self.input = input
        self.thread_id = input.thread_id
        self.run_id = input.run_id
        self.attempt = attempt
        self.epoch = ""
        self.first_seq = 0  # of RUN_STARTED, once it is in the log
        self.last_seq = 0
        self._log = store
        self._taker = SnapshotTaker(
            serializer,
            every_entries=cadence.events,
            every_ms=max(1, round(cadence.seconds * 1_000)),
            base=base,
            agent_id=adapter.name,
        )
        self._resume = resume
        self._corrections = corrections
        self._ended = ended
        self._begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._terminal: RunFinishedEvent | RunErrorEvent | None = None
        self._taken_at = 0  # seq of the last snapshot
        self._task: asyncio.Task[RunResult] | None = None
        self._abandoned = False

    def begin(self) -> None:
        """Start driving, in a task of its own."""
        self._task = asyncio.create_task(self._drive(), name=f"runcast {self.thread_id} {self.run_id}")
        self._task.add_done_callback(self._over)

    async def begun(self) -> None:
        """Wait until RUN_STARTED is in the log; raises what kept it from getting there."""
        await asyncio.shield(self._begun)

    @property
    def active(self) -> bool:
        """Whether it is still going on."""
        return self._task is not None and not self._task.done()

    @property
    def state(self) -> AgentState:
        """The thread as this run has left it so far."""
        return self._taker.builder.state()

    async def result(self) -> RunResult:
        """Wait for the end. Cancelling the wait does not stop the run."""
        if self._task is None:
            raise RuntimeError("the run was not begun")
        return await asyncio.shield(self._task)

    async def over(self) -> None:
        """Wait for the end, whatever it is. Cancelling the wait does not stop the run."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def stop(self, *, hard: bool = False) -> None:
        """End it: at the next border its framework has, or at once."""
        await self.adapter.stop(self.run_id, hard=hard)

    async def abandon(self) -> None:
        """Stop driving it, as a crash would: the log gets no end, and the run can be taken up again."""
        self._abandoned = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def hand_over(self) -> None:
        """Abandon it, and leave it in the log as one that has lost its owner: another process takes it up at once."""
        await self.abandon()
        try:
            await self._log.hand_over(self.thread_id)
        except SlimError as error:
            log.warning("thread %s is found when its lease has run out: %s", self.thread_id, error)

    # --------------------------------------------------------------- driving

    async def _drive(self) -> RunResult:
        with run_span(self.adapter.name, self.thread_id, self.run_id, self.attempt) as span:
            result = await self._driven()
            span.ended(status=result.status, events=self.last_seq - self.first_seq + 1, code=result.code)
            return result

    async def _driven(self) -> RunResult:
        try:
            async with aclosing(self._events()) as events:
                async for event in events:
                    await self._record(event)
        except Conflict as error:
            # Somebody else owns the thread now: whatever we would still write is not this thread's truth.
            log.error("run %s of thread %s lost its thread: %s", self.run_id, self.thread_id, error)
            self._fail(error)
            return self._told("truncated", error=str(error), code="conflict")
        except SlimError as error:
            log.error("run %s of thread %s cannot be recorded: %s", self.run_id, self.thread_id, error)
            self._fail(error)
            await self._let_go()
            return self._told("truncated", error=str(error), code="store_error")
        if self._taken_at < self.last_seq:  # it ended without an end, or said more behind it
            await self._keep(self._taker.take)
        return self._finished()

    async def _events(self) -> AsyncGenerator[Event]:
        """The adapter's events; one that raises instead of telling is made to tell."""
        source = self.adapter.run(self.input, resume=self._resume)
        try:
            async for event in source:
                yield event
                if isinstance(event, RunStartedEvent):
                    for each in self._corrections((event.input or self.input).messages):
                        yield each
            if self._terminal is None:  # else the thread would stay busy with it
                yield RunErrorEvent(
                    message="the agent ended without an end", code="no_terminal", timestamp=_now()
                )
        except Exception as error:  # an adapter's fault ends its run, not the process
            log.exception("adapter %s broke in run %s", self.adapter.name, self.run_id)
            told = failure(error)
            if self._terminal is None:
                yield RunErrorEvent(message=told.message, code=told.code, timestamp=_now())
        finally:
            close = getattr(source, "aclose", None)
            if close is not None:
                await close()

    async def _record(self, event: Event) -> None:
        if self._abandoned:
            return
        if isinstance(event, RunStartedEvent):
            event = self._announced(event)
        elif isinstance(event, RunFinishedEvent | RunErrorEvent):
            self._terminal = event
        entry = await self._log.append(self.thread_id, event)
        if entry is None:
            return
        self.last_seq = entry.seq
        if not self._begun.done():
            self.first_seq, self.epoch = entry.seq, entry.epoch
            self._begun.set_result(None)
        await self._keep(lambda: self._taker.feed(entry))

    def _announced(self, event: RunStartedEvent) -> RunStartedEvent:
        """RUN_STARTED with what was asked, of whom, and which attempt it is, where the agent does not say so."""
        metadata = dict(event.metadata or {})
        said = {"agent": self.adapter.name, **metadata.get("runcast", {})}
        if self.attempt > 1:
            said["attempt"] = self.attempt
        update: dict[str, Any] = {
            "metadata": {**metadata, "runcast": said},
            "input": event.input or self.input,
        }
        if event.parent_run_id is None and self.input.parent_run_id is not None:
            update["parent_run_id"] = self.input.parent_run_id
        return event.model_copy(update=update)

    async def _keep(self, take: Callable[[], dict[str, Any] | None]) -> None:
        """Keep a snapshot that is due. One that cannot be kept is reported; the log is the truth without it."""
        try:
            data = take()
            if data is not None:
                self._taken_at = self.last_seq
                await self._log.save_snapshot(self.thread_id, data, run_id=self.run_id)
        except SlimError as error:
            log.warning("no snapshot of thread %s could be kept: %s", self.thread_id, error)

    async def _let_go(self) -> None:
        """Cut the run short in the log too, or its thread stays taken. A store that is away is told when it is back."""
        try:
            await self._log.abandon(self.thread_id)
        except SlimError as error:
            log.warning("thread %s is given back when its store is there again: %s", self.thread_id, error)

    # ---------------------------------------------------------------- ending

    def _finished(self) -> RunResult:
        match self._terminal:
            case RunErrorEvent() as error:
                return self._told("failed", error=error.message, code=error.code, usage=error.usage)
            case RunFinishedEvent() as end:
                kind = "success" if end.outcome is None else end.outcome.type
                status = {"success": "completed", "interrupt": "interrupted"}.get(kind, kind)
                asked = getattr(end.outcome, "interrupts", None) or ()
                return self._told(status, interrupts=asked, usage=end.usage, result=end.result)
            case None:
                return self._told("truncated", error="the run was cut short", code="truncated")

    def _told(self, status: str, *, interrupts: Any = (), usage: Any = None, **more: Any) -> RunResult:
        return RunResult(
            self.thread_id,
            self.run_id,
            status,
            self.last_seq,
            interrupts=tuple(interrupts),
            usage=tuple(usage or ()),
            **more,
        )

    def _fail(self, error: Exception) -> None:
        if not self._begun.done():
            self._begun.set_exception(error)
            self._begun.exception()  # whoever started the run is told; nobody has to be

    def _over(self, task: asyncio.Task[RunResult]) -> None:
        self._fail(AppError(f"agent {self.adapter.name} ended before it began"))
        if not task.cancelled() and task.exception() is not None:
            log.error("run %s broke", self.run_id, exc_info=task.exception())
        if self._ended is not None:
            self._ended(self)


def _now() -> int:
    return time.time_ns() // 1_000_000
