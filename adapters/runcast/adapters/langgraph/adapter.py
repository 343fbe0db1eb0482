"""A compiled LangGraph graph as something a host can run, stop and resume.

The shell around `LangGraphTranslator`: it has each run prepared (`Preparation`), starts the graph's stream, and keeps
the active runs. It does not know what the stream's parts mean.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, Unpack

from ag_ui.core import AgentCapabilities, Event, RunAgentInput

from runcast.adapters.adapter import Drawing, ResumePoint, Take
from runcast.adapters.client_schemas import AgentSchemas
from runcast.adapters.driving.fault_log import log_failure, log_untranslated
from runcast.adapters.driving.pump import Pump
from runcast.adapters.errors import ThreadBusy, UnknownRun
from runcast.adapters.langgraph.capabilities import (
    capabilities,
    completed,
    drawing,
    for_client,
    schemas,
    steers,
)
from runcast.adapters.langgraph.graph_stream import Call, GraphStream
from runcast.adapters.langgraph.intake.messages import to_agui
from runcast.adapters.langgraph.intake.plan import ALL_ROLES
from runcast.adapters.langgraph.options import ClientFields, LangGraphOptions
from runcast.adapters.langgraph.preparation import Preparation, Prepared
from runcast.adapters.langgraph.running.kept_checkpoints import KeptCheckpoints
from runcast.adapters.langgraph.running.stream_rewriting import beginning, rewriting, rewriting_inside
from runcast.adapters.langgraph.stream.event_redaction import AgentRedaction, RedactedTranslator
from runcast.adapters.langgraph.translator import LangGraphTranslator
from runcast.adapters.run_frame import RunIds
from runcast.adapters.translator import Translator, translate_sync

logger = logging.getLogger("runcast.adapters.langgraph")


@dataclass(slots=True, eq=False)
class _Job:
    """A run: registered first, then prepared."""

    pump: Pump[Any] | None = None
    call: Call = field(default_factory=Call)
    left: str | None = None  # the checkpoint at which the thread's last run left it
    agents: AgentRedaction | None = None  # None until it is prepared


class LangGraphAdapter:
    """Runs a graph. One adapter serves any number of threads at once; of one thread, one run at a time.

    `config` is the graph's own, merged under each run's; `context` fills the graph's `context_schema`; `state_keys` are the
    channels a client may see (None: those of the graph's output); `raw` adds RAW events with the native parts. The client's
    tools, context and forwarded properties reach nodes as `config["configurable"]["ag_ui"]`.
    """

    def __init__(
        self,
        graph: Any,
        *,
        name: str = "agent",
        config: Mapping[str, Any] | None = None,
        context: Any = None,
        state_keys: Collection[str] | None = None,
        raw: bool = False,
        options: LangGraphOptions | None = None,
    ) -> None:
        self.name = name
        self.graph = graph
        self._state_keys = _output_keys(graph, for_client(graph)) if state_keys is None else state_keys
        self._raw = raw
        self._options = completed(graph, options or LangGraphOptions())
        self._rewrite, self._rewrite_inside = rewriting(graph), rewriting_inside(graph)
        self._preparation = Preparation(
            graph, dict(config or {}), self._options, context, self.schemas, rewrite=self._rewrite
        )
        self._stream = GraphStream(
            graph, self._options, stores=self._preparation.stores, local=self._preparation.local
        )
        self._active: dict[str, _Job] = {}  # by run id
        self._busy: dict[str, str] = {}  # thread id -> its active run

    @property
    def reconciles_history(self) -> bool:
        """Unfinished messages of a failed run are corrected by the graph's checkpoints, if it has any."""
        return self._preparation.stores

    @property
    def saver(self) -> Any:
        """What keeps the graph's checkpoints; None if nothing does, True if a remote graph has its own."""
        return (self.graph.checkpointer or None) if self._preparation.local else True

    @property
    def durability(self) -> Literal["sync", "async", "exit"] | None:
        """When checkpoints are written; None leaves it to the graph."""
        return self._options.durability

    async def forget(self, thread_id: str) -> None:
        """Delete the thread's checkpoints, of subgraphs too. A remote graph keeps its own: delete them there."""
        await self.kept.forget(thread_id)

    @property
    def kept(self) -> KeptCheckpoints:
        """The checkpoints of threads, as they move to another store."""
        return KeptCheckpoints(self.saver, self._options.import_types)

    def run(self, input: RunAgentInput, *, resume: ResumePoint | None = None) -> AsyncIterator[Event]:
        """One run; a refused one is RUN_STARTED and RUN_ERROR, and touches nothing."""
        return self.run_after({}, input, resume=resume)

    def run_after(
        self, place: Mapping[str, Any], input: RunAgentInput, *, resume: ResumePoint | None = None
    ) -> AsyncIterator[Event]:
        """As `run`, of a thread that its last run left at this place: what an earlier run has stored since is passed over."""
        job = _Job()
        job.left = place.get("checkpoint_id")
        job.pump = Pump(
            lambda: self._open(input, resume, job),
            limit=self._options.max_queue,
            closed=lambda: self._leave(input, job),
        )
        return job.pump.events()

    async def _open(
        self, input: RunAgentInput, resume: ResumePoint | None, job: _Job
    ) -> tuple[AsyncIterator[Any], Translator[Any]]:
        try:
            self._enter(input, job)
            translator = await self._prepare(input, resume, job)
        except Exception as error:  # noqa: BLE001  a failing checkpointer is reported like a failing graph
            return _refused(error), self._shown(self._refusing(input), job)
        return self._stream.parts(job.call), self._shown(translator, job)

    def run_sync(self, input: RunAgentInput, *, resume: ResumePoint | None = None) -> Iterator[Event]:
        """One run of a graph with synchronous nodes or checkpointer, on the caller's own thread."""
        job = _Job()
        try:
            try:
                self._enter(input, job)
                translator = self._prepare_sync(input, resume, job)
            except Exception as error:  # noqa: BLE001  a failing checkpointer is reported like a failing graph
                refusing = self._shown(self._refusing(input), job)
                yield from refusing.start()
                yield from refusing.fail(error)
                return
            shown = self._shown(translator, job)
            yield from translate_sync(_logged(self._stream.parts_sync(job.call)), shown)
        finally:
            self._leave(input, job)

    async def stop(self, run_id: str, *, hard: bool = False) -> None:
        """End a run as cancelled: after its present step, or at once if `hard`."""
        job = self._active.get(run_id)
        if job is None:
            raise UnknownRun(f"no run {run_id!r} is active here")
        job.call.control.request_drain("stopped")
        if job.pump is not None and (hard or not self._preparation.local):
            job.pump.cancel()

    async def steer(self, run_id: str, take: Take) -> None:
        """Hand the graph what `take` gives, between two of its own steps where every call has its result."""
        job = self._active.get(run_id)
        if job is None:
            raise UnknownRun(f"no run {run_id!r} is active here")
        if self._steers:
            job.call.control.take = take

    @cached_property
    def _steers(self) -> bool:
        return self._preparation.local and self._preparation.stores and steers(self.graph, self._options)

    def capabilities(self) -> AgentCapabilities:
        """What this agent can do."""
        stores, files = self._preparation.stores, self._options.files
        return capabilities(self.graph, name=self.name, stores=stores, files=files, steers=self._steers)

    def drawing(self) -> Drawing:
        """The graph, as it draws itself; a graph on another server is not asked."""
        try:
            return drawing(self.graph) if self._preparation.local else Drawing()
        except Exception:
            logger.info("graph %s cannot be drawn", self.name, exc_info=True)
            return Drawing()

    def schemas(self) -> AgentSchemas:
        """What a client may send beside messages, and the state it sees."""
        return self._schemas

    @cached_property
    def _schemas(self) -> AgentSchemas:
        return schemas(self.graph, keys=self._state_keys, options=self._options)

    def stats(self) -> dict[str, Any]:
        """The active runs, and the counters of the boxes of slow readers."""
        pumps = {run_id: job.pump for run_id, job in self._active.items()}
        return {
            "active": len(self._active),
            "boxes": {run_id: pump.box.stats() for run_id, pump in pumps.items() if pump is not None},
        }

    # -------------------------------------------------------------- preparing

    def _enter(self, input: RunAgentInput, job: _Job) -> None:
        if input.run_id in self._active:
            raise ThreadBusy(f"run {input.run_id!r} is active already: give every run an id of its own")
        if self._preparation.stores and input.thread_id in self._busy:
            other = self._busy[input.thread_id]
            raise ThreadBusy(f"run {other!r} of this thread is active: wait for it, or stop it")
        self._active[input.run_id] = job
        self._busy.setdefault(input.thread_id, input.run_id)

    def _leave(self, input: RunAgentInput, job: _Job) -> None:
        job.pump = None  # which holds the job
        if self._active.get(input.run_id) is not job:
            return  # refused, because another run of this id is active
        del self._active[input.run_id]
        if self._busy.get(input.thread_id) == input.run_id:
            del self._busy[input.thread_id]

    def _refusing(self, input: RunAgentInput) -> LangGraphTranslator:
        shown = [each for each in input.messages[-1:] if each.role in ALL_ROLES]
        return self._translator(input.model_copy(update={"messages": shown}))

    async def _prepare(
        self, input: RunAgentInput, resume: ResumePoint | None, job: _Job
    ) -> LangGraphTranslator:
        steps, found = self._preparation.steps(input, resume, job.left), None
        while True:
            try:
                read = steps.send(found)
            except StopIteration as done:
                return self._prepared(done.value, job)
            found = await read.result()

    def _prepare_sync(
        self, input: RunAgentInput, resume: ResumePoint | None, job: _Job
    ) -> LangGraphTranslator:
        steps, found = self._preparation.steps(input, resume, job.left), None
        while True:
            try:
                read = steps.send(found)
            except StopIteration as done:
                return self._prepared(done.value, job)
            found = read.wait()

    def _prepared(self, prepared: Prepared, job: _Job) -> LangGraphTranslator:
        translator = self._translator(prepared.echo, **prepared.client)
        job.agents = agents = AgentRedaction(
            self._rewrite, *self._rewrite_inside, prepared.client.get("shown") or ()
        )
        probe = self._stream.probe(translator.asides.append, partial(beginning, agents))
        job.call.input, job.call.context = prepared.input, prepared.context
        job.call.config = self._preparation.config(prepared, probe)
        job.call.control.waits, job.call.handed = prepared.waits, translator.handed
        return translator

    def _shown(self, translator: LangGraphTranslator, job: _Job) -> Translator[Any]:
        """The translator, with events that may be seen."""
        return RedactedTranslator(translator, job.agents or AgentRedaction(self._rewrite))

    def _translator(self, input: RunAgentInput, **client: Unpack[ClientFields]) -> LangGraphTranslator:
        client["answerable"] = self._preparation.stores
        client["breakpoints"] = self._preparation.has_breakpoints
        translator = LangGraphTranslator(
            RunIds(input.thread_id, input.run_id, input.parent_run_id),
            agent=self.name,
            input=input,
            options=self._options,
            state_keys=self._state_keys,
            raw=self._raw,
            to_messages=to_agui,
            clock=_milliseconds,
            **client,
        )
        translator.report_to(log_untranslated)
        return translator


def _output_keys(graph: Any, sent: Collection[str]) -> Collection[str] | None:
    """The channels that `ainvoke` would return, without what the client `sent`: the others are not for clients."""
    keys = getattr(graph, "output_channels", None)
    return None if keys is None or isinstance(keys, str) else [key for key in keys if key not in sent]


async def _refused(error: Exception) -> AsyncGenerator[Any, None]:
    """The parts of a run that may not start."""
    for _ in range(1):
        raise error
    yield None


def _logged(parts: Iterator[Any]) -> Iterator[Any]:
    """A synchronous graph's parts; its failure is logged, as `Pump` logs an asynchronous one's."""
    try:
        yield from parts
    except Exception as error:
        log_failure(error)
        raise


def _milliseconds() -> int:
    return int(time.time() * 1000)
