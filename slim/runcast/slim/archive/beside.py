"""Heavy work beside the event loop, which serves other runs meanwhile.

Knows threads; does not know the work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

HEAVY = 65_536  # bytes: for fewer, a thread costs more than it saves

T = TypeVar("T")


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
