"""A store that fails: a typed error, nothing half written, and the agent's run stops or goes on as was chosen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import CustomEvent

from runcast.slim.errors import Conflict, StoreError
from runcast.slim.folding.conversation import fold
from runcast.slim.log.run_log import RunLog
from runcast.slim.stores import MemoryStore, open_store
from runcast.slim.stores.records import Batch, Blob, Key, Lease, StoredRun
from tests.slim.logs import THREAD, finished, seqs, started, turn


def custom(n: int) -> CustomEvent:
    return CustomEvent(name="n", value=n)


class Moody(MemoryStore):
    """A store that can be taken away, before it did what was asked or after."""

    down = False
    forgets_to_answer = False

    async def acquire(self, key: Key, **asked: Any) -> Lease:
        if self.down:
            raise StoreError("the disk is full")
        return await super().acquire(key, **asked)

    async def append(self, batch: Batch) -> int:
        if self.down:
            raise StoreError("the disk is full")
        number = await super().append(batch)
        if self.forgets_to_answer:
            raise StoreError("the connection was lost")
        return number


@pytest.fixture
def store() -> Moody:
    return Moody()


@pytest.fixture
async def stopping(store: Moody) -> AsyncIterator[RunLog]:
    async with RunLog(store, flush_ms=1, flush_events=3, buffer_events=5, derive="manual") as log:
        yield log
        store.down = store.forgets_to_answer = False


@pytest.fixture
async def going_on(store: Moody) -> AsyncIterator[RunLog]:
    async with RunLog(
        store, flush_ms=1, flush_events=3, buffer_events=5, derive="manual", on_store_error="continue"
    ) as log:
        yield log
        store.down = store.forgets_to_answer = False


async def test_the_run_stops_and_what_was_appended_is_still_here(store: Moody, stopping: RunLog):
    await stopping.append(THREAD, started())
    store.down = True
    await stopping.append(THREAD, custom(1))
    with pytest.raises(StoreError, match="disk is full"):
        await stopping.append_many(THREAD, [custom(2)])
    assert stopping.stats().unflushed == 2
    store.down = False
    await stopping.flush(THREAD)
    await stopping.append(THREAD, finished())
    assert [entry.event for entry in await stopping.entries(THREAD)] == [
        started(),
        custom(1),
        custom(2),
        finished(),
    ]
    assert stopping.stats().lost == 0
    assert stopping.stats().store_errors >= 1


async def test_a_run_whose_beginning_waits_for_the_store_is_written_when_it_is_given_up(
    store: Moody, stopping: RunLog
):
    await stopping.start_run(THREAD, "r")
    store.down = True
    with pytest.raises(StoreError, match="disk is full"):
        await stopping.append(THREAD, started())
    assert stopping.stats().unflushed == 1
    store.down = False
    await stopping.recovery.abandon(THREAD)
    assert [each.event for each in await stopping.entries(THREAD)] == [started()]
    assert [run.status for run in await stopping.runs(THREAD)] == ["truncated"]
    assert await stopping.recovery.orphaned_runs() == [], "it has ended in the store too"
    assert stopping.stats().unflushed == 0


async def test_who_only_reads_is_not_told(store: Moody, stopping: RunLog):
    await stopping.append_many(THREAD, turn("r1"))
    await stopping.append(THREAD, started("r2"))
    await stopping.append(THREAD, custom(1))
    store.down = True
    assert len(await stopping.restore(THREAD)) == 3
    with pytest.raises(StoreError):
        await stopping.flush(THREAD)


async def test_one_thread_that_cannot_be_written_keeps_no_other_from_it(store: Moody, stopping: RunLog):
    for thread in ("a", "b"):
        await stopping.append(thread, started())
        await stopping.append(thread, custom(1))
    (key, _) = [thread.key for thread in await store.threads("", limit=2)]
    await store.acquire(key, owner="other", now=2**60, until=2**61, epoch="never")
    for thread in ("a", "b"):
        await stopping.append(thread, custom(2))
    with pytest.raises(Conflict, match="now belongs to other"):
        await stopping.flush()
    assert seqs(await stopping.entries("b")) == [1, 2, 3]


async def test_a_failure_behind_the_scenes_is_told_at_the_next_append(store: Moody, stopping: RunLog):
    await stopping.append(THREAD, started())
    store.down = True
    await stopping.append(THREAD, custom(1))
    while not stopping.stats().store_errors:  # noqa: ASYNC110  # the timer's flush has nobody to tell
        await asyncio.sleep(0.002)
    with pytest.raises(StoreError):
        await stopping.append(THREAD, custom(2))
    store.down = False
    await stopping.append(THREAD, custom(3))
    assert seqs(await stopping.entries(THREAD)) == [1, 2, 3, 4]


async def test_a_store_that_stays_away_is_not_waited_for_for_ever(store: Moody, stopping: RunLog):
    await stopping.append(THREAD, started())
    store.down = True
    for n in range(9):
        with pytest.raises(StoreError):
            await stopping.append_many(THREAD, [custom(n)])
    assert stopping.stats().unflushed == 5
    store.down = False
    await stopping.append(THREAD, finished())
    assert seqs(await stopping.entries(THREAD)) == list(range(1, 8))


async def test_who_appends_waits_for_the_store_as_long_as_was_chosen(store: Moody):
    async with RunLog(store, flush_ms=1, derive="manual", patience_ms=60_000) as log:
        await log.append(THREAD, started())
        store.down = True
        waiting = asyncio.ensure_future(log.append_many(THREAD, [custom(1), finished()]))
        while log.stats().store_errors < 2:  # noqa: ASYNC110  # the writer says nothing while it waits
            await asyncio.sleep(0.002)
        assert not waiting.done()
        store.down = False
        assert seqs(await waiting) == [2, 3]
        store.down = True
        waiting = asyncio.ensure_future(log.append(THREAD, started("r2")))
        await asyncio.sleep(0.02)
        store.down = False
        assert (await waiting) is not None
        assert [run.status for run in await log.runs(THREAD)] == ["completed", "in_progress"]
    assert log.stats().lost == 0


async def test_a_lost_answer_does_not_count_twice(store: Moody, stopping: RunLog):
    await stopping.append(THREAD, started())
    store.forgets_to_answer = True
    with pytest.raises(StoreError, match="connection was lost"):
        await stopping.append_many(THREAD, [custom(1), custom(2)])
    with pytest.raises(StoreError):
        await stopping.flush()
    store.forgets_to_answer = False
    await stopping.append_many(THREAD, [custom(3), finished()])
    assert seqs(await stopping.entries(THREAD)) == [1, 2, 3, 4, 5]
    assert [run.status for run in await stopping.runs(THREAD)] == ["completed"]


async def test_the_run_goes_on_and_is_written_when_the_store_is_back(
    store: Moody, going_on: RunLog, caplog: pytest.LogCaptureFixture
):
    await going_on.append(THREAD, started())
    store.down = True
    entries = [await going_on.append(THREAD, custom(n)) for n in range(4)]
    assert [entry.seq for entry in entries if entry] == [2, 3, 4, 5]
    assert "the run continues, its entries wait" in caplog.text
    store.down = False
    await going_on.append(THREAD, finished())
    assert seqs(await going_on.entries(THREAD)) == [1, 2, 3, 4, 5, 6]
    assert going_on.stats().lost == 0


async def test_beyond_the_bound_it_goes_on_unrecorded_until_the_next_run(store: Moody, going_on: RunLog):
    await going_on.append(THREAD, started("r1"))
    store.down = True
    entries = [await going_on.append(THREAD, custom(n)) for n in range(9)]
    assert [entry.seq if entry else None for entry in entries] == [2, 3, 4, 5, 6, None, None, None, None]
    assert going_on.stats().lost == 9
    assert going_on.stats().unflushed == 0
    with pytest.raises(StoreError, match="disk is full"):
        await going_on.flush()
    store.down = False
    assert await going_on.append(THREAD, finished("r1")) is None
    await going_on.append_many(THREAD, turn("r2"))
    runs = await going_on.runs(THREAD)
    assert [(run.run_id, run.status) for run in runs] == [("r1", "truncated"), ("r2", "completed")]
    assert seqs(await going_on.entries(THREAD)) == list(range(1, 8))


async def test_a_run_that_begins_while_the_store_is_away_is_not_recorded(store: Moody, going_on: RunLog):
    store.down = True
    assert await going_on.append_many(THREAD, turn("r1")) == []
    assert going_on.stats().lost == 6
    store.down = False
    assert len(await going_on.append_many(THREAD, turn("r2"))) == 6
    assert [run.run_id for run in await going_on.runs(THREAD)] == ["r2"]


async def test_what_is_derived_may_fail_without_anybody_minding(caplog: pytest.LogCaptureFixture):
    class NoRoom(MemoryStore):
        async def put_blob(self, key: Key, blob: Blob) -> None:
            raise StoreError("no room for derived things")

    async with RunLog(NoRoom()) as log:
        await log.append_many(THREAD, turn("r1", "yes" + " yes" * 64))
        await log.append_many(THREAD, turn("r2", "yes" + " yes" * 64))
        assert len(await log.restore(THREAD)) == 4
    assert log.stats().derive_errors == 2
    assert "stays as it is" in caplog.text


async def test_an_input_that_cannot_be_made_small_is_stored_whole(caplog: pytest.LogCaptureFixture):
    class Unreadable(MemoryStore):
        async def lineage(self, key: Key, run_id: str | None = None) -> list[StoredRun]:
            raise StoreError("not just now")

    store = MemoryStore()
    async with RunLog(store, derive="manual") as log:
        await log.append_many(THREAD, turn("r1"))
        history = fold(await log.restore(THREAD)).messages
        store.lineage = Unreadable().lineage  # type: ignore[method-assign]  # for a moment
        entries = await log.append_many(THREAD, turn("r2", "yes", *history))
        assert "the input of run 'r2' is stored whole" in caplog.text
        assert entries[0].event == turn("r2", "yes", *history)[0]


async def test_a_full_disk_stops_the_run_or_not_as_was_chosen(tmp_path: Path):
    heavy = CustomEvent(name="heavy", value="x" * 100_000)
    url = f"sqlite:///{tmp_path}/runs.db?max_bytes=400000"
    async with RunLog(open_store(url), flush_events=1, derive="manual") as log:
        await log.append(THREAD, started("r1"))
        with pytest.raises(StoreError, match="full"):
            await log.append_many(THREAD, [heavy] * 9)
        written = seqs(await log.entries(THREAD))
        assert written == list(range(1, len(written) + 1))
        assert 1 < len(written) < 9
        assert [run.status for run in await log.runs(THREAD)] == ["in_progress"]
        with pytest.raises(StoreError, match="full"):
            await log.flush()
        log.stats()
        with pytest.raises(StoreError, match="full"):
            await log.close()
    async with RunLog(open_store(url), flush_events=1, buffer_events=2, on_store_error="continue") as log:
        assert seqs(await log.entries(THREAD)) == written
        for _ in range(9):
            await log.append("other", heavy)
        assert log.stats().lost > 0


async def test_a_database_that_only_reads_is_read(tmp_path: Path):
    async with RunLog(open_store(f"sqlite:///{tmp_path}/runs.db")) as log:
        await log.append_many(THREAD, turn("r1"))
    async with RunLog(open_store(f"sqlite:///{tmp_path}/runs.db?mode=ro")) as log:
        with pytest.raises(StoreError, match="reading only"):
            await log.append(THREAD, started("r2"))
        assert len(await log.entries(THREAD)) == 6
        assert len(await log.restore(THREAD)) == 4


async def test_an_append_that_is_cancelled_is_written_once(store: Moody):
    async with RunLog(store, flush_ms=1, derive="manual") as log:
        await log.append(THREAD, started())
        for n in range(20):
            task = asyncio.ensure_future(log.append_many(THREAD, [custom(n)]))
            for _ in range(n % 4):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        await log.append_many(THREAD, [finished()])
        entries = await log.entries(THREAD)
        values = [entry.event.value for entry in entries if isinstance(entry.event, CustomEvent)]
        assert values == sorted(set(values))
        assert seqs(entries) == list(range(1, len(entries) + 1))
