"""A store connection that dies: at its nth step every call of its process stops for good, before or after its effect."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

from runcast.slim import MemoryStore, StoreError

HOUR_MS = 3_600_000


def behind() -> int:
    """A clock so late that its leases have expired for everybody else."""
    return time.time_ns() // 1_000_000 - HOUR_MS


def ahead() -> int:
    """A clock so early that everybody else's leases have expired."""
    return time.time_ns() // 1_000_000 + HOUR_MS


class Mortal:
    """One process's way to a store that others use too. `dead` is set when it has died."""

    def __init__(self, store: MemoryStore, steps: int) -> None:
        self._store = store
        self._left = steps
        self.dead = asyncio.Event()
        self._buried = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if not inspect.iscoroutinefunction(method) or name in ("open", "close", "listen", "watch"):
            return method
        return self._mortal(method)

    def _mortal(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            await self.step()
            found = await method(*args, **kwargs)
            await self.step()
            return found

        return call

    async def step(self) -> None:
        """One more step of this process."""
        await asyncio.sleep(0)
        self._left -= 1
        if self._left <= 0:
            self.dead.set()
            await self._buried.wait()
            raise StoreError("this process is dead")

    async def dies_in_scene(self, playing: asyncio.Future[Any]) -> bool:
        """Wait until the scene has ended or this process has died in it; whether it died."""
        dying = asyncio.ensure_future(self.dead.wait())
        await asyncio.wait({playing, dying}, return_when=asyncio.FIRST_COMPLETED)
        dying.cancel()
        return self.dead.is_set() and not playing.done()

    def dies_in(self, steps: int) -> None:
        """From now on it has so many steps left."""
        self._left = steps

    def bury(self) -> None:
        """Let what hangs end, without any effect on the store."""
        self._left = 0
        self._buried.set()
