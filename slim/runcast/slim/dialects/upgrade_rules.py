"""Rules for older events that can be upgraded without their neighbours.

A rule gets parsed JSON whose keys are spelled as in 1.0, may change it, and returns the event. It leaves an unknown shape
for the reader to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from runcast.slim.dialects.upgrade_messages import compact_json, upgraded_message, upgraded_parts
from runcast.slim.values.type_guards import is_list, is_object

Json = dict[str, Any]


def _meta(event: Json) -> Json:
    """META, the draft's side channel, had a name and a payload: that is CUSTOM now."""
    camel, snake = event.pop("metaType", None), event.pop("meta_type", None)
    fields = {"name": snake if camel is None else camel, "value": event.pop("payload", None)}
    return {**event, "type": "CUSTOM", **fields}


def _state_snapshot(event: Json) -> Json:
    return _moved(event, "state", "snapshot")


def _state_delta(event: Json) -> Json:
    return _patch(_moved(event, "patch", "delta"), "delta")


def _activity_delta(event: Json) -> Json:
    return _patch(_moved(event, "delta", "patch"), "patch")


def _moved(event: Json, old: str, new: str) -> Json:
    if old in event and new not in event:
        event[new] = event.pop(old)
    return event


def _patch(event: Json, key: str) -> Json:
    """A single operation becomes a patch, which is a list."""
    if is_object(event.get(key)):
        event[key] = [event[key]]
    return event


def _custom(event: Json) -> Json:
    """JSON drops an `undefined` value, and 1.0 requires one."""
    event.setdefault("value", None)
    return event


def _reasoning_start(event: Json) -> Json:
    """The first releases with reasoning gave it the assistant's role."""
    if event.get("role", "assistant") == "assistant":
        event["role"] = "reasoning"
    return event


def _messages_snapshot(event: Json) -> Json:
    messages = event.get("messages")
    if is_list(messages):
        event["messages"] = [upgraded_message(message) for message in messages]
    return event


def _tool_result(event: Json) -> Json:
    content = event.get("content")
    if is_list(content):
        event["content"] = upgraded_parts(content)
    elif is_object(content):
        event["content"] = compact_json(content)
    return event


LONE_RULES: Final[Mapping[str, Callable[[Json], Json]]] = {
    "META": _meta,
    "STATE_SNAPSHOT": _state_snapshot,
    "STATE_DELTA": _state_delta,
    "ACTIVITY_DELTA": _activity_delta,
    "CUSTOM": _custom,
    "REASONING_MESSAGE_START": _reasoning_start,
    "MESSAGES_SNAPSHOT": _messages_snapshot,
    "TOOL_CALL_RESULT": _tool_result,
}
"""The rule of each such event type."""
