"""Group commit: when a write leaves, what it carries, and how readers of the same process get it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from contextlib import aclosing

import pytest
from ag_ui.core import CustomEvent

from runcast.slim.entry import Entry
from runcast.slim.errors import Conflict, StoreError
from runcast.slim.log.run_log import RunLog
from runcast.slim.stores import MemoryStore, Store, open_store
from runcast.slim.stores.contract.tools import take
from runcast.slim.stores.records import Batch, Key, Page
from tests.forked import everything, spawn
from tests.reliability.children import commit_and_die
from tests.slim.logs import THREAD, Clock, Gate, finished, make_log, seqs, started, turn


def custom(n: int) -> CustomEvent:
    return CustomEvent(name="n", value=n)


async def first(log: RunLog, count: int, **options: int) -> list[Entry]:
    async with asyncio.timeout(60), aclosing(log.attach(THREAD, **options)) as entries:
        return [
            entry for _, entry in zip(range(count), [await anext(entries) for _ in range(count)], strict=True)
        ]


class Counting(MemoryStore):
    """Counts writes and the reads of events."""

    def __init__(self) -> None:
        super().__init__()
        self.lots: list[list[str]] = []
        self.reads = 0

    async def append_all(self, batches: Sequence[Batch]) -> list[int | None]:
        self.lots.append([batch.key.thread_id for batch in batches])
        await asyncio.sleep(0)
        return [await super(Counting, self).append(batch) for batch in batches]

    async def append(self, batch: Batch) -> int:
        self.lots.append([batch.key.thread_id])
        await asyncio.sleep(0)
        return await super().append(batch)

    async def events(
        self, key: Key, *, after: int, upto: int | None = None, limit: int | None = None
    ) -> Page:
        self.reads += 1
        return await super().events(key, after=after, upto=upto, limit=limit)


async def test_one_write_carries_all_threads():
    store = Counting()
    async with RunLog(store, derive="manual") as log:
        await asyncio.gather(*(log.append(f"t{n}", started("r")) for n in range(50)))
        assert max(map(len, store.lots)) >= 49, "those that came while the first was under way"
        store.lots.clear()
        for n in range(50):
            await log.append(f"t{n}", custom(n))
        await log.flush()
        assert len(store.lots) == 1


async def test_a_write_that_is_broken_off_is_not_taken_for_written():
    store, writes = Counting(), Gate()
    writes.guard(store)
    async with RunLog(store, derive="manual") as log:
        await log.append(THREAD, started())
        with writes.closed():
            await log.append(THREAD, custom(0))
            flush = asyncio.create_task(log.flush())
            await writes.reached()
            for task in asyncio.all_tasks():
                if task.get_name() == "runcast-write":
                    task.cancel()
            with pytest.raises(StoreError, match="broken off"):
                await flush
        await log.flush()
        assert [entry.event for entry in await log.entries(THREAD, after=1)] == [custom(0)]


async def test_a_loaded_store_gets_fewer_and_larger_writes():
    store = Counting()
    async with RunLog(store, derive="manual", flush_ms=20, flush_events=100_000) as log:
        await log.append(THREAD, started())
        store.lots.clear()
        loop = asyncio.get_running_loop()
        until, count = loop.time() + 0.5, 0
        while loop.time() < until:
            await log.append(THREAD, custom(count))
            count += 1
            await asyncio.sleep(0)
        assert len(store.lots) <= 60, "once in 20 ms when it is loaded, more often on the way there"
        await log.flush()
        assert len(await log.entries(THREAD)) == count + 1


async def test_all_that_gathered_during_a_write_is_written_however_much_it_is():
    store, writes = Counting(), Gate()
    writes.guard(store)
    async with RunLog(store, derive="manual", flush_events=100_000) as log:
        await log.append(THREAD, started())
        with writes.closed():
            for n in range(1_000):
                await log.append(THREAD, custom(n))
        await log.flush()
        assert [entry.event for entry in await log.entries(THREAD, after=1)] == [
            custom(n) for n in range(1_000)
        ]


async def test_a_flush_ends_the_pause_of_a_loaded_store(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("runcast.slim.log.committer.SHORTEST", 3_600.0)
    async with RunLog(Counting(), derive="manual", flush_ms=3_600_000) as log:
        await log.append(THREAD, started())
        await log.append(THREAD, custom(0))
        for _ in range(50):
            await asyncio.sleep(0)
        assert log.stats().unflushed == 1, "it came during a write, so the store is loaded"
        async with asyncio.timeout(60):
            await log.flush()
        assert seqs(await log.entries(THREAD)) == [1, 2]


async def test_what_nobody_reads_gathers_longer_and_a_reader_ends_that(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("runcast.slim.log.committer.UNREAD", 3_600.0)
    async with RunLog(Counting(), derive="manual", flush_ms=3_600_000) as log:
        await log.append(THREAD, started())
        await log.append(THREAD, custom(0))
        await asyncio.sleep(0.02)
        assert log.stats().unflushed == 1, "nobody waits for it"
        async with asyncio.timeout(60), aclosing(log.attach(THREAD)) as entries:
            assert (await anext(entries)).seq == 1
            await log.append(THREAD, custom(1))
            assert [(await anext(entries)).seq for _ in range(2)] == [2, 3]


async def test_a_thread_that_lost_its_lease_fails_alone(store_url: str):
    clock, store, writes = Clock(), open_store(store_url), Gate()
    writes.guard(store)
    async with RunLog(store, derive="manual", clock=clock, lease_ms=1_000) as log:
        for name in ("a", "b", "c"):
            await log.append(name, started("r"))
        with writes.closed():
            await log.append("a", custom(0))
            await writes.reached()
            for name in ("a", "b", "c"):
                await log.append(name, custom(1))
            clock.pass_ms(1_001)
            await take(store, Key("", "b"), owner="other", now=clock.now)
        with pytest.raises(Conflict, match="now belongs to other"):
            await log.flush("b")
        for name, last in (("a", 3), ("c", 2)):
            await log.flush(name)
            assert seqs(await log.entries(name)) == list(range(1, last + 1))
        assert seqs(await log.entries("b")) == [1]


async def test_readers_here_get_committed_entries_without_the_store():
    store = Counting()
    async with RunLog(store, derive="manual") as log:
        await log.append(THREAD, started())
        reading = asyncio.ensure_future(first(log, 31))
        await asyncio.sleep(0.01)
        for n in range(30):
            await log.append_many(THREAD, [custom(n)])
        entries = await reading
        assert store.reads == 0, "no other process can write while this one has the lease"
        assert entries == await log.entries(THREAD), "and they are as the store has them"


async def test_a_reader_here_finds_what_another_owner_wrote_before_this_one_knew():
    store, clock = Counting(), Clock()
    async with (
        RunLog(store, derive="manual", clock=clock, lease_ms=1_000_000) as log,
        RunLog(store, derive="manual", clock=clock, owner="other") as elsewhere,
    ):
        await log.append(THREAD, started())
        reading = asyncio.ensure_future(first(log, 2))
        for _ in range(20):
            await asyncio.sleep(0)
        clock.pass_ms(1_000_001)
        await elsewhere.append(THREAD, started("r2"))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not reading.done(), "its wake-up was taken for one of the writer here"
        with pytest.raises(Conflict, match="now belongs to other"):
            await log.append_many(THREAD, [custom(0)])
        assert [entry.run_id for entry in await reading] == ["r", "r2"]


async def test_a_write_follows_the_last_one_no_sooner_than_a_moment_later(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("runcast.slim.log.committer.SHORTEST", 3_600.0)
    store = Counting()
    async with RunLog(store, derive="manual") as log:
        await log.append(THREAD, started())
        await log.append(THREAD, custom(0))
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(store.lots) == 1, "what follows a start gathers"
        await log.append(THREAD, finished())
        assert len(store.lots) == 2, "and goes with the end of a short run, which waits for nothing"


async def test_entries_of_other_processes_come_in_between(shared_url: str):
    async with make_log(shared_url) as here, make_log(shared_url) as there:
        await here.append_many(THREAD, turn("r0"))
        reading = asyncio.ensure_future(first(here, 66))
        for n in range(10):
            await (here if n % 2 else there).append_many(THREAD, turn(f"r{n + 1}"))
        assert seqs(await reading) == list(range(1, 67))


@pytest.mark.parametrize("after", range(0, 40, 4))
async def test_a_reader_that_joins_at_a_commit_misses_nothing(store: Store, after: int):
    async with RunLog(store, derive="manual") as log:
        await log.append(THREAD, started())

        async def write() -> None:
            for n in range(60):
                await log.append(THREAD, custom(n))
                await asyncio.sleep(0)

        writing = asyncio.ensure_future(write())
        while (await log.thread(THREAD)).last_seq < after:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert seqs(await first(log, 61 - after, after=after)) == list(range(after + 1, 62))
        await writing


async def test_a_crash_between_commit_and_handing_over_loses_and_doubles_nothing(shared_url: str):
    async with make_log(shared_url) as here:
        reading = asyncio.ensure_future(all_of(here, 12))
        child, pipe = await asyncio.to_thread(spawn, commit_and_die, shared_url, THREAD, 3)
        shown = await asyncio.to_thread(everything, pipe)
        await asyncio.to_thread(child.join)
        assert child.exitcode == -signal.SIGKILL
        assert shown == [], "its own reader was handed nothing"
        async with asyncio.timeout(30):
            while not await here.recovery.mark_truncated(THREAD):  # noqa: ASYNC110  its lease has to expire
                await asyncio.sleep(0.05)
        await here.append_many(THREAD, turn("next"))
        entries = await reading
        assert seqs(entries) == list(range(1, 13)), (
            "what was committed is read, once, and the log goes on behind"
        )
        assert [entry.run_id for entry in entries] == ["torn"] * 6 + ["next"] * 6
        assert entries == await here.entries(THREAD)


async def all_of(log: RunLog, count: int) -> list[Entry]:
    """So many entries, however slow the machine is."""
    found: list[Entry] = []
    async with asyncio.timeout(60), aclosing(log.attach(THREAD)) as entries:
        async for entry in entries:
            found.append(entry)
            if len(found) == count:
                break
    return found
