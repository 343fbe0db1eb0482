"""Readers of one thread in one process: what was written while they came, and what another process wrote at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import pairwise
from typing import Any

import pytest

from runcast.slim.entry import Entry
from runcast.slim.errors import StoreError
from runcast.slim.log import live_feed
from runcast.slim.log.run_log import RunLog
from runcast.slim.stores import MemoryStore
from runcast.slim.stores.records import Key, StoredThread
from tests.slim.log.test_writer import Counting
from tests.slim.logs import THREAD, finished, started, text, turn


async def rested() -> None:
    """What was ready has run."""
    for _ in range(50):
        await asyncio.sleep(0)


class Taken:
    """What a reader has received so far."""

    def __init__(self, entries: AsyncGenerator[Entry]) -> None:
        self.seqs: list[int] = []
        self._task = asyncio.create_task(self._take(entries))

    async def _take(self, entries: AsyncGenerator[Entry]) -> None:
        async with aclosing(entries):
            async for entry in entries:
                self.seqs.append(entry.seq)

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})


async def test_entries_that_another_process_wrote_at_once_all_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    """One wake-up may stand for more than one page of them."""
    monkeypatch.setattr(live_feed, "PAGE", 3)
    store = MemoryStore()
    async with RunLog(store, flush_ms=1) as here, RunLog(store, flush_ms=1) as there:
        await there.append_many(THREAD, turn("r1"))
        taken = Taken(here.attach(THREAD, 6))
        await rested()
        await there.append_many(THREAD, [started("r2"), *text("m", *["x"] * 8), finished("r2")])
        await rested()
        await taken.stop()
        assert taken.seqs == list(range(7, 19))


class Slow(MemoryStore):
    """Answers a question about a thread late, with what was so when it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def thread(self, key: Key) -> StoredThread | None:
        found = await super().thread(key)
        await self.may_answer.wait()
        return found


async def test_what_is_written_here_while_a_reader_comes_arrives() -> None:
    store = Slow()
    async with RunLog(store, flush_ms=1) as log:
        await log.append_many(THREAD, turn("r1"))
        store.may_answer.clear()
        taken = Taken(log.attach(THREAD, 6))
        await rested()
        await log.append(THREAD, started("r2"))
        await log.append_many(THREAD, list(text("m", "x")))
        store.may_answer.set()
        await rested()
        await taken.stop()
        assert taken.seqs == [7, 8, 9, 10]


async def test_a_reader_that_is_a_little_behind_is_served_from_memory() -> None:
    store = Counting()
    async with RunLog(store, flush_ms=1, derive="manual") as log:
        await log.append(THREAD, started("r"))
        async with aclosing(log.live.attach(THREAD)) as quick, aclosing(log.live.attach(THREAD)) as slow:
            for reader in (quick, slow):
                await anext(reader)
            waiting = [asyncio.ensure_future(anext(each)) for each in (quick, slow)]
            await asyncio.sleep(0)
            (first, *rest) = text("m", *"abcdefgh")
            await log.append(THREAD, first)
            await log.flush()
            for each in waiting:
                assert [entry.seq for entry in await each] == [2]
            store.reads = 0
            for event in rest:
                await log.append(THREAD, event)
                await log.flush()
                assert len(await anext(quick)) == 1
            assert [entry.seq for entry in await anext(slow)] == list(range(3, 3 + len(rest)))
            assert store.reads == 0


async def test_a_store_that_is_away_is_asked_again_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_feed, "PAUSES", (0.1, 0.1, 0.1))
    store, times = MemoryStore(), list[float]()
    read = store.events

    async def fails_twice(*asked: Any, **more: Any) -> Any:
        if len(times) < 3:
            times.append(asyncio.get_running_loop().time())
        if len(times) < 3:
            raise StoreError("the database is away")
        return await read(*asked, **more)

    here, there = (RunLog(store, derive="manual") for _ in range(2))
    async with here, there, aclosing(here.attach(THREAD)) as entries:
        waiting = asyncio.ensure_future(anext(entries))
        await rested()
        monkeypatch.setattr(store, "events", fails_twice)
        await there.append_many(THREAD, [started(), finished()])
        async with asyncio.timeout(60):
            assert (await waiting).seq == 1
    assert [later - before >= 0.1 for before, later in pairwise(times)] == [True, True]
