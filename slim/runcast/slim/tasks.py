"""How background tasks end, and heavy work beside the event loop. Knows nothing of what they do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

AGAIN = 2.0  # seconds
HEAVY = 65_536  # bytes: for fewer, a thread costs more than it saves

T = TypeVar("T")


async def end(tasks: Iterable[asyncio.Task[Any] | None]) -> None:
    """Cancel tasks until each of them has ended, however it ends.

    One cancellation may not do: `asyncio.wait_for` of Python 3.11 drops one that meets what it waits for, and drivers
    of databases use it. A task that loops would then live for ever.
    """
    every = {task for task in tasks if task is not None}
    active = {task for task in every if not task.done()}
    while active:
        for task in active:
            task.cancel()
        _, active = await asyncio.wait(active, timeout=AGAIN)
    for task in every:
        if not task.cancelled():
            task.exception()  # retrieved, or the event loop would log it


async def beside(work: Callable[[], T]) -> T:
    """The result of the work, done in a thread.

    A thread cannot be cancelled. A cancelled caller waits for it, or others would meet its state half changed.
    """
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
