"""A compiled LangGraph graph as something a host can run, stop and resume.

The shell around `LangGraphTranslator`: it reads the thread where it must, builds the graph's input and config,
starts the stream, and keeps the runs that are active. It knows LangGraph's API; what parts mean it does not know.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from ag_ui.core import AgentCapabilities, Event, Interrupt, RunAgentInput
from langchain_core.callbacks import BaseCallbackManager
from langchain_core.messages import AIMessageChunk, convert_to_messages
from langgraph.pregel import Pregel
from langgraph.runtime import RunControl
from langgraph.types import Command

from runcast.adapters.adapter import ResumePoint
from runcast.adapters.errors import InvalidInput, ThreadBusy, UnknownRun
from runcast.adapters.frame import RunIds
from runcast.adapters.langgraph.abilities import capabilities
from runcast.adapters.langgraph.callbacks import Probe
from runcast.adapters.langgraph.encode import mapped
from runcast.adapters.langgraph.history import (
    ALL_ROLES,
    Plan,
    Thread,
    plan,
    recalled,
    resumed_from,
    said_by_client,
    said_by_graph,
    told_before,
)
from runcast.adapters.langgraph.interrupts import BREAKPOINT, to_interrupt
from runcast.adapters.langgraph.messages import to_agui, to_langchain
from runcast.adapters.langgraph.options import LangGraphOptions
from runcast.adapters.langgraph.parts import messages_of
from runcast.adapters.langgraph.review import Review
from runcast.adapters.langgraph.standing import Standing
from runcast.adapters.langgraph.state import as_mapping
from runcast.adapters.langgraph.translator import CHECKPOINTS, STREAM_MODES, LangGraphTranslator
from runcast.adapters.pump import Pump
from runcast.adapters.translator import translate_sync

TURN = "runcast_turn"  # in a checkpoint's metadata: the user message its run began with
RUN = "runcast_run_id"
PARENT = "runcast_parent_run_id"
CLIENT = "ag_ui"  # in `config["configurable"]`: what the client sent beside messages


@dataclass(slots=True, eq=False)
class _Job:
    """A run: registered first, then prepared."""

    pump: Pump[Any] | None = None
    control: RunControl = field(default_factory=RunControl)
    input: Any = None
    config: dict[str, Any] = field(default_factory=dict[str, Any])
    # what the graph is told again, because it holds nothing of the thread
    recalled: ResumePoint | None = None
    standing: Standing = field(default_factory=Standing)


class LangGraphAdapter:
    """Runs a graph. One adapter serves any number of threads at once; of one thread, one run at a time.

    `config` is the graph's own, merged under each run's; `context` goes to the graph as it is; `state_keys` are the
    channels a client may see (all but the conversation when None); `raw` adds RAW events with the native parts.
    The client's tools, context and forwarded properties reach nodes as `config["configurable"]["ag_ui"]`.
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
        self._config = dict(config or {})
        self._context = context
        self._state_keys = state_keys
        self._raw = raw
        self._options = options or LangGraphOptions()
        self._local = isinstance(graph, Pregel)  # else a RemoteGraph: no run control, its own checkpointer
        self._stores = not self._local or graph.checkpointer not in (None, False, True)
        self.settles = self._stores  # what a broken run had half said, by what is stored
        self._active: dict[str, _Job] = {}  # by run id
        self._busy: dict[str, str] = {}  # thread id -> its active run

    @property
    def saver(self) -> Any:
        """What keeps the graph's checkpoints; None where nothing does, True where a remote graph has its own."""
        return (self.graph.checkpointer or None) if self._local else True

    @property
    def durability(self) -> Literal["sync", "async", "exit"] | None:
        """When they are written; None leaves it to the graph."""
        return self._options.durability

    # ---------------------------------------------------------------- running

    def run(self, input: RunAgentInput, *, resume: ResumePoint | None = None) -> AsyncGenerator[Event, None]:
        """One run. Bad input is told as RUN_ERROR before the graph starts. Close the iterator to stop the run."""
        job = _Job()
        job.pump = Pump(
            lambda: self._open(input, resume, job),
            limit=self._options.max_queue,
            closed=lambda: self._leave(input, job),
        )
        return job.pump.events()

    async def _open(
        self, input: RunAgentInput, resume: ResumePoint | None, job: _Job
    ) -> tuple[AsyncIterator[Any], LangGraphTranslator]:
        try:
            self._enter(input, job)
            translator = await self._prepare(input, resume, job)
        except Exception as error:  # noqa: BLE001  a checkpointer that fails is told like a graph that fails
            return _refused(error), self._refusing(input)
        stream = self.graph.astream(job.input, job.config, **self._arguments(job))
        return stream if self._local else _revived(stream), translator

    def run_sync(self, input: RunAgentInput, *, resume: ResumePoint | None = None) -> Iterator[Event]:
        """One run of a graph whose nodes or checkpointer are synchronous, on the caller's own thread."""
        job = _Job()
        try:
            try:
                self._enter(input, job)
                translator = self._prepare_sync(input, resume, job)
            except Exception as error:  # noqa: BLE001  a checkpointer that fails is told like a graph that fails
                refusing = self._refusing(input)
                yield from refusing.start()
                yield from refusing.fail(error)
                return
            yield from translate_sync(
                self.graph.stream(job.input, job.config, **self._arguments(job)), translator
            )
        finally:
            self._leave(input, job)

    async def stop(self, run_id: str, *, hard: bool = False) -> None:
        """End a run: when its present step is done, or at once when `hard`. Either way it ends as cancelled."""
        job = self._active.get(run_id)
        if job is None:
            raise UnknownRun(f"no run {run_id!r} is active here")
        job.control.request_drain("stopped")
        if job.pump is not None and (hard or not self._local):
            job.pump.cancel()

    def capabilities(self) -> AgentCapabilities:
        """What this agent can do."""
        return capabilities(self.graph, name=self.name, stores=self._stores)

    def stats(self) -> dict[str, Any]:
        """The runs that are active, and how the boxes of lagging readers fare."""
        pumps = {run_id: job.pump for run_id, job in self._active.items()}
        return {
            "active": len(self._active),
            "boxes": {run_id: pump.box.stats() for run_id, pump in pumps.items() if pump is not None},
        }

    # -------------------------------------------------------------- preparing

    def _enter(self, input: RunAgentInput, job: _Job) -> None:
        if input.run_id in self._active:
            raise ThreadBusy(f"run {input.run_id!r} is active already: give every run an id of its own")
        if self._stores and input.thread_id in self._busy:
            other = self._busy[input.thread_id]
            raise ThreadBusy(f"run {other!r} of this thread is active: wait for it, or stop it")
        self._active[input.run_id] = job
        self._busy.setdefault(input.thread_id, input.run_id)

    def _leave(self, input: RunAgentInput, job: _Job) -> None:
        if self._active.get(input.run_id) is not job:
            return  # refused, because another run of this id is active
        del self._active[input.run_id]
        if self._busy.get(input.thread_id) == input.run_id:
            del self._busy[input.thread_id]

    def _refusing(self, input: RunAgentInput) -> LangGraphTranslator:
        return self._translator(
            input.model_copy(
                update={"messages": [each for each in input.messages[-1:] if each.role in ALL_ROLES]}
            )
        )

    async def _prepare(
        self, input: RunAgentInput, resume: ResumePoint | None, job: _Job
    ) -> LangGraphTranslator:
        thread, state = self._snapshot(resume), None
        if self._stores and (thread is None or (thread.unfinished and self._local)):
            state = await self.graph.aget_state(self._where(input))
            thread = self._found(state, thread)
        elif (
            self._may_be_gone(thread) and await self.graph.checkpointer.aget_tuple(self._where(input)) is None
        ):
            thread = None
        job.recalled = resume if thread is None else None
        asked = plan(recalled(input, job.recalled), thread, self._options, now=datetime.now(UTC))
        fork = None
        if asked.before is not None:
            found = self.graph.checkpointer.alist(self._where(input), filter=_turn(asked.before), limit=1)
            async for checkpoint in found:
                fork = checkpoint
        review = Review(input, resume, job.recalled, state, self._options)
        for namespace in review.wanted(asked.ask) if self._local else ():
            review.add(namespace, await self.graph.checkpointer.aget_tuple(self._where(input, namespace)))
        job.standing = review.standing(asked.ask, asked.messages)
        return self._prepared(input, thread, asked, fork, job)

    def _prepare_sync(
        self, input: RunAgentInput, resume: ResumePoint | None, job: _Job
    ) -> LangGraphTranslator:
        thread, state = self._snapshot(resume), None
        if self._stores and (thread is None or (thread.unfinished and self._local)):
            state = self.graph.get_state(self._where(input))
            thread = self._found(state, thread)
        elif self._may_be_gone(thread) and self.graph.checkpointer.get_tuple(self._where(input)) is None:
            thread = None
        job.recalled = resume if thread is None else None
        asked = plan(recalled(input, job.recalled), thread, self._options, now=datetime.now(UTC))
        fork = None
        if asked.before is not None:
            found = self.graph.checkpointer.list(self._where(input), filter=_turn(asked.before), limit=1)
            fork = next(iter(found), None)
        review = Review(input, resume, job.recalled, state, self._options)
        for namespace in review.wanted(asked.ask) if self._local else ():
            review.add(namespace, self.graph.checkpointer.get_tuple(self._where(input, namespace)))
        job.standing = review.standing(asked.ask, asked.messages)
        return self._prepared(input, thread, asked, fork, job)

    def _where(self, input: RunAgentInput, namespace: str = "") -> dict[str, Any]:
        configurable = {**self._config.get("configurable", {}), "thread_id": input.thread_id}
        if namespace:
            configurable["checkpoint_ns"] = namespace
        return {"configurable": configurable}

    def _may_be_gone(self, thread: Thread | None) -> bool:
        """Whether to look that a snapshot's checkpoint is still there: it may be pruned, or the checkpointer new.

        Of a thread that ended well the bare tuple is read, which costs less than a state. A remote graph keeps its
        checkpoints where none are seen.
        """
        return thread is not None and self._local

    def _found(self, state: Any, told: Thread | None) -> Thread | None:
        """The thread as the checkpointer or the snapshot tells it; None for a snapshot whose checkpoint is gone."""
        if told is None:
            return self._thread(state)
        return None if _checkpoint_of(state) is None else told

    def _snapshot(self, resume: ResumePoint | None) -> Thread | None:
        """The thread as a snapshot tells it: no state is read then."""
        if resume is None or not self._stores:
            return None
        checkpoint_id = resume.framework.get("checkpoint_id")
        return Thread(
            said_by_client(resume.messages),
            resume.interrupts,
            unfinished=bool(resume.framework.get("unfinished", checkpoint_id is not None)),
            checkpoint_id=checkpoint_id,
            aliases=mapped(resume.framework.get("aliases")),
            pointed=True,
        )

    def _thread(self, state: Any) -> Thread:
        """The thread as the checkpointer tells it."""
        messages = messages_of(state.values, self._options.messages_key) or []
        checkpoint_id = _checkpoint_of(state)
        interrupts = [to_interrupt(each) for each in state.interrupts]
        if state.next and not interrupts:
            interrupts = [Interrupt(id=f"{BREAKPOINT}{checkpoint_id}", reason="breakpoint")]
        return Thread(said_by_graph(messages), interrupts, bool(state.next), checkpoint_id)

    def _prepared(
        self, input: RunAgentInput, thread: Thread | None, asked: Plan, fork: Any, job: _Job
    ) -> LangGraphTranslator:
        if asked.before is not None and fork is None:
            raise InvalidInput(
                f"no checkpoint was recorded before message {asked.before!r}: it cannot be answered again or edited"
            )
        aliases: Mapping[str, str] = thread.aliases if thread is not None else {}
        echo, told = input.model_copy(update={"messages": list(asked.messages)}), input.messages
        resumed = resumed_from(asked, thread)
        if job.recalled is not None:  # its messages are history: they go to the graph, and are not said anew
            echo, told, resumed = input, list(asked.messages), "snapshot"
        standing = job.standing
        known = told_before(told, thread, asked) | {message.id for message in standing.instead}
        translator = self._translator(
            echo, known=known - set(standing.gone), aliases=aliases, resumed=resumed, standing=standing
        )
        job.input = self._graph_input(input, asked, aliases, job.recalled)
        job.config = self._run_config(input, asked, Probe(translator.asides.append), fork)
        return translator

    def _translator(
        self,
        input: RunAgentInput,
        *,
        known: Collection[str] = (),
        aliases: Mapping[str, str] | None = None,
        resumed: str | None = None,
        standing: Standing = Standing(),  # noqa: B008  # frozen
    ) -> LangGraphTranslator:
        return LangGraphTranslator(
            RunIds(input.thread_id, input.run_id, input.parent_run_id),
            agent=self.name,
            input=input,
            options=self._options,
            state_keys=self._state_keys,
            raw=self._raw,
            known=known,
            aliases=aliases,
            resumed_from=resumed,
            to_messages=to_agui,
            clock=_milliseconds,
            shown=standing.shown,
            gone=standing.gone,
            instead=standing.instead,
        )

    def _graph_input(
        self, input: RunAgentInput, asked: Plan, aliases: Mapping[str, str], recalled: ResumePoint | None
    ) -> Any:
        if asked.ask == "continue":
            return None
        values: dict[str, Any] = (
            {} if recalled is None or not self._local else _allowed(recalled.state, self.graph.channels)
        )
        if asked.messages or asked.ask == "start":
            messages = to_langchain(asked.messages)
            for message in messages:
                message.id = aliases.get(str(message.id), message.id)
            values[self._options.messages_key] = messages
        values |= _allowed(input.state, self._options.input_state_keys)
        values |= _allowed(input.forwarded_props, self._options.forwarded_keys)
        if asked.ask != "resume":
            return values
        if asked.answers is None:  # a breakpoint: only go on
            return Command(update=values) if values else None
        return Command(resume=dict(asked.answers), update=values or None)

    def _run_config(self, input: RunAgentInput, asked: Plan, probe: Probe, fork: Any) -> dict[str, Any]:
        config = {**self._config, **self._where(input)}
        config["configurable"][CLIENT] = {
            "tools": [tool.model_dump(by_alias=True) for tool in input.tools or ()],
            "context": [each.model_dump(by_alias=True) for each in input.context or ()],
            "forwarded_props": input.forwarded_props,
        }
        if fork is not None:
            base = fork.parent_config or fork.config
            config["configurable"]["checkpoint_id"] = base["configurable"]["checkpoint_id"]
        turn = next((message.id for message in asked.messages if message.role == "user"), None)
        noted = {RUN: input.run_id, PARENT: input.parent_run_id, TURN: turn}
        config["metadata"] = {
            **self._config.get("metadata", {}),
            **{key: value for key, value in noted.items() if value is not None},
        }
        config["callbacks"] = _with_probe(self._config.get("callbacks"), probe)
        return config

    # -------------------------------------------------------------- streaming

    def _arguments(self, job: _Job) -> dict[str, Any]:
        modes = [mode for mode in STREAM_MODES if mode != "tools"]  # the probe tells of tools
        if self._stores:
            modes.append(CHECKPOINTS)
        given: dict[str, Any] = {"stream_mode": modes, "subgraphs": self._options.subgraphs, "version": "v2"}
        if self._context is not None:
            given["context"] = self._context
        if self._local:
            given["control"] = job.control
            if self._options.durability is not None and self._stores:
                given["durability"] = self._options.durability
        return given


def _checkpoint_of(state: Any) -> Any:
    """The id of the checkpoint a state was read from; None where there is none."""
    return mapped(mapped(state.config).get("configurable")).get("checkpoint_id")


async def _refused(error: Exception) -> AsyncGenerator[Any, None]:
    """The parts of a run that may not start."""
    for _ in range(1):
        raise error
    yield None


async def _revived(stream: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
    """A remote graph's parts: its messages come as JSON."""
    async for part in stream:
        if part["type"] == "messages" and isinstance(part["data"][0], Mapping):
            message, meta = part["data"]
            yield {**part, "data": (_revive(message), meta)}
        else:
            yield part


def _revive(message: Mapping[str, Any]) -> Any:
    if message.get("type") == "AIMessageChunk":
        return AIMessageChunk(**{key: value for key, value in message.items() if key != "type"})
    return convert_to_messages([dict(message)])[0]


def _with_probe(callbacks: Any, probe: Probe) -> Any:
    if isinstance(callbacks, BaseCallbackManager):
        manager = callbacks.copy()
        manager.add_handler(probe, inherit=True)
        return manager
    return [*(callbacks or ()), probe]


def _allowed(values: Any, keys: Collection[str]) -> dict[str, Any]:
    held = as_mapping(values) or {}
    return {key: held[key] for key in keys if key in held}


def _turn(message_id: str) -> dict[str, Any]:
    return {"source": "input", TURN: message_id}


def _milliseconds() -> int:
    return int(time.time() * 1000)
