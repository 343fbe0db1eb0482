"""Plain values as JSON for a browser: valid UTF-8, times in UTC.

Knows JSON and the calendar; does not know events or envelopes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any

import orjson

from runcast.slim.values.truncation import clean
from runcast.slim.values.type_guards import as_list, as_object

_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
_LONGEST_INT = 4_096  # bits; Python itself refuses to print much longer ones
_DEEPEST = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST, _LATEST = -62_135_596_800_000, 253_402_300_799_999  # in the years 1 and 9999


def dumps(value: Any, *, halves: bool = False) -> bytes:
    """Compact UTF-8 JSON of any value: what JSON cannot express becomes text, halves of characters are replaced.

    With `halves` they are kept as JSON escapes: the other half may come with the next event.
    """
    try:
        return orjson.dumps(value, option=_OPTIONS)
    except TypeError:
        # Integers above 64 bits, halves of surrogate pairs, foreign or circular objects: the slow way takes all.
        tame = _tame(value, frozenset(), str if halves else clean)
        return json.dumps(tame, ensure_ascii=halves, separators=(",", ":")).encode()


def _tame(value: Any, above: frozenset[int], text: Callable[[str], str]) -> Any:
    """The nearest JSON value; `above` holds the ids of the enclosing ones, so that circles end."""
    match value:
        case None | bool():
            return value
        case str():
            return text(value)
        case int():
            return value if value.bit_length() <= _LONGEST_INT else f"an integer of {value.bit_length()} bits"
        case float():
            return value if isfinite(value) else None
        case _ if id(value) in above or len(above) >= _DEEPEST:
            return "..."
        case dict():
            inside = above | {_id(value)}
            return {text(str(key)): _tame(item, inside, text) for key, item in as_object(value).items()}
        case list() | tuple():
            inside = above | {_id(value)}
            return [_tame(item, inside, text) for item in as_list(value)]
        case _:
            return text(str(value))


def _id(value: Any) -> int:
    return id(value)


def iso(milliseconds: int) -> str:
    """Milliseconds since the epoch as `2026-01-16T10:05:00.123Z`: UTC, whatever the machine's zone is.

    A time that the calendar of RFC 3339 does not have becomes its first or last one.
    """
    moment = _EPOCH + timedelta(milliseconds=min(max(milliseconds, _EARLIEST), _LATEST))
    return f"{moment.isoformat(timespec='milliseconds')[:-6]}Z"
