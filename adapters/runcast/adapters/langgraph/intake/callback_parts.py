"""LangChain's callbacks as the parts that a stream would have had.

Knows a node's metadata and builds parts for `LangGraphTranslator`; it does not know events. Each message becomes one
part: a node returns again what its model has emitted, together with its history.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from runcast.adapters.langgraph.content.plain_values import listed
from runcast.adapters.langgraph.stream.graph_state import as_state
from runcast.adapters.langgraph.stream.parts import RUN_MARK, SEPARATOR, Aside, Namespace, task_of


def place_of(metadata: Mapping[str, Any]) -> tuple[Namespace, str]:
    """The namespace of the graph a callback's node belongs to, and the node's own task id."""
    segments = tuple(str(metadata.get("langgraph_checkpoint_ns") or "").split(SEPARATOR))
    return segments[:-1], task_of(segments[-1])


def messages_in(output: Any) -> Iterator[Any]:
    """Every message in a node's return value: bare, in a list, in a state update, in commands."""
    if hasattr(output, "update") and hasattr(output, "goto"):  # a Command
        yield from messages_in(output.update)
    elif _is_message(output):
        yield output
    elif (several := listed(output)) is not None:
        for each in several:
            yield from messages_in(each)
    else:
        for value in (as_state(output) or {}).values():
            if _is_message(value):
                yield value
            for each in listed(value) or ():
                if _is_message(each):
                    yield each


def _is_message(value: Any) -> bool:
    return hasattr(value, "content") and hasattr(value, "type") and hasattr(value, "response_metadata")


class CallbackParts:
    """The parts of one run."""

    def __init__(self) -> None:
        self._seen: set[str] = set()  # ids of messages that have their part, or are history
        self._failed: dict[str, BaseException] = {}  # task -> the error of its last attempt
        self.asked = False  # the interrupt part was built

    def known(self, values: Any) -> list[str]:
        """The messages in a node's or a run's input are history."""
        ids = [str(message.id) for message in messages_in(values) if message.id is not None]
        self._seen.update(ids)
        return ids

    def node_started(self, metadata: Mapping[str, Any], values: Any) -> list[Any]:
        """A node starts, or is retried."""
        ns, task_id = place_of(metadata)
        self.known(values)
        if self._failed.pop(task_id, None) is not None:
            return [{"type": "custom", "ns": ns, "data": Aside("retry", {"task_id": task_id})}]
        agent = metadata.get("lc_agent_name")
        data: dict[str, Any] = {
            "id": task_id,
            "name": metadata["langgraph_node"],
            "input": values,
            "triggers": (),
        }
        if agent is not None:
            data["metadata"] = {"lc_agent_name": agent}
        return [{"type": "tasks", "ns": ns, "data": data}]

    def node_ended(self, metadata: Mapping[str, Any], output: Any) -> list[Any]:
        """A node returned."""
        ns, _ = place_of(metadata)
        parts: list[Any] = []
        for message in messages_in(output):
            if message.id is not None and message.id not in self._seen:
                parts += self.message(message, metadata)
        parts.append({"type": "updates", "ns": ns, "data": {metadata["langgraph_node"]: output}})
        return [*parts, self._task_end(metadata)]

    def node_failed(self, metadata: Mapping[str, Any], error: BaseException) -> list[Any]:
        """A node raised; whether it is retried is not known yet."""
        self._failed[place_of(metadata)[1]] = error
        return []

    def node_interrupted(self, metadata: Mapping[str, Any], interrupts: list[Any]) -> list[Any]:
        """A node asked a question."""
        asked = [{"id": each.id, "value": each.value} for each in interrupts]
        return [self._task_end(metadata, interrupts=asked)]

    def _task_end(self, metadata: Mapping[str, Any], interrupts: list[Any] | None = None) -> Any:
        ns, task_id = place_of(metadata)
        data = {
            "id": task_id,
            "name": metadata["langgraph_node"],
            "error": None,
            "interrupts": interrupts or [],
        }
        return {"type": "tasks", "ns": ns, "data": data}

    def message(self, message: Any, metadata: Mapping[str, Any]) -> list[Any]:
        """A chunk, or a whole message."""
        if message.id is not None:
            self._seen.add(message.id)
        return [{"type": "messages", "ns": place_of(metadata)[0], "data": (message, metadata)}]

    def model_ended(self, metadata: Mapping[str, Any], message: Any, place: Mapping[str, Any]) -> list[Any]:
        """A model's final message: as a part of its own if it was not streamed."""
        parts = [] if message.id in self._seen or place["silent"] else self.message(message, metadata)
        return [
            *parts,
            {
                "type": "custom",
                "ns": place_of(metadata)[0],
                "data": Aside("llm_end", {**place, "message": message}),
            },
        ]

    def interrupted(self, interrupts: Any, checkpoint_id: str | None) -> list[Any]:
        """The run waits for answers."""
        if self.asked:
            return []
        self.asked = True
        parts: list[Any] = [{"type": "updates", "ns": (), "data": {"__interrupt__": tuple(interrupts)}}]
        if checkpoint_id is not None:
            config = {"configurable": {"checkpoint_id": checkpoint_id}}
            parts.append({"type": "checkpoints", "ns": (), "data": {"config": config, "next": ()}})
        return parts

    def ended(self, output: Any) -> list[Any]:
        """The run returned its final values."""
        values = as_state(output)
        if values is None or "__interrupt__" not in values:
            return [{"type": "values", "ns": (), "data": output}]
        shown = {key: value for key, value in values.items() if key != "__interrupt__"}
        return [*self.interrupted(values["__interrupt__"], None), {"type": "values", "ns": (), "data": shown}]


def marked(metadata: Mapping[str, Any], run_id: Any) -> dict[str, Any]:
    """A model's metadata, with the mark of its run."""
    return {**metadata, RUN_MARK: str(run_id)}
