"""The three houses joined: runs that outlive their watchers, and everything one can ask of them.

A `Cast` owns the runs it starts. It drives their adapters into the log, follows the log to the broadcaster and the
hub, and answers who attaches, stops, answers, branches or comes back after a crash. Rules: one active run a thread,
a second one is refused with `Busy`; at most `max_runs` at once, more are refused with `Full`; what is broadcast was
durable before. Several over one store are nodes: each watches every thread, stops every run, and with `work=False`
hands its own to those that work (`node.py`). Does not know HTTP (`http.py`) or the command line (`cli.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack
from uuid import uuid4
from weakref import WeakSet

from ag_ui.core import ResumeEntry, RunAgentInput, UserMessage

from runcast.adapters import Adapter, ResumePoint, UnknownRun
from runcast.app.active import Active
from runcast.app.agents import as_adapter, cautions
from runcast.app.answers import Answers, check, entries_in
from runcast.app.auth import Door
from runcast.app.control import LOOKED_BACK_MS, Stopping, go_on_from, recover_one, stop_elsewhere, threads_of
from runcast.app.errors import BadRequest, Busy, NotFound
from runcast.app.follow import Followers
from runcast.app.launch import How, launch
from runcast.app.node import Node, Policy
from runcast.app.outlets import elsewhere, outlets, own_hub
from runcast.app.run import Cadence, Run
from runcast.app.tenants import ForTenant
from runcast.app.threads import Threads
from runcast.app.tokens import secret_of
from runcast.app.views import Views
from runcast.app.wanted import Far, Wanted, input_for
from runcast.broadcast import BroadcastConfig, Broadcaster, Hub, LogHistory
from runcast.slim import (
    AgentState,
    Entry,
    Notes,
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
        work: bool = True,  # run agents here; else runs are left for a node that does
        redis: str
        | None = None,  # brings this node's envelopes to the hubs of others, and theirs to this one
        recover: Policy = "off",  # what happens, as long as this is open, to runs whose process died
        recover_every: float = 5.0,  # seconds
        max_attempts: int = 10,  # at one run, before it is not taken up again
        max_tenants: int = 1_000,  # whose views are kept; idle ones go first
        host: Cast | None = None,  # of which this is a tenant's view
        tenant: str = "",
    ) -> None:
        self.log = log
        self.hub = hub
        self._elsewhere = broadcaster is not None
        self._out = outlets(broadcaster, hub, config=config, redis=redis, tenant=tenant)
        self.broadcaster = broadcaster or self._out.redis
        self.work = work
        self.at_work: Active = host.at_work if host is not None else Active(max_runs)  # of all tenants
        self.node: Node = host.node if host is not None else Node(self, policy=recover, every=recover_every)
        self.wanted: WeakSet[Wanted] = WeakSet()
        self._goes_on: bool = host._goes_on if host is not None else recover == "continue"
        door = door or Door()
        self.door = door  # who may ask for what, over HTTP and sockets
        self._max_attempts = max_attempts
        self._shared: dict[str, Any] = {"slim": slim, "config": config, "redactor": redactor, "cadence": cadence,
            "door": door, "new_id": new_id, "work": work, "redis": redis, "max_attempts": max_attempts}  # fmt: skip
        self.history = LogHistory(log, config=config)
        self.agents: dict[str, Adapter] = {}
        self.serializer = SlimSerializer(slim, redactor)
        self.threads = Threads(log, self.serializer)
        self.cadence = cadence or Cadence()
        self._new_id = new_id
        self.tenant = tenant
        self._config = config
        self._tenants = Views(max_tenants)
        self._opening: asyncio.Future[Any] | None = None
        self._closed: asyncio.Task[None] | None = None
        out = self._out
        self.followers = Followers(log, out.everybody, hub=hub, near=out.near, fanout=out.fanout)
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
        redis: str | None = None,
        watch: bool = True,
        lease_ms: int = 15_000,
        **settings: Any,
    ) -> Self:
        """A cast over a store's URL, with a hub of its own (unless `watch=False`) and redaction on.

        `redis` joins several nodes: each publishes its runs there and hears those of the others; without it they
        follow the log. `lease_ms` is how long a dead node's runs wait before another one may have them.
        `broadcast` is a publisher's URL (`reverb://…`, `redis://…`). `secret` is what the hub signs with: nodes that
        have it in common take each other's tokens; without one each makes its own. Other settings are `Cast`'s.
        """
        redactor = Redactor() if redact else None
        log = RunLog(open_store(url), redactor=redactor, patience_ms=PATIENCE_MS, lease_ms=lease_ms)
        door: Door = settings.setdefault("door", Door())
        if hub is None and watch:
            hub = own_hub(log, config, door, secret)
        sender = None if broadcast is None else elsewhere(broadcast, hub, redis, config)
        return cls(log, sender, hub, slim, config=config, redactor=redactor, redis=redis, **settings)

    def for_tenant(self, name: str) -> Cast:
        """The same host as one tenant sees it: threads, hub and channels of its own, and the same agents."""
        if not name:
            return self
        if (known := self._tenants.find(name)) is not None:
            return known
        if self.tenant or self._elsewhere:
            raise ValueError(
                "tenants need the host's own cast, and the hub as their only target: "
                "give each tenant a Cast of its own to broadcast elsewhere"
            )
        log = self.log.for_tenant(name)
        own = "" if self.hub is None else secret_of(self.hub.secret, name)
        hub = None if self.hub is None else own_hub(log, self._config, self.door, own)
        view = Cast(log, None, hub, host=self, tenant=name, **self._shared)
        view._closing = self._closing
        view.agents = {each.name: ForTenant(each, name) for each in self.agents.values()}
        self._tenants.add(view)
        if self._opening is not None:
            view._begin()
        return view

    def asgi(self, **options: Any) -> App:
        """The page, the HTTP API, the AG-UI endpoint and the hub as one ASGI app; `App` says which options."""
        from runcast.app.http import App

        return App(self, **options)

    async def opened(self) -> None:
        """Connect the store, once, whoever asks first."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())
        try:
            await asyncio.shield(self._opening)
        except Exception:
            self._opening = None  # the next one tries again
            raise

    async def _open(self) -> None:
        await self.log.__aenter__()
        await self.node.arrive()
        if not self._closing:
            self._begin()
            self.node.begin()

    def _begin(self) -> None:
        self.followers.begin()
        if self._out.fanout is not None:
            self._out.fanout.start()

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
        adapter = self.own(bare)
        if adapter.name in self.agents:
            raise BadRequest(f"an agent called {adapter.name!r} is here already: give this one another name")
        for caution in cautions(bare):
            logger.warning("agent %s: %s", adapter.name, caution)
        self.agents[adapter.name] = adapter
        for view in self._tenants:
            view.agents[adapter.name] = ForTenant(adapter, view.tenant)
        self.node.nudge(agents=True)
        return adapter

    def meet(self, agents: Mapping[str, Far]) -> None:
        """Know these agents of other nodes, and no others of that kind."""
        own = {name: each for name, each in self.agents.items() if not isinstance(each, Far)}
        self.agents = {**agents, **own}
        for view in self._tenants:
            view.agents = {name: ForTenant(each, view.tenant) for name, each in self.agents.items()}

    def agent(self, name: str) -> Adapter:
        """The agent of this name."""
        if name not in self.agents:
            known = ", ".join(self.agents) or "none"
            raise NotFound(f"no agent is called {name!r}; there are: {known}")
        return self.agents[name]

    def fresh_id(self) -> str:
        """An id that nothing has yet."""
        return self._new_id()

    @property
    def host_notes(self) -> Notes:
        """What nodes leave each other, of all tenants: not a tenant's to read."""
        return self.node.notes

    # -------------------------------------------------------------- starting

    async def start(self, agent: Any, input: RunAgentInput, *, resume: ResumePoint | None = None) -> Run:
        """Start a run; it goes on whoever watches. Returns when RUN_STARTED is in the log; on a node that does not
        work, when it is durable that a worker will begin it."""
        if resume is not None and not self.work:
            raise BadRequest(
                "this node does not work, and a resume point cannot be handed over: use `resume`"
            )
        return await self.launch(agent, input, resume=resume)

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
        input = input_for(thread_id, self._new_id(), [*history, message])
        if from_run is not None:
            return await self.branch(thread_id, from_run, input, agent=adapter)
        return await self.start(adapter, input)

    async def branch(self, thread_id: str, from_run: str, input: RunAgentInput, *, agent: Any = None) -> Run:
        """Start a run behind an earlier one, as if nothing had come after it."""
        adapter = agent if agent is not None else await self._agent_of(thread_id)
        state = await self.threads.stands(thread_id, from_run)
        return await self.launch(adapter, input, edge="branch", parent=from_run, state=state)

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
        return await self.launch(
            agent if agent is not None else self.agent(state.agent_id),
            given
            or input_for(
                thread_id,
                self._new_id(),
                state.to_messages(half_said=True),
                parent=last.run_id,
                resume=entries,
            ),
            edge="resume",
            parent=last.run_id,
            resume=point,
            state=state,
            attempt=last.attempt + 1,
            newest=last.run_id,
        )

    async def recover(self, policy: Literal["report", "continue"] = "report") -> list[tuple[str, RunInfo]]:
        """Find the runs whose process died: mark them truncated, and with `continue` take them up again.

        Those of all tenants, unless this is a tenant's view. Of all nodes that look at once, one is told of each.
        """
        found: list[tuple[str, RunInfo]] = []
        go_on, most = policy == "continue", self._max_attempts
        stranded = await self.log.stranded()
        left = await self.log.left(LOOKED_BACK_MS) if go_on else []
        for each in [*stranded, *left]:
            tenant, thread_id, run_id = each
            try:
                view = self if tenant == self.tenant else self.for_tenant(tenant)
                if each in stranded:
                    found += await recover_one(view, self.node, thread_id, run_id, go_on=go_on, most=most)
                else:
                    found += await go_on_from(view, self.node, thread_id, run_id, most) or []
            except Exception:  # one thread that cannot go on must not keep the others
                logger.exception("thread %s could not be taken up", thread_id)
        return found

    async def launch(self, agent: Any, input: RunAgentInput, **how: Unpack[How]) -> Run:
        """Begin a run in its place in the thread, here or on a node that works; what `start` and its kin come to."""
        return await launch(self, self.own(as_adapter(agent)), input, how)

    def own(self, adapter: Adapter) -> Adapter:
        """The adapter as this tenant uses it."""
        return (
            ForTenant(adapter, self.tenant) if self.tenant and not isinstance(adapter, ForTenant) else adapter
        )

    def attach(self, thread_id: str, after: int | None = None) -> AsyncGenerator[Entry]:
        """A thread's entries behind `after`, and every new one, for as long as somebody reads."""
        return self.log.attach(thread_id, after)

    async def tail(self, thread_id: str) -> None:
        """Carry a thread that another process writes to those who watch it here, until this is cancelled."""
        with self.followers.held(thread_id):
            await asyncio.Event().wait()

    # --------------------------------------------------------------- reading

    async def state(self, thread_id: str, run_id: str | None = None) -> AgentState | None:
        """The whole picture of a thread, as a run left it; None for a thread that has no run."""
        return await self.threads.state(thread_id, run_id)

    async def snapshot(self, thread_id: str) -> dict[str, Any]:
        """The slim snapshot of a thread: of a run under way as it is now, else the one that was kept."""
        run = self.at_work.in_thread(self.tenant, thread_id)
        if run is not None:
            return self.serializer.serialize(run.state)
        return await self.threads.snapshot(thread_id)

    async def _agent_of(self, thread_id: str) -> Adapter:
        """The agent that a thread belongs to: the one of its newest run, or the only one there is."""
        if len(self.agents) == 1:
            return next(iter(self.agents.values()))
        state = await self.state(thread_id)
        if state is None:
            raise BadRequest(f"say which agent is meant; there are: {', '.join(self.agents) or 'none'}")
        return self.agent(state.agent_id)

    # -------------------------------------------------------------- stopping

    def run(self, run_id: str) -> Run:
        """A run that is active in this process."""
        found = self.at_work.named(self.tenant, run_id)
        if not found:
            raise NotFound(f"no run {run_id!r} is active here")
        return found[-1]

    async def threads_of(self, run_id: str) -> list[str]:
        """The threads that have, had or wait for a run of this id: it is unique in a thread alone."""
        return await threads_of(self, run_id)

    @property
    def closing(self) -> bool:
        """Whether it takes no more runs."""
        return self._closing

    @property
    def active(self) -> list[Run]:
        """The runs under way here."""
        return self.at_work.of(self.tenant)

    @property
    def full(self) -> bool:
        """Whether as many runs as allowed are active."""
        return self.at_work.full

    async def stop(self, run_id: str, hard: bool = False, *, thread_id: str | None = None) -> Stopping:
        """End a run, whichever node has it: at the next border its framework has, or at once. It ends as cancelled.

        `stopping`: it is ours, and was told. `asked`: its owner will hear of it. `stopped`: it never began.
        """
        for run in self.at_work.named(self.tenant, run_id):
            if thread_id in (None, run.thread_id):
                await run.stop(hard=hard)
                return "stopping"
        return await stop_elsewhere(self, run_id, hard, thread_id)

    async def aclose(self, *, grace: float = 10.0) -> None:
        """Shut down and lose nothing: take no more runs, let active ones end, then stop them, then cut them short.

        With `recover="continue"` they are not stopped but handed over: whoever is there, or comes next, takes them up.
        Harmless to say twice.
        """
        if self._closed is None:
            self._closed = asyncio.ensure_future(self._close(grace))
        await asyncio.shield(self._closed)

    async def _close(self, grace: float) -> None:
        self._closing = True
        if not self.tenant:
            await self.node.close()
        await self._tenants.aclose(grace)
        await self._drain(grace / 2)
        if not self._goes_on:
            for run in self.active:
                try:
                    await run.stop()
                except UnknownRun:
                    continue
            await self._drain(grace / 2)
        for run in self.active:
            await (run.hand_over() if self._goes_on else run.abandon())
        await self.let_go()
        await self.log.close()

    @property
    def idle(self) -> bool:
        """Whether nobody uses this view: no run, no watcher, and nobody who waits for a run."""
        watched = self.hub is not None and bool(self.hub.occupied())
        return not (watched or self.wanted or len(self.followers) or self.at_work.has(self.tenant))

    async def let_go(self) -> None:
        """Let go of everything but the log; what waits to be told is told."""
        for wanted in list(self.wanted):
            await wanted.abandon()
        await self.followers.close()
        await self._out.aclose()
        if self.hub is not None:
            await self.hub.aclose()

    async def _drain(self, seconds: float) -> None:
        waiting = [asyncio.ensure_future(run.result()) for run in self.active]
        if waiting and seconds > 0:
            await asyncio.wait(waiting, timeout=seconds)
        for each in waiting:
            each.cancel()

    def stats(self) -> dict[str, Any]:
        """Plain numbers of everything in here."""
        numbers: dict[str, Any] = {"runs": len(self.active), "followers": len(self.followers)}
        if self.broadcaster is not None:
            numbers["broadcaster"] = self.broadcaster.stats()
        if self.hub is not None:
            numbers["hub"] = self.hub.stats()
        numbers["log"] = {name: getattr(self.log.stats(), name) for name in type(self.log.stats()).__slots__}
        return numbers
