"""Of a thread's runs, the one that lost its owner is marked and reported."""

from __future__ import annotations

from pathlib import Path

from tests.slim.logs import THREAD, Clock, make_log, started, text, turn


async def test_only_what_was_cut_short_is_reported(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    async with make_log(url) as log:
        await log.append_many(THREAD, turn("r1"))
        await log.append_many(THREAD, [started("r2"), *text("m", "a")])
        await log.recovery.release_running(THREAD)
        async with make_log(url) as other:
            assert [each.run_id for each in await other.recovery.mark_truncated(THREAD)] == ["r2"]
            assert await other.recovery.mark_truncated(THREAD) == []


async def test_a_thread_that_is_written_here_was_not_left() -> None:
    """Also while its lease looks expired, as it does for a moment when the clock was set."""
    clock = Clock()
    async with make_log("memory://", clock=clock, lease_ms=600_000) as log:
        for find in (log.recovery.orphaned_runs, lambda: log.recovery.truncated_unresumed(1 << 40)):
            await log.append_many(THREAD, [started("r1"), *text("m", "a")])
            if find != log.recovery.orphaned_runs:
                await log.recovery.abandon(THREAD)
                assert [run for *_, run in await find()] == ["r1"]
                await log.start_run(THREAD, "r2")
            clock.pass_ms(600_001)
            assert await find() == []
            await log.recovery.abandon(THREAD)
            await log.archive.delete(THREAD)
