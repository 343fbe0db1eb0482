"""The events themselves as payloads, one a frame, for clients that speak AG-UI and have their own screen.

Faithful as far as a target's limit allows: a delta that is too large is split into pieces, each an event, together the
same text; any other event that is too large is reduced to its type and ids and marked, and a reader fetches it. Does
not know envelopes or positions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import orjson

from runcast.slim.errors import WireError
from runcast.slim.values.exact_json import parse
from runcast.slim.wire.codec import AnyEvent, encode

AGUI = "agui.event"  # the type of an envelope whose payload is an event

_SPLIT = frozenset({"TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT", "TOOL_CALL_ARGS"})
# The fields that assign the event; all of them are short.
_IDENTITY = (
    "type",
    "timestamp",
    "threadId",
    "runId",
    "messageId",
    "toolCallId",
    "toolCallName",
    "parentMessageId",
    "stepName",
    "subagentRunId",
    "activityType",
    "role",
    "name",
)
_LONG = re.compile(rb"[0-9]{19}")  # digits that the fast reader may round
_ENDS = frozenset({"RUN_STARTED", "RUN_FINISHED", "RUN_ERROR"})


def ends_or_begins(payload: Any) -> bool:
    """Whether an event begins or ends a run, so that every watcher needs it."""
    return payload.get("type") in _ENDS


def faithful(
    event: AnyEvent,
    *,
    fits: Callable[[dict[str, Any]], bool],
    split: Callable[[dict[str, Any]], list[str]],
) -> list[dict[str, Any]]:
    """The event in its wire form, in as many payloads as it takes."""
    try:
        wire = encode(event)
    except WireError:  # a circle, or nesting that no encoder writes: a log refuses it, a sink does not
        return [{"type": getattr(event.type, "value", event.type), "truncated": True}]
    payload: dict[str, Any] = _read(wire)
    if fits(payload):
        return [payload]
    if payload["type"] in _SPLIT:
        # The other fields of the event (metadata, rawEvent) are left out.
        core = {key: payload[key] for key in (*_IDENTITY, "delta") if key in payload}
        pieces = split(core)
        return [{**core, "delta": piece} for piece in pieces]
    kept = {key: payload[key] for key in _IDENTITY if key in payload}
    return [{**kept, "truncated": True, "original_bytes": len(wire)}]


def _read(wire: bytes) -> Any:
    """The exact value of the wire form: halves of characters, which the fast reader refuses, and all digits."""
    if b"\\ud" in wire or _LONG.search(wire):
        return parse(wire)
    return orjson.loads(wire)
