"""The parts of a LangGraph stream, and the namespaces they come from.

A part is what `astream(version="v2")` yields: `{"type", "ns", "data"}`. Six types are runcast's own, made by the callbacks of
`Probe`, because the stream has none of them: `llm_end`, `llm_error`, `retry`, `custom_event`, `manual_message` and
`manual_state`. Knows shapes, not what follows from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from runcast.adapters.langgraph.content.plain_values import listed
from runcast.slim.values.type_guards import as_mapping, is_list, is_object

WITHHELD = (  # metadata of a model call that AG-UI's own server and CopilotKit's SDK do not stream, where it is False
    "emit-messages",
    "emit-tool-calls",
    "copilotkit:emit-messages",
    "copilotkit:emit-tool-calls",
)
SOURCE = "lc_source"  # langchain's mark of a message or a model call that middleware makes for itself
INTERNAL = "lc_internal_call"
RUN_MARK = "runcast_model_run"  # in a chunk's metadata: which model run it belongs to
TOKEN = "token"  # an aside: a chunk of a model that a node streams itself
UNREAD = "unread"  # a part that could not be read: its data is the error
SEPARATOR = "|"  # between a namespace's segments, where LangGraph writes it as one string
Namespace = tuple[str, ...]
Part = Mapping[str, Any]


class Chunk:
    """A piece of a model's message, with the fields of LangChain's AIMessageChunk that the translator reads."""

    type = "AIMessageChunk"

    def __init__(
        self,
        id: str,
        content: Any = "",
        extra: Mapping[str, Any] | None = None,
        *,
        tool_call_chunks: Sequence[Mapping[str, Any]] = (),
        usage: Any = None,
        facts: Mapping[str, Any] | None = None,
        last: bool = False,
    ) -> None:
        self.id = id
        self.name = None
        self.content = content
        self.additional_kwargs = extra or {}
        self.tool_call_chunks = tool_call_chunks
        self.usage_metadata = usage
        self.response_metadata = facts or {}
        self.chunk_position = "last" if last else None


@dataclass(frozen=True, slots=True)
class Aside:
    """A callback's report, sent through the graph's own `custom` stream so that its place among the parts is kept."""

    type: str
    data: Mapping[str, Any]


def decode(part: Any) -> Part:
    """Any form of part as `{"type", "ns", "data"}`: v2 dicts, v1 `(ns, mode, data)` tuples, runcast's asides.

    Raises the error of a part that could not be read.
    """
    if isinstance(part, tuple):
        ns, mode, data = cast("tuple[Namespace, str, Any]", part)
        part = {"type": mode, "ns": tuple(ns), "data": data}
    held = as_mapping(part)
    data = held["data"]
    if held["type"] == UNREAD:
        raise data
    if isinstance(data, Aside):
        return {"type": data.type, "ns": held["ns"], "data": data.data}
    return held


def error_of(error: Any) -> BaseException | None:
    """A failed task's error: the exception itself, or its text if the graph ran elsewhere."""
    if error is None or isinstance(error, BaseException):
        return error
    return RuntimeError(str(error))


def task_of(segment: str) -> str:
    """`node:<task id>` -> the task id."""
    return segment.rpartition(":")[2].rstrip(STATEFUL)


STATEFUL = "!"  # behind a task in a full path: the graph inside it keeps its state between runs


class Namespaces:
    """The namespaces of a run's graphs, and the tasks that run them.

    A graph inside a task has the namespace of the task, `("tools:<task id>",)`; one that a task calls again has a number
    behind it, `("tools:<task id>", "1")`. A graph compiled with `checkpointer=True` keeps its state under the names of
    the nodes alone, `("tools",)`: its task is the running one of that name. A *full path* has the task of every graph.
    """

    def __init__(self) -> None:
        self._running: dict[tuple[str, ...], tuple[Namespace, Namespace]] = {}  # names -> graph, full path

    def started(self, ns: Namespace, name: str, task_id: str) -> None:
        """A task of this graph starts."""
        path = (*self.full(ns), f"{name}:{task_id}")
        self._running[names_of(path)] = (ns, path)

    def full(self, ns: Namespace) -> Namespace:
        """The tasks on the way to a graph, outermost first, with the numbers of graphs that were called again."""
        path: Namespace = ()
        for at, segment in enumerate(ns):
            held = self._running.get(names_of(ns[: at + 1])) if _is_name(segment) else None
            path = (*path, segment) if held is None else (*held[1][:-1], held[1][-1] + STATEFUL)
        return path

    def full_place(self, place: str) -> str:
        """The same for a checkpoint namespace in one string, whose last segment is a task."""
        segments = tuple(place.split(SEPARATOR))
        if all(":" in segment for segment in segments):
            return place
        return SEPARATOR.join((*self.full(segments[:-1]), segments[-1]))

    def tasks(self, ns: Namespace) -> list[str]:
        """The ids of the tasks in which a graph runs, outermost first."""
        return [task_of(segment) for segment in self.full(ns) if ":" in segment]

    def enclosing(self, ns: Namespace) -> Namespace:
        """The namespace of the graph with the task that runs this one."""
        at = len(ns)
        while at > 1 and ns[at - 1].isdigit():
            at -= 1
        held = self._running.get(names_of(ns[:at])) if at and _is_name(ns[at - 1]) else None
        return ns[: max(at - 1, 0)] if held is None else held[0]


def _is_name(segment: str) -> bool:
    return ":" not in segment and not segment.isdigit()


def names_of(path: Sequence[str]) -> tuple[str, ...]:
    """The names of the nodes on a path: what LangGraph keeps of the namespace of a graph with `checkpointer=True`."""
    return tuple(segment.partition(":")[0] for segment in path if not segment.isdigit())


def namespace_of(path: Sequence[str]) -> str:
    """The checkpoint namespace of the graph at the end of a full path."""
    last = max((at for at, segment in enumerate(path) if segment.endswith(STATEFUL)), default=-1)
    return SEPARATOR.join((*names_of(path[: last + 1]), *path[last + 1 :]))


def is_withheld(metadata: Mapping[str, Any]) -> bool:
    """Whether a node asks that this model's message is not streamed: clients see it when the state holds it."""
    return any(metadata.get(name) is False for name in WITHHELD)


def source_of(fields: Mapping[str, Any] | None) -> str | None:
    """What middleware made this message or model call for, by its extra fields or metadata; None for the agent's own."""
    if not fields or (SOURCE not in fields and INTERNAL not in fields):
        return None
    return str(fields.get(SOURCE) or "internal")


def called_for(task_input: Any) -> Mapping[str, Any] | None:
    """The tool call that a task was started for, where `create_agent` sent it one."""
    several = listed(task_input)
    call = as_mapping(several[0] if several is not None and len(several) == 1 else task_input)
    if call.get("type") == "tool_call_with_context":
        call = as_mapping(call.get("tool_call"))
    return call if call.get("type") == "tool_call" else None


def messages_of(values: Any, key: str) -> list[Any] | None:
    """The conversation in a state of any kind; None when it has none, or keeps something else under the name.

    A custom reducer may keep pairs, dicts or strings as they are: they are no messages, and are left out.
    """
    held = as_mapping(values).get(key) if isinstance(values, Mapping) else getattr(values, key, None)
    if not is_list(held):
        return None
    raw = {kind for kind in set(map(type, held)) if kind.__module__ == "builtins"}
    if not raw:
        return held
    return [message for message in held if type(message) not in raw] or None


def named_in(written: Any) -> set[str]:
    """The ids a node gave to messages that it wrote as dicts, one or several."""
    return {str(each["id"]) for each in listed(written) or (written,) if is_object(each) and each.get("id")}
