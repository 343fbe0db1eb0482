"""Readers of one thread in one process: what was written while they came, and what another process wrote at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import pairwise
from typing import Any
from weakref import ReferenceType, ref

import pytest
from ag_ui.core import CustomEvent

from runcast.slim.archive import pages
from runcast.slim.entry import Entry
from runcast.slim.errors import ReaderTooSlow, StoreError
from runcast.slim.log import live_feed
from runcast.slim.log.run_log import RunLog
from runcast.slim.stores import MemoryStore
from runcast.slim.stores.records import Key, StoredThread
from runcast.slim.stores.wakeups import Watcher
from runcast.slim.tasks import HEAVY
from runcast.slim.wire.codec import AnyEvent, decode
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


async def test_a_reader_that_goes_while_the_feed_opens_takes_no_other_with_it() -> None:
    opens, opening = asyncio.Event(), asyncio.Event()

    class Slow(MemoryStore):
        async def watch(self, key: Key) -> Watcher:
            opening.set()
            await opens.wait()
            return await super().watch(key)

    async with RunLog(Slow(), derive="manual") as log:
        first, other = Taken(log.attach(THREAD)), Taken(log.attach(THREAD))
        await opening.wait()
        await first.stop()
        opens.set()
        await log.append_many(THREAD, turn("r"))
        async with asyncio.timeout(30):
            while len(other.seqs) < 6:  # noqa: ASYNC110  it reads by itself
                await asyncio.sleep(0)
        await other.stop()
        assert other.seqs == [1, 2, 3, 4, 5, 6]


async def test_for_a_reader_that_does_not_read_no_more_is_kept_than_it_may_lack() -> None:
    """Else it would grow the process, until it comes back and is cut."""
    async with RunLog(MemoryStore(), derive="manual", reader_queue=10) as log:
        await log.append_many(THREAD, [started("r"), *text("m", "a")])
        async with aclosing(log.attach(THREAD)) as slow, aclosing(log.attach(THREAD)) as quick:
            for reader in (slow, quick):
                assert [(await anext(reader)).seq for _ in range(4)] == [1, 2, 3, 4]
            stuck = asyncio.create_task(anext(slow))
            await rested()
            kept: list[ReferenceType[AnyEvent]] = []
            for n in range(100):
                event = CustomEvent(name="n", value=n)
                await log.append_many(THREAD, [event])
                kept.append(ref((await anext(quick)).event))
                if not n:
                    await stuck
            del event
            assert sum(each() is not None for each in kept) < 25
            with pytest.raises(ReaderTooSlow):
                assert not [each.seq async for each in slow if each.seq > 70]


async def test_a_large_event_is_read_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """For readers here, for those in another process, and for pages: its models hold up no other run."""
    readers: list[threading.Thread] = []

    def noting(data: bytes, *, legacy: bool = True) -> AnyEvent:
        if len(data) >= HEAVY:
            readers.append(threading.current_thread())
        return decode(data, legacy=legacy)

    monkeypatch.setattr(pages, "decode", noting)
    store = MemoryStore()
    async with RunLog(store, flush_ms=1) as here, RunLog(store, flush_ms=1) as there:
        await here.append(THREAD, started())
        taken = [Taken(each.attach(THREAD)) for each in (here, there)]
        await asyncio.sleep(0.05)
        await here.append(THREAD, CustomEvent(name="n", value=["x" * 100] * (HEAVY // 50)))
        await here.append(THREAD, finished())
        async with asyncio.timeout(20):
            while not all(each.seqs == [1, 2, 3] for each in taken):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert len(await there.entries(THREAD)) == 3
        for each in taken:
            await each.stop()
    assert len(readers) >= 3
    assert threading.main_thread() not in readers
