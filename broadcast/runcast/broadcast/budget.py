"""How large an envelope may be on its way to a target, and how a payload is cut until it fits.

Knows sizes on the wire: a Pusher request carries the envelope as a JSON string inside JSON, so that escaping counts
twice. Does not know what a payload means; it only shortens, marks and counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from runcast.broadcast.plain import as_list, as_object, dumps
from runcast.slim.truncate import cut


@dataclass(frozen=True, slots=True)
class Budget:
    """The largest finished message a target takes."""

    limit: int  # bytes
    quoted: bool = False  # carried as a JSON string inside JSON
    overhead: int = 0  # what surrounds it: names, channel, headers

    def size(self, body: bytes) -> int:
        """What this encoded envelope weighs at the target."""
        return self.overhead + (len(orjson.dumps(body.decode())) if self.quoted else len(body))

    def fits(self, body: bytes) -> bool:
        """Whether the target takes it. A cheap bound answers first: escaping finished JSON again at most doubles it."""
        if self.overhead + 2 * len(body) + 2 <= self.limit:
            return True
        return self.size(body) <= self.limit


HUB = Budget(64_000)
"""runcast's own hub."""
PUSHER = Budget(10_240)
"""Hosted Pusher: the limit counts an event's data."""
REVERB = Budget(10_000, quoted=True, overhead=900)
"""Laravel Reverb by default: the limit counts the whole HTTP request, headers included."""
SOKETI = Budget(100_000)
"""soketi by default."""


def tightest(budgets: Sequence[Budget], most: int) -> Budget:
    """One budget that all of these hold, for envelopes of at most `most` bytes as they are finished."""
    overhead = max(budget.overhead for budget in budgets)
    limit = min(budget.limit for budget in budgets)
    return Budget(min(limit, most + overhead), any(budget.quoted for budget in budgets), overhead)


# Fields by which a reader pairs things up: the last to be touched.
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


def shrink(payload: Mapping[str, Any], original: int, step: int) -> dict[str, Any]:
    """The payload at one of `steps()` degrees of cutting, marked with what it weighed before."""
    if step < len(_CUTS):
        text, items, depth = _CUTS[step]
        kept = {key: _cut(value, text, items, depth) for key, value in payload.items()}
    else:
        kept = {key: _cut(payload[key], 64, 1, 1) for key in _IDENTITY if key in payload}
    return {**kept, "truncated": True, "original_bytes": original}


def steps() -> int:
    """How many degrees of cutting there are."""
    return len(_CUTS) + 1


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
