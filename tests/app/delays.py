"""A scheduler for tests: it stops a coroutine at its nth await, lets something else happen, and lets it go on."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

from runcast.slim import MemoryStore


class Delayed:
    """Awaits a coroutine; at its nth suspension, `meanwhile` is awaited first."""

    def __init__(
        self, work: Coroutine[Any, Any, Any], nth: int, meanwhile: Callable[[], Awaitable[Any]]
    ) -> None:
        self._work = work
        self._left = nth
        self._meanwhile = meanwhile

    @property
    def reached(self) -> bool:
        """Whether the coroutine had so many awaits."""
        return self._left <= 0

    def __await__(self) -> Generator[Any, Any, Any]:
        resume: Callable[[], Any] = lambda: self._work.send(None)  # noqa: E731  what the coroutine is given next
        while True:
            try:
                waits = resume()
            except StopIteration as done:
                return done.value
            self._left -= 1
            if self._left == 0:
                yield from self._aside()
            try:
                yield waits
            except BaseException as error:
                resume = lambda error=error: self._work.throw(error)  # noqa: E731
            else:
                resume = lambda: self._work.send(None)  # noqa: E731

    def _aside(self) -> Generator[Any, Any, Any]:
        return (yield from asyncio.ensure_future(_awaited(self._meanwhile)).__await__())


async def _awaited(do: Callable[[], Awaitable[Any]]) -> Any:
    return await do()


class Yielding(MemoryStore):
    """A store whose every call lets others run before and after it, as a database's does."""


def _yielding(method: Any) -> Any:
    async def call(*args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(0)
        found = await method(*args, **kwargs)
        await asyncio.sleep(0)
        return found

    return call


for _name, _method in inspect.getmembers(MemoryStore, inspect.iscoroutinefunction):
    setattr(Yielding, _name, _yielding(_method))
