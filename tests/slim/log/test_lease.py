"""Who may write: one owner at a time, and what is left when an owner dies."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from ag_ui.core import CustomEvent

from runcast.slim.errors import Conflict
from runcast.slim.folding.conversation import fold
from runcast.slim.log.run_log import RunLog
from runcast.slim.stores import MemoryStore, open_store
from runcast.slim.stores.records import Key, Lease, StoredRun
from tests.slim.logs import THREAD, Clock, contents, finished, make_log, seqs, started, text, turn


def custom(n: int) -> CustomEvent:
    return CustomEvent(name="n", value=n)


def two_logs(url: str, clock: Clock, **options: object) -> tuple[RunLog, RunLog]:
    """As two processes have them: the same database, a clock that both see."""
    return tuple(make_log(url, clock=clock, owner=owner, **options) for owner in ("mine", "theirs"))  # type: ignore[return-value]  # two of them


async def test_two_owners_cannot_both_append(shared_url: str):
    clock = Clock()
    mine, theirs = two_logs(shared_url, clock)
    async with mine, theirs:
        await mine.append(THREAD, started("r1"))
        with pytest.raises(Conflict, match="is being written by mine"):
            await theirs.append(THREAD, started("r2"))
        with pytest.raises(Conflict):
            await theirs.append(THREAD, custom(1))
        thread = await theirs.thread(THREAD)
        assert thread is not None
        assert (thread.owner, thread.lease_until) == ("mine", clock.now + 15_000)
        await mine.append(THREAD, finished("r1"))
        thread = await theirs.thread(THREAD)
        assert thread is not None
        assert (thread.owner, thread.lease_until) == (None, None)
        await theirs.append_many(THREAD, turn("r2"))
        assert [run.run_id for run in await mine.runs(THREAD)] == ["r1", "r2"]
        assert seqs(await mine.entries(THREAD)) == list(range(1, 9))


async def test_of_two_that_start_at_once_one_wins(shared_url: str):
    mine, theirs = two_logs(shared_url, Clock())
    async with mine, theirs:
        for n in range(10):
            results = await asyncio.gather(
                mine.append_many(f"thread {n}", turn("mine")),
                theirs.append_many(f"thread {n}", turn("theirs")),
                return_exceptions=True,
            )
            conflicts = [result for result in results if isinstance(result, Conflict)]
            runs = await mine.runs(f"thread {n}")
            assert len(runs) + len(conflicts) == 2
            assert [run.status for run in runs] == ["completed"] * len(runs)


async def test_a_run_whose_owner_died_is_truncated_and_can_be_resumed(shared_url: str):
    clock = Clock()
    mine, theirs = two_logs(shared_url, clock)
    async with theirs:
        await mine.append(THREAD, started("r1"))
        await mine.append_many(THREAD, list(text("m1", "half", " an answer"))[:-1])
        clock.pass_ms(15_001)  # and no heartbeat comes
        (run,) = await theirs.runs(THREAD)
        assert (run.status, run.terminal) == ("truncated", None)
        ((thread_id, found),) = await theirs.recovery.recover()
        assert (thread_id, found.run_id, found.status) == (THREAD, "r1", "truncated")
        assert await theirs.recovery.recover() == []
        await theirs.resume(THREAD, "r2")
        await theirs.append_many(THREAD, turn("r2", "a whole one"))
        first, second = await theirs.runs(THREAD)
        assert (first.status, first.terminal, first.attempt) == ("truncated", None, 1)
        assert (second.status, second.parent, second.edge, second.attempt) == ("completed", "r1", "resume", 2)
        types = [entry.event.type for entry in await theirs.entries(THREAD)]
        assert types.count("RUN_FINISHED") == 1
        assert contents(await theirs.restore(THREAD)) == ["half an answer", "well?", "a whole one "]
        with pytest.raises(Conflict, match="cannot append to its run any more"):
            await mine.append_many(THREAD, [custom(1)])
        with pytest.raises(Conflict):
            await mine.append(THREAD, custom(2))
        with pytest.raises(Conflict):
            await mine.flush()
        assert len(await mine.restore(THREAD)) == 4, "reading is nobody's privilege"
        assert mine.stats().lost == 1
        assert mine.stats().leases_lost == 1
        await mine.append_many(THREAD, turn("r3"))
        assert [run.run_id for run in await theirs.runs(THREAD)] == ["r1", "r2", "r3"]
        await mine.close()


async def test_an_owner_that_overslept_goes_on_if_nobody_came(shared_url: str):
    clock = Clock()
    mine, _ = two_logs(shared_url, clock)
    async with mine:
        await mine.append(THREAD, started("r1"))
        clock.pass_ms(60_000)
        await mine.append(THREAD, finished("r1"))
        assert [run.status for run in await mine.runs(THREAD)] == ["completed"]
        await mine.append_many(THREAD, turn("r2"))


async def test_a_log_that_closes_gives_its_leases_back_and_cuts_its_runs_short(shared_url: str):
    log = make_log(shared_url, owner="mine")
    await log.append(THREAD, started("r1"))
    await log.append(THREAD, custom(1))
    await log.start_run("planned", "r1")
    await log.close()
    async with make_log(shared_url, owner="theirs") as again:
        (run,) = await again.runs(THREAD)
        assert (run.status, run.terminal, run.last_seq) == ("truncated", None, 2)
        await again.append_many(THREAD, turn("r2"))
        await again.append_many("planned", turn("r1"))
        assert await again.recovery.recover() == []


async def test_a_planned_run_has_the_lease_before_it_begins(shared_url: str):
    mine, theirs = two_logs(shared_url, Clock())
    async with mine, theirs:
        await mine.start_run(THREAD, "r1")
        with pytest.raises(Conflict):
            await theirs.start_run(THREAD, "r2")
        await mine.append(THREAD, started("r1"))
        with pytest.raises(Conflict, match="'r1' is active here"):
            await mine.start_run(THREAD, "r2")


async def test_a_run_can_be_given_up(store_url: str):
    async with make_log(store_url) as log:
        await log.append(THREAD, started("r1"))
        await log.append(THREAD, custom(1))
        await log.recovery.abandon(THREAD)
        await log.recovery.abandon("elsewhere")
        (run,) = await log.runs(THREAD)
        assert (run.status, run.terminal, run.last_seq) == ("truncated", None, 2)
        await log.resume(THREAD, "r2")
        await log.append_many(THREAD, turn("r2"))
        assert [(run.status, run.attempt) for run in await log.runs(THREAD)] == [
            ("truncated", 1),
            ("completed", 2),
        ]


async def test_runs_of_this_log_are_not_recovered_from_under_it():
    clock = Clock()
    async with make_log("memory://", clock=clock) as log:
        await log.append(THREAD, started("r1"))
        clock.pass_ms(60_000)
        assert await log.recovery.orphaned_runs() == []
        assert await log.recovery.mark_truncated(THREAD) == []
        assert await log.recovery.recover() == []
        await log.append(THREAD, finished("r1"))


async def test_a_writer_that_was_fenced_writes_nothing_more(shared_url: str):
    clock = Clock()
    store = open_store(shared_url)
    key = Key("", THREAD)
    mine, _ = two_logs(shared_url, clock)
    async with mine:
        await mine.append(THREAD, started("r1"))
        clock.pass_ms(20_000)
        await store.acquire(key, owner="theirs", now=clock.now, until=clock.now + 1, epoch="never")
        with pytest.raises(Conflict):
            await mine.append_many(THREAD, [custom(1), custom(2), finished("r1")])
        assert (await store.events(key, after=0)).last_seq == 1
    await store.close()


async def test_writers_that_are_done_are_let_go_of(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("runcast.slim.log.engine.MOST_WRITERS", 10)
    async with make_log("memory://") as log:
        await log.append("open", started("r"))
        for n in range(50):
            await log.append_many(f"thread {n}", turn("r"))
        assert log.stats().writers <= 11
        assert await log.recovery.mark_truncated("open") == [], "its writer is still here"
        await log.append("open", finished("r"))
        assert [run.status for run in await log.runs("open")] == ["completed"]


async def test_a_run_that_is_handed_over_is_found_at_once(shared_url: str):
    async with (
        RunLog(open_store(shared_url), derive="manual") as one,
        RunLog(open_store(shared_url)) as other,
    ):
        await one.append(THREAD, started("r1"))
        assert await other.recovery.recover() == []
        await one.recovery.release_running(THREAD)
        assert [(thread, run.status) for thread, run in await other.recovery.recover()] == [
            (THREAD, "truncated")
        ]
        await one.append_many(THREAD, turn("r2"))
        assert [run.status for run in await one.runs(THREAD)] == ["truncated", "completed"]


async def test_a_log_that_wrote_a_thread_before_finds_its_orphan_too(shared_url: str):
    async with make_log(shared_url) as here, make_log(shared_url) as there:
        await here.append_many(THREAD, turn("r1"))
        await there.append(THREAD, started("r2"))
        assert await here.recovery.orphaned_runs() == []
        await there.recovery.release_running(THREAD)
        assert [found[1:] for found in await here.recovery.orphaned_runs()] == [(THREAD, "r2")]
        await there.append(THREAD, started("r3"))
        assert await there.recovery.orphaned_runs() == []


async def test_a_thread_that_is_taken_for_a_run_is_taken_for_a_whole_lease(shared_url: str):
    clock = Clock()
    mine = make_log(shared_url, clock=clock, lease_ms=600_000)
    async with mine, make_log(shared_url, clock=clock) as theirs:
        await mine.start_run(THREAD, "r1")
        clock.pass_ms(600_000)
        with pytest.raises(Conflict):
            await theirs.append(THREAD, started("r2"))


class Slow(MemoryStore):
    """A store that takes its time to tell a thread's history."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = asyncio.Event()
        self.go_on = asyncio.Event()

    async def lineage(self, key: Key, run_id: str | None = None) -> list[StoredRun]:
        self.reading.set()
        await self.go_on.wait()
        return await super().lineage(key, run_id)


async def test_a_lease_that_is_renewed_while_a_run_begins_begins_no_run():
    store = Slow()
    store.go_on.set()
    async with RunLog(store, lease_ms=30, derive="manual") as log:
        await log.append_many(THREAD, turn("r1"))
        history = fold(await log.restore(THREAD)).messages
        store.reading.clear()
        store.go_on.clear()
        writing = asyncio.ensure_future(log.append_many(THREAD, turn("r2", "yes", *history)))
        await store.reading.wait()
        await asyncio.sleep(0.15)  # some heartbeats
        assert [run.run_id for run in await log.runs(THREAD)] == ["r1"]
        store.go_on.set()
        await writing
        assert [(run.run_id, run.status) for run in await log.runs(THREAD)] == [
            ("r1", "completed"),
            ("r2", "completed"),
        ]


async def test_a_run_of_which_nothing_was_said_never_was():
    store = Slow()
    store.go_on.set()
    async with RunLog(store, derive="manual") as log:
        await log.append_many(THREAD, turn("r1"))
        history = fold(await log.restore(THREAD)).messages
        store.reading.clear()
        store.go_on.clear()
        writing = asyncio.ensure_future(log.append_many(THREAD, turn("r2", "yes", *history)))
        await store.reading.wait()
        writing.cancel()
        await asyncio.wait([writing])
        await log.recovery.abandon(THREAD)
        assert [run.run_id for run in await log.runs(THREAD)] == ["r1"]
        store.go_on.set()
        await log.append_many(THREAD, turn("r2", "yes", *history))


class SlowToLend(MemoryStore):
    """A store that takes its time to give a lease."""

    async def acquire(self, key: Key, **asked: Any) -> Lease:
        await asyncio.sleep(0.05)
        return await super().acquire(key, **asked)


async def test_a_run_that_begins_is_not_taken_for_one_that_lost_its_owner():
    """Two in one process want the thread at once: to begin a run, and to close what was there before."""
    async with RunLog(SlowToLend(), derive="manual") as log:
        beginning = asyncio.ensure_future(log.append(THREAD, started("r1")))
        await asyncio.sleep(0.01)
        assert await log.recovery.mark_truncated(THREAD) == []
        await beginning
        assert [(run.run_id, run.status) for run in await log.runs(THREAD)] == [("r1", "in_progress")]
