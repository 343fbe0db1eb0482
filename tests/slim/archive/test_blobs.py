"""Snapshots beside a thread: the newest one of a run counts, and one always stays."""

from __future__ import annotations

from tests.slim.logs import THREAD, make_log, started, text


async def test_of_several_snapshots_of_a_run_the_newest_counts_and_one_always_stays() -> None:
    async with make_log("memory://") as log:
        await log.append(THREAD, started("r"))
        for n, event in enumerate(text("m", "a", "b", "c")):
            await log.append(THREAD, event)
            kept = await log.save_snapshot(THREAD, {"n": n})
            assert await log.snapshot(THREAD) == kept
        await log.save_snapshot(THREAD, {"n": 9}, keep=0)
        size = (await log.archive.size(THREAD)).snapshots
        found = await log.snapshot(THREAD)
        assert found is not None
        assert (found.data, found.size) == ({"n": 9}, size)
