"""Which entry of a table an event's class has. Knows that a subclass of an event is that event; nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

__all__ = ["nearest"]

T = TypeVar("T")


def nearest(table: Mapping[type, T], kind: type) -> T | None:
    """The entry of this class, or of the closest class it derives from."""
    return next((table[base] for base in kind.__mro__ if base in table), None)
