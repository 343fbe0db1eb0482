"""Of a thread's runs, the one that lost its owner is marked and reported."""

from __future__ import annotations

from pathlib import Path

from tests.slim.logs import THREAD, make_log, started, text, turn


async def test_only_what_was_cut_short_is_reported(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    async with make_log(url) as log:
        await log.append_many(THREAD, turn("r1"))
        await log.append_many(THREAD, [started("r2"), *text("m", "a")])
        await log.recovery.release_running(THREAD)
        async with make_log(url) as other:
            assert [each.run_id for each in await other.recovery.mark_truncated(THREAD)] == ["r2"]
            assert await other.recovery.mark_truncated(THREAD) == []
