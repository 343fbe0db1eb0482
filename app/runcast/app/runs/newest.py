"""A bounded memory of what was read or made last: the newest things by name, up to a weight in all.

Pure bookkeeping; does not know what it holds.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Newest(Generic[T]):
    """Things by name; those that were put in longest ago go first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[str, tuple[T, int]] = {}
        self.weight = 0  # of all

    def __len__(self) -> int:
        return len(self._held)

    def put(self, name: str, thing: T, weight: int) -> None:
        """Hold a thing as the newest. One that is too heavy by itself is not held."""
        self.take(name)
        if weight > self._most:
            return
        self._held[name] = thing, weight
        self.weight += weight
        while self.weight > self._most:
            self.take(next(iter(self._held)))

    def take(self, name: str) -> T | None:
        """Give a thing up, if it is held."""
        thing, weight = self._held.pop(name, (None, 0))
        self.weight -= weight
        return thing
