"""A run of this process: drives an adapter, appends its events to the log, keeps snapshots of the thread.

Its life does not depend on watchers. Knows the log and the adapter; does not know sockets, HTTP or other runs.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson
from ag_ui.core import (
    Event,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)

from runcast.adapters import Adapter, failure
from runcast.app.errors import AppError
from runcast.app.runs.handle import Accepted, RunHandle, RunResult, Terminal, result_of, truncated
from runcast.app.runs.run_plan import RunPlan
from runcast.app.telemetry import RunSpan, run_span
from runcast.slim import Conflict, RunLog, SlimError, SlimSerializer, SnapshotTaker
from runcast.slim.archive.blobs import snapshot_body
from runcast.slim.folding.run_metadata import METADATA_KEY, metadata_of
from runcast.slim.snapshots.message_weight import weight
from runcast.slim.tasks import end
from runcast.slim.values.lifecycles import DELTAS

if TYPE_CHECKING:
    from runcast.slim import AgentState, Entry

Run = RunHandle  # what `Cast.start` returns, as annotations name it

MESSAGE = 1_000  # bytes of a message beside its text

log = logging.getLogger("runcast.app")


@dataclass(frozen=True, slots=True)
class Left:
    """What a run leaves: the state of its thread at a place of the log, and the snapshot of it.

    Kept for a thread's next turn as few objects: the collector walks through all that are kept.
    """

    seq: int
    history: str  # the epoch bound to that place
    state: AgentState  # with a plain list of messages
    snapshot: bytes  # as JSON

    @property
    def weight(self) -> int:
        """Roughly the bytes that it takes."""
        messages = self.state.history
        shown = sum(len(orjson.dumps(each.content)) for each in messages if each.role == "activity")
        return self.state.content_bytes + shown + MESSAGE * (len(messages) + 1)


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
        self._snapshot = b""  # the last one, as JSON
        self._has_state = False  # in it
        self._snapshot_seq = 0
        self._last: Entry | None = None
        self._newest: Entry | None = None  # that was given to the log, written or not
        self._ended = ended
        self._begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._terminal: Terminal | None = None
        self._task: asyncio.Task[RunResult] | None = None
        self._abandoned = False
        self._turn = asyncio.Lock()  # of the log's next entry: the adapter's, or one announced
        self._span = RunSpan(None)
        self._expected: dict[str, tuple[Event, Callable[[], None]]] = {}  # by message id
        self._handed: list[Event] = []  # a message that the run was handed, until it is whole

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

    @property
    def left(self) -> Left | None:
        """What the next run of the thread begins with, if this one has ended by itself.

        None where an id stands twice: only the log knows whether two places hold one message. And where the state is too
        big for a snapshot: it is read again.
        """
        last, state = self._last, self._snapshots.taken
        if self._terminal is None or last is None or state is None or self._snapshot_seq < last.seq:
            return None
        history = list(state.history)
        if len({each.id for each in history}) < len(history) or not self._has_state:
            return None
        exact = sum(map(weight, history))  # counted as it grew, it is a little off in odd streams
        own = replace(state, history=history, content_bytes=exact)
        return Left(last.seq, last.history, own, self._snapshot)

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
        """Record an event with the adapter's message of this id, which is written whole: its note goes when it is."""
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
            await self._record_all()
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

    async def _record_all(self) -> None:
        """Record the adapter's events; an exception or a missing end becomes a RUN_ERROR."""
        source = self._plan.opened(self.adapter)
        pull, flow = aiter(source).__anext__, self._log.live.flow(self.thread_id, self._entered)
        try:
            while True:
                try:
                    event = await pull()
                except StopAsyncIteration:  # without an end the thread would stay busy
                    return await self._end("the agent ended without a terminal event", "no_terminal")
                except Exception as error:  # an adapter's fault ends its run, not the process
                    log.exception("adapter %s raised in run %r", self.adapter.name, self.run_id)
                    found = failure(error)
                    return await self._end(found.message, found.code)
                if not self._passes(event) or not flow(event):
                    for each in self._corrected(event):
                        await self._record(each)
                    continue
                if type(event) not in DELTAS:
                    self._span.feed(event)
                if self._newest is not None:
                    self._last, self.last_seq = self._newest, self._newest.seq
        finally:
            close = getattr(source, "aclose", None)
            if close is not None:
                await close()

    def _passes(self, event: Event) -> bool:
        """Whether nothing but the log has to see an event; it may go before or after what is announced."""
        if self._abandoned or self._handed:
            return False
        return not self._expected or not isinstance(event, TextMessageStartEvent)

    def _corrected(self, event: Event) -> list[Event]:
        """The event, with what corrects the client's view behind RUN_STARTED."""
        if not isinstance(event, RunStartedEvent):
            return [event]
        return [event, *self._plan.corrections((event.input or self.input).messages)]

    async def _end(self, message: str, code: str | None) -> None:
        """End a run that has no terminal event."""
        if self._terminal is None:
            await self._record(RunErrorEvent(message=message, code=code, timestamp=_now()))

    async def _record(self, event: Event) -> None:
        async with self._turn:
            if self._abandoned:
                return
            if isinstance(event, RunStartedEvent):
                event = self._completed(event)
            elif isinstance(event, RunFinishedEvent | RunErrorEvent):
                self._terminal = event
            self._span.feed(event)
            if self._handed or (isinstance(event, TextMessageStartEvent) and self.expects(event.message_id)):
                await self._take_in(event)
            else:
                await self._append(event)

    async def _take_in(self, event: Event) -> None:
        """Keep an event of a message that the run was handed, and write the message whole, with the event behind it.

        A process that dies before has written nothing of it, and its note waits on; so it does where the run ends within it.
        """
        self._handed.append(event)
        due = self._expected.pop(event.message_id, None) if isinstance(event, TextMessageEndEvent) else None
        if due is None and self._terminal is None:
            return
        events, self._handed = self._handed, []
        if due is None:
            half = getattr(events[0], "message_id", None)
            events = [each for each in events if getattr(each, "message_id", None) != half]
        else:
            events.append(due[0])
        for entry in await self._log.append_many(self.thread_id, events, on_entry=self._entered):
            self._last, self.last_seq = entry, entry.seq
        if due is not None:
            due[1]()

    async def _append(self, event: Event) -> None:
        entry = await self._log.append(self.thread_id, event, on_entry=self._entered)
        if entry is None:
            return
        self._last, self.last_seq = entry, entry.seq
        if not self._begun.done():
            self.first_seq, self.epoch = entry.seq, entry.epoch
            self._begun.set_result(None)

    def _entered(self, entry: Entry) -> bytes | None:
        """Follow what is about to be written; returns a snapshot that is due."""
        self._newest = entry
        data = self._snapshots.feed(entry)
        if data is None:
            return None
        self._snapshot_seq, self._has_state = entry.seq, False  # one that is not JSON is not tried again
        self._snapshot = snapshot_body(data, plain=True)
        self._has_state = "state" in data
        return self._snapshot

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
