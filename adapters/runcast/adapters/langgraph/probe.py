"""The callback handler that goes with an adapter's run: it reports what LangGraph's stream does not contain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar, Token
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.outputs import LLMResult
from langchain_core.runnables.config import set_config_context
from langgraph.config import get_config, get_stream_writer
from langgraph.errors import GraphBubbleUp

from runcast.adapters.langgraph.intake.manual_events import dispatched
from runcast.adapters.langgraph.stream.parts import RUN_MARK, TOKEN, Aside, is_withheld, source_of
from runcast.slim.values.type_guards import as_mapping

try:  # what `ToolRuntime.emit_output_delta` writes to; a LangGraph without it has no such deltas
    from langgraph.pregel._tools import (
        _tool_call_writer as tool_call_writer,  # pyright: ignore[reportPrivateUsage]  # there is no public name
    )
except ImportError:  # pragma: no cover  depends on the LangGraph installed
    tool_call_writer = ContextVar[Any]("runcast_tool_call_writer")

NOSTREAM = frozenset(("nostream", "langsmith:nostream"))


class Probe(BaseCallbackHandler):
    """Marks each model's chunks with its run, and reports ends, errors, retries and dispatched custom events.

    One per run. Reports go through the graph's own stream, so that their place among the parts is kept. `aside` takes
    those made outside of any node, where that stream cannot be written to. Tools are reported as the `tools` stream
    mode would report them: every handler costs a microsecond per token, and that mode is a handler.
    """

    run_inline = True

    def __init__(
        self, aside: Callable[[Aside], None], begins: Callable[[Mapping[str, Any] | None], None] | None = None
    ) -> None:
        self._aside = aside
        self._begins = begins  # called as anything begins
        self._tools: dict[
            UUID, tuple[str, Token[Any]]
        ] = {}  # running tools -> their call, their writer's token
        self._models: dict[UUID, Mapping[str, Any]] = {}  # running models -> their place
        self._attempts: dict[str, int] = {}  # checkpoint namespace of a node -> times started
        self._nodes: dict[UUID, str] = {}  # running nodes -> their checkpoint namespace
        self._inside: dict[str, Any] = {}  # checkpoint namespace of a node -> config of its callbacks

    def beside(self, callbacks: Any) -> Any:
        """The callbacks of a config, with this one."""
        if isinstance(callbacks, BaseCallbackManager):
            manager = callbacks.copy()
            manager.add_handler(self, inherit=True)
            return manager
        return [*(callbacks or ()), self]

    def _report_inside(self, place: str, type: str, data: Mapping[str, Any]) -> None:
        """Report from the context of a node's earlier attempt: the next one has no stream writer yet."""
        config = self._inside.get(place)
        if config is None:
            self._report(type, data)
            return
        with set_config_context(config) as context:
            context.run(self._report, type, data)

    def _report(self, type: str, data: Mapping[str, Any]) -> None:
        report = Aside(type, data)
        try:
            get_stream_writer()(report)
        except RuntimeError:  # not inside a node
            self._aside(report)

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
        """A model starts; LangGraph passes this dict on with each of its chunks."""
        if metadata is None:
            return
        metadata[RUN_MARK] = str(run_id)
        self._keep_config(metadata)
        self._models[run_id] = model_place(run_id, metadata, tags)

    def _keep_config(self, metadata: Mapping[str, Any]) -> None:
        """Keep the config of an active node: it leads to the node's stream writer."""
        with suppress(RuntimeError):
            self._inside[str(metadata.get("langgraph_checkpoint_ns"))] = get_config()

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """A model's final message: its id in the state, and its usage."""
        place = self._models.pop(run_id, None)
        message = final_message(response)
        if place is not None and message is not None:
            self._report("llm_end", {**place, "message": message.model_copy()})  # its node may change it

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A model failed; its text so far will not be in the state."""
        place = self._models.pop(run_id, None)
        if place is not None:
            self._report("llm_error", place)

    def on_chain_start(
        self,
        serialized: Any,
        inputs: Any,
        *,
        run_id: UUID,
        metadata: Any = None,
        **kwargs: Any,
    ) -> None:
        """A node starts, or is retried by its policy."""
        if self._begins is not None:
            self._begins(metadata)
        if not metadata or kwargs.get("name") != metadata.get("langgraph_node"):
            return
        place = str(metadata.get("langgraph_checkpoint_ns"))
        if place in self._nodes.values():
            return  # the node is a graph of the same name, or runs one: this is the graph
        self._nodes[run_id] = place
        self._attempts[place] = attempts = self._attempts.get(place, 0) + 1
        if attempts > 1:
            self._report_inside(place, "retry", {"task_id": place.rpartition(":")[2], "attempt": attempts})

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A node is done, and not retried: its config, which holds the whole run, is not needed any more."""
        self._inside.pop(self._nodes.pop(run_id, ""), None)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A node's attempt failed."""
        self._nodes.pop(run_id, None)

    def on_custom_event(
        self, name: str, data: Any, *, run_id: UUID, metadata: Any = None, **kwargs: Any
    ) -> None:
        """`dispatch_custom_event` was called."""
        event = dispatched(name, data, metadata)
        self._report(event.type, event.data)

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
        """A tool starts; from here on it can send output deltas."""
        if not metadata:
            return
        call_id = str(kwargs.get("tool_call_id") or run_id)
        self._keep_config(metadata)

        def write(delta: Any) -> None:
            self._report("tools", {"event": "tool-output-delta", "tool_call_id": call_id, "delta": delta})

        self._tools[run_id] = (call_id, tool_call_writer.set(write))
        self._report("tools", tool_started(call_id, serialized, inputs))

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A tool returned its result."""
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
        with suppress(ValueError):  # ended in another context than it started: that one is gone with its task
            tool_call_writer.reset(token)
        if data is not None:
            self._report("tools", {**data, "tool_call_id": call_id})


class TokenProbe(Probe):
    """The same beside LangGraph's event stream, which leaves out the tokens of a model that a node streams itself."""

    def __init__(
        self, aside: Callable[[Aside], None], begins: Callable[[Mapping[str, Any] | None], None] | None = None
    ) -> None:
        super().__init__(aside, begins)
        self._metadata: dict[UUID, Mapping[str, Any]] = {}

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
        """A model starts."""
        super().on_chat_model_start(
            serialized, messages, run_id=run_id, tags=tags, metadata=metadata, **kwargs
        )
        if metadata is not None and not NOSTREAM.intersection(tags or ()):
            self._metadata[run_id] = metadata

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, run_id: UUID, **kwargs: Any) -> None:
        """A chunk of a model's message."""
        message, metadata = getattr(chunk, "message", None), self._metadata.get(run_id)
        if message is not None and metadata is not None:
            self._report(TOKEN, {"chunk": message, "metadata": metadata})


def tool_started(call_id: str, serialized: Any, inputs: Any) -> dict[str, Any]:
    """A tool's start, as the `tools` stream mode reports it."""
    name = str(as_mapping(serialized).get("name") or "")
    return {"event": "tool-started", "tool_call_id": call_id, "tool_name": name, "input": inputs}


def model_place(run_id: UUID, metadata: Mapping[str, Any], tags: Any) -> dict[str, Any]:
    """The place of a model, and its name."""
    return {
        "run_id": str(run_id),
        "checkpoint_ns": metadata.get("langgraph_checkpoint_ns"),
        "provider": metadata.get("ls_provider"),
        "model": metadata.get("ls_model_name"),
        "source": source_of(metadata),
        "silent": bool(NOSTREAM.intersection(tags or ())) or is_withheld(metadata),
    }


def final_message(response: LLMResult) -> Any:
    """A chat model's final message."""
    if not response.generations or not response.generations[0]:
        return None
    return getattr(response.generations[0][0], "message", None)
