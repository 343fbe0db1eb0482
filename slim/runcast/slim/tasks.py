"""How background tasks end. Knows nothing of what they do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

AGAIN = 2.0  # seconds


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
