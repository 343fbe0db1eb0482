"""An import that was killed, at any of its steps, is completed by the same import; one that lives is left alone."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from ag_ui.core import RawEvent

from runcast.slim.errors import Conflict
from runcast.slim.log.run_log import RunLog
from runcast.slim.stores import open_store
from runcast.slim.stores.records import Key
from tests.slim.killed import Killed, Process
from tests.slim.logs import Clock, make_log, turn


async def lines(*given: bytes) -> AsyncIterator[bytes]:
    for each in given:
        yield each


async def exported(log: RunLog) -> list[bytes]:
    return [line async for line in log.archive.export_all()]


@pytest.fixture
async def archive() -> list[bytes]:
    earlier = Clock()
    earlier.pass_ms(-60_000)
    async with make_log("memory://", clock=earlier, raw="keep") as log:
        for thread in ("t0", "t1"):
            await log.append_many(thread, turn("r1", thread))
            await log.append_many(thread, [*turn("r2", thread)[:-1], RawEvent(event={"n": 1})])
            await log.recovery.abandon(thread)
            await log.archive.rename(thread, f"Title of {thread}")
        return await exported(log)


class Beside:
    """What is outside the log: it is there exactly when the log is."""

    def __init__(self, kept: dict[str, str], step: Callable[[Callable[[], Any]], Any] | None = None) -> None:
        self._kept = kept
        self._step = step

    async def clear(self, thread_id: str) -> None:
        await self._do(lambda: self._kept.pop(thread_id, None))

    async def store(self, thread_id: str) -> None:
        assert thread_id not in self._kept, "what was left is cleared first"
        await self._do(lambda: self._kept.update({thread_id: "whole"}))

    async def _do(self, act: Callable[[], Any]) -> None:
        if self._step is None:
            act()
        else:
            await self._step(act)


@pytest.mark.parametrize("times", [1, 2])
async def test_a_killed_import_is_completed_by_the_same_import(archive: list[bytes], times: int) -> None:
    last, is_whole = 0, False
    while not is_whole:
        last += 1
        clock, store, kept = Clock(), open_store("memory://"), dict[str, str]()
        for n in range(times):
            process = Process(last)
            log = RunLog(process.of(store), clock=clock)
            with suppress(Killed):
                await log.archive.import_all(lines(*archive), beside=Beside(kept, process.step))
                is_whole |= n == 0
            clock.pass_ms(60_000)
        log = RunLog(store, clock=clock)
        assert await log.archive.import_all(lines(*archive), beside=Beside(kept)) == ["t0", "t1"]
        assert await exported(log) == archive, f"killed instead of step {last}"
        assert kept == {"t0": "whole", "t1": "whole"}
        assert [each.owner for each in await log.threads()] == [None, None]
    assert last > 20


class Slow:
    """An import that stands still before its last line, until it may go on."""

    def __init__(self, log: RunLog, archive: list[bytes], beside: Beside | None = None) -> None:
        self.stands = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.end = asyncio.create_task(log.archive.import_all(self._lines(archive), beside=beside))

    async def _lines(self, archive: list[bytes]) -> AsyncIterator[bytes]:
        for each in archive[:-1]:
            yield each
        self.stands.set()
        await self.may_go_on.wait()
        yield archive[-1]


@pytest.mark.parametrize("cut", [0, 1])
async def test_an_import_that_goes_on_is_left_alone(store_url: str, archive: list[bytes], cut: int) -> None:
    """Also when all its lines are there already, and only what is beside the log is missing."""
    async with make_log(store_url) as log:
        first = Slow(log, archive)
        await first.stands.wait()
        with pytest.raises(Conflict, match="is being imported"):
            await log.archive.import_all(lines(*archive[: len(archive) - cut]))
        first.may_go_on.set()
        assert await first.end == ["t0", "t1"]
        assert await exported(log) == archive


async def test_an_import_that_lost_its_thread_removes_nothing(store_url: str, archive: list[bytes]) -> None:
    clock = Clock()
    async with make_log(store_url, clock=clock) as log:
        kept = dict[str, str]()
        slow = Slow(log, archive, Beside(kept))
        await slow.stands.wait()
        clock.pass_ms(60_000)  # it was stopped for longer than its lease
        await log.archive.import_all(lines(*archive), beside=Beside(kept))
        slow.may_go_on.set()
        with pytest.raises(Conflict):
            await slow.end
        assert await exported(log) == archive


async def goes_on(log: RunLog) -> None:
    await log.append_many("t0", turn("r3", "later"))


async def goes_on_and_is_pruned(log: RunLog) -> None:
    await goes_on(log)
    assert (await log.archive.prune(keep_bytes=0, thread_id="t0")).runs == 3


@pytest.mark.parametrize("meanwhile", [goes_on, goes_on_and_is_pruned])
async def test_a_thread_that_went_on_counts_as_imported(
    store_url: str, archive: list[bytes], meanwhile: Callable[[RunLog], Awaitable[None]]
) -> None:
    """Else what a killed import has left of the next thread could only be deleted by hand."""
    clock = Clock()
    store = open_store(store_url)
    process = Process()
    killed = RunLog(process.of(store), clock=clock)
    slow = Slow(killed, archive)
    await slow.stands.wait()
    process.kill()
    slow.may_go_on.set()
    with pytest.raises(Killed):
        await slow.end
    async with RunLog(store, clock=clock) as log:
        await meanwhile(log)
        here = [line async for line in log.archive.export_lines("t0")]
        with pytest.raises(Conflict, match="'t1' is being imported"):
            await log.archive.import_all(lines(*archive))
        clock.pass_ms(60_000)
        assert await log.archive.import_all(lines(*archive)) == ["t0", "t1"]
        assert await exported(log) == [*here, *archive[len(archive) // 2 :]]


async def forgotten(log: RunLog) -> None:
    await log.archive.forget("t0")


async def begun_anew(log: RunLog) -> None:
    await log.archive.begin_anew("t0")


async def made_again(log: RunLog) -> None:
    await log.archive.delete("t0")
    await log.append_many("t0", turn("r1", "t0"))


@pytest.mark.parametrize("meanwhile", [forgotten, begun_anew, made_again])
async def test_a_thread_that_has_no_place_keeps_no_other_from_its_own(
    store_url: str, archive: list[bytes], meanwhile: Callable[[RunLog], Awaitable[None]]
) -> None:
    first, second = archive[: len(archive) // 2], archive[len(archive) // 2 :]
    async with make_log(store_url) as log:
        await log.archive.import_all(lines(*first))
        await meanwhile(log)
        entries = await log.entries("t0")
        with pytest.raises(Conflict, match=r"thread 't0' (was forgotten|exists already)"):
            await log.archive.import_all(lines(*archive))
        assert await log.entries("t0") == entries
        assert [line async for line in log.archive.export_lines("t1")] == second
        with pytest.raises(
            Conflict, match=r"^2 threads are not imported, all others are: thread 't0'.*; thread"
        ):
            await log.archive.import_all(lines(*first, *first, *second))


def with_another(old: bytes, new: bytes) -> Callable[[list[bytes]], list[bytes]]:
    def changed(archive: list[bytes]) -> list[bytes]:
        found = [re.sub(old, new, line) for line in archive]
        assert found != archive
        return found

    return changed


def without_an_entry(archive: list[bytes]) -> list[bytes]:
    gone = next(n for n, line in enumerate(archive) if b"TEXT_MESSAGE_END" in line)
    return [*archive[:gone], *archive[gone + 1 :]]


def with_a_late_entry(archive: list[bytes]) -> list[bytes]:
    """The last run of t0 went on in the store that was left."""
    last = len(archive) // 2
    entry = next(line for line in reversed(archive[:last]) if b"TEXT_MESSAGE_END" in line)
    return [*archive[:last], entry, *archive[last:]]


@pytest.mark.parametrize(
    "other",
    [
        with_another(rb'"run_id":"r2"', b'"run_id":"r9"'),
        with_another(rb'"mark":"(\d+)\.', rb'"mark":"\1.x'),
        with_another(rb'"last_seq":\d+', b'"last_seq":900'),
        without_an_entry,
        with_a_late_entry,
    ],
)
async def test_a_thread_that_went_another_way_does_not_count_as_imported(
    archive: list[bytes], other: Callable[[list[bytes]], list[bytes]]
) -> None:
    async with make_log("memory://") as log:
        await log.archive.import_all(lines(*archive))
        await goes_on(log)
        with pytest.raises(Conflict, match="'t0' exists already with other entries"):
            await log.archive.import_all(lines(*other(archive)))


async def test_the_lease_of_an_import_is_renewed(archive: list[bytes]) -> None:
    store = open_store("memory://")
    async with RunLog(store, lease_ms=300) as log:
        slow = Slow(log, archive)
        await slow.stands.wait()

        async def until() -> int:
            thread = await store.thread(Key("", "t1"))
            return 0 if thread is None else thread.until or 0

        first = await until()
        async with asyncio.timeout(60):
            while await until() <= first:  # noqa: ASYNC110  renewed in another thread
                await asyncio.sleep(0.02)
        slow.may_go_on.set()
        await slow.end


async def test_a_thread_without_entries_takes_the_epoch_of_the_archive(archive: list[bytes]) -> None:
    async with make_log("memory://") as log:
        await log.start_run("t0", "r")
        await log.recovery.abandon("t0")
        for _ in range(2):
            assert await log.archive.import_all(lines(*archive)) == ["t0", "t1"]
        assert await exported(log) == archive


async def test_nothing_that_is_imported_is_of_the_future(archive: list[bytes]) -> None:
    """It would outlive every retention."""
    late = [
        re.sub(rb'"(at|started_at|ended_at)":[0-9]+', rb'"\1":9007199254740991', line) for line in archive
    ]
    assert late != archive
    clock = Clock()
    async with make_log("memory://", clock=clock) as log:
        await log.archive.import_all(lines(*late))
        for thread in ("t0", "t1"):
            info = await log.thread(thread)
            assert info is not None
            runs = await log.runs(thread)
            times = [entry.at for entry in await log.entries(thread)]
            times += [time for run in runs for time in (run.started_at, run.ended_at or 0)]
            assert max(*times, info.updated_at) <= clock.now
