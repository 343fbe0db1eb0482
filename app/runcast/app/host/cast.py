"""The three houses joined: runs that outlive their watchers, and everything that can be asked of them.

A `Cast` owns the runs it starts. It drives their adapters into the log and carries the log to the broadcaster and the
hub. Rules: one active run a thread, a second one is refused with `Busy`; at most `max_runs` at once, more are refused
with `Full`; an entry is durable before it is broadcast. Several casts over one store are nodes: each watches every
thread and stops every run, and with `work=False` leaves its runs to those that work (`nodes/`). Does not know HTTP or
the command line.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack
from weakref import WeakSet

from ag_ui.core import Message, RunAgentInput, Tool, UserMessage

from runcast.adapters import Adapter, ResumePoint, UnknownRun
from runcast.app.errors import BadRequest, NotFound, Over
from runcast.app.host.agents import Agents
from runcast.app.host.cast_options import CastOptions, CastSettings, OpenSettings, options_from
from runcast.app.host.followers import Followers
from runcast.app.host.host_stats import numbers_of
from runcast.app.host.launch import Launcher
from runcast.app.host.outlets import elsewhere, outlets, own_hub
from runcast.app.host.thread_reader import Threads
from runcast.app.keeping.forgetting import Forgetter
from runcast.app.keeping.retention import Retention
from runcast.app.keeping.thread_archives import ThreadArchives
from runcast.app.nodes.annotations import Annotations
from runcast.app.nodes.handover import Edge, OnBusy, RemoteRun, RunRequest, input_for
from runcast.app.nodes.node import Node
from runcast.app.nodes.orphans import Recovery, recover_runs
from runcast.app.nodes.queue import Queue
from runcast.app.nodes.requests import Stopping, note_stop, stop_elsewhere
from runcast.app.runs.resume_entries import Answers, entries_in, under_its_own_id
from runcast.app.runs.run import LocalRun, Run
from runcast.app.runs.run_slots import RunSlots
from runcast.app.tenants.tenant_views import Views
from runcast.app.tenants.tokens import secret_of
from runcast.app.webhooks.outbox import Outbox
from runcast.broadcast import Broadcaster, Hub, LogHistory
from runcast.slim import (
    AgentState,
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

    from runcast.app.http.asgi_app import App

PATIENCE_MS = 30_000  # that runs wait for a store that is away, before they are cut short


class Cast:
    """Runs agents and casts them to their watchers. Use as `async with Cast.open(url) as cast`, or `aclose` it."""

    def __init__(
        self,
        log: RunLog,
        broadcaster: Broadcaster | None = None,
        hub: Hub | None = None,
        slim: SlimConfig | None = None,
        *,
        agents: Iterable[Any] = (),
        view: tuple[Cast, str] | None = None,  # host and tenant; only `for_tenant` gives it
        **settings: Unpack[CastSettings],
    ) -> None:
        self.log = log
        self.hub = hub
        host, self.tenant = (None, "") if view is None else view
        options = options_from(settings) if host is None else host.options
        self.options: CastOptions = options
        self.access = options.access
        self._slim = slim
        self._external = broadcaster is not None
        self._out = out = outlets(
            broadcaster, hub, config=options.config, redis=options.redis, tenant=self.tenant
        )
        self.broadcaster = broadcaster or out.redis
        self.history = LogHistory(log, config=options.config)
        self.serializer = SlimSerializer(slim, options.redactor)
        self.threads = Threads(log, self.serializer)
        self.followers = Followers(log, out.all, hub=hub, local=out.local, fanout=out.fanout)
        self.agents: Agents = Agents() if host is None else Agents(host.agents, self.tenant)
        self.launcher = Launcher(self)
        self.queue = Queue(self)
        self.annotations = Annotations(self)
        self.slots: RunSlots = RunSlots(options.max_runs) if host is None else host.slots
        self.node: Node = Node(self) if host is None else host.node
        self.forgetter = Forgetter(self)
        self.retention = Retention(self)
        self.outbox = Outbox(self)
        self.archives = ThreadArchives(self)  # threads with all that is kept of them, to and from a file
        self.forget = self.forgetter.forget  # a thread and all that is kept of it, on every node
        self.remote_runs: WeakSet[RemoteRun] = WeakSet()
        self.closing: bool = False if host is None else host.closing  # takes no more runs
        self._views = Views(options.max_tenants)
        self._opening: asyncio.Future[Any] | None = None
        self._closed: asyncio.Task[None] | None = None
        self.agents.register_all(agents)
        self.node.wake(agents=True)

    @classmethod
    def open(
        cls,
        url: str = "sqlite:///runcast.db",
        *,
        agents: Iterable[Any] = (),
        broadcast: str | None = None,
        redis: str | None = None,
        recover: Recovery = "off",
        watch: bool = True,
        work: bool = True,
        **settings: Unpack[OpenSettings],
    ) -> Self:
        """A cast over a store's URL, with a hub of its own (unless `watch=False`) and redaction on.

        `broadcast` is a publisher's URL (`reverb://…`, `redis://…`). `redis` joins several nodes: each publishes its runs
        there and receives those of the others; without it they follow the log. `recover="continue"` resumes the runs of
        processes that died. `work=False` leaves all runs to other nodes. For the settings see `OpenSettings`.
        """
        hub, slim = settings.pop("hub", None), settings.pop("slim", None)
        secret, lease_ms = settings.pop("secret", None), settings.pop("lease_ms", 15_000)
        redactor = Redactor() if settings.pop("redact", True) else None
        given: Any = {**settings, "redactor": redactor, "redis": redis, "recover": recover, "work": work}
        options = options_from(given)
        log = RunLog(open_store(url), redactor=redactor, patience_ms=PATIENCE_MS, lease_ms=lease_ms)
        if hub is None and watch:
            hub = own_hub(log, options.config, options.access, secret)
        sender = None if broadcast is None else elsewhere(broadcast, hub, redis, options.config)
        given["access"] = options.access
        return cls(log, sender, hub, slim, agents=agents, **given)

    def for_tenant(self, name: str) -> Cast:
        """The same host as one tenant sees it: threads, hub and channels of its own, and the same agents."""
        if not name:
            return self
        if (known := self._views.find(name)) is not None:
            return known
        if self.tenant or self._external:
            raise ValueError(
                "tenants need the host's own cast, and the hub as their only target: "
                "give each tenant a Cast of its own to broadcast elsewhere"
            )
        log = self.log.for_tenant(name)
        secret = "" if self.hub is None else secret_of(self.hub.secret, name)
        hub = None if self.hub is None else own_hub(log, self.options.config, self.access, secret)
        view = Cast(log, None, hub, self._slim, view=(self, name))
        self._views.add(view)
        if self._opening is not None:
            view._begin()
        return view

    def asgi(self, **options: Any) -> App:
        """The page, the HTTP API, the AG-UI endpoint and the hub as one ASGI app; for the options see `App`."""
        from runcast.app.http.asgi_app import App

        return App(self, **options)

    async def opened(self) -> None:
        """Connect the store, once for all callers."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())
        try:
            await asyncio.shield(self._opening)
        except Exception:
            self._opening = None  # the next caller tries again
            raise

    async def _open(self) -> None:
        await self.log.__aenter__()
        await self.node.join()
        if not self.closing:
            self._begin()
            self.node.begin(self.forgetter.serve, self.retention.serve, self.outbox.serve)

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

    def register(self, agent: Any, *, name: str | None = None, on_busy: OnBusy | None = None) -> Adapter:
        """Add an agent, for HTTP and for runs that are resumed later; `on_busy` as in `say`."""
        adapter = self.agents.register(agent, name, on_busy)
        self.node.wake(agents=True)
        return adapter

    def agent(self, name: str) -> Adapter:
        """The agent of this name."""
        return self.agents.named(name)

    # -------------------------------------------------------------- starting

    async def start(
        self,
        agent: Any,
        input: RunAgentInput,
        *,
        resume: ResumePoint | None = None,
        on_busy: OnBusy | None = None,
    ) -> Run:
        """Start a run; it goes on whether it is watched or not.

        Returns when RUN_STARTED is in the log; when it waits, or this node does not work, when that is durable.
        """
        if resume is not None and not self.options.work:
            raise BadRequest(
                "this node does not work, and a resume point cannot be handed over: use `resume`"
            )
        adapter = self.agents.bound(agent)
        request = RunRequest(adapter.name, input)
        return await self.queue.submit(
            request, input.thread_id, input.run_id, adapter=adapter, resume=resume, on_busy=on_busy
        )

    async def take(self, agent: Any, input: RunAgentInput, *, on_busy: OnBusy | None = None) -> Run:
        """Start what an AG-UI client asks for: answers to open questions, a branch from an older run, or a run."""
        runs = await self.log.runs(input.thread_id)
        input = under_its_own_id(input, runs, self.options.new_id)
        if input.resume and runs:
            answers = entries_in(input.resume)
            return await self.launcher.resume(runs[-1], input.thread_id, answers, agent=agent, given=input)
        parent = input.parent_run_id
        if parent is None or not runs:
            return await self.start(agent, input, on_busy=on_busy)
        edge: Edge = "continue" if parent == runs[-1].run_id else "branch"
        return await self._continue(agent, input, edge, parent, on_busy=on_busy)

    async def say(
        self,
        thread_id: str,
        text: str | Sequence[Message],
        *,
        agent: str | None = None,
        from_run: str | None = None,
        forwarded_props: Mapping[str, Any] | None = None,
        on_busy: OnBusy | None = None,
        tools: Sequence[Tool] = (),
    ) -> Run:
        """Start a run with one more message, or several, at the end of a thread or after an earlier run.

        While a run is active, `on_busy` decides: "refuse" raises `Busy`, "queue" waits for its end, "interrupt" stops it
        and follows, "rollback" stops it and starts where it started. The answer's `accepted` has what became of it;
        `queue` lists, edits and withdraws what waits. `tools` are the client's own.
        """
        adapter = self.agent(agent) if agent is not None else await self.launcher.agent_of(thread_id)
        if from_run is not None:
            await self.threads.known(thread_id, from_run)
        new_id = self.options.new_id
        messages = [UserMessage(id=new_id(), content=text)] if isinstance(text, str) else text
        input = input_for(thread_id, new_id(), messages, forwarded_props=forwarded_props, tools=tools)
        edge: Edge = "continue" if from_run is None else "branch"
        return await self._continue(adapter, input, edge, from_run, append=True, on_busy=on_busy)

    async def branch(self, thread_id: str, from_run: str, input: RunAgentInput, *, agent: Any = None) -> Run:
        """Start a run after an earlier one, as if nothing had come after that."""
        await self.threads.known(thread_id, from_run)
        adapter = agent if agent is not None else await self.launcher.agent_of(thread_id)
        return await self._continue(adapter, input, "branch", from_run)

    async def _continue(
        self,
        agent: Any,
        input: RunAgentInput,
        edge: Edge,
        parent: str | None,
        *,
        append: bool = False,
        on_busy: OnBusy | None = None,
    ) -> Run:
        adapter = self.agents.bound(agent)
        request = RunRequest(adapter.name, input, edge, parent, append=append)
        return await self.queue.submit(
            request, input.thread_id, input.run_id, adapter=adapter, on_busy=on_busy
        )

    async def resume(self, thread_id: str, answers: Answers | None = None, *, agent: Any = None) -> Run:
        """Resume a thread's newest run: answer its questions, or continue after a crash, an error or a stop.

        Every open question needs an answer: `{interrupt_id: payload}`, or resume entries.
        """
        last = await self.threads.known(thread_id, None)
        return await self.launcher.resume(last, thread_id, entries_in(answers), agent=agent)

    async def recover(self, policy: Literal["report", "continue"] = "report") -> list[tuple[str, RunInfo]]:
        """Find the runs whose process died: mark them truncated, and with `continue` resume them.

        Those of all tenants, unless this is a tenant's view. Of several nodes that look at once, one reports each.
        """
        return await recover_runs(self, policy)

    # --------------------------------------------------------------- reading

    def attach(self, thread_id: str, after: int | None = None) -> AsyncGenerator[Entry]:
        """A thread's entries after `after`, then every new one, until the reader closes."""
        return self.log.attach(thread_id, after)

    async def state(self, thread_id: str, run_id: str | None = None) -> AgentState | None:
        """The whole state of a thread, as a run left it; None for a thread that has no run."""
        return await self.threads.state(thread_id, run_id)

    async def snapshot(self, thread_id: str) -> dict[str, Any]:
        """The slim snapshot of a thread: of an active run as it is now, otherwise the one that was kept."""
        run = self.slots.in_thread(self.tenant, thread_id)
        if run is not None:
            return self.serializer.serialize(run.state)
        return await self.threads.snapshot(thread_id)

    # -------------------------------------------------------------- stopping

    def run(self, run_id: str) -> LocalRun:
        """A run that is active in this process."""
        found = self.slots.named(self.tenant, run_id)
        if not found:
            raise NotFound(f"no run {run_id!r} is active here")
        return found[-1]

    @property
    def active(self) -> list[LocalRun]:
        """The runs that are active in this process."""
        return self.slots.of(self.tenant)

    async def stop(self, run_id: str, hard: bool = False, *, thread_id: str | None = None) -> Stopping:
        """End a run on any node: at the framework's next border, or at once. It ends as cancelled.

        `stopping`: the run is here and was asked. `asked`: its owner will be. `stopped`: it never began.
        """
        for run in self.slots.named(self.tenant, run_id):
            if thread_id in (None, run.thread_id):
                await run.begun()
                try:
                    await note_stop(self, run.thread_id, run_id, hard)
                    await run.stop(hard=hard)
                except UnknownRun as error:
                    raise Over(f"run {run_id!r} is over: its agent has finished") from error
                return "stopping"
        return await stop_elsewhere(self, run_id, hard, thread_id)

    async def aclose(self, *, grace: float = 10.0) -> None:
        """Shut down without losing anything: refuse new runs, wait for active ones, stop them, then cut them short.

        With `recover="continue"` they are not stopped but released, and another node resumes them. Harmless to repeat.
        """
        if self._closed is None:
            self._closed = asyncio.ensure_future(self._close(grace))
        await asyncio.shield(self._closed)

    async def _close(self, grace: float) -> None:
        self.closing = True
        if not self.tenant:
            await self.node.close()
        await self._views.aclose(grace)
        await self._drain(grace / 2)
        resumable = self.options.recover == "continue"
        if not resumable:
            for run in self.active:
                try:
                    await run.stop()
                except UnknownRun:
                    continue
            await self._drain(grace / 2)
        for run in self.active:
            await (run.release_running() if resumable else run.abandon())
        for remote in list(self.remote_runs):
            await remote.abandon()
        await self.followers.close()
        await self._out.aclose()
        if self.hub is not None:
            await self.hub.aclose()
        await self.agents.aclose()
        await self.log.close()

    async def _drain(self, seconds: float) -> None:
        waiting = [asyncio.ensure_future(run.result()) for run in self.active]
        if waiting and seconds > 0:
            await asyncio.wait(waiting, timeout=seconds)
        for each in waiting:
            each.cancel()

    def stats(self) -> dict[str, Any]:
        """The counters of all parts as plain numbers."""
        return numbers_of(self)
