"""The size limits of targets, and the cuts that make a payload fit.

A Pusher request carries the envelope as a JSON string inside JSON, so escaping counts twice. Does not know the
meaning of a payload, but for one: an activity is drawn from the whole of it, so it goes by reference and is never cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from runcast.broadcast.json_bytes import dumps
from runcast.slim.values.truncation import cut
from runcast.slim.values.type_guards import as_list, as_object


@dataclass(frozen=True, slots=True)
class Budget:
    """The largest finished message a target takes."""

    limit: int  # bytes
    quoted: bool = False  # carried as a JSON string inside JSON
    overhead: int = 0  # of names, channel and headers around it
    request: int = 0  # bytes of a whole request with several messages; 0: no limit is known

    def size(self, body: bytes) -> int:
        """The size of this encoded envelope at the target."""
        return self.overhead + (len(orjson.dumps(body.decode())) if self.quoted else len(body))

    def fits(self, body: bytes) -> bool:
        """Whether the target takes it. A cheap bound answers first: escaping finished JSON again at most doubles it."""
        if self.overhead + 2 * len(body) + 2 <= self.limit:
            return True
        return self.size(body) <= self.limit


HUB = Budget(64_000, request=1_000_000)
"""runcast's own hub."""
PUSHER = Budget(10_240)
"""Hosted Pusher: the limit counts an event's data."""
REVERB = Budget(10_000, quoted=True, overhead=900, request=10_000)
"""Laravel Reverb by default: the limit counts the whole HTTP request, headers included."""
SOKETI = Budget(100_000)
"""soketi by default."""


def tightest(budgets: Sequence[Budget], most: int) -> Budget:
    """One budget within all of these, for finished envelopes of at most `most` bytes."""
    overhead = max(budget.overhead for budget in budgets)
    limit = min(budget.limit for budget in budgets)
    return Budget(min(limit, most + overhead), any(budget.quoted for budget in budgets), overhead)


# Fields that identify the subject of a payload: the last to be cut.
_IDENTITY = (
    "message_id",
    "tool_call_id",
    "tool_name",
    "step_number",
    "step_name",
    "status",
    "chunk_index",
    "is_complete",
    "success",
    "subagent_run_id",
)
# Longest text, most items in a list or mapping, deepest level: tried from the left until it fits.
_CUTS = ((1000, 100, 8), (300, 40, 6), (100, 20, 5), (40, 10, 4), (16, 5, 3))


ACTIVITY = "agent.activity"
_REFERENCE = ("message_id", "activity_type", "subagent_run_id")  # of an activity: what it takes to fetch it


def smaller(type: str, payload: Mapping[str, Any], original: int) -> Iterator[dict[str, Any]]:
    """Ever smaller forms of the payload, marked with its original size."""
    if type == ACTIVITY:
        kept = {key: payload[key] for key in _REFERENCE if key in payload}
        yield {**kept, "by_reference": True, "original_bytes": original}
        return
    marks = {"truncated": True, "original_bytes": original}
    for text, items, depth in _CUTS:
        yield {key: _cut(value, text, items, depth) for key, value in payload.items()} | marks
    yield {key: _cut(payload[key], 64, 1, 1) for key in _IDENTITY if key in payload} | marks


def _cut(value: Any, text: int, items: int, depth: int) -> Any:
    if isinstance(value, str):
        return cut(value, text)
    if isinstance(value, dict):
        if depth == 0:
            return {}
        pairs = list(as_object(value).items())[:items]
        return {cut(str(key), text): _cut(item, text, items, depth - 1) for key, item in pairs}
    if isinstance(value, list | tuple):
        kept = as_list(value)[:items]
        return [] if depth == 0 else [_cut(item, text, items, depth - 1) for item in kept]
    if isinstance(value, int) and value.bit_length() > 64:
        return cut(dumps(value).decode(), text)
    return value
