"""A run of this process: drives an adapter, appends its events to the log, keeps snapshots of the thread.

Its life does not depend on watchers. Knows the log and the adapter; does not know sockets, HTTP or other runs.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ag_ui.core import Event, RunErrorEvent, RunFinishedEvent, RunStartedEvent, TextMessageEndEvent

from runcast.adapters import Adapter, failure
from runcast.app.errors import AppError
from runcast.app.runs.handle import Accepted, RunHandle, RunResult, Terminal, result_of, truncated
from runcast.app.runs.run_plan import RunPlan
from runcast.app.telemetry import RunSpan, run_span
from runcast.slim import Conflict, RunLog, SlimError, SlimSerializer, SnapshotTaker
from runcast.slim.folding.run_metadata import METADATA_KEY, metadata_of
from runcast.slim.tasks import end
from runcast.slim.values.lifecycles import DELTAS

if TYPE_CHECKING:
    from runcast.slim import AgentState, Entry

Run = RunHandle  # what `Cast.start` returns, as annotations name it

log = logging.getLogger("runcast.app")


@dataclass(frozen=True, slots=True)
class Cadence:
    """How often a snapshot is kept during a run, counted from the last one; one is always kept at the end."""

    events: int = 500
    seconds: float = 10.0


class LocalRun:
    """A run that this process drives, or has driven."""

    def __init__(
        self,
        store: RunLog,
        adapter: Adapter,
        plan: RunPlan,
        *,
        serializer: SlimSerializer,
        cadence: Cadence,
        ended: Callable[[LocalRun], None] | None = None,
    ) -> None:
        self.accepted: Accepted = "started"
        self.adapter = adapter
        self.input = plan.input
        self.thread_id = plan.input.thread_id
        self.run_id = plan.input.run_id
        self.attempt = plan.attempt
        self.epoch = ""
        self.first_seq = 0
        self.last_seq = 0
        self._log = store
        self._plan = plan
        self._snapshots = SnapshotTaker(
            serializer,
            every_entries=cadence.events,
            every_ms=max(1, round(cadence.seconds * 1_000)),
            base=plan.base,
            agent_id=adapter.name,
        )
        self._snapshot_seq = 0  # of the last snapshot
        self._ended = ended
        self._begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._terminal: Terminal | None = None
        self._task: asyncio.Task[RunResult] | None = None
        self._abandoned = False
        self._turn = asyncio.Lock()  # of the log's next entry: the adapter's, or one announced
        self._span = RunSpan(None)
        self._expected: dict[str, tuple[Event, Callable[[], None]]] = {}  # by message id

    def begin(self) -> None:
        """Drive the run, in a task of its own."""
        self._task = asyncio.create_task(self._drive(), name=f"runcast {self.thread_id} {self.run_id}")
        self._task.add_done_callback(self._over)

    async def begun(self) -> None:
        """Wait until RUN_STARTED is in the log; raises what prevented it."""
        await asyncio.shield(self._begun)

    @property
    def active(self) -> bool:
        """Whether the run has not ended."""
        return self._task is not None and not self._task.done()

    @property
    def state(self) -> AgentState:
        """The thread as this run has left it so far."""
        return self._snapshots.builder.state()

    async def result(self) -> RunResult:
        """Wait for the end. Cancelling the wait does not stop the run."""
        if self._task is None:
            raise RuntimeError("the run was not begun")
        return await asyncio.shield(self._task)

    async def over(self) -> None:
        """As `result`, without raising or returning anything."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def stop(self, *, hard: bool = False) -> None:
        """End the run at the framework's next border, or at once when `hard`."""
        await self.adapter.stop(self.run_id, hard=hard)

    async def announce(self, event: Event) -> bool:
        """Record an event that is not the adapter's in this run; False when the run has ended."""
        await self.begun()
        async with self._turn:
            if not self.active or self._terminal is not None or self._abandoned:
                return False
            await self._append(event)
            return True

    def expect(self, message_id: str, event: Event, then: Callable[[], None]) -> None:
        """Record an event behind the adapter's message of this id."""
        self._expected[message_id] = (event, then)

    def expects(self, message_id: str) -> bool:
        """Whether the adapter was handed this message and has not emitted it."""
        return message_id in self._expected

    async def abandon(self) -> None:
        """Stop driving, as a crash would: the log gets no terminal event, and the run can be resumed."""
        self._abandoned = True
        await end([self._task])

    async def release_running(self) -> None:
        """Abandon the run and give its lease back, so that another process finds and resumes it at once."""
        await self.abandon()
        try:
            await self._log.recovery.release_running(self.thread_id)
        except SlimError as error:
            log.warning("thread %r is recovered when its lease expires: %s", self.thread_id, error)

    # --------------------------------------------------------------- driving

    async def _drive(self) -> RunResult:
        ids, before = (self.thread_id, self.run_id, self.attempt), self._plan.before
        with run_span(self.adapter.name, *ids, before=before) as self._span:
            result = await self._recorded()
            count, usage = self.last_seq - self.first_seq + 1, getattr(self._terminal, "usage", None)
            self._span.ended(status=result.status, events=count, code=result.code, usage=usage)
            return result

    async def _recorded(self) -> RunResult:
        try:
            async with aclosing(self._events()) as events:
                async for event in events:
                    # a delta may go before or after what is announced
                    if type(event) in DELTAS and not self._abandoned:
                        await self._append(event)
                        continue
                    async with self._turn:
                        await self._record(event)
        except Conflict as error:  # another owner has the lease: nothing more may be written here
            log.error("run %r lost the lease of thread %r: %s", self.run_id, self.thread_id, error)
            self._fail(error)
            return truncated(self, str(error), "conflict")
        except SlimError as error:
            log.error("run %r of thread %r cannot be recorded: %s", self.run_id, self.thread_id, error)
            self._fail(error)
            await self._release()
            return truncated(self, str(error), "store_error")
        if self._snapshot_seq < self.last_seq:  # no terminal event, or events after it
            await self._keep()
        return result_of(self, self._terminal)

    async def _events(self) -> AsyncGenerator[Event]:
        """The adapter's events; an exception or a missing end becomes a RUN_ERROR."""
        source = self.adapter.run(self.input, resume=self._plan.resume)
        try:
            async for event in source:
                yield event
                if isinstance(event, RunStartedEvent):
                    for each in self._plan.corrections((event.input or self.input).messages):
                        yield each
            if self._terminal is None:  # without one the thread would stay busy
                yield RunErrorEvent(
                    message="the agent ended without a terminal event", code="no_terminal", timestamp=_now()
                )
        except Exception as error:  # an adapter's fault ends its run, not the process
            log.exception("adapter %s raised in run %r", self.adapter.name, self.run_id)
            found = failure(error)
            if self._terminal is None:
                yield RunErrorEvent(message=found.message, code=found.code, timestamp=_now())
        finally:
            close = getattr(source, "aclose", None)
            if close is not None:
                await close()

    async def _record(self, event: Event) -> None:
        if self._abandoned:
            return
        if isinstance(event, RunStartedEvent):
            event = self._completed(event)
        elif isinstance(event, RunFinishedEvent | RunErrorEvent):
            self._terminal = event
        self._span.feed(event)
        await self._append(event)
        if self._expected and isinstance(event, TextMessageEndEvent) and self.expects(event.message_id):
            behind, then = self._expected.pop(event.message_id)
            await self._append(behind)
            then()

    async def _append(self, event: Event) -> None:
        entry = await self._log.append(self.thread_id, event, on_entry=self._entered)
        if entry is None:
            return
        self.last_seq = entry.seq
        if not self._begun.done():
            self.first_seq, self.epoch = entry.seq, entry.epoch
            self._begun.set_result(None)

    def _entered(self, entry: Entry) -> dict[str, Any] | None:
        """Follow what is about to be written; returns a snapshot that is due."""
        data = self._snapshots.feed(entry)
        if data is not None:
            self._snapshot_seq = entry.seq
        return data

    def _completed(self, event: RunStartedEvent) -> RunStartedEvent:
        """RUN_STARTED with input, parent, agent and attempt, where the agent left them out."""
        metadata = dict(event.metadata or {})
        own = {"agent": self.adapter.name, **metadata_of(event)}
        if self.attempt > 1:
            own["attempt"] = self.attempt
        if self._span.traceparent is not None:
            own["traceparent"] = self._span.traceparent
        update: dict[str, Any] = {
            "metadata": {**metadata, METADATA_KEY: own},
            "input": event.input or self.input,
        }
        if event.parent_run_id is None and self.input.parent_run_id is not None:
            update["parent_run_id"] = self.input.parent_run_id
        return event.model_copy(update=update)

    async def _keep(self) -> None:
        """Save a snapshot of the end. A failure is only logged: the log can rebuild it."""
        try:
            await self._log.save_snapshot(self.thread_id, self._snapshots.take(), run_id=self.run_id)
        except SlimError as error:
            log.warning("the snapshot of thread %r was not saved: %s", self.thread_id, error)

    async def _release(self) -> None:
        """Mark the run truncated in the log too, or its thread stays busy; a store that is away gets it later."""
        try:
            await self._log.recovery.abandon(self.thread_id)
        except SlimError as error:
            log.warning("thread %r is released when the store is back: %s", self.thread_id, error)

    # ---------------------------------------------------------------- ending

    def _fail(self, error: Exception) -> None:
        if not self._begun.done():
            self._begun.set_exception(error)
            self._begun.exception()  # retrieved here, because there may be no waiter

    def _over(self, task: asyncio.Task[RunResult]) -> None:
        self._fail(AppError(f"agent {self.adapter.name} ended before it began"))
        if not task.cancelled() and task.exception() is not None:
            log.error("run %r failed", self.run_id, exc_info=task.exception())
        if self._ended is not None:
            self._ended(self)


def _now() -> int:
    return time.time_ns() // 1_000_000
