"""Looks up the entry of an event's class in a table. A subclass of an event counts as that event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


def nearest(table: Mapping[type, T], kind: type) -> T | None:
    """The entry of this class, or of the closest class it derives from."""
    found = table.get(kind)
    return found if found is not None else next((table[base] for base in kind.__mro__ if base in table), None)
