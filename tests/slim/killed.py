"""A process that is killed at one of its steps: from then on nothing that it does has an effect, cleaning up included."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from math import inf
from typing import Any, cast

from runcast.slim.stores import Store


class Killed(BaseException):
    """The process is dead."""


class Process:
    """A process; its effects go through `step`, and instead of step `last`, if there is one, it dies."""

    def __init__(self, last: float = inf) -> None:
        self._last = last
        self._taken = 0

    async def step(self, act: Callable[[], Any]) -> Any:
        """One effect outside the process."""
        self._taken += 1
        if self._taken >= self._last:
            raise Killed
        result = act()
        return await result if inspect.isawaitable(result) else result

    def kill(self) -> None:
        """Die at the next step."""
        self._last = 0

    def of(self, store: Store) -> Store:
        """The store, as this process reaches it."""
        return cast("Store", _Reached(self, store))


class _Reached:
    def __init__(self, process: Process, store: Store) -> None:
        self._mortal = process
        self._store = store

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def reached(*args: Any, **kwargs: Any) -> Any:
            return await self._mortal.step(lambda: found(*args, **kwargs))

        return reached
