"""Runs ADK agents as AG-UI: reads the session, starts the runner and drives the translator.

One adapter serves any number of runs at once, one for each thread (user and thread id); a second run of a thread
is refused with `ThreadBusy`. A run reads its session once and hands it to the runner. The adapter creates sessions
for new threads and deletes one only to forget its thread. `translator` decides which events are sent, `intake` what an input means.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ag_ui.core import AgentCapabilities, RunAgentInput
from ag_ui.core import Event as AgEvent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.events.event import Event
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.session import Session
from google.genai import types

from runcast.adapters.adapter import Drawing, ResumePoint, Take
from runcast.adapters.adk.capabilities import capabilities, descriptions, drawing, schemas, speakers, tree
from runcast.adapters.adk.intake.corrections import at_client, corrections
from runcast.adapters.adk.intake.inside_tools import inside_tools
from runcast.adapters.adk.intake.plan import Plan, check_place, echo, plan
from runcast.adapters.adk.intake.session_conversation import live_events, messages_from_events
from runcast.adapters.adk.intake.session_rebuild import lost_events, past_events, without_questions
from runcast.adapters.adk.intake.whole_turn import is_whole
from runcast.adapters.adk.interrupts import unasked
from runcast.adapters.adk.options import AdkOptions, RunStart
from runcast.adapters.adk.plain_values import changes, plain, visible
from runcast.adapters.adk.running.active_runs import ActiveRun, ActiveRuns
from runcast.adapters.adk.running.client_side import asking, client_side
from runcast.adapters.adk.running.kept_session import KeptSession
from runcast.adapters.adk.running.observers import RunObserver, agent_tools, merged, straight
from runcast.adapters.adk.running.resumption import Resumption, entry
from runcast.adapters.adk.running.returned import Results, Returning, Sealing
from runcast.adapters.adk.running.runner import (
    ReadOnce,
    Runnable,
    as_runner,
    for_one_run,
    overrides,
)
from runcast.adapters.adk.running.steering import Steering
from runcast.adapters.adk.running.stored_session import StoredSession
from runcast.adapters.adk.stream.complete_event import is_steered
from runcast.adapters.adk.stream.parts import InnerPart, ModelCall
from runcast.adapters.adk.translator import AdkTranslator
from runcast.adapters.client_schemas import AgentSchemas
from runcast.adapters.driving.fault_log import log_untranslated
from runcast.adapters.driving.pump import Pump
from runcast.adapters.errors import InvalidInput
from runcast.adapters.run_frame import RunIds
from runcast.slim.folding.run_metadata import METADATA_KEY
from runcast.slim.values.type_guards import as_mapping

logger = logging.getLogger(__name__)

Part = Event | ModelCall | InnerPart
BOX = 16  # parts of a run that wait for the translator
Users = str | Callable[[RunAgentInput], str]


class AdkAdapter:
    """Runs AG-UI inputs on an ADK agent, workflow, App or Runner.

    A bare agent is wrapped in a resumable App. An App or Runner is used as it is: without `ResumabilityConfig(
    is_resumable=True)` ADK resumes wrongly after an interrupt, and a warning says so. `user_id` may be a function.
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
        self._runner = as_runner(agent, app_name, session_service)
        self._user_id = user_id
        self.kept = KeptSession(self._runner, user_id)
        self._options = options
        self._config = run_config or RunConfig()
        self._runs = ActiveRuns()
        self.reconciles_history = True  # the session decides which messages of a broken run stay
        self.name: str = self._root.name
        self._agents = descriptions(self._root)
        self._speakers, self._asking = speakers(self._root), asking(self._root)
        self._agent_tools = agent_tools(self._root)
        self._adds = overrides("after_agent_callback", self._runner.plugin_manager.plugins, tree(self._root))
        resumability = self._runner.resumability_config
        self._resumable = resumability is not None and resumability.is_resumable
        if not self._resumable:
            logger.warning(
                "app %r is not resumable: give it ResumabilityConfig(is_resumable=True), or interrupted runs "
                "resume wrongly",
                self._runner.app_name,
            )

    def run(self, input: RunAgentInput, *, resume: ResumePoint | None = None) -> AsyncIterator[AgEvent]:
        """One run: RUN_STARTED first, a terminal event last, whatever happens.

        A refused input ends in RUN_ERROR before the agent starts, and leaves the session as it was. Close the
        iterator to stop the run.
        """
        run = ActiveRun(input, resume)
        run.pump = Pump(
            lambda: self._open(run), limit=self._options.buffer, closed=lambda: self._runs.remove(run)
        )
        return run.pump.events()

    async def stop(self, run_id: str, *, hard: bool = False) -> None:
        """Stop a run; `hard` cancels it at once, otherwise ADK ends it and seals its history. `UnknownRun` if none."""
        self._runs.get(run_id).stop(hard=hard)

    async def steer(self, run_id: str, take: Take) -> None:
        """Hand the agent what `take` gives, before its next model call. `UnknownRun` if there is no such run."""
        self._runs.get(run_id).take = take

    async def forget(self, thread_id: str) -> None:
        """Delete the thread's session and its artifacts; where `user_id` is a function, those of every user."""
        await self.kept.forget(thread_id)

    def capabilities(self) -> AgentCapabilities:
        """What this agent can do."""
        return capabilities(
            self._root,
            self._agents,
            streams=self._options.streaming == "sse",
            resumable=self._resumable,
            files=self._options.files,
        )

    def schemas(self) -> AgentSchemas:
        """What the agent's own schemas say of its input and of the state it writes."""
        return schemas(self._root, self._options)

    def drawing(self) -> Drawing:
        """The tree or the workflow of agents."""
        return drawing(self._root)

    @property
    def active(self) -> list[str]:
        """The ids of the active runs."""
        return list(self._runs.by_id)

    def stats(self) -> dict[str, Any]:
        """The number of active runs, and the counters of their readers' boxes."""
        pumps = {run_id: run.pump for run_id, run in self._runs.by_id.items()}
        return {
            "active": len(pumps),
            "boxes": {run_id: pump.box.stats() for run_id, pump in pumps.items() if pump is not None},
        }

    async def close(self) -> None:
        """Cancel every run; a reader still receives the closing events."""
        for run in list(self._runs.by_id.values()):
            run.stop(hard=True)

    @property
    def _root(self) -> Any:
        return self._runner.agent

    # ----------------------------------------------------------------- running

    async def _open(self, run: ActiveRun) -> tuple[AsyncIterator[Part], AdkTranslator]:
        """The runner's events and their translator; an error here becomes the run's RUN_ERROR."""
        try:
            self._runs.add(run)
            user = self._user_id if isinstance(self._user_id, str) else self._user_id(run.input)
            self._runs.occupy(run, user)
            opened = await self._prepare(run, user)
        except Exception as error:  # noqa: BLE001  becomes RUN_ERROR
            refusing = AdkTranslator(_ids(run.input), root=self._root.name, clock=_clock)
            return self._no_events(run, error), refusing
        run.running = True
        return opened

    async def _prepare(self, run: ActiveRun, user: str) -> tuple[AsyncIterator[Part], AdkTranslator]:
        """Read the session once and decide; a refused input has written nothing."""
        where = {"app_name": self._runner.app_name, "user_id": user, "session_id": run.input.thread_id}
        if run.resume is not None:
            check_place(run.resume.framework, **where)
        stored = StoredSession(self._runner, run.mark, where)
        session = await stored.read()
        point = run.resume if session is None else None
        root, heard = self._root.name, self._speakers
        lost = [] if point is None else lost_events(point, run.input, root=root, speakers=heard)
        planned = plan(
            run.input,
            lost if session is None else session.events,
            options=self._options,
            now=datetime.now(UTC),
            frontend=[tool.name for tool in run.input.tools or []],
            remembered=() if point is None else point.interrupts,
            continues=run.resume is not None,
            anew=run.anew,
        )
        if self._resumable:
            planned.take_one_turn()
        invocation = self._broken(run, planned, session)
        if session is not None and invocation is not None:
            for question in unasked(live_events(session.events), invocation):
                await stored.append(session, question)
            live, model = live_events(session.events), root if isinstance(self._root, LlmAgent) else None
            if is_whole(live, invocation, model, speakers=heard, adds=self._adds):
                invocation = None
        if not planned.turns and invocation is None and (session is None or not session.events):
            raise InvalidInput("there is nothing to run: send a message, a tool result or `resume`")
        seeded = session is None
        if session is None:
            session = await self._create(run, planned, lost, stored)
        delta = changes(run.input.state, session.state, self._options) if planned.turns else {}
        await stored.undo(session, planned)
        prepared = _Prepared(planned, session, delta, where, invocation, seeded)
        translator = self._translator(run, prepared)  # compares the client with the session as it was
        await stored.answers(session, planned)
        if invocation is not None and not planned.turns:
            await stored.take_over(session, invocation)
        events = self._invoke(run, prepared, translator) if prepared.turns else self._no_events(run)
        return events, translator

    async def _invoke(
        self, run: ActiveRun, it: _Prepared, translator: AdkTranslator
    ) -> AsyncGenerator[Part, None]:
        """The runner's events for these messages, one invocation after the other."""
        service = ReadOnce(self._runner.session_service, run.mark)
        box: asyncio.Queue[Any] | None = asyncio.Queue(BOX) if self._agent_tools else None
        put = straight(translator.aside) if box is None else box.put
        results = Results()
        mine = [Steering(run, service, put), Returning(results), RunObserver(put)]
        client = client_side(run.input, self._options, self._asking)
        first = [Resumption(self._root), Sealing(results)]
        runner = for_one_run(self._runner, service, [*client, *mine], first=first)
        if it.invocation is not None:
            find = runner._find_agent_to_run  # pyright: ignore[reportPrivateUsage]  # ADK has no other way in
            vars(runner)["_find_agent_to_run"] = entry(find)
        delta = it.delta
        try:
            for parts in it.turns:
                service.offer(it.session)
                given = runner.run_async(
                    user_id=it.where["user_id"],
                    session_id=it.session.id,
                    invocation_id=it.invocation,
                    new_message=None if parts is None else types.Content(role="user", parts=parts),
                    state_delta=delta or None,
                    run_config=self._run_config(it.plan),
                    abort_signal=run.abort,
                )
                delta = {}
                async with aclosing(given if box is None else merged(given, box)) as events:
                    async for event in events:
                        yield event
                if run.abort.is_set():
                    return
        finally:
            # Before the terminal event, so that a reader that leaves at that event leaves a free thread.
            self._runs.remove(run)

    async def _no_events(self, run: ActiveRun, error: Exception | None = None) -> AsyncGenerator[Event, None]:
        """A run without events, or only with the error that kept it from starting."""
        self._runs.remove(run)
        none: tuple[Event, ...] = ()
        for event in none:
            yield event
        if error is not None:
            raise error

    def _broken(self, run: ActiveRun, planned: Plan, session: Session | None) -> str | None:
        """The invocation of a dead worker; it continues if its resume point is given and no message is new."""
        if run.resume is None or planned.turns or session is None or not self._resumable:
            return None
        found = run.resume.framework.get("invocation_id")
        if run.resume.framework.get("unfinished") and session.events:  # the point names an earlier one
            found = next((it.invocation_id for it in reversed(session.events) if not is_steered(it)), None)
        return found if isinstance(found, str) else None

    async def _create(
        self, run: ActiveRun, planned: Plan, lost: Sequence[Event], stored: StoredSession
    ) -> Session:
        """A session for a new thread, with the conversation so far where the caller holds one."""
        point = run.resume
        state = as_mapping(None if point is None else point.state)
        history = planned.history if point is None else without_questions(point.messages) or planned.history
        new = {message.id for message in planned.news}
        past = lost or past_events((it for it in history if it.id not in new), author=self._root.name)
        return await stored.create(changes(state, {}, self._options), past)

    def _run_config(self, planned: Plan) -> RunConfig:
        modes = type(self._config.streaming_mode)
        mode = modes.SSE if self._options.streaming == "sse" else modes.NONE
        changed: dict[str, Any] = {"streaming_mode": mode}
        if planned.mark:
            changed["custom_metadata"] = {**(self._config.custom_metadata or {}), METADATA_KEY: planned.mark}
        return self._config.model_copy(update=changed)

    def _translator(self, run: ActiveRun, it: _Prepared) -> AdkTranslator:
        options, input = self._options, run.input
        if not it.turns:  # nothing is new: the client wants to see the thread
            options = replace(options, messages_snapshot="end")
        state = visible({**it.session.state, **it.delta}, options)
        counted = live_events(it.session.events)
        live = [] if it.invocation is None else counted
        shown = at_client(input, run.resume, it.plan.news)
        held = (
            messages_from_events(counted, root=self._root.name, options=options) if self._agent_tools else []
        )
        inside = inside_tools(shown, held, self._agent_tools)
        return AdkTranslator(
            _ids(input),
            root=self._root.name,
            options=options,
            clock=_clock,
            report=log_untranslated,
            session=lambda: it.session.events,
            start=RunStart(
                input=echo(input, it.plan),
                state=None if state == plain(input.state or {}) else state,
                answers=it.plan.answers,
                agents=self._agents,
                frontend=[tool.name for tool in input.tools or []],
                resumed_from=it.resumed_from(run.resume),
                place=it.where,
                held=[event for event in live if event.invocation_id == it.invocation],
                corrections=corrections(
                    input,
                    run.resume,
                    it.session.events,
                    self._root.name,
                    options,
                    plan=it.plan,
                    inside=inside,
                ),
                inside=inside,
            ),
        )


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A run that may start."""

    plan: Plan
    session: Session
    delta: dict[str, Any]  # the client's changes of the state
    where: dict[str, str]
    invocation: str | None  # the invocation to continue
    seeded: bool  # the session was created for this run

    @property
    def turns(self) -> Sequence[list[types.Part] | None]:
        """The messages to invoke the runner with, one after the other; None continues an invocation."""
        return self.plan.turns or ([] if self.invocation is None else [None])

    def resumed_from(self, resume: ResumePoint | None) -> str | None:
        """Where the run found what it continues."""
        if self.plan.before is not None:
            return "fork"
        if self.seeded:
            return None if resume is None else "snapshot"
        return "session" if self.plan.resumes or self.invocation else None


def _ids(input: RunAgentInput) -> RunIds:
    return RunIds(input.thread_id, input.run_id, input.parent_run_id)


def _clock() -> int:
    return time.time_ns() // 1_000_000
