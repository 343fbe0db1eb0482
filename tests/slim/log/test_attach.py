"""Attaching: history then live, each entry once and in order, whoever is slow, late, gone or elsewhere."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path
from weakref import ReferenceType, ref

import pytest
from ag_ui.core import (
    CustomEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
)

from runcast.slim.entry import Entry
from runcast.slim.errors import ReaderTooSlow, StoreError, UnknownThread
from runcast.slim.log.run_log import RunLog
from runcast.slim.stores import MemoryStore, Store, Watch, open_store
from runcast.slim.stores.records import Key, Page
from runcast.slim.wire.codec import AnyEvent
from tests.slim.logs import THREAD, Clock, Gate, finished, make_log, seqs, started, turn


def custom(n: int) -> CustomEvent:
    return CustomEvent(name="n", value=n)


async def read(log: RunLog, count: int, after: int | None = None, **more: str) -> list[Entry]:
    """So many entries, or none within five seconds."""
    found: list[Entry] = []
    async with asyncio.timeout(60), aclosing(log.attach(THREAD, after, **more)) as entries:
        async for entry in entries:
            found.append(entry)
            if len(found) == count:
                break
    return found


async def test_history_comes_first_and_then_what_is_new(store_url: str):
    async with make_log(store_url) as log:
        await log.append_many(THREAD, turn("r1"))
        reading = asyncio.ensure_future(read(log, 12))
        await asyncio.sleep(0.01)
        await log.append_many(THREAD, turn("r2"))
        assert await reading == await log.entries(THREAD)
        assert seqs(await read(log, 3, after=9)) == [10, 11, 12]
        assert log.stats().readers == 0


async def test_what_is_there_at_once_comes_together(store_url: str):
    async with make_log(store_url) as log:
        await log.append_many(THREAD, turn("r1"))
        async with asyncio.timeout(60), aclosing(log.live.attach(THREAD, 2)) as lots:
            assert await anext(lots) == await log.entries(THREAD, after=2)
            await log.append_many(THREAD, turn("r2"))
            assert await anext(lots) == await log.entries(THREAD, after=6)
        assert log.stats().readers == 0


async def test_a_reader_may_come_before_the_thread(store_url: str):
    async with make_log(store_url) as log:
        reading = asyncio.ensure_future(read(log, 6))
        await asyncio.sleep(0.01)
        await log.append_many(THREAD, turn("r1"))
        assert seqs(await reading) == [1, 2, 3, 4, 5, 6]


async def test_a_reader_elsewhere_is_woken_too(shared_url: str):
    async with make_log(shared_url) as here, make_log(shared_url) as there:
        reading = asyncio.ensure_future(read(there, 8))
        await here.append_many(THREAD, turn("r1"))
        await asyncio.sleep(0.1)
        await here.append_many(THREAD, [started("r2"), finished("r2")])
        assert await reading == await here.entries(THREAD)


async def test_only_what_is_durable_is_seen(store_url: str):
    store, writes = open_store(store_url), Gate()
    writes.guard(store)
    async with RunLog(store, derive="manual") as log:
        await log.append(THREAD, started())
        async with aclosing(log.attach(THREAD)) as entries:
            assert (await anext(entries)).seq == 1
            waiting = asyncio.ensure_future(anext(entries))
            with writes.closed():
                await log.append(THREAD, custom(1))
                await writes.reached()
                done, _ = await asyncio.wait([waiting], timeout=0.05)
                assert not done
            assert (await asyncio.wait_for(waiting, 60)).seq == 2


async def test_fifty_readers_that_come_and_go_miss_nothing(store_url: str):
    """Each leaves at random places and comes back with what it has, while a run writes."""
    total = 1_200

    async def write(log: RunLog) -> None:
        rng = random.Random(1)
        await log.append(THREAD, started())
        written = 1
        while written < total:
            count = min(rng.choice((1, 1, 2, 30)), total - written)
            await log.append_many(THREAD, [custom(written + n) for n in range(count)])
            written += count
            await asyncio.sleep(rng.choice((0, 0, 0.002)))

    async def come_and_go(log: RunLog, n: int) -> list[int]:
        rng, seen = random.Random(n), list[int]()
        await asyncio.sleep(rng.random() * 0.2)
        while len(seen) < total:
            stay = rng.choice((1, 5, 50, 500))
            async with aclosing(log.attach(THREAD, seen[-1] if seen else None)) as entries:
                async for entry in entries:
                    seen.append(entry.seq)
                    stay -= 1
                    if not stay or len(seen) == total:
                        break
            await asyncio.sleep(rng.choice((0, 0.001)))
        return seen

    async with make_log(store_url, reader_queue=100_000) as log, asyncio.timeout(60):
        writing = asyncio.ensure_future(write(log))
        seen = await asyncio.gather(*(come_and_go(log, n) for n in range(50)))
        await writing
        assert all(each == list(range(1, total + 1)) for each in seen)
        assert log.stats().readers == 0


async def drain(entries: AsyncGenerator[Entry]) -> None:
    async for _ in entries:
        pass


async def test_a_reader_that_does_not_keep_up_is_cut_and_can_come_back(store_url: str):
    async with make_log(store_url, reader_queue=100) as log, asyncio.timeout(60):
        await log.append_many(THREAD, [started(), *map(custom, range(300))])
        async with aclosing(log.attach(THREAD)) as entries:
            seen = [(await anext(entries)).seq for _ in range(301)]
            assert seen == list(range(1, 302)), "history is read at its own pace"
            caught_up = asyncio.ensure_future(anext(entries))
            await asyncio.sleep(0.01)
            await log.append_many(THREAD, [custom(0)])
            assert (await caught_up).seq == 302
            await log.append_many(THREAD, map(custom, range(101)))  # and it sleeps
            await read(log, 1, after=402)
            with pytest.raises(ReaderTooSlow, match="attach again with after=302") as cut:
                await anext(entries)
        assert cut.value.last_seq == 302
        assert cut.value.lag == 101
        assert log.stats().readers_cut == 1
        assert seqs(await read(log, 101, after=cut.value.last_seq)) == list(range(303, 404))


async def test_a_slow_reader_delays_nobody(store_url: str):
    async with make_log(store_url, reader_queue=50) as log, asyncio.timeout(60):
        seen: list[int] = []

        async def keep_up() -> None:
            async for entry in log.attach(THREAD):
                seen.append(entry.seq)  # noqa: PERF401  looked at while it grows

        await log.append(THREAD, started())
        await log.flush(THREAD)
        slow = log.attach(THREAD)
        await anext(slow)
        second = asyncio.ensure_future(anext(slow))
        await asyncio.sleep(0)  # it has caught up now, and waits for new entries
        reading = asyncio.create_task(keep_up())
        for n in range(500):
            entry = await log.append(THREAD, custom(n))
            if n % 20 == 0 or n == 499:
                await log.flush(THREAD)
                while entry is not None and (not seen or seen[-1] < entry.seq):  # noqa: ASYNC110  it reads
                    await asyncio.sleep(0.001)
        reading.cancel()
        assert seen == list(range(1, 502))
        assert (await second).seq == 2
        with pytest.raises(ReaderTooSlow):
            await drain(slow)


async def test_a_place_of_another_epoch_means_nothing(store_url: str):
    async with make_log(store_url) as log:
        (first, *_) = await log.append_many(THREAD, turn("r1"))
        assert await log.archive.delete(THREAD)
        assert not await log.archive.delete(THREAD)
        (again, *_) = await log.append_many(THREAD, turn("r1"))
        assert again.epoch != first.epoch
        assert again.seq == 1
        with pytest.raises(UnknownThread, match="created anew"):
            await read(log, 1, after=3, epoch=first.epoch)
        assert seqs(await read(log, 3, after=3, epoch=again.epoch)) == [4, 5, 6]
        with pytest.raises(UnknownThread, match="ends at seq 6, before 9"):
            await read(log, 1, after=9)


async def test_a_reader_of_a_thread_that_is_deleted_is_told(store_url: str):
    clock = Clock()
    async with make_log(store_url, clock=clock) as log:
        await log.append_many(THREAD, turn("r1"))
        async with aclosing(log.attach(THREAD, after=5)) as entries:
            assert (await anext(entries)).seq == 6
            waiting = asyncio.ensure_future(anext(entries))
            await log.archive.delete(THREAD)
            with pytest.raises(UnknownThread, match="was deleted"):
                await asyncio.wait_for(waiting, 30)


async def test_readers_end_with_the_log():
    log = make_log("memory://")
    entries = log.attach(THREAD)
    waiting = asyncio.ensure_future(anext(entries))
    await asyncio.sleep(0.01)
    await log.close()
    with pytest.raises(StoreError, match="the log was closed"):
        await waiting


async def test_a_reader_behind_pruned_runs_gets_what_they_came_to(store_url: str):
    clock = Clock()
    async with make_log(store_url, clock=clock) as log:
        await log.append_many(THREAD, turn("r1", "one two three four"))
        await log.append_many(THREAD, turn("r2", "five six"))
        clock.pass_ms(1_000)
        await log.append_many(THREAD, turn("r3", "seven eight"))
        done = await log.archive.prune(older_than=timedelta(milliseconds=500))
        assert done.runs == 2
        entries = await log.entries(THREAD)
        assert entries == await read(log, len(entries))
        kinds = [entry.event.type for entry in entries]
        assert kinds.count("TEXT_MESSAGE_CONTENT") == 4
        ordered = seqs(entries)
        assert ordered == sorted(set(ordered))
        assert [entry.seq for entry in entries if entry.event.type == "RUN_FINISHED"] == [9, 16, 23]
        assert [entry.seq for entry in entries if entry.event.type == "RUN_STARTED"] == [1, 10, 17]
        assert seqs(await log.entries(THREAD, after=9, limit=6)) == [10, 11, 12, 13, 14, 16]
        for after in (3, 8, 12):
            with pytest.raises(UnknownThread, match="lies inside it"):
                await read(log, 1, after=after)
            with pytest.raises(UnknownThread):
                await log.entries(THREAD, after=after)
        assert seqs(await log.entries(THREAD, after=16)) == list(range(17, 24))
        assert [run.pruned for run in await log.runs(THREAD)] == [True, True, False]


class Flaky(MemoryStore):
    """Reads fail as often as they are told to."""

    failures = 0

    async def events(
        self, key: Key, *, after: int, upto: int | None = None, limit: int | None = None
    ) -> Page:
        if self.failures:
            self.failures -= 1
            raise StoreError("not just now")
        return await super().events(key, after=after, upto=upto, limit=limit)


async def test_a_store_that_stumbles_loses_no_entry(caplog: pytest.LogCaptureFixture):
    store = Flaky()
    async with RunLog(store, derive="manual") as log, RunLog(store, derive="manual") as elsewhere:
        reading = asyncio.ensure_future(read(log, 6))
        await asyncio.sleep(0.01)
        store.failures = 3
        await elsewhere.append_many(THREAD, turn("r1"))
        assert seqs(await reading) == [1, 2, 3, 4, 5, 6]
        assert "cannot be read at the moment" in caplog.text


async def test_a_store_that_is_gone_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("runcast.slim.log.live_feed.PAUSES", (0.001, 0.001))
    store = Flaky()
    async with RunLog(store, derive="manual") as log, RunLog(store, derive="manual") as elsewhere:
        reading = asyncio.ensure_future(read(log, 6))
        await asyncio.sleep(0.01)
        store.failures = 9
        await elsewhere.append_many(THREAD, turn("r1"))
        with pytest.raises(StoreError, match="attach again when the store is back"):
            await reading
        store.failures = 0
        assert seqs(await read(log, 6)) == [1, 2, 3, 4, 5, 6]


async def test_a_reader_that_comes_back_does_not_get_the_feed_that_broke(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("runcast.slim.log.live_feed.PAUSES", (0.001, 0.001))
    store = Flaky()
    async with RunLog(store, derive="manual") as log, RunLog(store, derive="manual") as elsewhere:
        await elsewhere.append_many(THREAD, turn("r1"))
        async with aclosing(log.attach(THREAD)) as idle:  # it has not left when the other comes back
            assert (await anext(idle)).seq == 1
            reading = asyncio.ensure_future(read(log, 9, after=6))
            await asyncio.sleep(0.01)
            store.failures = 9
            await elsewhere.append_many(THREAD, turn("r2"))
            with pytest.raises(StoreError):
                await reading
            store.failures = 0
            assert seqs(await read(log, 12)) == list(range(1, 13))


async def test_an_entry_that_cannot_be_read_keeps_nobody_waiting(tmp_path: Path):
    async with make_log(f"sqlite:///{tmp_path}/runs.db") as log:
        await log.append_many(THREAD, turn("r1"))
        reading = asyncio.ensure_future(read(log, 9, after=6))
        await asyncio.sleep(0.05)
        with sqlite3.connect(tmp_path / "runs.db") as connection:
            connection.execute("INSERT INTO runcast_events VALUES (1, 7, 1, 5, 'CUSTOM', x'7b')")
            connection.execute("UPDATE runcast_threads SET last_seq = 7")
        connection.close()
        with pytest.raises(StoreError, match="cannot be followed"):
            await reading


async def test_a_store_that_cannot_be_opened_says_so_to_its_reader():
    async with asyncio.timeout(60):
        log = RunLog(open_store("sqlite:///no/such/folder/runs.db"))
        with pytest.raises(StoreError, match="does its folder exist"):
            await anext(log.attach(THREAD))


async def test_watching_costs_nothing_afterwards(store: Store):
    watch: Watch = await store.watch(Key("", THREAD))
    watch.close()
    watch.close()
    async with RunLog(store, derive="manual") as log:
        for _ in range(20):
            assert seqs(await read(log, 0 + 1)) == [1] if await log.thread(THREAD) else True
            if not await log.thread(THREAD):
                await log.append_many(THREAD, turn("r1"))
        assert log.stats().readers == 0


def delta(text: str) -> TextMessageContentEvent:
    return TextMessageContentEvent(message_id="m", delta=text)


async def test_a_durable_delta_is_handed_over_and_not_read_again(tmp_path: Path):
    async with make_log(f"sqlite:///{tmp_path}/log.db") as log:
        await log.append_many(THREAD, [started("r1"), TextMessageStartEvent(message_id="m")])
        plain = delta("a")
        rich = delta("b").model_copy(update={"metadata": {"at": (1, 2)}})
        later = StateSnapshotEvent(snapshot={"pair": (1, 2)})
        async with aclosing(log.attach(THREAD, 1)) as entries:
            assert (await anext(entries)).seq == 2
            await log.append_many(THREAD, [plain, rich, later])
            shown = [(await anext(entries)).event for _ in range(3)]
        stored = [entry.event for entry in await log.entries(THREAD, after=2)]
        assert shown == stored  # what has values of any kind is as the store gives it back
        assert shown[0] is plain


async def test_of_what_was_handed_over_only_what_a_reader_lacks_is_kept():
    async with make_log("memory://") as log:
        await log.append_many(THREAD, [started("r1"), TextMessageStartEvent(message_id="m")])
        async with aclosing(log.attach(THREAD)) as quick:
            assert seqs([await anext(quick), await anext(quick)]) == [1, 2]
            taken: list[ReferenceType[AnyEvent]] = []
            for n in range(100):
                await log.append_many(THREAD, [delta(str(n))])
                taken.append(ref((await anext(quick)).event))
            assert sum(each() is not None for each in taken) < 10


async def test_a_reader_that_leaves_breaks_nothing_behind_the_scenes():
    broken = list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: broken.append(context))
    async with RunLog(open_store("memory://")) as log:
        await log.append_many(THREAD, turn("r1"))
        async with aclosing(log.attach(THREAD)) as entries:
            await anext(entries)
    await asyncio.sleep(0)
    assert broken == []


async def test_a_thread_that_is_not_there_gets_no_title():
    async with RunLog(open_store("memory://")) as log:
        with pytest.raises(UnknownThread, match="to rename"):
            await log.archive.rename(THREAD, "a title")
