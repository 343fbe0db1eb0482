"""What the writers and readers of one log share: flushes, deferred work, feeds, and what a run is stored as."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from runcast.slim.errors import StoreError
from runcast.slim.log.run_log import RunLog
from runcast.slim.stores import MemoryStore
from runcast.slim.stores.records import Batch, Blob, Key
from tests.slim.logs import THREAD, Clock, finished, make_log, started, text, turn, user


async def rested() -> None:
    """What was ready has run."""
    for _ in range(20):
        await asyncio.sleep(0)


class Uneven(MemoryStore):
    """Refuses the writes of one thread, and holds back those of another."""

    def __init__(self) -> None:
        super().__init__()
        self.may_write = asyncio.Event()
        self.may_write.set()
        self.down = False

    async def append(self, batch: Batch) -> int:
        if self.down and batch.key.thread_id == "bad":
            raise StoreError("the disk is full")
        if batch.key.thread_id == "slow":
            await self.may_write.wait()
        return await super().append(batch)


async def test_a_flush_ends_when_every_thread_is_done_though_one_has_failed() -> None:
    store = Uneven()
    async with RunLog(store, flush_ms=1, derive="manual") as log:
        for thread in ("bad", "slow"):
            await log.append(thread, started(thread_id=thread))
        store.down = True
        store.may_write.clear()
        for thread in ("bad", "slow"):
            await log.append(thread, next(text("m")))
        flush = asyncio.create_task(log.flush())
        await rested()
        assert not flush.done(), "the slow thread is being written"
        store.may_write.set()
        with pytest.raises(StoreError, match="disk is full"):
            await flush
        assert len(await log.entries("slow")) == 2
        store.down = False


class Lingering(MemoryStore):
    """Takes its time for derived data."""

    async def put_blob(self, key: Key, blob: Blob) -> None:
        await rested()
        await super().put_blob(key, blob)


async def test_a_log_closes_when_what_it_derives_is_written() -> None:
    store = Lingering()
    async with RunLog(store, flush_ms=1) as log:
        await log.append_many(THREAD, [started(), *text("m", *["word "] * 100), finished()])
    assert [info.kind for info in await store.blob_index(Key("", THREAD), "segment")] == ["segment"]


async def test_a_reader_that_leaves_a_broken_feed_leaves_the_next_one_alone() -> None:
    async with make_log("memory://") as log:
        await log.append_many(THREAD, turn("r1"))
        first = log.attach(THREAD)
        await anext(first)
        await log.archive.delete(THREAD)
        await rested()  # its feed has ended, and it does not know yet
        async with aclosing(log.attach(THREAD)) as second:
            coming = asyncio.ensure_future(anext(second))
            await rested()
            await first.aclose()
            assert log.stats().readers == 1
            await log.append(THREAD, started("r2"))
            assert (await coming).run_id == "r2"


@pytest.mark.parametrize("edge", ["spawn", "continue"])
async def test_a_spawned_run_keeps_the_messages_that_it_was_given(edge: Any) -> None:
    """It has no history to read them from."""
    async with make_log("memory://") as log:
        await log.append_many(THREAD, turn("r1"))
        await log.start_run(THREAD, "r2", parent="r1", edge=edge)
        await log.append_many(THREAD, [started("r2", user("r1-user", "well?")), finished("r2")])
        stored: Any = (await log.entries(THREAD, 6))[0].event
        assert [each.id for each in stored.input.messages] == (["r1-user"] if edge == "spawn" else [])
        whole = await log.input(THREAD, "r2")
        assert whole is not None
        assert [each.id for each in whole.messages] == ["r1-user"]


async def test_a_branch_without_a_parent_begins_anew() -> None:
    async with make_log("memory://") as log:
        await log.append_many(THREAD, turn("r1"))
        for edge in ("branch", "continue"):
            await log.start_run(THREAD, edge, edge=edge)
            await log.append_many(THREAD, turn(edge))
        assert [each.parent for each in await log.runs(THREAD)] == [None, None, "branch"]


async def test_a_lease_that_wrote_nothing_leaves_the_times_of_its_thread(store_url: str) -> None:
    clock = Clock()
    async with make_log(store_url, clock=clock) as log:
        await log.append_many(THREAD, turn("r1"))
        before = await log.thread(THREAD)
        clock.pass_ms(1_000)
        await log.start_run(THREAD, "r2")
        await log.recovery.abandon(THREAD)
        after = await log.thread(THREAD)
        assert before is not None
        assert after is not None
        assert (after.updated_at, after.owner) == (before.updated_at, None)


async def test_only_runs_that_were_cut_short_lately_are_found_to_be_resumed(store_url: str) -> None:
    clock = Clock()
    async with make_log(store_url, clock=clock) as log:
        await log.append(THREAD, started())
        await log.recovery.abandon(THREAD)
        clock.pass_ms(1_000)
        assert [run for _, _, run in await log.recovery.truncated_unresumed(2_000)] == ["r"]
        assert await log.recovery.truncated_unresumed(500) == []
