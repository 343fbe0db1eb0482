"""Work that starts when a mailbox of the store rings. Knows boxes and patience; does not know what a note means."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from runcast.slim import Notes


async def at_every_ring(
    notes: Notes, boxes: Callable[[], Sequence[str]], look: Callable[[], Awaitable[object]], *, every: float
) -> None:
    """Look at once, whenever one of the boxes rings, and at least every so many seconds; ends only by cancellation."""
    while True:
        bell = await notes.listen(*boxes())
        ring = asyncio.ensure_future(bell.wait())
        try:
            await look()
            await asyncio.wait(
                {ring}, timeout=every
            )  # `wait_for` may lose a cancellation that meets the ring
        finally:
            ring.cancel()
            bell.close()
