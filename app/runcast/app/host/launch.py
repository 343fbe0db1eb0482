"""How a run starts: under the thread's lease, or on another node when this one does not work.

What a run continues from can change until its lease is taken, so status, state and position are read after that; a
request that makes no sense any more is refused, and the lease given back. Does not know why a run is started.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ag_ui.core import Message, ResumeEntry, RunAgentInput

from runcast.adapters import Adapter, ResumePoint
from runcast.app.errors import BadRequest, Busy, Closing, NotFound, Over, Overtaken
from runcast.app.nodes.handover import RunRequest, input_for
from runcast.app.nodes.requests import is_stop, queue_for_worker
from runcast.app.runs.resume_entries import check
from runcast.app.runs.run import LocalRun, Run
from runcast.app.runs.run_plan import RunPlan, without_unfinished
from runcast.slim import AgentState, Conflict, Forgotten, RunInfo, SlimError

if TYPE_CHECKING:
    from runcast.app.host.cast import Cast
    from runcast.slim.archive.info import Claim as Claimed


Claim = Callable[[], Awaitable[None]]


async def _unclaimed() -> None:
    """Nothing has to be claimed for a run that was not queued."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A request, and what only this process can know of it."""

    request: RunRequest
    thread_id: str
    run_id: str
    adapter: Adapter
    resume: ResumePoint | None = None
    claim: Claim = _unclaimed  # under the lease, before the run begins; raises when it must not


class Launcher:
    """Starts the runs of one cast."""

    def __init__(self, cast: Cast) -> None:
        self._cast = cast

    async def launch(
        self,
        request: RunRequest,
        thread_id: str,
        run_id: str,
        *,
        adapter: Adapter | None = None,
        resume: ResumePoint | None = None,
        claim: Claim = _unclaimed,
    ) -> Run:
        """Start a run here, or leave it to a worker."""
        cast = self._cast
        if adapter is not None:
            cast.agents.remember(adapter)
        if cast.closing:
            raise Closing("this host is shutting down; ask again in a moment")
        if not cast.options.work:
            remote = await queue_for_worker(cast, thread_id, run_id, request)
            cast.remote_runs.add(remote)
            return remote
        start = Launch(request, thread_id, run_id, adapter or cast.agent(request.agent), resume, claim)
        return await self._launch(start)

    async def _launch(self, start: Launch) -> LocalRun:
        cast = self._cast
        cast.slots.reserve(cast.tenant, start.thread_id, start.run_id)
        begun: list[LocalRun] = []
        try:
            await cast.outbox.arm(start.thread_id, start.run_id)
            plan = await self._plan_under_lease(start)
            run = self._run(start.adapter, plan)
            begun.append(run)
            cast.slots.add(cast.tenant, run)
            cast.followers.expect(run)
            run.begin()
            await run.begun()
        except Forgotten:
            await self._not_begun(start, begun)
            raise
        except Conflict as error:
            await self._not_begun(start, begun)
            raise Busy(f"this thread is written elsewhere, or the run id was used: {error}") from error
        except BaseException:
            await self._not_begun(start, begun)
            raise
        cast.followers.follow(run)
        self._begin_next(start.thread_id)  # what waits may be for this run
        return run

    def _begin_next(self, thread_id: str) -> None:
        """Look at what waits in a thread, if the lease or the node has shown that something does."""
        if self._cast.slots.is_noted(self._cast.tenant, thread_id):
            self._cast.node.begin_next(self._cast, thread_id)

    async def agent_of(self, thread_id: str) -> Adapter:
        """The agent of the thread's newest run, or the only one there is."""
        cast = self._cast
        if len(cast.agents) == 1:
            return next(iter(cast.agents.values()))
        runs = await cast.log.runs(thread_id)
        name = await cast.threads.agent_of(thread_id, runs[-1]) if runs else None
        if name is None:
            raise BadRequest(f"name the agent to run; there are: {', '.join(cast.agents) or 'none'}")
        return cast.agent(name)

    async def resume(
        self,
        last: RunInfo,
        thread_id: str,
        entries: list[ResumeEntry],
        *,
        agent: Any = None,
        given: RunAgentInput | None = None,
    ) -> Run:
        """Resume a run with answers, or where it was cut short."""
        cast = self._cast
        if last.status == "in_progress":
            raise Busy(f"run {last.run_id} of this thread is active: wait for it, or stop it")
        input = given or input_for(thread_id, cast.options.new_id(), parent=last.run_id, resume=entries)
        name = "" if agent is not None else await cast.threads.agent_of(thread_id, last)
        adapter = cast.agents.bound(agent) if agent is not None else cast.agent(name or "")
        request = RunRequest(
            adapter.name, input, "resume", last.run_id, unfinished=not entries, append=given is None
        )
        # refused here, while the asker can still be answered; the worker checks again
        if not cast.options.work:
            state = await cast.threads.state(thread_id, last.run_id)
            check_answers(request, last, state or AgentState(adapter.name))
        return await self.launch(request, thread_id, input.run_id, adapter=adapter)

    async def _plan_under_lease(self, start: Launch) -> RunPlan:
        log, request = self._cast.log, start.request
        taken = await log.start_run(start.thread_id, start.run_id, parent=request.parent, edge=request.edge)
        if taken.notes:
            self._cast.slots.note(self._cast.tenant, start.thread_id)
        try:
            plan = without_unfinished(start.adapter, await self._plan(start, taken))
            await start.claim()
            return plan
        except BaseException:
            with suppress(SlimError):  # the lease would be renewed for nothing
                await log.recovery.abandon(start.thread_id)
            raise

    async def _plan(self, start: Launch, taken: Claimed) -> RunPlan:
        """The run as the thread stands now; the caller holds the lease."""
        cast, request, thread_id = self._cast, start.request, start.thread_id
        parent = None if request.parent is None else await self._parent(request, thread_id, request.parent)
        anew = parent is None and request.edge == "branch"
        state = None
        if not (anew or taken.fresh):
            state = await cast.threads.state_under(taken, thread_id, request.parent)
            taken.before = None if state is None else state.history
        resume, attempt, before = start.resume, 1, None
        if parent is not None and state is not None and request.edge == "resume":
            attempt = parent.attempt + 1
            before = (await cast.threads.metadata_of(thread_id, parent)).get("traceparent")
            check_answers(request, parent, state)
            asked = await cast.log.input(thread_id, parent.run_id) if request.by_host else None
            if asked is not None:
                request = request.as_before(thread_id, start.run_id, asked)
            if request.unfinished:
                resume = to_finish(state)
        if anew:
            resume = AgentState(start.adapter.name, framework={"anew": True})
        history = _history(request, state)
        return RunPlan(
            request.with_history(thread_id, start.run_id, history),
            state,
            attempt=attempt,
            resume=resume,
            left=None if state is None or request.edge == "branch" else state.framework,
            before=before,
        )

    async def _parent(self, request: RunRequest, thread_id: str, name: str) -> RunInfo:
        """The run to continue from, if that still makes sense."""
        runs = await self._cast.log.runs(thread_id)
        parent = next((run for run in runs if run.run_id == name), None)
        if parent is None:
            raise NotFound(f"there is no run {name!r} in thread {thread_id!r}")
        if request.edge != "branch" and runs[-1].run_id != name:
            raise Overtaken("the thread has moved on since this was asked for: read it, and ask again")
        if request.recovery:
            await self._still_lost(parent, thread_id)
        elif request.unfinished and parent.status == "completed":
            raise Over(f"run {name!r} has completed: there is nothing to resume; start a new run")
        return parent

    async def _still_lost(self, parent: RunInfo, thread_id: str) -> None:
        if parent.status != "truncated":
            raise Overtaken(f"run {parent.run_id!r} has ended by itself as {parent.status}")
        if any(is_stop(note, thread_id) for note in await self._cast.log.notes.about(parent.run_id)):
            raise Overtaken(f"run {parent.run_id!r} was to be stopped")

    def _run(self, adapter: Adapter, plan: RunPlan) -> LocalRun:
        cast = self._cast
        return LocalRun(
            cast.log,
            adapter,
            plan,
            serializer=cast.serializer,
            cadence=cast.options.cadence,
            ended=self._over,
        )

    async def _not_begun(self, start: Launch, begun: list[LocalRun]) -> None:
        """Free the thread for others."""
        cast = self._cast
        for run in begun:
            if run.active:  # the caller was cancelled, and the run goes on; or the run is about to end
                asyncio.ensure_future(run.begun()).add_done_callback(partial(self._late, run))
                return
            cast.followers.dismiss(run)
            with suppress(SlimError):
                await cast.log.recovery.abandon(start.thread_id)
        cast.slots.free(cast.tenant, start.thread_id, start.run_id)

    def _late(self, run: LocalRun, begun: asyncio.Future[None]) -> None:
        followers = self._cast.followers
        has_begun = not begun.cancelled() and begun.exception() is None
        (followers.follow if has_begun else followers.dismiss)(run)

    def _over(self, run: LocalRun) -> None:
        self._cast.threads.remember(run)
        self._begin_next(run.thread_id)  # in a task, which finds the thread free
        self._cast.slots.free(self._cast.tenant, run.thread_id, run.run_id)
        self._cast.outbox.ring(run.thread_id, run.run_id)
        self._cast.node.wake()  # there is room for another run


def check_answers(request: RunRequest, parent: RunInfo, state: AgentState) -> None:
    """Raise unless the request answers exactly the questions that the run has open."""
    waiting = {each.id for each in state.interrupts} if parent.status == "interrupted" else set[str]()
    check((None if request.input is None else request.input.resume) or (), waiting)


def to_finish(state: AgentState) -> AgentState:
    """The state as a resume point from which an adapter finishes what was cut short."""
    return replace(state, framework={**state.framework, "unfinished": True})


def _history(request: RunRequest, state: AgentState | None) -> list[Message]:
    if state is None:
        return []
    return state.to_messages(half_said=True) if request.edge == "resume" else list(state.history)
