"""Readers of one thread in one process: what was written while they came, and what another process wrote at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from runcast.slim.entry import Entry
from runcast.slim.log import live_feed
from runcast.slim.log.run_log import RunLog
from runcast.slim.stores import MemoryStore
from runcast.slim.stores.records import Key, StoredThread
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
