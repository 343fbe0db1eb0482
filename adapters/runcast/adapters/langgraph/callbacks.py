"""The callback handler for programs that run their graph themselves: a drop-in that emits AG-UI events."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from ag_ui.core import Event, Message, RunAgentInput
from langchain_core.messages import convert_to_messages
from langchain_core.outputs import LLMResult
from langgraph.callbacks import GraphCallbackHandler, GraphInterruptEvent
from langgraph.errors import GraphBubbleUp, GraphInterrupt

from runcast.adapters.driving.fault_log import log_failure, log_untranslated
from runcast.adapters.driving.sink_thread import Delivery, Sink
from runcast.adapters.langgraph.intake.callback_parts import CallbackParts, marked, place_of
from runcast.adapters.langgraph.intake.manual_events import dispatched
from runcast.adapters.langgraph.intake.messages import to_agui
from runcast.adapters.langgraph.options import LangGraphOptions
from runcast.adapters.langgraph.probe import final_message, model_place, tool_started
from runcast.adapters.langgraph.running.stream_rewriting import beginning, beginning_graph, rewriting
from runcast.adapters.langgraph.stream.event_redaction import AgentRedaction, RedactedTranslator
from runcast.adapters.langgraph.translator import LangGraphTranslator
from runcast.adapters.run_frame import RunIds
from runcast.adapters.translator import Translator, ending
from runcast.slim.values.type_guards import as_mapping, is_list

HIDDEN = "langsmith:hidden"


@dataclass(slots=True)
class _Run:
    """One invocation of a graph, observed from its root."""

    root: UUID
    translator: Translator[Any]
    agents: AgentRedaction
    parts: CallbackParts = field(default_factory=CallbackParts)
    inside: set[UUID] = field(default_factory=set[UUID])  # every active run id under the root
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
    runs. Emits text, reasoning, tool calls and results, steps, dispatched custom events, usage, interrupts, errors and
    the end. Callbacks show the state only as the final values: one STATE_SNAPSHOT at the end, no deltas. They do not
    show what a node writes to a StreamWriter.

    The sink is called in order from a thread of its own (a coroutine function: on the loop the graph runs on). Its
    exceptions are logged and counted, and a slow sink never blocks the graph. `flush` waits for it.
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
        self._runs: dict[UUID, _Run] = {}  # every active run id -> its invocation

    def flush(self, seconds: float | None = None) -> bool:
        """Wait until the sink has everything; False if time ran out."""
        return self.delivery.flush(seconds)

    async def aflush(self, seconds: float | None = None) -> bool:
        """The same from a coroutine."""
        return await self.delivery.aflush(seconds)

    def stats(self) -> dict[str, int]:
        """How many events were delivered, failed or dropped."""
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
        """A graph, a node, or something inside one starts."""
        with self._lock:
            run = self._runs.get(parent_run_id) if parent_run_id is not None else None
            if run is None:
                self._begin(run_id, inputs)
                return
            self._join(run, run_id)
            beginning(run.agents, metadata)
            if not metadata or kwargs.get("name") != metadata.get("langgraph_node") or HIDDEN in (tags or ()):
                return
            place = metadata.get("langgraph_checkpoint_ns")
            active = {each.get("langgraph_checkpoint_ns") for each in run.nodes.values()}
            if place not in active:  # else the node's own graph
                run.nodes[run_id] = metadata
                self._feed(run, run.parts.node_started(metadata, inputs))

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """It returned."""
        with self._lock:
            run = self._leave(run_id)
            if run is None:
                return
            if run_id == run.root:
                self._feed(run, run.parts.ended(outputs))
                self._send(run, ending(run.translator))
            elif (metadata := run.nodes.pop(run_id, None)) is not None:
                self._feed(run, run.parts.node_ended(metadata, outputs))

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """It raised."""
        with self._lock:
            run = self._leave(run_id)
            if run is None:
                return
            if run_id == run.root:
                log_failure(error)
                failed = isinstance(error, Exception)
                self._send(run, run.translator.fail(error) if failed else run.translator.cancel())
            elif (metadata := run.nodes.pop(run_id, None)) is not None:
                self._feed(run, _node_error(run.parts, metadata, error))

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
        """A model starts."""
        with self._lock:
            run = self._runs.get(parent_run_id) if parent_run_id is not None else None
            if run is None or not metadata or "langgraph_checkpoint_ns" not in metadata:
                return
            self._join(run, run_id)
            run.models[run_id] = (marked(metadata, run_id), model_place(run_id, metadata, tags))

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, run_id: UUID, **kwargs: Any) -> None:
        """A chunk of a model's message."""
        with self._lock:
            run = self._runs.get(run_id)
            message = getattr(chunk, "message", None)
            if run is None or message is None or run_id not in run.models:
                return
            metadata, place = run.models[run_id]
            if not place["silent"]:
                self._feed(run, run.parts.message(message, metadata))

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """A model's final message."""
        with self._lock:
            run = self._leave(run_id)
            message = final_message(response)
            if run is not None and message is not None and run_id in run.models:
                metadata, place = run.models.pop(run_id)
                self._feed(run, run.parts.model_ended(metadata, message, place))

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A model failed."""
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
        """A tool starts."""
        with self._lock:
            run = self._runs.get(parent_run_id) if parent_run_id is not None else None
            if run is None or not metadata or "langgraph_checkpoint_ns" not in metadata:
                return
            self._join(run, run_id)
            call_id = str(kwargs.get("tool_call_id") or run_id)
            run.tools[run_id] = (metadata, call_id)
            self._tool(run, metadata, tool_started(call_id, serialized, inputs))

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A tool returned its result."""
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
                event = dispatched(name, data, metadata)
                self._feed(run, [{"type": event.type, "ns": ns, "data": event.data}])

    def on_interrupt(self, event: GraphInterruptEvent) -> None:
        """The graph waits for answers."""
        with self._lock:
            runs = list(self._runs.values())
            if runs and not event.checkpoint_ns:
                run = self._runs.get(event.run_id) if event.run_id is not None else None
                run = run or runs[-1]
                self._feed(run, run.parts.interrupted(event.interrupts, event.checkpoint_id))

    # ------------------------------------------------------------------ inside

    def _begin(self, root: UUID, inputs: Any) -> None:
        run_id, self._run_id = self._run_id or str(root), None
        parts = CallbackParts()
        echo = RunAgentInput(
            thread_id=self._thread_id, run_id=run_id, messages=_asked(inputs, self._options, run_id)
        )
        translator = LangGraphTranslator(
            RunIds(self._thread_id, run_id),
            input=echo,
            options=self._options,
            known=parts.known(inputs),
            clock=_milliseconds,
        )
        translator.report_to(log_untranslated)
        graph = beginning_graph()
        agents = AgentRedaction(None if graph is None else rewriting(graph))
        run = _Run(root, RedactedTranslator(translator, agents), agents, parts)
        self._join(run, root)
        self._send(run, run.translator.start())

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
            self._send(run, run.translator.feed(part))

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


def _asked(inputs: Any, options: LangGraphOptions | None, run_id: str) -> list[Message]:
    """The user's new messages in a graph's input: those behind the last of the agent."""
    given = as_mapping(inputs).get((options or LangGraphOptions()).messages_key)
    try:
        messages = convert_to_messages(given if is_list(given) else [given] if given else [])
    except (RuntimeError, ValueError):  # LangChain raises either for what it cannot read
        return []  # a conversation of the graph's own kind
    asked: list[Any] = []
    for message in reversed(messages):
        if message.type != "human":
            break
        asked.append(message)
    return [
        message.model_copy(update={"id": message.id or f"{run_id}:input:{number}"})
        for number, message in enumerate(to_agui(asked[::-1]))
    ]


def _node_error(parts: CallbackParts, metadata: Mapping[str, Any], error: BaseException) -> list[Any]:
    if isinstance(error, GraphInterrupt):
        return parts.node_interrupted(metadata, list(error.args[0]) if error.args else [])
    if isinstance(error, GraphBubbleUp):
        return parts.node_ended(metadata, None)
    return parts.node_failed(metadata, error)


def _milliseconds() -> int:
    return int(time.time() * 1000)
