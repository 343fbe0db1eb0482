"""What an event says about its run: whether it ends it, how, and what that cost.

Knows the terminal events of AG-UI; does not know stores or how runs are kept.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson
from ag_ui.core import (
    EventType,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    TokenUsage,
)
from pydantic import TypeAdapter

from runcast.slim.stores.records import RunEnd, RunStatus
from runcast.slim.wire import AnyEvent

_NAMES: dict[str, str] = {kind: kind.value for kind in EventType}
USAGE = TypeAdapter(tuple[TokenUsage, ...])


def end_of(event: AnyEvent) -> RunEnd | None:
    """How the run ends with this event; None when it goes on."""
    if isinstance(event, RunErrorEvent):
        return RunEnd("failed", "RUN_ERROR", usage_bytes(event.usage))
    if isinstance(event, RunFinishedEvent):
        return RunEnd(_status(event), "RUN_FINISHED", usage_bytes(event.usage))
    return None


def _status(event: RunFinishedEvent) -> RunStatus:
    match event.outcome:
        case RunFinishedInterruptOutcome():
            return "interrupted"
        case RunFinishedCancelledOutcome():
            return "cancelled"
        case _:
            return "completed"


def usage_bytes(usage: Iterable[TokenUsage] | None) -> bytes | None:
    """Token usage as the store keeps it."""
    if usage is None:
        return None
    return orjson.dumps([each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in usage])


def usage_of(data: bytes | None) -> tuple[TokenUsage, ...] | None:
    """Token usage as the protocol has it."""
    return None if data is None else USAGE.validate_json(data)


def type_of(event: AnyEvent) -> str:
    """The event's type in plain ASCII, so that every database can have it in a column of text."""
    kind = event.type
    known = _NAMES.get(kind)
    if known is not None:
        return known
    return str(kind).encode("ascii", "backslashreplace").decode().replace("\0", "\\0")
