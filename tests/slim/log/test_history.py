"""A log that lost its tail: readers of what is gone are told so, wherever they come back and whatever followed."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

import pytest

from runcast.slim.entry import Entry
from runcast.slim.errors import Conflict, UnknownThread
from runcast.slim.log.run_log import RunLog
from runcast.slim.stores import MemoryStore, open_store
from tests.slim.logs import THREAD, finished, make_log, started, text, turn


def copy(source: Path, target: Path) -> None:
    """What is in one database into another, which may be open: as a backup is restored."""
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


async def taken(entries: AsyncGenerator[Entry], count: int) -> list[Entry]:
    async with asyncio.timeout(60):
        return [await anext(entries) for _ in range(count)]


async def refused(log: RunLog, at: Entry) -> None:
    with pytest.raises(UnknownThread, match="restore it"):
        await log.entries(THREAD, at.seq, epoch=at.history)
    with pytest.raises(UnknownThread, match="restore it"):
        async with aclosing(log.attach(THREAD, at.seq, epoch=at.history)) as entries:
            await taken(entries, 1)


async def test_a_running_reader_notices_an_older_copy(tmp_path: Path):
    path = tmp_path / "runs.db"
    async with make_log(f"sqlite:///{path}") as log:
        await log.append_many(THREAD, turn("r1"))
    copy(path, tmp_path / "old.db")
    async with make_log(f"sqlite:///{path}") as reading, aclosing(reading.attach(THREAD)) as entries:
        async with make_log(f"sqlite:///{path}") as log:
            await log.append_many(THREAD, turn("r2"))
        seen = await taken(entries, 12)
        waiting = asyncio.ensure_future(anext(entries))
        copy(tmp_path / "old.db", path)
        async with asyncio.timeout(60):
            with pytest.raises(UnknownThread, match="restore it"):
                await waiting
        await refused(reading, seen[-1])


@pytest.mark.parametrize("length", [2, 6, 9])
async def test_seqs_that_were_given_out_again_are_no_continuation(tmp_path: Path, length: int):
    path = tmp_path / "runs.db"
    async with make_log(f"sqlite:///{path}") as log:
        await log.append_many(THREAD, turn("r1"))
        copy(path, tmp_path / "old.db")
        await log.append_many(THREAD, turn("r2"))
        before = await log.entries(THREAD)
    copy(tmp_path / "old.db", path)
    async with make_log(f"sqlite:///{path}") as log, aclosing(log.attach(THREAD, 6)) as entries:
        await log.append_many(THREAD, [started("r2"), *text("m", *["x"] * (length - 2))])
        assert [each.seq for each in await taken(entries, length)] == list(range(7, 7 + length))
        for at in before[6:]:
            await refused(log, at)
        for at in before[:6]:
            assert (await log.entries(THREAD, at.seq, 1, epoch=at.history))[0].seq == at.seq + 1
        # A position issued before there were marks is bound to no history.
        assert await log.entries(THREAD, 7, epoch=before[0].epoch) == (await log.entries(THREAD))[7:]


async def test_a_feed_that_slept_through_the_loss_and_what_followed_notices(tmp_path: Path):
    path = tmp_path / "runs.db"
    async with make_log(f"sqlite:///{path}") as log:
        await log.append_many(THREAD, turn("r1"))
    copy(path, tmp_path / "old.db")
    async with make_log(f"sqlite:///{path}") as log:
        await log.append_many(THREAD, turn("r2"))
    copy(path, tmp_path / "new.db")
    copy(tmp_path / "old.db", path)
    async with make_log(f"sqlite:///{path}") as log:
        await log.append_many(THREAD, turn("r3"))
        await log.append_many(THREAD, turn("r4"))
    copy(path, tmp_path / "other.db")
    copy(tmp_path / "new.db", path)
    async with make_log(f"sqlite:///{path}") as log, aclosing(log.attach(THREAD)) as entries:
        await taken(entries, 12)
        waiting = asyncio.ensure_future(anext(entries))
        await asyncio.sleep(0)
        copy(tmp_path / "other.db", path)
        async with asyncio.timeout(60):
            with pytest.raises(UnknownThread, match="lost the entries"):
                await waiting


async def test_what_is_written_here_behind_a_lost_tail_is_not_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "runs.db"
    async with make_log(f"sqlite:///{path}") as log:
        await log.append_many(THREAD, turn("r1"))
        copy(path, tmp_path / "old.db")
        await log.append_many(THREAD, turn("r2"))
    store, readable = open_store(f"sqlite:///{path}"), asyncio.Event()
    readable.set()
    read = store.events

    async def slow(*args: Any, **kwargs: Any) -> Any:
        await readable.wait()
        return await read(*args, **kwargs)

    monkeypatch.setattr(store, "events", slow)
    async with RunLog(store, derive="manual") as log, aclosing(log.attach(THREAD)) as entries:
        await taken(entries, 12)
        waiting = asyncio.ensure_future(anext(entries))
        await asyncio.sleep(0)
        readable.clear()
        copy(tmp_path / "old.db", path)
        await log.append_many(THREAD, [started("r3"), *text("m", "a", "b", "c")])  # up to where the reader is
        (other,) = await log.append_many(THREAD, [finished("r3")])
        assert other.seq == 13
        readable.set()
        async with asyncio.timeout(60):
            with pytest.raises(UnknownThread, match="lost the entries"):
                await waiting


async def test_a_writer_whose_entries_are_gone_begins_another_run(tmp_path: Path):
    path = tmp_path / "runs.db"
    async with make_log(f"sqlite:///{path}") as log:
        await log.append_many(THREAD, [started("r1"), *text("m", "a")])
        copy(path, tmp_path / "old.db")
        await log.append_many(THREAD, text("n", "b"))
        copy(tmp_path / "old.db", path)
        with pytest.raises(Conflict, match="continues at seq"):
            await log.append_many(THREAD, text("o", "c"))
        await log.append_many(THREAD, turn("r2"))
        last = (await log.entries(THREAD))[-1]
        assert last.mark.startswith("5.")
        assert (await log.thread(THREAD)).mark == last.mark  # type: ignore[union-attr]


async def test_a_late_event_behind_a_lost_end_is_no_part_of_that_run(tmp_path: Path):
    path = tmp_path / "runs.db"
    async with make_log(f"sqlite:///{path}") as log:
        await log.append_many(THREAD, [started("r1"), *text("m", "a")])
        copy(path, tmp_path / "old.db")
        await log.append_many(THREAD, [finished("r1")])
        late = (await log.append_many(THREAD, text("late", "b")))[-1]
        assert late.run_id == "r1"
        copy(tmp_path / "old.db", path)
        again = (await log.append_many(THREAD, text("late", "b")))[-1]
        assert again.run_id.startswith("unannounced")
        assert again.mark != late.mark


async def test_a_join_is_continued_in_its_own_history_alone(tmp_path: Path):
    path = tmp_path / "runs.db"
    async with make_log(f"sqlite:///{path}") as log:
        await log.append_many(THREAD, turn("r1"))
        copy(path, tmp_path / "old.db")
        await log.append_many(THREAD, turn("r2"))
        async with aclosing(log.join(THREAD)) as portions:
            first = await anext(portions)
        await log.append_many(THREAD, turn("r3"))
        async with aclosing(log.join(THREAD, at=12, after=12, epoch=first.history)) as portions:
            assert (await anext(portions)).seq == 13
    copy(tmp_path / "old.db", path)
    async with make_log(f"sqlite:///{path}") as log:
        await log.append_many(THREAD, turn("r4"))
        with pytest.raises(UnknownThread, match="lost the entries"):
            async with aclosing(log.join(THREAD, at=12, after=12, epoch=first.history)) as portions:
                await anext(portions)


async def test_an_imported_thread_keeps_its_history_and_a_pruned_one_does_not():
    async with make_log("memory://") as log:
        await log.append_many(THREAD, turn("r1"))
        await log.append_many(THREAD, turn("r2"))
        at = (await log.entries(THREAD))[8]
        lines = [line async for line in log.archive.export_lines(THREAD)]
        await log.archive.compact(THREAD)
        assert (await log.archive.prune(keep_bytes=0)).runs
        pruned = [line async for line in log.archive.export_lines(THREAD)]
    async with RunLog(MemoryStore()) as copied:
        await copied.archive.import_lines(_each(lines))
        assert [each.seq for each in await copied.entries(THREAD, 9, epoch=at.history)] == [10, 11, 12]
    assert b'"mark"' in b"".join(lines)
    assert b'"mark"' not in b"".join(pruned)
    forged = [line.replace(b'"mark":"7.', b'"mark":"3.') for line in lines]
    async with RunLog(MemoryStore()) as copied:
        with pytest.raises(Exception, match="begins at 7"):
            await copied.archive.import_lines(_each(forged))


async def _each(lines: list[bytes]) -> AsyncGenerator[bytes]:
    for line in lines:
        yield line


async def test_a_thread_begins_anew_on_purpose(store_url: str):
    async with make_log(store_url) as log:
        with pytest.raises(UnknownThread, match="no thread"):
            await log.archive.begin_anew(THREAD)
        await log.append_many(THREAD, [started("r1")])
        with pytest.raises(Conflict, match="end it before"):
            await log.archive.begin_anew(THREAD)
        await log.append_many(THREAD, [finished("r1")])
        before = await log.entries(THREAD)
        async with aclosing(log.attach(THREAD)) as entries:
            await taken(entries, 2)
            waiting = asyncio.ensure_future(anext(entries))
            epoch = await log.archive.begin_anew(THREAD)
            async with asyncio.timeout(60):
                with pytest.raises(UnknownThread, match="created anew"):
                    await waiting
        after = await log.entries(THREAD)
        assert [each.epoch for each in after] == [epoch, epoch] != [each.epoch for each in before]
        assert [each.event for each in after] == [each.event for each in before]
        await refused(log, before[0])
        await log.append_many(THREAD, turn("r2"))
        assert (await log.entries(THREAD))[-1].epoch == epoch
