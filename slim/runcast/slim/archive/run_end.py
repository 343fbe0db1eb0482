"""The end of a run as its last event states it: status and token usage.

Knows the terminal events of AG-UI; does not know stores or how runs are kept.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson
from ag_ui.core import (
    EventType,
    RunErrorEvent,
    RunFinishedEvent,
    TokenUsage,
)
from pydantic import TypeAdapter

from runcast.slim.folding.run_records import end_status
from runcast.slim.stores.records import RunEnd
from runcast.slim.values.lifecycles import DELTAS, STREAMS, wire_type
from runcast.slim.wire.codec import AnyEvent

_NAMES: dict[str, str] = {kind: kind.value for kind in EventType}
# By class: a member of an enum is slow to look up.
_DELTA_TYPES: dict[type, str] = {each.content: wire_type(each.content) for each in STREAMS if each.content}
USAGE = TypeAdapter(tuple[TokenUsage, ...])


def end_of(event: AnyEvent) -> RunEnd | None:
    """How the run ends with this event; None when it continues."""
    if type(event) not in DELTAS and isinstance(event, RunErrorEvent | RunFinishedEvent):
        return RunEnd(end_status(event), event.type.value, usage_bytes(event.usage))
    return None


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
    delta = _DELTA_TYPES.get(type(event))
    if delta is not None:
        return delta
    kind = event.type
    known = _NAMES.get(kind)
    if known is not None:
        return known
    return str(kind).encode("ascii", "backslashreplace").decode().replace("\0", "\\0")
