"""Copies values into plain JSON within a budget of bytes.

Counts the room a value takes as UTF-8 JSON, however it is spaced. A copy can be written anywhere: no halves of surrogate
pairs, no NaN, no bottomless nesting. Stops reading a value that is too big.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from runcast.slim.values.truncation import clean

DEEPEST = 200  # nesting that every JSON reader can follow
BOTTOM = "[...]"  # replaces deeper nesting
_WIDEST = 2**63  # numbers that common databases and readers take
_encode = json.JSONEncoder(ensure_ascii=False).encode


class TooBig(Exception):  # a result, not an error
    """The value needs more room than there is."""


def size(value: Any) -> int:
    """The bytes of the value as UTF-8 JSON in its roomiest common spelling."""
    return len(_encode(value).encode())


def surely_within(value: Any, room: int) -> bool:
    """Whether the value is much smaller than `room`, by a quick look; if not, `size` has to say."""
    try:
        # In a roomier spelling each comma and colon has a space behind it.
        return 2 * len(orjson.dumps(value)) <= room
    except TypeError:
        return False


def copied(value: Any, room: int, text: Callable[[str], str] = clean) -> Any:
    """A copy that is plain JSON, every text in it passed through `text`; `TooBig` if it takes more than `room`."""
    return _measured(value, room, text)[0]


def fitting(value: Mapping[str, Any], room: int, text: Callable[[str], str] = clean) -> dict[str, Any]:
    """The entries that fit into `room`, in order; one that does not fit is left out whole."""
    kept: dict[str, Any] = {}
    left = room - 2
    for name, item in value.items():
        key = text(str(name))
        beside = size(key) + 4
        try:
            kept[key], taken = _measured(item, left - beside, text)
        except TooBig:
            continue
        left -= taken + beside
        if left <= 0:
            break
    return kept


def _measured(value: Any, room: int, text: Callable[[str], str]) -> tuple[Any, int]:
    """The copy and its size."""
    copy = _Copier(room, text).copy(value, 0)
    taken = size(copy)
    if taken > room:
        raise TooBig
    return copy, taken


class _Copier:
    """Copies, and counts at least the size of the copy, so that a huge value is given up early."""

    def __init__(self, room: int, text: Callable[[str], str]) -> None:
        self._left = room
        self._text = text

    def copy(self, value: Any, depth: int) -> Any:
        self._take(1)
        match value:
            case None | bool():
                return value
            case str():
                return self._string(value)
            case int():
                return value if -_WIDEST <= value < _WIDEST else str(value)
            case float():
                return value if math.isfinite(value) else None
            case Mapping() | list() | tuple() if depth >= DEEPEST:
                return BOTTOM
            case Mapping():
                return self._entries(value, depth)
            case list() | tuple():
                return self._items(value, depth)
            case bytes() | bytearray():
                return f"[binary, {len(value)} bytes]"
            case _:
                return self._string(str(value))

    def _entries(self, value: Any, depth: int) -> dict[str, Any]:
        return {self._string(str(key)): self.copy(item, depth + 1) for key, item in value.items()}

    def _items(self, value: Any, depth: int) -> list[Any]:
        return [self.copy(item, depth + 1) for item in value]

    def _string(self, text: str) -> str:
        self._take(len(text))
        return self._text(text)

    def _take(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise TooBig
