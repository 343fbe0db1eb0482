"""Any Python value as JSON-ready data, within bounds.

Knows the values that agents keep in their state: dates, enums, dataclasses, pydantic models, bytes, sets, messages. Never
raises: a value without a JSON form becomes the name of its type, and what is too deep or too large is marked.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from typing import Any, cast
from uuid import UUID

from pydantic import BaseModel

from runcast.slim.values.type_guards import as_mapping

CUT = "[cut]"  # stands where the bounds of depth or amount were reached
_LISTS = (list, tuple, set, frozenset, deque)


class Encoder:
    """Turns values into JSON-ready data; `max_nodes` and `max_depth` bound one call, `max_bytes` one bytes value."""

    def __init__(self, *, max_nodes: int = 200_000, max_depth: int = 48, max_bytes: int = 65_536) -> None:
        self._max_nodes = max_nodes
        self._max_depth = max_depth
        self._max_bytes = max_bytes

    def __call__(self, value: Any) -> Any:
        """The value as dicts, lists, strings, numbers, booleans and None."""
        left = [self._max_nodes]

        def walk(value: Any, depth: int) -> Any:
            kind = type(cast("object", value))
            if kind is str:
                return _text(value)
            if value is None or kind is bool or kind is int:
                return value
            left[0] -= 1
            if depth > self._max_depth or left[0] < 0:
                return CUT
            if kind is float:
                return value if math.isfinite(value) else str(value)
            return self._compound(value, lambda inner: walk(inner, depth + 1))

        return walk(value, 0)

    def _compound(self, value: Any, walk: Callable[[Any], Any]) -> Any:
        if isinstance(value, Mapping):
            return {_key(key): walk(inner) for key, inner in _pairs(as_mapping(value))}
        if isinstance(value, _LISTS):
            return [walk(inner) for inner in _items(cast("Iterable[Any]", value))]
        if isinstance(value, bytes | bytearray | memoryview):
            return self._bytes(bytes(cast("bytes", value)))
        if isinstance(value, BaseModel):
            return {name: walk(getattr(value, name, None)) for name in type(value).model_fields}
        if is_dataclass(value) and not isinstance(value, type):
            return {field.name: walk(getattr(value, field.name, None)) for field in fields(value)}
        if isinstance(value, Enum):
            return walk(value.value)
        return _scalar(value)

    def _bytes(self, value: bytes) -> str:
        return b64encode(value).decode() if len(value) <= self._max_bytes else f"<{len(value)} bytes>"


def _scalar(value: Any) -> Any:
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, str):
        return _text(str.__str__(value))
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, UUID | Decimal | Fraction | PurePath | BaseException | complex):
        return _text(str(value))
    return f"<{(value if isinstance(value, type) else type(value)).__qualname__}>"


def _text(value: str) -> str:
    """A string that UTF-8 can carry: half of a surrogate pair becomes the replacement character."""
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def _key(key: Any) -> str:
    if isinstance(key, str):
        return _text(str.__str__(key))
    if isinstance(key, Enum):
        return _key(key.value)
    several = listed(key)
    return _text(str(_scalar(key))) if several is None else ".".join(_key(part) for part in several)


def _pairs(value: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """A copy first: a node in another thread may still be writing to this dict."""
    return list(value.items())


def _items(value: Iterable[Any]) -> list[Any]:
    if isinstance(value, set | frozenset):
        return sorted(value, key=lambda item: (type(item).__qualname__, str(item)))
    return list(value)


plain = Encoder()


def listed(value: Any) -> list[Any] | None:
    """A value that is a list or a tuple, as a list of anything; None for all else."""
    return list(cast("list[Any]", value)) if isinstance(value, list | tuple) else None
