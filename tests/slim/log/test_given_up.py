"""A run that was given up or lost its lease: the next run of the thread is judged by itself."""

from __future__ import annotations

import pytest

from runcast.slim.errors import Conflict
from runcast.slim.redaction.redactor import Redactor
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
