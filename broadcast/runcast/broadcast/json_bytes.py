"""Plain values as JSON for a browser: valid UTF-8, times in UTC.

Knows JSON and the calendar; does not know events or envelopes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import isfinite
from typing import Any

import orjson

from runcast.slim.values.truncation import clean
from runcast.slim.values.type_guards import as_list, as_object

_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
_LONGEST_INT = 4_096  # bits; Python itself refuses to print much longer ones
_DEEPEST = 100


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
    """Milliseconds since the epoch as `2026-01-16T10:05:00.123Z`: UTC, whatever the machine's zone is."""
    days, rest = divmod(milliseconds, 86_400_000)
    year, month, day = _civil(days)
    hours, rest = divmod(rest, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    seconds, millis = divmod(rest, 1000)
    return f"{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z"


def _civil(days: int) -> tuple[int, int, int]:
    """Year, month, day of a day number since 1970-01-01, in the proleptic Gregorian calendar."""
    days += 719_468  # to an era that begins on 1 March of the year 0
    era, doe = divmod(days, 146_097)
    yoe = (doe - doe // 1460 + doe // 36_524 - doe // 146_096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = mp + 3 if mp < 10 else mp - 9
    return yoe + era * 400 + (month <= 2), month, doy - (153 * mp + 2) // 5 + 1
