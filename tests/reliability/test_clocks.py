"""Clocks that are set: an hour forth and back under a writer, while another node looks for runs that died."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx

from runcast.app import Cast
from runcast.app.host.outlets import own_hub
from runcast.slim import RunLog, open_store
from tests.reliability.counting import Counter
from tests.reliability.ledger import Ledger
from tests.reliability.scenes import begin, hosting, open_access, over, settle, watching

HOUR = 3_600_000


class Clock:
    """A wall clock that somebody sets."""

    def __init__(self) -> None:
        self.off = 0

    def __call__(self) -> int:
        return time.time_ns() // 1_000_000 + self.off


@asynccontextmanager
async def setting(clock: Clock, pause: float) -> AsyncIterator[None]:
    """Set it forth and back, by an hour each time."""

    async def leap() -> None:
        while True:
            for off in (HOUR, 0, -HOUR, 0):
                clock.off = off
                await asyncio.sleep(pause)

    leaping = asyncio.create_task(leap())
    try:
        yield
    finally:
        leaping.cancel()
        clock.off = 0


async def start_requested(cast: Cast) -> None:
    """What a second node does all the time."""
    while True:
        await cast.recover("continue")
        await asyncio.sleep(0.1)


async def test_clocks_that_are_set_under_a_writer(
    ledger: Ledger, http: httpx.AsyncClient, url: str, tmp_path: Path, long: bool
) -> None:
    clock, effects = Clock(), tmp_path / "effects"
    log = RunLog(open_store(url), clock=clock, lease_ms=900)
    other_log = RunLog(open_store(url), lease_ms=900)
    cast = Cast(log, hub=own_hub(log, None, open_access()), agents=[Counter(effects)])
    async with Cast(other_log, agents=[Counter(effects)]) as other, hosting(cast) as address:
        for thread in ("t0", "t1", "t2"):
            await begin(cast, ledger, thread, 3, 300 if long else 40, 0.02)
        async with watching(ledger, http, lambda: address, kinds=("sse",)), setting(clock, 0.3):
            helping = asyncio.create_task(start_requested(other))
            for thread in ledger.threads:
                await over(other_log, thread)
            helping.cancel()
            with suppress(asyncio.CancelledError):
                await helping
        for thread in ledger.threads:
            entries = await other_log.entries(thread)
            assert [each.seq for each in entries] == list(range(1, len(entries) + 1))
            runs = await other_log.runs(thread)
            assert len({each.epoch for each in entries}) == 1
            ledger.note("runs", ledger.row.notes.get("runs", 0) + len(runs))
        await settle(ledger, other_log, effects)
