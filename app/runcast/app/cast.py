"""The three houses joined: runs that outlive their watchers, and everything one can ask of them.

A `Cast` owns the runs it starts. It drives their adapters into the log, follows the log to the broadcaster and the
hub, and answers who attaches, stops, answers, branches or comes back after a crash. Rules: one active run a thread,
a second one is refused with `Busy`; at most `max_runs` at once, more are refused with `Full`; what is broadcast was
durable before. Does not know HTTP (`http.py`) or the command line (`cli.py`).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self
from uuid import uuid4

from ag_ui.core import Message, ResumeEntry, RunAgentInput, UserMessage

from runcast.adapters import Adapter, ResumePoint, UnknownRun
from runcast.app.agents import as_adapter, cautions
from runcast.app.answers import Answers, check, entries_in
from runcast.app.auth import Door
from runcast.app.errors import BadRequest, Busy, Closing, Full, NotFound
from runcast.app.follow import Followers
from runcast.app.run import Cadence, Run
from runcast.app.tenants import ForTenant
from runcast.app.threads import Threads
from runcast.app.tokens import secret_of
from runcast.broadcast import BroadcastConfig, Broadcaster, Hub, LogHistory, open_publisher
from runcast.slim import (
    AgentState,
    Conflict,
    Entry,
    Redactor,
    RunInfo,
    RunLog,
    SlimConfig,
    SlimSerializer,
    open_store,
)

if TYPE_CHECKING:
    from types import TracebackType

    from runcast.app.http import App

PATIENCE_MS = 30_000  # that runs wait for a store that is away, before they are cut short

logger = logging.getLogger("runcast.app")


class Cast:
    """Runs agents and casts them to whoever watches. Use as `async with Cast.open(url) as cast`, or `aclose` it."""

    def __init__(
        self,
        log: RunLog,
        broadcaster: Broadcaster | None = None,
        hub: Hub | None = None,
        slim: SlimConfig | None = None,
        *,
        agents: Iterable[Any] = (),
        config: BroadcastConfig | None = None,
        redactor: Redactor | None = None,
        cadence: Cadence | None = None,
        max_runs: int = 100,
        door: Door | None = None,
        new_id: Callable[[], str] = lambda: uuid4().hex,
    ) -> None:
        self.log = log
        self.broadcaster = broadcaster
        self.hub = hub
        self.history = LogHistory(log, config=config)
        self.agents: dict[str, Adapter] = {}
        self.max_runs = max_runs
        self._serializer = SlimSerializer(slim, redactor)
        self.threads = Threads(log, self._serializer)
        self._cadence = cadence or Cadence()
        self._new_id = new_id
        self.door = door or Door()  # who may ask for what, over HTTP and sockets
        self.tenant = ""
        self._slim = slim
        self._redactor = redactor
        self._config = config
        self._tenants: dict[str, Cast] = {}
        self._opening: asyncio.Future[Any] | None = None
        self._closed: asyncio.Task[None] | None = None
        self._everybody: list[Cast] = [self]  # this one and its tenants: `max_runs` counts them all
        self._runs: dict[str, Run] = {}  # active, by run id
        self._threads: dict[str, str] = {}  # thread -> its active run, "" while it is being started
        self._targets = [each for each in (broadcaster, _to_hub(hub, config)) if each is not None]
        self._followers = Followers(log, self._targets)
        self._closing = False
        for agent in agents:
            self.register(agent)

    @classmethod
    def open(
        cls,
        url: str = "sqlite:///runcast.db",
        *,
        broadcast: str | None = None,
        redact: bool = True,
        config: BroadcastConfig | None = None,
        slim: SlimConfig | None = None,
        hub: Hub | None = None,
        secret: str | None = None,
        **settings: Any,
    ) -> Self:
        """A cast over a store's URL, with a hub of its own and redaction on.

        `broadcast` is a publisher's URL (`reverb://…`, `redis://…`). `secret` is what the hub signs with: nodes that
        have it in common take each other's tokens; without one each makes its own. Other settings are `Cast`'s.
        """
        redactor = Redactor() if redact else None
        log = RunLog(open_store(url), redactor=redactor, patience_ms=PATIENCE_MS)
        door: Door = settings.setdefault("door", Door())
        if hub is None:
            hub = own_hub(log, config, door, secret)
        sender = None if broadcast is None else Broadcaster(open_publisher(broadcast), config=config)
        return cls(log, sender, hub, slim, config=config, redactor=redactor, **settings)

    def for_tenant(self, name: str) -> Cast:
        """The same host as one tenant sees it: threads, hub and channels of its own, and the same agents."""
        if not name:
            return self
        if name in self._tenants:
            return self._tenants[name]
        if self.tenant or self.broadcaster is not None:
            raise ValueError(
                "tenants need the host's own cast, and the hub as their only target: "
                "give each tenant a Cast of its own to broadcast elsewhere"
            )
        log = self.log.for_tenant(name)
        own = "" if self.hub is None else secret_of(self.hub.secret, name)
        hub = None if self.hub is None else own_hub(log, self._config, self.door, own)
        view = Cast(
            log,
            None,
            hub,
            self._slim,
            config=self._config,
            redactor=self._redactor,
            cadence=self._cadence,
            max_runs=self.max_runs,
            door=self.door,
            new_id=self._new_id,
        )
        view.tenant, view._everybody = name, self._everybody
        view._closing = self._closing
        view.agents = {each.name: ForTenant(each, name) for each in self.agents.values()}
        self._tenants[name] = view
        self._everybody.append(view)
        return view

    def asgi(self, **options: Any) -> App:
        """The page, the HTTP API, the AG-UI endpoint and the hub as one ASGI app; `App` says which options."""
        from runcast.app.http import App

        return App(self, **options)

    async def opened(self) -> None:
        """Connect the store, once, whoever asks first."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(self.log.__aenter__())
        try:
            await asyncio.shield(self._opening)
        except Exception:
            self._opening = None  # the next one tries again
            raise

    async def __aenter__(self) -> Self:
        await self.opened()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def register(self, agent: Any, *, name: str | None = None) -> Adapter:
        """Make an agent known by its name, for HTTP and for runs that are taken up later."""
        bare = as_adapter(agent, name=name)
        adapter = self._own(bare)
        if adapter.name in self.agents:
            raise BadRequest(f"an agent called {adapter.name!r} is here already: give this one another name")
        for caution in cautions(bare):
            logger.warning("agent %s: %s", adapter.name, caution)
        self.agents[adapter.name] = adapter
        for tenant, view in self._tenants.items():
            view.agents[adapter.name] = ForTenant(adapter, tenant)
        return adapter

    def agent(self, name: str) -> Adapter:
        """The agent of this name."""
        if name not in self.agents:
            known = ", ".join(self.agents) or "none"
            raise NotFound(f"no agent is called {name!r}; there are: {known}")
        return self.agents[name]

    def fresh_id(self) -> str:
        """An id that nothing has yet."""
        return self._new_id()

    # -------------------------------------------------------------- starting

    async def start(self, agent: Any, input: RunAgentInput, *, resume: ResumePoint | None = None) -> Run:
        """Start a run; it goes on whoever watches. Returns when RUN_STARTED is in the log."""
        return await self._start(agent, input, resume=resume)

    async def take(self, agent: Any, input: RunAgentInput) -> Run:
        """Start what an AG-UI client asks for: answers to open questions, a branch behind an older run, or a run."""
        runs = await self.log.runs(input.thread_id)
        if input.resume and runs:
            return await self._resume(
                runs[-1], input.thread_id, entries_in(input.resume), agent=agent, given=input
            )
        parent = input.parent_run_id
        if parent is not None and runs and parent != runs[-1].run_id:
            return await self.branch(input.thread_id, parent, input, agent=agent)
        return await self.start(agent, input)

    async def say(
        self, thread_id: str, text: str, *, agent: str | None = None, from_run: str | None = None
    ) -> Run:
        """Start a run with one more user message, at the end of a thread or behind an earlier run."""
        adapter = self.agent(agent) if agent is not None else await self._agent_of(thread_id)
        history = await self.threads.messages(thread_id, from_run)
        message = UserMessage(id=self._new_id(), content=text)
        input = self._input(thread_id, [*history, message])
        if from_run is not None:
            return await self.branch(thread_id, from_run, input, agent=adapter)
        return await self.start(adapter, input)

    async def branch(self, thread_id: str, from_run: str, input: RunAgentInput, *, agent: Any = None) -> Run:
        """Start a run behind an earlier one, as if nothing had come after it."""
        adapter = agent if agent is not None else await self._agent_of(thread_id)
        await self.threads.known(thread_id, from_run)
        state = await self.threads.stands(thread_id, from_run)
        return await self._start(adapter, input, edge="branch", parent=from_run, state=state)

    async def resume(self, thread_id: str, answers: Answers | None = None, *, agent: Any = None) -> Run:
        """Take up a thread's newest run: answer its questions, or go on after a crash, an error or a stop.

        Every open question needs an answer: `{interrupt_id: payload}`, or resume entries.
        """
        last = await self.threads.known(thread_id, None)
        return await self._resume(last, thread_id, entries_in(answers), agent=agent)

    async def _resume(
        self,
        last: RunInfo,
        thread_id: str,
        entries: Sequence[ResumeEntry],
        *,
        agent: Any = None,
        given: RunAgentInput | None = None,
    ) -> Run:
        if last.status == "in_progress":
            raise Busy(f"run {last.run_id} of this thread is active: wait for it, or stop it")
        state = await self.threads.stands(thread_id, last.run_id)
        waiting: set[str] = set()
        if last.status == "interrupted":
            waiting = {each.id for each in state.interrupts}
        check(entries, waiting)
        point = None if entries else replace(state, framework={**state.framework, "unfinished": True})
        return await self._start(
            agent if agent is not None else self.agent(state.agent_id),
            given or self._input(thread_id, state.messages, parent=last.run_id, resume=entries),
            edge="resume",
            parent=last.run_id,
            resume=point,
            state=state,
            attempt=last.attempt + 1,
        )

    async def recover(self, policy: Literal["report", "continue"] = "report") -> list[tuple[str, RunInfo]]:
        """Find the runs whose process died: mark them truncated, and with `continue` take them up again."""
        found = await self.log.recover()
        for thread_id, run in found:
            logger.warning("run %s of thread %s was cut short", run.run_id, thread_id)
            if policy == "continue":
                try:
                    await self.resume(thread_id)
                except Exception:  # one thread that cannot go on must not keep the others
                    logger.exception("thread %s could not be taken up", thread_id)
        return found

    async def _start(
        self,
        agent: Any,
        input: RunAgentInput,
        *,
        edge: Literal["continue", "branch", "resume"] = "continue",
        parent: str | None = None,
        resume: ResumePoint | None = None,
        state: AgentState | None = None,
        attempt: int = 1,
    ) -> Run:
        adapter = self._own(as_adapter(agent))
        self.agents.setdefault(adapter.name, adapter)
        self._admit(input)
        self._threads[input.thread_id] = input.run_id
        try:
            await self.log.start_run(input.thread_id, input.run_id, parent=parent, edge=edge)
            base = state if state is not None else await self.state(input.thread_id)
            run = Run(
                self.log,
                adapter,
                input,
                serializer=self._serializer,
                cadence=self._cadence,
                base=base,
                attempt=attempt,
                resume=resume,
                ended=self._over,
            )
            self._runs[input.run_id] = run
            run.begin()
            await run.begun()
        except Conflict as error:
            self._forget(input)
            raise Busy(f"this thread is written elsewhere, or the run id was used: {error}") from error
        except BaseException:
            self._forget(input)
            raise
        self._followers.follow(run)
        return run

    def _own(self, adapter: Adapter) -> Adapter:
        return (
            ForTenant(adapter, self.tenant) if self.tenant and not isinstance(adapter, ForTenant) else adapter
        )

    def _admit(self, input: RunAgentInput) -> None:
        if self._closing:
            raise Closing("this host is shutting down; ask again in a moment")
        other = self._threads.get(input.thread_id)
        if other is not None:
            raise Busy(f"run {other} of this thread is active: wait for it, or stop it")
        if sum(len(each._runs) for each in self._everybody) >= self.max_runs:
            raise Full(f"{self.max_runs} runs are active; ask again in a moment")

    def _forget(self, input: RunAgentInput) -> None:
        if self._threads.get(input.thread_id) == input.run_id:
            del self._threads[input.thread_id]
        self._runs.pop(input.run_id, None)

    def _over(self, run: Run) -> None:
        self._forget(run.input)

    def attach(self, thread_id: str, after: int | None = None) -> AsyncGenerator[Entry]:
        """A thread's entries behind `after`, and every new one, for as long as somebody reads."""
        return self.log.attach(thread_id, after)

    async def tail(self, thread_id: str) -> None:
        """Carry a thread that another process writes to those who watch it here, until this is cancelled."""
        await self._followers.tail(thread_id)

    async def mirror(self) -> None:
        """Carry what other processes write to this log to those who watch it here, until this is cancelled."""
        await self._followers.mirror(lambda: self._threads)

    # --------------------------------------------------------------- reading

    async def state(self, thread_id: str, run_id: str | None = None) -> AgentState | None:
        """The whole picture of a thread, as a run left it; None for a thread that has no run."""
        return await self.threads.state(thread_id, run_id)

    async def snapshot(self, thread_id: str) -> dict[str, Any]:
        """The slim snapshot of a thread: of a run under way as it is now, else the one that was kept."""
        run = self._runs.get(self._threads.get(thread_id, ""))
        if run is not None:
            return self._serializer.serialize(run.state)
        return await self.threads.snapshot(thread_id)

    async def _agent_of(self, thread_id: str) -> Adapter:
        """The agent that a thread belongs to: the one of its newest run, or the only one there is."""
        if len(self.agents) == 1:
            return next(iter(self.agents.values()))
        state = await self.state(thread_id)
        if state is None:
            raise BadRequest(f"say which agent is meant; there are: {', '.join(self.agents) or 'none'}")
        return self.agent(state.agent_id)

    def _input(
        self,
        thread_id: str,
        messages: Sequence[Message],
        *,
        parent: str | None = None,
        resume: Sequence[ResumeEntry] = (),
    ) -> RunAgentInput:
        given: dict[str, Any] = {"resume": list(resume)} if resume else {}
        if parent is not None:
            given["parent_run_id"] = parent
        said: list[Message] = [message for message in messages if message.role != "activity"]
        return RunAgentInput(
            thread_id=thread_id, run_id=self._new_id(), messages=said, tools=[], context=[], **given
        )

    # -------------------------------------------------------------- stopping

    def run(self, run_id: str) -> Run:
        """A run that is active here."""
        if run_id not in self._runs:
            raise NotFound(f"no run {run_id!r} is active here")
        return self._runs[run_id]

    @property
    def closing(self) -> bool:
        """Whether it takes no more runs."""
        return self._closing

    @property
    def active(self) -> list[Run]:
        """The runs under way here."""
        return list(self._runs.values())

    async def stop(self, run_id: str, hard: bool = False) -> None:
        """End a run: at the next border its framework has, or at once. It ends as cancelled."""
        await self.run(run_id).stop(hard=hard)

    async def aclose(self, *, grace: float = 10.0) -> None:
        """Shut down and lose nothing: take no more runs, let active ones end, then stop them, then cut them short.

        What was cut short is taken up by `recover` wherever the log is opened next. Harmless to say twice.
        """
        if self._closed is None:
            self._closed = asyncio.ensure_future(self._close(grace))
        await asyncio.shield(self._closed)

    async def _close(self, grace: float) -> None:
        self._closing = True
        await asyncio.gather(*(view.aclose(grace=grace) for view in self._tenants.values()))
        await self._drain(grace / 2)
        for run in self.active:
            try:
                await run.stop()
            except UnknownRun:
                continue
        await self._drain(grace / 2)
        for run in self.active:
            await run.abandon()
        await self._followers.close()
        for target in self._targets:
            await target.aclose()
        if self.hub is not None:
            await self.hub.aclose()
        await self.log.close()

    async def _drain(self, seconds: float) -> None:
        waiting = [asyncio.ensure_future(run.result()) for run in self.active]
        if waiting and seconds > 0:
            await asyncio.wait(waiting, timeout=seconds)
        for each in waiting:
            each.cancel()

    def stats(self) -> dict[str, Any]:
        """Plain numbers of everything in here."""
        numbers: dict[str, Any] = {"runs": len(self._runs), "followers": len(self._followers)}
        if self.broadcaster is not None:
            numbers["broadcaster"] = self.broadcaster.stats()
        if self.hub is not None:
            numbers["hub"] = self.hub.stats()
        numbers["log"] = {name: getattr(self.log.stats(), name) for name in type(self.log.stats()).__slots__}
        return numbers


def _to_hub(hub: Hub | None, config: BroadcastConfig | None) -> Broadcaster | None:
    return None if hub is None else Broadcaster(hub, config=config, prefix=hub.prefix)


def own_hub(log: RunLog, config: BroadcastConfig | None, door: Door, secret: str | None = None) -> Hub:
    """A hub that asks the same door as HTTP does."""
    history = LogHistory(log, config=config)
    return Hub(
        "runcast",
        "runcast",
        secret or secrets.token_hex(32),
        authorize=door.allows,
        identify=door.who,
        history=history,
    )
