"""The parts of a LangGraph stream, and the namespaces they come from.

A part is what `astream(version="v2")` yields: `{"type", "ns", "data"}`. Four types are runcast's own, made by the
callbacks that ride along (`Probe`), because the stream does not tell them: `llm_end`, `llm_error`, `retry` and
`custom_event`. Knows shapes alone, never what follows from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from runcast.adapters.langgraph.encode import is_dict, is_list, listed, mapped

RUN_MARK = "runcast_run_id"  # in a chunk's metadata: which model run it belongs to
SEPARATOR = "|"  # between a namespace's segments, where LangGraph writes it as one string
Namespace = tuple[str, ...]
Part = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Aside:
    """Something a callback knows, sent through the graph's own `custom` stream so that its place is kept."""

    type: str
    data: Mapping[str, Any]


def decode(part: Any) -> Part:
    """Any form of part as `{"type", "ns", "data"}`: v2 dicts, v1 `(ns, mode, data)` tuples, runcast's asides."""
    if isinstance(part, tuple):
        ns, mode, data = cast("tuple[Namespace, str, Any]", part)
        part = {"type": mode, "ns": tuple(ns), "data": data}
    told = mapped(part)
    data = told["data"]
    if isinstance(data, Aside):
        return {"type": data.type, "ns": told["ns"], "data": data.data}
    return told


def task_of(segment: str) -> str:
    """`node:<task id>` -> the task id."""
    return segment.rpartition(":")[2]


def path_of(namespace: Namespace) -> tuple[list[str], str]:
    """The ids of the tasks a namespace runs in, outermost first, and the number of a graph called again in one.

    A graph that a task calls for the second time has a number after the task's segment: `("tools:<id>", "1")`.
    """
    tasks = [task_of(segment) for segment in namespace if ":" in segment]
    again = namespace[-1] if namespace and ":" not in namespace[-1] else ""
    return tasks, again


def enclosing(namespace: Namespace) -> Namespace:
    """The namespace of the graph whose task runs this one."""
    at = len(namespace)
    while at and ":" not in namespace[at - 1]:
        at -= 1
    return namespace[: max(at - 1, 0)]


def called_for(task_input: Any) -> Mapping[str, Any] | None:
    """The tool call that a task was started for, where `create_agent` sent it one."""
    several = listed(task_input)
    call = mapped(several[0] if several is not None and len(several) == 1 else task_input)
    if call.get("type") == "tool_call_with_context":
        call = mapped(call.get("tool_call"))
    return call if call.get("type") == "tool_call" else None


def messages_of(values: Any, key: str) -> list[Any] | None:
    """The conversation in a state of any kind; None when it has none, or keeps something else under the name.

    A reducer of one's own may keep pairs, dicts or strings as they are: they are no messages, and are left out.
    """
    held = mapped(values).get(key) if isinstance(values, Mapping) else getattr(values, key, None)
    if not is_list(held):
        return None
    raw = {kind for kind in set(map(type, held)) if kind.__module__ == "builtins"}
    if not raw:
        return held
    return [message for message in held if type(message) not in raw] or None


def named_in(written: Any) -> set[str]:
    """The ids a node gave to messages that it wrote as dicts, one or several."""
    return {str(each["id"]) for each in listed(written) or (written,) if is_dict(each) and each.get("id")}
