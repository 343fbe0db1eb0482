"""Messages that came while a run was active: kept in order, and begun one after the other when their thread is free.

A message waits as a note (`waiting.py`), so it is durable when its sender is answered, and any worker may begin it. The
note is claimed under the thread's lease and removed when RUN_STARTED is in the log; the run id ensures that it begins
once. What waits is announced in the run that is active, as a CUSTOM event. Knows the log and the launcher; does not
know HTTP.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, get_args

from ag_ui.core import CustomEvent, UserMessage

from runcast.adapters import Adapter, ResumePoint, Steerable, UnknownRun, can_steer
from runcast.app.errors import AppError, BadRequest, Busy, Closing, Full, NotFound, Over
from runcast.app.nodes.handover import STEERED, OnBusy, RemoteRun, RunRequest, note_id
from runcast.app.nodes.orphans import resume_truncated
from runcast.app.nodes.requests import HOUR_MS, decline, is_used
from runcast.app.nodes.waiting import EXCERPT, QUEUED, Waiting, in_order, is_plain, to_begin, to_wait
from runcast.app.runs.handle import RunHandle
from runcast.slim import SlimError

if TYPE_CHECKING:
    from runcast.app.host.cast import Cast
    from runcast.app.runs.run import LocalRun

MOST = 100  # messages that wait in one thread
LISTED = 20  # of them in an announcement

logger = logging.getLogger("runcast.app")


class Changed(Busy):
    """The message was edited or withdrawn, or the thread moved on, just before it began."""


class Behind(Busy):
    """Messages wait in the thread, and come first."""


class Queue:
    """The messages that wait in the threads of one cast, as `Cast.queue`."""

    def __init__(self, cast: Cast) -> None:
        self._cast = cast

    # --------------------------------------------------------------- sending

    async def submit(
        self,
        request: RunRequest,
        thread_id: str,
        run_id: str,
        *,
        adapter: Adapter,
        resume: ResumePoint | None = None,
        on_busy: OnBusy | None = None,
    ) -> RunHandle:
        """Start the run, or let it wait by the policy of the request, the agent or the cast."""
        cast = self._cast
        policy: OnBusy = on_busy or cast.agents.on_busy(adapter.name) or cast.options.on_busy
        if policy not in get_args(OnBusy):
            raise BadRequest(f"on_busy is one of {', '.join(get_args(OnBusy))}, not {policy!r}")
        if resume is not None:  # it is of this moment, and no note holds it
            policy = "refuse"

        async def claim() -> None:
            if cast.slots.is_noted(cast.tenant, thread_id):
                await self._unless_behind(thread_id, policy)

        try:
            if not cast.options.work or cast.slots.in_thread(cast.tenant, thread_id) is not None:
                await self._unless_behind(thread_id, policy)  # else the lease shows whether anything waits
            return await cast.launcher.launch(
                request, thread_id, run_id, adapter=adapter, resume=resume, claim=claim
            )
        except Busy as error:
            if policy == "refuse":
                if isinstance(error, Behind):  # its turn may have come while this process had the lease
                    cast.node.begin_next(cast, thread_id)
                raise
        return await self._put(request, thread_id, run_id, policy)

    async def _unless_behind(self, thread_id: str, policy: OnBusy) -> None:
        """Raise where messages wait that come first. Only a run that answers a question goes before them."""
        if await self.waiting(thread_id) and not (policy == "refuse" and await self._asks(thread_id)):
            raise Behind("messages wait in this thread: let this one wait too (`on_busy`), or withdraw them")

    async def _put(self, request: RunRequest, thread_id: str, run_id: str, policy: OnBusy) -> RemoteRun:
        cast = self._cast
        if cast.closing:
            raise Closing("this host is shutting down; ask again in a moment")
        if await is_used(cast, thread_id, run_id):
            raise Busy(f"the run id was used: run {run_id!r} is already in thread {thread_id!r}")
        waiting = await self.waiting(thread_id)
        if len(waiting) >= MOST:
            raise Full(f"{MOST} messages wait in this thread already; withdraw one, or ask again later")
        thread = await cast.log.thread(thread_id)
        active = await self._active(thread_id)
        if policy == "steer" and not await self._can_steer(request, thread_id, active):
            policy = "queue"
        request = to_wait(request, policy, active)
        if policy != "steer":
            await cast.outbox.arm_queued(thread_id, run_id, {"agent": request.agent, "on_busy": policy})
        note = await cast.log.notes.leave(
            note_id("queue", cast.tenant, thread_id, run_id),
            box=f"queue {request.agent}",
            body=request.encode(),
            thread_id=thread_id,
            run_id=run_id,
            after=max((each.note.at for each in waiting), default=0),
        )
        if note is None:
            raise Busy(f"the run id was used: run {run_id!r} already waits in thread {thread_id!r}")
        if active is not None and Waiting(note, request).ahead:
            await self._stop(thread_id, active)
        await self.changed(thread_id)
        cast.outbox.ring(thread_id, run_id)
        remote = RemoteRun(
            cast.log,
            cast.agent(request.agent),
            request.with_history(thread_id, run_id, ()),
            after=0 if thread is None else thread.last_seq,
            stop=lambda hard: cast.stop(run_id, hard, thread_id=thread_id),
            waits=lambda: self.waits(thread_id, run_id),
            accepted="steering" if policy == "steer" else "queued",
        )
        cast.remote_runs.add(remote)
        return remote

    async def _active(self, thread_id: str) -> str | None:
        """The run that is active in the thread, or was requested and has not begun."""
        here = self._cast.slots.in_thread(self._cast.tenant, thread_id)
        if here is not None:
            return here.run_id
        runs = await self._cast.log.runs(thread_id)
        if runs and runs[-1].status == "in_progress":
            return runs[-1].run_id
        notes = await self._cast.log.notes.of_thread(thread_id)
        return next((note.run_id for note in notes if note.box.startswith("run ")), None)

    async def _can_steer(self, request: RunRequest, thread_id: str, active: str | None) -> bool:
        """Whether the active run is one of this agent, and takes messages while it runs."""
        cast = self._cast
        if not (can_steer(cast.agent(request.agent)) and is_plain(replace(request, on_busy="steer"))):
            return False
        runs = {each.run_id: each for each in await cast.log.runs(thread_id)}
        here, there = cast.slots.in_thread(cast.tenant, thread_id), runs.get(active or "")
        if here is not None:
            return here.adapter.name == request.agent
        if there is not None:
            return await cast.threads.agent_of(thread_id, there) == request.agent
        notes = await cast.log.notes.of_thread(thread_id)
        return any(each.box == f"run {request.agent}" and each.run_id == active for each in notes)

    async def _stop(self, thread_id: str, run_id: str) -> None:
        """Stop the run that makes room at once; the message waits already, so a stop that fails loses nothing."""
        with suppress(Over, NotFound, UnknownRun):
            await self._cast.stop(run_id, hard=True, thread_id=thread_id)

    async def waits(self, thread_id: str, run_id: str) -> bool:
        """Whether a message waits, or its run has begun."""
        waiting = any(each.run_id == run_id for each in await self.waiting(thread_id))
        return waiting or await is_used(self._cast, thread_id, run_id)

    # -------------------------------------------------------------- changing

    async def waiting(self, thread_id: str) -> list[Waiting]:
        """The messages that wait in a thread, the next one first."""
        found = in_order(await self._cast.log.notes.of_thread(thread_id))
        if found:
            self._cast.slots.note(self._cast.tenant, thread_id)
        return found

    async def edit(self, thread_id: str, run_id: str, text: str) -> None:
        """Change the words of a message that waits. Raises `Over` when it has begun, `NotFound` if it never waited."""
        while True:
            found = await self._found(thread_id, run_id)
            if await self._cast.log.notes.exchange(found.note, found.edited(text)) is not None:
                await self.changed(thread_id)
                return

    async def withdraw(self, thread_id: str, run_id: str) -> None:
        """Take back a message that waits. Raises `Over` when it has begun, `NotFound` if it never waited."""
        while True:
            found = await self._found(thread_id, run_id)
            if await self._cast.log.notes.take(found.note):
                await self.changed(thread_id)
                return

    async def _found(self, thread_id: str, run_id: str) -> Waiting:
        for each in await self.waiting(thread_id):
            if each.run_id == run_id and not each.request.begins:
                return each
            if each.run_id == run_id:
                raise Over(
                    "this message begins at this moment, or the agent is handed it: stop the run instead"
                )
        if await is_used(self._cast, thread_id, run_id):
            raise Over("this message has begun: stop its run instead")
        raise NotFound(f"no message {run_id!r} waits in thread {thread_id!r}")

    # ------------------------------------------------------------- beginning

    async def begin_next(self, thread_id: str) -> None:
        """Begin the next message if the thread is free and this process has its agent."""
        cast = self._cast
        going = cast.options.work and not cast.closing
        while going and (waiting := await self.waiting(thread_id)):
            first = waiting[0]
            if await self._is_over(thread_id, first):
                await cast.log.notes.take(first.note)
                await self.announce(thread_id)
            elif not await self._is_free(thread_id, first):
                await self._steer(thread_id, waiting)
                return
            elif first.request.agent not in cast.agents:
                await cast.log.notes.exchange(first.note, first.note.body)  # wakes the workers that have it
                return
            else:
                going = await self._begin(first, thread_id)

    async def _is_over(self, thread_id: str, first: Waiting) -> bool:
        """Whether its run has begun, or a run was handed it: its note is left of a worker that died, or comes off now."""
        cast = self._cast
        if await is_used(cast, thread_id, first.run_id):
            return True
        if first.request.on_busy != "steer" or not first.request.begins or first.message is None:
            return False
        here = cast.slots.in_thread(cast.tenant, thread_id)
        state = await cast.state(thread_id) if here is None else here.state
        if state is None or all(each.id != first.message.id for each in state.history):
            return False
        if here is not None:  # what this process knows may not be stored yet, and only the note has it then
            await cast.log.flush(thread_id)
        return True

    async def _steer(self, thread_id: str, waiting: list[Waiting]) -> None:
        """Let the run that is active here take the messages that are for it."""
        run = self._cast.slots.in_thread(self._cast.tenant, thread_id)
        if run is None or not isinstance(run.adapter, Steerable):
            return
        if any(is_plain(each.request) and each.request.agent == run.adapter.name for each in waiting):
            with suppress(UnknownRun):
                await run.adapter.steer(run.run_id, partial(self._take, run))

    async def _take(self, run: LocalRun) -> list[UserMessage]:
        """Claim what this run is handed now. It is not edited or withdrawn any more; a claim of a dead run counts for nothing."""
        taken: list[UserMessage] = []
        try:
            for each in await self.waiting(run.thread_id):
                said = each.for_run(run.adapter.name, [*run.state.history, *taken])
                if not said or run.expects(said[-1].id):
                    continue
                if await self._cast.log.notes.exchange(each.note, each.begun()) is not None:
                    value = {"run_id": each.run_id, "message_id": said[-1].id}
                    event = CustomEvent(name=STEERED, value=value, timestamp=time.time_ns() // 1_000_000)
                    run.expect(
                        said[-1].id, event, partial(self._cast.node.begin_next, self._cast, run.thread_id)
                    )
                    taken += said
        except SlimError as error:
            logger.warning("the messages for run %r wait: %s", run.run_id, error)
        return taken

    async def _is_free(self, thread_id: str, first: Waiting) -> bool:
        cast = self._cast
        notes = await cast.log.notes.of_thread(thread_id)
        if any(note.box.startswith("run ") and note.run_id != first.request.over for note in notes):
            return False
        runs = await cast.log.runs(thread_id)
        last = runs[-1] if runs else None
        if last is None or (last.status == "interrupted" and first.ahead):
            return True
        if last.status == "truncated" and cast.options.recover == "continue":
            return await resume_truncated(cast, thread_id, last.run_id) is None
        return last.status not in ("in_progress", "interrupted")  # a question is answered first

    async def _begin(self, first: Waiting, thread_id: str) -> bool:
        """Begin a message; False when it has to wait on."""
        cast, kept = self._cast, first.note
        runs = await cast.log.runs(thread_id)
        newest = runs[-1].run_id if runs else None

        async def claim() -> None:
            nonlocal kept
            now = await cast.log.runs(thread_id)
            if newest != (now[-1].run_id if now else None):
                raise Changed("the thread has moved on")
            found = await cast.log.notes.exchange(first.note, first.begun())
            if found is None:
                raise Changed("the message was changed")
            kept = found

        try:
            await cast.launcher.launch(to_begin(first.request, runs), thread_id, first.run_id, claim=claim)
        except Changed:
            return True
        except AppError as error:
            if isinstance(error, Busy | Full | Closing):
                return False
            if not await decline(cast, kept, error, "refused"):
                return False
        await cast.log.notes.take(kept)
        await self.announce(thread_id)
        return False

    async def _asks(self, thread_id: str) -> bool:
        runs = await self._cast.log.runs(thread_id)
        return bool(runs) and runs[-1].status == "interrupted"

    # ------------------------------------------------------------ announcing

    async def changed(self, thread_id: str) -> None:
        """What waits has changed: begin it, or announce it where the thread's run is driven."""
        cast = self._cast
        if cast.slots.in_thread(cast.tenant, thread_id) is not None:
            await self.announce(thread_id)
            await self.begin_next(thread_id)
            return
        thread = await cast.log.thread(thread_id)
        if thread is not None and thread.owner not in (None, cast.log.owner):
            await cast.log.notes.leave(
                note_id("look", cast.tenant, thread_id),
                box=f"stop {thread.owner}",
                body=b"queue",
                thread_id=thread_id,
                lasting_ms=HOUR_MS,
                replace=True,
            )
        elif not cast.options.work:  # its owner may have ended without a look at what waits
            for first in (await self.waiting(thread_id))[:1]:
                await cast.log.notes.exchange(first.note, first.note.body)  # wakes the workers
        await self.begin_next(thread_id)

    async def announce(self, thread_id: str) -> None:
        """List what waits to those who watch the run that is active here."""
        run = self._cast.slots.in_thread(self._cast.tenant, thread_id)
        if run is None:
            return
        waiting = await self.waiting(thread_id)
        listed = {"messages": [each.row(EXCERPT) for each in waiting[:LISTED]], "count": len(waiting)}
        event = CustomEvent(name=QUEUED, value=listed, timestamp=time.time_ns() // 1_000_000)
        try:
            await run.announce(event)
        except (SlimError, AppError) as error:
            logger.warning("the queue of thread %r was not announced: %s", thread_id, error)
