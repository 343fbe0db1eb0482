"""A run that was given up or lost its lease: the next run of the thread is judged by itself."""

from __future__ import annotations

import pytest

from runcast.slim.errors import Conflict, StoreError
from runcast.slim.log.run_log import RunLog
from runcast.slim.redaction.redactor import Redactor
from runcast.slim.stores import MemoryStore
from runcast.slim.stores.records import Batch
from tests.slim.logs import THREAD, Clock, make_log, started, text, turn


@pytest.mark.parametrize("verify", ["reject", "warn"])
async def test_a_run_that_was_given_up_is_not_held_against_the_next(
    verify: str, caplog: pytest.LogCaptureFixture
):
    async with make_log("memory://", verify=verify, redactor=Redactor()) as log:
        for n, give_up in enumerate((log.recovery.abandon, log.recovery.release_running)):
            await log.append_many(THREAD, [started(f"open {n}"), *list(text("m", "api_key=sk-12"))[:2]])
            await give_up(THREAD)
            await log.resume(THREAD, f"next {n}")
            await log.append_many(THREAD, turn(f"next {n}", "again"))
        assert log.stats().violations == 0
        assert "has not ended" not in caplog.text


class Away(MemoryStore):
    """A store that can be taken away."""

    down = False

    async def append(self, batch: Batch) -> int:
        if self.down:
            raise StoreError("the disk is full")
        return await super().append(batch)


async def test_a_run_given_up_while_the_store_was_away_is_not_held_against_the_next():
    store = Away()
    async with RunLog(store, verify="reject", patience_ms=1) as log:
        await log.append_many(THREAD, [started("open"), *list(text("m", "half"))[:2]])
        store.down = True
        with pytest.raises(StoreError, match="disk is full"):
            await log.recovery.abandon(THREAD)
        store.down = False
        await log.resume(THREAD, "next")
        await log.append_many(THREAD, turn("next", "again"))
        assert [run.status for run in await log.runs(THREAD)] == ["truncated", "completed"]
        assert log.stats().violations == 0


async def test_a_run_that_lost_its_lease_is_not_held_against_the_next(shared_url: str):
    clock = Clock()
    mine = make_log(shared_url, verify="reject", clock=clock, lease_ms=1_000)
    theirs = make_log(shared_url, clock=clock)
    async with mine, theirs:
        await mine.append(THREAD, started("r1"))
        clock.pass_ms(2_000)
        await theirs.append_many(THREAD, turn("r2"))
        with pytest.raises(Conflict):
            await mine.append_many(THREAD, text("m", "late"))
        await mine.append_many(THREAD, turn("r3"))
        assert [run.status for run in await mine.runs(THREAD)] == ["truncated", "completed", "completed"]
