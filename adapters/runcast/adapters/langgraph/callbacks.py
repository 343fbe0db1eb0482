"""LangChain callbacks: what rides along with an adapter's run, and the drop-in for programs that run themselves.

`Probe` sends what the stream does not tell through the stream itself, so that its place among the parts is kept.
`LangGraphCallbacks` sees no stream at all: it tells what callbacks show, through the same translator.
"""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from ag_ui.core import Event
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import LLMResult
from langchain_core.runnables.config import set_config_context
from langgraph.callbacks import GraphCallbackHandler, GraphInterruptEvent
from langgraph.config import get_config, get_stream_writer
from langgraph.errors import GraphBubbleUp, GraphInterrupt

from runcast.adapters.delivery import Delivery, Sink
from runcast.adapters.frame import RunIds
from runcast.adapters.langgraph.encode import mapped
from runcast.adapters.langgraph.options import LangGraphOptions
from runcast.adapters.langgraph.parts import RUN_MARK, Aside
from runcast.adapters.langgraph.replays import Replay, marked, place_of
from runcast.adapters.langgraph.translator import LangGraphTranslator
from runcast.adapters.translator import ending

try:  # what `ToolRuntime.emit_output_delta` writes to; a LangGraph without it leaves those deltas untold
    from langgraph.pregel._tools import (
        _tool_call_writer as tool_call_writer,  # pyright: ignore[reportPrivateUsage]  # there is no public name
    )
except ImportError:  # pragma: no cover  depends on the LangGraph installed
    tool_call_writer = ContextVar[Any]("runcast_tool_call_writer")

NOSTREAM = frozenset(("nostream", "langsmith:nostream"))
HIDDEN = "langsmith:hidden"


class Probe(BaseCallbackHandler):
    """Marks each model's chunks with its run, and tells ends, errors, retries and dispatched custom events.

    One a run. `aside` takes what is said outside of any node, where the graph's stream cannot be written to. It
    tells of tools what the `tools` stream mode would: every handler costs a microsecond a token, and that mode is one.
    """

    run_inline = True

    def __init__(self, aside: Callable[[Aside], None]) -> None:
        self._aside = aside
        self._tools: dict[
            UUID, tuple[str, Token[Any]]
        ] = {}  # tools at work -> their call, their writer's token
        self._models: dict[UUID, Mapping[str, Any]] = {}  # model runs at work -> where
        self._attempts: dict[str, int] = {}  # checkpoint namespace of a node -> times started
        self._nodes: dict[UUID, str] = {}  # nodes at work -> their checkpoint namespace
        self._inside: dict[str, Any] = {}  # checkpoint namespace of a node -> the config its callbacks ran in

    def _tell_inside(self, place: str, type: str, data: Mapping[str, Any]) -> None:
        """Tell from where a node stood in an earlier attempt: the next one has said nothing yet."""
        config = self._inside.get(place)
        if config is None:
            self._tell(type, data)
            return
        with set_config_context(config) as context:
            context.run(self._tell, type, data)

    def _tell(self, type: str, data: Mapping[str, Any]) -> None:
        told = Aside(type, data)
        try:
            get_stream_writer()(told)
        except RuntimeError:  # not inside a node
            self._aside(told)

    def on_chat_model_start(
        self,
        serialized: Any,
        messages: Any,
        *,
        run_id: UUID,
        tags: Any = None,
        metadata: Any = None,
        **kwargs: Any,
    ) -> None:
        """A model begins; LangGraph hands this very dict along with each of its chunks."""
        if metadata is None:
            return
        metadata[RUN_MARK] = str(run_id)
        self._stands(metadata)
        self._models[run_id] = _model(run_id, metadata, tags)

    def _stands(self, metadata: Mapping[str, Any]) -> None:
        """Keep the config of a node that does something: its stream is reached through it."""
        with suppress(RuntimeError):
            self._inside[str(metadata.get("langgraph_checkpoint_ns"))] = get_config()

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """A model's final message: its id in the state, and its usage."""
        place = self._models.pop(run_id, None)
        message = _final(response)
        if place is not None and message is not None:
            self._tell("llm_end", {**place, "message": message})

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A model broke; what it said so far will not be in the state."""
        place = self._models.pop(run_id, None)
        if place is not None:
            self._tell("llm_error", place)

    def on_chain_start(
        self,
        serialized: Any,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Any = None,
        **kwargs: Any,
    ) -> None:
        """A node starts; again, when its retry policy says so."""
        if not metadata or kwargs.get("name") != metadata.get("langgraph_node"):
            return
        place = str(metadata.get("langgraph_checkpoint_ns"))
        if parent_run_id is not None and self._nodes.get(parent_run_id) == place:
            return  # the node is a graph that bears the node's name: this is the graph
        self._nodes[run_id] = place
        self._attempts[place] = attempts = self._attempts.get(place, 0) + 1
        if attempts > 1:
            self._tell_inside(place, "retry", {"task_id": place.rpartition(":")[2], "attempt": attempts})

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A node is done."""
        self._nodes.pop(run_id, None)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A node's attempt failed."""
        self._nodes.pop(run_id, None)

    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """`dispatch_custom_event` was called."""
        self._tell("custom_event", {"name": name, "data": data})

    def on_tool_start(
        self,
        serialized: Any,
        input_str: str,
        *,
        run_id: UUID,
        metadata: Any = None,
        inputs: Any = None,
        **kwargs: Any,
    ) -> None:
        """A tool begins; from here on it can send output deltas."""
        if not metadata:
            return
        call_id = str(kwargs.get("tool_call_id") or run_id)
        self._stands(metadata)

        def write(delta: Any) -> None:
            self._tell("tools", {"event": "tool-output-delta", "tool_call_id": call_id, "delta": delta})

        self._tools[run_id] = (call_id, tool_call_writer.set(write))
        self._tell("tools", tool_began(call_id, serialized, inputs))

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A tool gave its result."""
        self._tool_over(run_id, {"event": "tool-finished"})

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A tool raised; one that asks a question has not failed."""
        failed = not isinstance(error, GraphBubbleUp)
        self._tool_over(run_id, {"event": "tool-error", "message": str(error)} if failed else None)

    def _tool_over(self, run_id: UUID, data: Mapping[str, Any] | None) -> None:
        held = self._tools.pop(run_id, None)
        if held is None:
            return
        call_id, token = held
        with suppress(ValueError):  # ended in another context than it began: that one is gone with its task
            tool_call_writer.reset(token)
        if data is not None:
            self._tell("tools", {**data, "tool_call_id": call_id})


def tool_began(call_id: str, serialized: Any, inputs: Any) -> dict[str, Any]:
    """A tool's start, as the `tools` stream mode words it."""
    name = str(mapped(serialized).get("name") or "")
    return {"event": "tool-started", "tool_call_id": call_id, "tool_name": name, "input": inputs}


def _model(run_id: UUID, metadata: Mapping[str, Any], tags: Any) -> dict[str, Any]:
    """Where a model runs, and what it is."""
    return {
        "run_id": str(run_id),
        "checkpoint_ns": metadata.get("langgraph_checkpoint_ns"),
        "provider": metadata.get("ls_provider"),
        "model": metadata.get("ls_model_name"),
        "silent": bool(NOSTREAM.intersection(tags or ())),
    }


def _final(response: LLMResult) -> Any:
    """A chat model's one final message."""
    if not response.generations or not response.generations[0]:
        return None
    return getattr(response.generations[0][0], "message", None)


@dataclass(slots=True)
class _Run:
    """One invocation of a graph, watched from its root."""

    root: UUID
    translator: LangGraphTranslator
    replay: Replay = field(default_factory=Replay)
    inside: set[UUID] = field(default_factory=set[UUID])  # every run id under the root that is at work
    nodes: dict[UUID, Mapping[str, Any]] = field(default_factory=dict[UUID, Mapping[str, Any]])
    models: dict[UUID, tuple[Mapping[str, Any], dict[str, Any]]] = field(
        default_factory=dict[UUID, tuple[Mapping[str, Any], dict[str, Any]]]
    )
    tools: dict[UUID, tuple[Mapping[str, Any], str]] = field(
        default_factory=dict[UUID, tuple[Mapping[str, Any], str]]
    )
    cut: bool = False  # the sink's box was full once: the rest is dropped


class LangGraphCallbacks(GraphCallbackHandler):
    """`graph.invoke(..., config={"callbacks": [it]})`: a program that runs its graph itself, as AG-UI events.

    Works with `invoke`, `ainvoke`, `stream` and `astream`, from threads and from a running loop, for any number of
    runs. Tells text, reasoning, tool calls and results, steps, dispatched custom events, usage, interrupts, errors
    and the end. Callbacks show the state only as the final values: one STATE_SNAPSHOT at the end, no deltas; they
    do not show what a node writes to a StreamWriter.

    The sink is called in order from a thread of its own (a coroutine function: on the loop the graph runs on). What
    it raises is logged and counted, and a slow one never holds the graph up. `flush` waits for it.
    """

    run_inline = True

    def __init__(
        self,
        sink: Sink,
        *,
        thread_id: str,
        run_id: str | None = None,
        options: LangGraphOptions | None = None,
        max_waiting: int = 10_000,
    ) -> None:
        self.delivery = Delivery(sink, limit=max_waiting)
        self._thread_id = thread_id
        self._run_id = run_id  # of the first run; later ones take LangChain's own ids
        self._options = options
        self._lock = threading.RLock()  # nodes of one graph call from many threads
        self._runs: dict[UUID, _Run] = {}  # every run id at work -> the invocation it belongs to

    def flush(self, seconds: float | None = None) -> bool:
        """Wait until the sink has got everything; False when time ran out."""
        return self.delivery.flush(seconds)

    async def aflush(self, seconds: float | None = None) -> bool:
        """The same from a coroutine."""
        return await self.delivery.aflush(seconds)

    def stats(self) -> dict[str, int]:
        """What became of the events."""
        return self.delivery.stats()

    # ------------------------------------------------- LangChain asks for these

    def tap_output_aiter(self, run_id: UUID, output: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Its presence makes models stream even under `invoke`, as LangGraph's own handlers do."""
        return output

    def tap_output_iter(self, run_id: UUID, output: Iterator[Any]) -> Iterator[Any]:
        """Likewise."""
        return output

    def on_chain_start(
        self,
        serialized: Any,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: Any = None,
        metadata: Any = None,
        **kwargs: Any,
    ) -> None:
        """A graph, a node, or something inside one begins."""
        with self._lock:
            run = self._runs.get(parent_run_id) if parent_run_id is not None else None
            if run is None:
                self._begin(run_id, inputs)
                return
            self._join(run, run_id)
            if not metadata or kwargs.get("name") != metadata.get("langgraph_node") or HIDDEN in (tags or ()):
                return
            place = metadata.get("langgraph_checkpoint_ns")
            around = run.nodes.get(parent_run_id) if parent_run_id is not None else None
            if around is None or around.get("langgraph_checkpoint_ns") != place:  # else the node's own graph
                run.nodes[run_id] = metadata
                self._feed(run, run.replay.node_started(metadata, inputs))

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """It gave its result."""
        with self._lock:
            run = self._leave(run_id)
            if run is None:
                return
            if run_id == run.root:
                self._feed(run, run.replay.ended(outputs))
                self._send(run, ending(run.translator))
            elif (metadata := run.nodes.pop(run_id, None)) is not None:
                self._feed(run, run.replay.node_ended(metadata, outputs))

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """It raised."""
        with self._lock:
            run = self._leave(run_id)
            if run is None:
                return
            if run_id == run.root:
                self._send(
                    run,
                    run.translator.fail(error) if isinstance(error, Exception) else run.translator.cancel(),
                )
            elif (metadata := run.nodes.pop(run_id, None)) is not None:
                self._feed(run, _node_error(run.replay, metadata, error))

    def on_chat_model_start(
        self,
        serialized: Any,
        messages: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: Any = None,
        metadata: Any = None,
        **kwargs: Any,
    ) -> None:
        """A model begins."""
        with self._lock:
            run = self._runs.get(parent_run_id) if parent_run_id is not None else None
            if run is None or not metadata or "langgraph_checkpoint_ns" not in metadata:
                return
            self._join(run, run_id)
            run.models[run_id] = (marked(metadata, run_id), _model(run_id, metadata, tags))

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, run_id: UUID, **kwargs: Any) -> None:
        """A chunk of a model's message."""
        with self._lock:
            run = self._runs.get(run_id)
            message = getattr(chunk, "message", None)
            if run is None or message is None or run_id not in run.models:
                return
            metadata, place = run.models[run_id]
            if not place["silent"]:
                self._feed(run, run.replay.message(message, metadata))

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """A model's final message."""
        with self._lock:
            run = self._leave(run_id)
            message = _final(response)
            if run is not None and message is not None and run_id in run.models:
                metadata, place = run.models.pop(run_id)
                self._feed(run, run.replay.model_ended(metadata, message, place))

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A model broke."""
        with self._lock:
            run = self._leave(run_id)
            if run is not None and run_id in run.models:
                metadata, place = run.models.pop(run_id)
                self._feed(run, [{"type": "llm_error", "ns": place_of(metadata)[0], "data": place}])

    def on_tool_start(
        self,
        serialized: Any,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Any = None,
        inputs: Any = None,
        **kwargs: Any,
    ) -> None:
        """A tool begins."""
        with self._lock:
            run = self._runs.get(parent_run_id) if parent_run_id is not None else None
            if run is None or not metadata or "langgraph_checkpoint_ns" not in metadata:
                return
            self._join(run, run_id)
            call_id = str(kwargs.get("tool_call_id") or run_id)
            run.tools[run_id] = (metadata, call_id)
            self._tool(run, metadata, tool_began(call_id, serialized, inputs))

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A tool gave its result."""
        self._tool_over(run_id, {"event": "tool-finished"})

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A tool raised."""
        asked = isinstance(error, GraphBubbleUp)  # it waits for an answer, and runs again then
        self._tool_over(run_id, None if asked else {"event": "tool-error", "message": str(error)})

    def on_custom_event(
        self, name: str, data: Any, *, run_id: UUID, metadata: Any = None, **kwargs: Any
    ) -> None:
        """`dispatch_custom_event` was called."""
        with self._lock:
            run = self._runs.get(run_id)
            if run is not None:
                ns = place_of(metadata or {})[0]
                self._feed(run, [{"type": "custom_event", "ns": ns, "data": {"name": name, "data": data}}])

    def on_interrupt(self, event: GraphInterruptEvent) -> None:
        """The graph waits for answers."""
        with self._lock:
            runs = list(self._runs.values())
            if runs and not event.checkpoint_ns:
                run = self._runs.get(event.run_id) if event.run_id is not None else None
                run = run or runs[-1]
                self._feed(run, run.replay.interrupted(event.interrupts, event.checkpoint_id))

    # ------------------------------------------------------------------ inside

    def _begin(self, root: UUID, inputs: Any) -> None:
        run_id, self._run_id = self._run_id or str(root), None
        replay = Replay()
        translator = LangGraphTranslator(
            RunIds(self._thread_id, run_id),
            options=self._options,
            known=replay.known(inputs),
            clock=_milliseconds,
        )
        run = _Run(root, translator, replay)
        self._join(run, root)
        self._send(run, translator.start())

    def _join(self, run: _Run, run_id: UUID) -> None:
        run.inside.add(run_id)
        self._runs[run_id] = run

    def _leave(self, run_id: UUID) -> _Run | None:
        run = self._runs.pop(run_id, None)
        if run is not None:
            run.inside.discard(run_id)
            if run_id == run.root:
                for each in run.inside:
                    self._runs.pop(each, None)
        return run

    def _feed(self, run: _Run, parts: list[Any]) -> None:
        for part in parts:
            try:
                events = run.translator.feed(part)
            except Exception as error:  # noqa: BLE001  a fault of the picture must not become one of the program
                self._send(run, run.translator.fail(error))
                run.cut = True
                return
            self._send(run, events)

    def _send(self, run: _Run, events: list[Event]) -> None:
        for event in events:
            if run.cut:
                self.delivery.dropped += 1
            else:
                run.cut = not self.delivery.send(event)

    def _tool(self, run: _Run, metadata: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        self._feed(run, [{"type": "tools", "ns": place_of(metadata)[0], "data": data}])

    def _tool_over(self, run_id: UUID, data: Mapping[str, Any] | None) -> None:
        with self._lock:
            run = self._leave(run_id)
            if run is not None and run_id in run.tools:
                metadata, call_id = run.tools.pop(run_id)
                if data is not None:
                    self._tool(run, metadata, {**data, "tool_call_id": call_id})


def _node_error(replay: Replay, metadata: Mapping[str, Any], error: BaseException) -> list[Any]:
    if isinstance(error, GraphInterrupt):
        return replay.node_interrupted(metadata, list(error.args[0]) if error.args else [])
    if isinstance(error, GraphBubbleUp):
        return replay.node_ended(metadata, None)
    return replay.node_failed(metadata, error)


def _milliseconds() -> int:
    return int(time.time() * 1000)
