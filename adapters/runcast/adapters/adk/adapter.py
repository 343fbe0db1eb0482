"""Runs ADK agents as AG-UI: the part that waits, reads sessions and keeps watch over runs.

One object serves any number of runs at once. Of one thread (app, user, thread id) one run is active: another is
refused with `ThreadBusy`, or waits its turn when `on_busy="queue"`. A turn reads its session once: the runner is
handed what was read. Sessions are made when a thread is new, and never deleted. What was streamed is decided in
`translator`, what an input means in `intake`.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import time
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from ag_ui.core import AgentCapabilities, RunAgentInput
from ag_ui.core import Event as AgEvent
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App, ResumabilityConfig
from google.adk.events.event import Event
from google.adk.plugins.plugin_manager import PluginManager
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.workflow import Workflow
from google.genai import types

from runcast.adapters.adapter import ResumePoint
from runcast.adapters.adk.abilities import capabilities, descriptions, speakers
from runcast.adapters.adk.intake import Plan, check_place, echo, instructions, plan
from runcast.adapters.adk.options import AdkOptions
from runcast.adapters.adk.plugin import ClientSide
from runcast.adapters.adk.recall import lost_events, past_events, without_questions
from runcast.adapters.adk.standing import corrections
from runcast.adapters.adk.translator import AdkTranslator
from runcast.adapters.adk.values import changes, mapping, plain, visible
from runcast.adapters.errors import InvalidInput, ThreadBusy, UnknownRun
from runcast.adapters.frame import RunIds
from runcast.adapters.outbox import Outbox
from runcast.adapters.pump import Pump

logger = logging.getLogger(__name__)

Runnable = BaseAgent | Workflow | App | Runner
Users = str | Callable[[RunAgentInput], str]


class AdkAdapter:
    """An ADK agent, workflow, App or Runner as something that runs AG-UI inputs.

    A bare agent is wrapped in a resumable App. An App or Runner is taken as it is: without
    `ResumabilityConfig(is_resumable=True)` ADK goes on wrongly after an interrupt, and a warning says so.
    `user_id` may be a function of the input, for many users behind one adapter.
    """

    def __init__(
        self,
        agent: Runnable,
        *,
        app_name: str | None = None,
        user_id: Users = "user",
        session_service: BaseSessionService | None = None,
        options: AdkOptions = AdkOptions(),  # noqa: B008  # frozen
        run_config: RunConfig | None = None,
    ) -> None:
        self._runner = _runner(agent, app_name, session_service)
        self._user_id = user_id
        self._options = options
        self._config = run_config or RunConfig()
        self._runs: dict[str, _Run] = {}  # active runs by their id
        self._threads: dict[tuple[str, str], _Turns] = {}  # (user, thread) -> whose turn it is
        self._tasks: set[asyncio.Task[None]] = set()  # runs that may go on without a reader
        self.settles = True  # what a broken run had half said, by what the session holds
        self.name: str = self._root.name
        self._agents = descriptions(self._root)
        self._speakers = speakers(self._root)
        resumability = self._runner.resumability_config
        self._resumable = resumability is not None and resumability.is_resumable
        if not self._resumable:
            logger.warning(
                "app %r is not resumable: give it ResumabilityConfig(is_resumable=True), or runs that were "
                "interrupted go on wrongly",
                self._runner.app_name,
            )

    def run(self, input: RunAgentInput, *, resume: ResumePoint | None = None) -> AsyncIterator[AgEvent]:
        """One run: RUN_STARTED first, a terminal event last, whatever happens.

        Input that cannot be run ends in RUN_ERROR before the agent starts, and leaves the session as it was. Close
        the iterator to leave; `on_disconnect` says whether the run goes on without a reader.
        """
        run = _Run(input, resume)
        run.pump = Pump(lambda: self._open(run), limit=self._options.buffer, closed=lambda: self._close(run))
        return run.pump.events() if self._options.on_disconnect == "stop" else self._detached(run.pump)

    async def stop(self, run_id: str, *, hard: bool = False) -> None:
        """Stop a run; `hard` cancels it at once, otherwise ADK ends it and seals its history. `UnknownRun` if none."""
        run = self._runs.get(run_id)
        if run is None:
            raise UnknownRun(f"no run {run_id!r} is active here")
        run.stop(hard=hard)

    def capabilities(self) -> AgentCapabilities:
        """What this agent can do."""
        return capabilities(
            self._root, self._agents, streams=self._options.streaming == "sse", resumable=self._resumable
        )

    @property
    def active(self) -> list[str]:
        """The ids of the runs that go on now."""
        return list(self._runs)

    def stats(self) -> dict[str, Any]:
        """The runs that are active, and how the boxes of lagging readers fare."""
        pumps = {run_id: run.pump for run_id, run in self._runs.items()}
        return {
            "active": len(self._runs),
            "boxes": {run_id: pump.box.stats() for run_id, pump in pumps.items() if pump is not None},
        }

    async def close(self) -> None:
        """Stop every run, and wait for those that go on without a reader."""
        for run in list(self._runs.values()):
            run.stop(hard=True)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def _root(self) -> Any:
        return self._runner.agent

    # ----------------------------------------------------------------- running

    async def _detached(self, pump: Pump[Event]) -> AsyncGenerator[AgEvent, None]:
        """A run in a task of its own: it outlives its reader."""
        outlet = _Outlet(self._options.buffer)
        task = asyncio.create_task(outlet.fill(pump.events()), name="runcast-adk-run")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            while (event := await outlet.get()) is not None:
                yield event
        finally:
            outlet.leave()

    async def _open(self, run: _Run) -> tuple[AsyncIterator[Event], AdkTranslator]:
        """The runner's events and their translator; whatever keeps a run from starting is its only event."""
        stub = AdkTranslator(_ids(run.input), root=self.name, clock=_clock)
        try:
            if run.input.run_id in self._runs:
                raise ThreadBusy(
                    f"run {run.input.run_id!r} is active already: give every run an id of its own"
                )
            self._runs[run.input.run_id] = run
            user = self._user_id if isinstance(self._user_id, str) else self._user_id(run.input)
            if not await self._turn(run, user):
                return self._nothing(run), stub  # stopped while it waited
            source, translator = await self._prepare(run, user)
        except Exception as error:  # noqa: BLE001  told as RUN_ERROR
            return self._nothing(run, error), stub
        run.running = True
        return source, translator

    async def _turn(self, run: _Run, user: str) -> bool:
        """Wait for the right to run on a thread, or for a stop."""
        thread = (user, run.input.thread_id)
        turns = self._threads.setdefault(thread, _Turns())
        if turns.count and self._options.on_busy == "refuse":
            raise ThreadBusy(f"run {turns.holder!r} of this thread is active: wait for it, or stop it")
        turns.count += 1
        run.thread = thread
        mine = asyncio.ensure_future(turns.lock.acquire())
        stopped = asyncio.ensure_future(run.abort.wait())
        try:
            await asyncio.wait({mine, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            run.holds = mine.done()
            turns.holder = run.input.run_id if run.holds else turns.holder
            mine.cancel()
        return run.holds

    def _close(self, run: _Run) -> None:
        """A run is over: its id and its thread are free."""
        if self._runs.get(run.input.run_id) is run:
            del self._runs[run.input.run_id]
        thread, run.thread = run.thread, None
        if thread is not None:
            turns = self._threads[thread]
            turns.count -= 1
            if run.holds:
                turns.lock.release()
            if not turns.count:
                del self._threads[thread]

    async def _prepare(self, run: _Run, user: str) -> tuple[AsyncIterator[Event], AdkTranslator]:
        """Read the session once and decide; a refused input has written nothing."""
        where = {"app_name": self._runner.app_name, "user_id": user, "session_id": run.input.thread_id}
        if run.resume is not None:
            check_place(run.resume.framework, **where)
        service = self._runner.session_service
        session = await service.get_session(
            app_name=where["app_name"], user_id=user, session_id=run.input.thread_id
        )
        tools = run.input.tools or []
        point = run.resume if session is None else None
        lost = [] if point is None else lost_events(point, run.input, root=self.name, speakers=self._speakers)
        made = plan(
            run.input,
            lost if session is None else session.events,
            options=self._options,
            now=datetime.now(UTC),
            frontend=[tool.name for tool in tools],
            told=() if point is None else point.interrupts,
        )
        goes_on = self._interrupted(run, made, session)
        if not made.turns and goes_on is None and (session is None or not session.events):
            raise InvalidInput("there is nothing to run: send a message, a tool result or `resume`")
        seeded = session is None
        if session is None:
            session = await self._create(run, made, lost, service, where)
        delta = changes(run.input.state, session.state, self._options)
        translator = self._translator(run, made, session, delta, where, seeded=seeded, goes_on=goes_on)
        if made.turns:
            return self._invoke(run, made, session, user, delta, made.turns), translator
        if goes_on is None:
            return self._nothing(run), translator
        return self._invoke(run, made, session, user, delta, [None], goes_on), translator

    async def _invoke(
        self,
        run: _Run,
        made: Plan,
        session: Session,
        user: str,
        delta: dict[str, Any],
        turns: Sequence[list[types.Part] | None],
        invocation: str | None = None,
    ) -> AsyncGenerator[Event, None]:
        """The runner's events for these messages, one invocation after the other."""
        held = _Held(self._runner.session_service)
        runner = self._for_run(run, held)
        try:
            for parts in turns:
                held.offer(session)
                given = runner.run_async(
                    user_id=user,
                    session_id=session.id,
                    invocation_id=invocation,
                    new_message=None if parts is None else types.Content(role="user", parts=parts),
                    state_delta=delta or None,
                    run_config=self._run_config(made),
                    abort_signal=run.abort,
                )
                delta = {}
                async with aclosing(given) as events:
                    async for event in events:
                        yield event
                if run.abort.is_set():
                    return
        finally:
            self._close(run)  # before the terminal event: who reads that and leaves has left a free thread

    async def _nothing(self, run: _Run, error: Exception | None = None) -> AsyncGenerator[Event, None]:
        """No events, or the one fault that kept a run from having any."""
        self._close(run)
        none: tuple[Event, ...] = ()
        for event in none:
            yield event
        if error is not None:
            raise error

    def _interrupted(self, run: _Run, made: Plan, session: Session | None) -> str | None:
        """The invocation that a dead worker left: it goes on when its resume point is given and nothing new is said."""
        if run.resume is None or made.turns or session is None or not self._resumable:
            return None
        found = run.resume.framework.get("invocation_id")
        if found is None and run.resume.framework.get("unfinished") and session.events:
            found = session.events[-1].invocation_id  # it died before a terminal event could name it
        return found if isinstance(found, str) else None

    async def _create(
        self,
        run: _Run,
        made: Plan,
        lost: Sequence[Event],
        service: BaseSessionService,
        where: dict[str, str],
    ) -> Session:
        """A session for a new thread, with the conversation so far where the caller holds one."""
        point = run.resume
        state = mapping(None if point is None else point.state)
        session = await service.create_session(**where, state=changes(state, {}, self._options))
        history = made.history if point is None else without_questions(point.messages) or made.history
        new = {message.id for message in made.news}
        for event in lost or past_events((it for it in history if it.id not in new), author=self.name):
            await service.append_event(session, event)
        return session

    def _for_run(self, run: _Run, service: _Held) -> Runner:
        """The runner, with what belongs to this run alone: the session that was read, and the client's side."""
        runner = copy.copy(self._runner)
        runner.session_service = service
        said = instructions(run.input) if self._options.client_instructions else []
        if run.input.tools or said:
            agents = self._options.frontend_agents
            side = ClientSide(run.input.tools or [], said, {self.name} if agents is None else agents)
            runner.plugin_manager = PluginManager([*self._runner.plugin_manager.plugins, side])
        return runner

    def _run_config(self, made: Plan) -> RunConfig:
        modes = type(self._config.streaming_mode)
        changed: dict[str, Any] = {
            "streaming_mode": modes.SSE if self._options.streaming == "sse" else modes.NONE
        }
        if made.mark:
            changed["custom_metadata"] = {**(self._config.custom_metadata or {}), "runcast": made.mark}
        return self._config.model_copy(update=changed)

    # ------------------------------------------------------------- translators

    def _translator(
        self,
        run: _Run,
        made: Plan,
        session: Session,
        delta: dict[str, Any],
        where: dict[str, str],
        *,
        seeded: bool,
        goes_on: str | None,
    ) -> AdkTranslator:
        options = self._options
        if not made.turns and goes_on is None:  # nothing new: the client wants to see what there is
            options = replace(options, messages_snapshot="end")
        state = visible({**session.state, **delta}, options)
        if seeded:
            resumed_from = None if run.resume is None else "snapshot"
        else:
            resumed_from = "session" if made.resumes or goes_on else None
        return AdkTranslator(
            _ids(run.input),
            root=self.name,
            options=options,
            input=echo(run.input, made),
            clock=_clock,
            session=lambda: session.events,
            state=None if state == plain(run.input.state or {}) else state,
            answers=made.answers,
            agents=self._agents,
            frontend=[tool.name for tool in run.input.tools or []],
            resumed_from=resumed_from,
            place=where,
            corrections=corrections(run.input, run.resume, session.events, self.name, options),
        )


@dataclass(slots=True)
class _Turns:
    """Who runs on a thread, and how many want to."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    count: int = 0
    holder: str = ""  # the run whose turn it is


class _Run:
    """One run, while it is active."""

    def __init__(self, input: RunAgentInput, resume: ResumePoint | None) -> None:
        self.input = input
        self.resume = resume
        self.pump: Pump[Event] | None = None
        self.abort = asyncio.Event()  # ADK's soft stop
        self.running = False  # the runner was asked for events
        self.thread: tuple[str, str] | None = None  # the thread it runs on, or waits for
        self.holds = False  # it is its turn

    def stop(self, *, hard: bool) -> None:
        """Let ADK end the run, or end it at once."""
        self.abort.set()
        if self.pump is not None and (hard or not self.running):
            self.pump.cancel()


class _Outlet:
    """Between a run in its own task and its reader. A full box first merges deltas, then holds the run back."""

    def __init__(self, limit: int) -> None:
        self._box = Outbox(limit)
        self._over = False
        self._gone = False  # nobody reads any more
        self._ready = asyncio.Event()
        self._room = asyncio.Event()

    async def fill(self, events: AsyncGenerator[AgEvent, None]) -> None:
        """Take everything in; what comes when the reader is gone is dropped."""
        try:
            async for event in events:
                while not self._gone and not self._box.put(event):
                    self._room.clear()
                    await self._room.wait()
                self._ready.set()
        finally:
            self._over = True
            self._ready.set()

    async def get(self) -> AgEvent | None:
        """The next event; None is the end."""
        while (event := self._box.take()) is None and not self._over:
            self._ready.clear()
            await self._ready.wait()
        self._room.set()
        return event

    def leave(self) -> None:
        """The reader goes; the run is not held back."""
        self._gone = True
        self._room.set()


class _Held(BaseSessionService):
    """The user's session service, with one session that was read already: a run loads its events once."""

    def __init__(self, service: BaseSessionService) -> None:
        self._service = service
        self._held: Session | None = None

    def offer(self, session: Session) -> None:
        """What the next read gets: the session as this run has read and written it."""
        self._held = session

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: Any = None
    ) -> Session | None:
        """The session in hand, once; the service's own after that."""
        held, self._held = self._held, None
        if held is not None and held.id == session_id:
            return held
        return await self._service.get_session(
            app_name=app_name, user_id=user_id, session_id=session_id, config=config
        )

    async def create_session(self, **given: Any) -> Session:
        """As the service does."""
        return await self._service.create_session(**given)

    async def list_sessions(self, **given: Any) -> Any:
        """As the service does."""
        return await self._service.list_sessions(**given)

    async def delete_session(self, **given: Any) -> None:
        """As the service does: asked by the user's own code, never by this adapter."""
        await self._service.delete_session(**given)

    async def get_user_state(self, **given: Any) -> dict[str, Any]:
        """As the service does."""
        return await self._service.get_user_state(**given)

    async def append_event(self, session: Session, event: Event) -> Event:
        """As the service does."""
        return await self._service.append_event(session, event)

    async def flush(self) -> None:
        """As the service does."""
        await self._service.flush()


def _runner(agent: Runnable, app_name: str | None, service: BaseSessionService | None) -> Runner:
    if isinstance(agent, Runner):
        if app_name is None and service is None:
            return agent
        agent = copy.copy(agent)
        agent.app_name = app_name or agent.app_name
        agent.session_service = service or agent.session_service
        return agent
    if not isinstance(agent, App):
        with (
            warnings.catch_warnings()
        ):  # that resumability is experimental is ADK's to say to who asks for it
            warnings.filterwarnings("ignore", r"\[EXPERIMENTAL\]", UserWarning)
            resumable = ResumabilityConfig(is_resumable=True)
        agent = App(name=app_name or agent.name, root_agent=agent, resumability_config=resumable)
    return Runner(app=agent, app_name=app_name, session_service=service or InMemorySessionService())


def _ids(input: RunAgentInput) -> RunIds:
    return RunIds(input.thread_id, input.run_id, input.parent_run_id)


def _clock() -> int:
    return time.time_ns() // 1_000_000
