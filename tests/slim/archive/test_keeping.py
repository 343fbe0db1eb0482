"""What is kept beside the log, what is let go of, and how a thread is carried elsewhere."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import CustomEvent, RawEvent, RunErrorEvent, RunStartedEvent, TokenUsage

from runcast.slim.archive.transfer import Importer
from runcast.slim.errors import Conflict, Forgotten, LineageError, StoreError, UnknownThread, WireError
from runcast.slim.log.run_log import RunLog
from runcast.slim.stores import MemoryStore, open_store
from runcast.slim.stores.records import Key, StoredThread
from tests.slim.logs import THREAD, Clock, contents, finished, make_log, seqs, started, text, turn

DAY = timedelta(days=1)
LONG = "words that come again and again and again " * 10


async def lines(*given: bytes) -> AsyncIterator[bytes]:
    for line in given:
        yield line


async def test_the_newest_snapshot_is_given_back(store_url: str):
    async with make_log(store_url) as log:
        with pytest.raises(UnknownThread):
            await log.save_snapshot(THREAD, {})
        await log.append_many(THREAD, turn("r1"))
        assert await log.snapshot(THREAD) is None
        picture = {"schema": "runcast.snapshot.v1", "half": "\ud83d", "nothing": None, "n": 2**53 + 1}
        first = await log.save_snapshot(THREAD, picture)
        assert (first.seq, first.run_id, first.data) == (6, "r1", picture)
        assert await log.snapshot(THREAD) == first
        await log.append_many(THREAD, turn("r2"))
        second = await log.save_snapshot(THREAD, {"n": 2})
        assert await log.snapshot(THREAD) == second
        assert (await log.save_snapshot(THREAD, {"n": 3})).seq == 12, "the same place again replaces it"
        found = await log.snapshot(THREAD)
        assert found is not None
        assert found.data == {"n": 3}
        with pytest.raises(StoreError, match="a snapshot must be JSON"):
            await log.save_snapshot(THREAD, {"n": object()})
        with pytest.raises(StoreError, match="a snapshot must be JSON"):
            await log.save_snapshot(THREAD, {"n": float("nan")})


async def test_old_snapshots_go(store_url: str):
    store = open_store(store_url)
    async with RunLog(store, derive="manual") as log:
        for n in range(6):
            await log.append_many(THREAD, turn(f"r{n}"))
            await log.save_snapshot(THREAD, {"n": n}, keep=2)
        (key,) = [thread.key for thread in await store.threads("", limit=9)]
        assert [info.seq for info in await store.blob_index(key, "snapshot")] == [30, 36]
        early = await log.save_snapshot(THREAD, {"n": -1}, run_id="r2", keep=9)
        assert early.seq == 18
        found = await log.snapshot(THREAD)
        assert found is not None
        assert found.data == {"n": 5}
        assert (await log.archive.size(THREAD)).snapshots > 0


async def aged(log: RunLog, clock: Clock, runs: int = 4) -> None:
    """One run a day."""
    for n in range(1, runs + 1):
        await log.append_many(THREAD, turn(f"r{n}", f"{LONG}{n}"))
        clock.pass_ms(86_400_000)


async def test_pruned_runs_can_still_be_restored_and_joined(store_url: str):
    clock = Clock()
    async with make_log(store_url, clock=clock, raw="keep") as log:
        await log.append_many(THREAD, [started("r0"), RawEvent(event="raw"), finished("r0")])
        await aged(log, clock)
        before = {run.run_id: await log.restore(THREAD, run.run_id) for run in await log.runs(THREAD)}
        size = await log.archive.size(THREAD)
        done = await log.archive.prune(older_than=2 * DAY)
        assert (done.runs, done.threads) == (3, 0), "r0, r1 and r2"
        after = await log.archive.size(THREAD)
        assert after.events + after.raw == size.events + size.raw - done.bytes
        assert after.entries == size.entries - done.events
        assert await log.archive.raws(THREAD) == []
        assert {run_id: await log.restore(THREAD, run_id) for run_id in before} == before
        assert await log.input(THREAD, "r1") == turn("r1", f"{LONG}1")[0].input  # type: ignore[union-attr]  # a RunStartedEvent
        assert contents(await log.restore(THREAD, "r2", compacted=False)) == contents(before["r2"])
        assert (await log.archive.prune(older_than=2 * DAY)).runs == 0
        await log.archive.prune(what="derived")
        assert {run_id: await log.restore(THREAD, run_id) for run_id in before} == before, "segments stay"
        await log.append_many(THREAD, turn("r9"))
        assert seqs(await log.entries(THREAD))[-1] == (await log.runs(THREAD))[-1].last_seq


async def test_raw_events_are_kept_within_so_many_bytes(store_url: str):
    clock = Clock()
    async with make_log(store_url, clock=clock) as log:
        await aged(log, clock)
        size = await log.archive.size(THREAD)
        done = await log.archive.prune(keep_bytes=size.events // 2)
        assert done.runs == 2
        assert (await log.archive.size(THREAD)).events <= size.events // 2
        assert [run.pruned for run in await log.runs(THREAD)] == [True, True, False, False]
        await log.append(THREAD, started("open"))
        await log.flush()
        assert (await log.archive.prune(keep_bytes=0)).runs == 2, "a run that is under way stays"


async def test_a_late_word_about_a_pruned_run_is_a_part_of_it(store_url: str):
    late = RunErrorEvent(message="the bill was not paid")
    async with make_log(store_url) as log:
        (*_, end) = await log.append_many(THREAD, turn("r1", LONG))
        await log.archive.prune(keep_bytes=0)
        await log.append(THREAD, late)
        stream = await log.restore(THREAD)
        assert stream[-2:] == [finished("r1"), late]
        await log.archive.compact(THREAD)
        await log.archive.prune(keep_bytes=0)
        assert await log.restore(THREAD) == stream
        entries = await log.entries(THREAD)
        assert [entry.event for entry in entries[-2:]] == stream[-2:]
        assert seqs(entries[-2:]) == [end.seq, end.seq + 1]


async def test_a_pruned_run_whose_segment_is_damaged_cannot_be_had_back_from_here(tmp_path: Path):
    async with make_log(f"sqlite:///{tmp_path}/runs.db") as log:
        await log.append_many(THREAD, turn("r1", LONG))
        await log.archive.prune(keep_bytes=0)
        with sqlite3.connect(tmp_path / "runs.db") as connection:
            connection.execute("UPDATE runcast_blobs SET body = x'00'")
        connection.close()
        for call in (log.restore(THREAD), log.entries(THREAD)):
            with pytest.raises(StoreError, match="import a copy"):
                await call


async def test_whole_threads_go_when_nobody_writes_them(store_url: str):
    clock = Clock()
    async with make_log(store_url, clock=clock) as log:
        for n in range(5):
            await log.append_many(f"thread {n}", turn("r1"))
            clock.pass_ms(86_400_000)
        await log.append("thread 0", started("r2"))
        assert (await log.archive.prune(what="threads", older_than=3 * DAY)).threads == 2
        assert [thread.thread_id for thread in await log.threads()] == ["thread 0", "thread 3", "thread 4"]
        assert (await log.archive.prune(what="threads")).threads == 2, "all but the one that is written"
        with pytest.raises(StoreError, match="keep_bytes goes with raw"):
            await log.archive.prune(what="threads", keep_bytes=1)
        with pytest.raises(Conflict, match="stop its run"):
            await log.archive.delete("thread 0")


async def test_a_thread_that_is_written_to_again_is_not_pruned():
    class Busy(MemoryStore):
        async def delete(self, key: Key, **more: Any) -> bool:
            await log.append_many(key.thread_id, turn("r2"))
            return await super().delete(key, **more)

    clock = Clock()
    async with RunLog(Busy(), clock=clock, flush_ms=1) as log:
        await log.append_many(THREAD, turn("r1"))
        clock.pass_ms(60_000)
        assert (await log.archive.prune(what="threads", older_than=timedelta(seconds=30))).threads == 0
        assert [run.run_id for run in await log.runs(THREAD)] == ["r1", "r2"]


async def test_threads_are_listed_page_by_page(store_url: str):
    async with make_log(store_url) as log:
        for n in range(5):
            await log.append_many(f"thread {n}", turn("r1"))
        first = await log.threads(limit=3)
        rest = await log.threads(limit=3, after=first[-1].thread_id)
        assert [thread.thread_id for thread in [*first, *rest]] == [f"thread {n}" for n in range(5)]
        assert {thread.last_seq for thread in first} == {6}


async def fill(log: RunLog) -> None:
    """A thread with all that a run can have."""
    usage = [TokenUsage(model="m", input_tokens=1)]
    await log.append_many(THREAD, [*turn("r1", "Paris")[:-1], finished("r1", usage=usage)])
    await log.append_many(THREAD, turn("r2", "London"))
    await log.branch(THREAD, "r1", "r3")
    hostile = CustomEvent(name="n", value={"half": "\ud83d", "nul": "\0", "null": None})
    await log.append_many(
        THREAD, [started("r3", parent_run_id="r1"), hostile, RunErrorEvent(message="broke")]
    )
    await log.resume(THREAD, "r4")
    await log.append_many(THREAD, turn("r4", "Tokyo"))
    await log.start_run(THREAD, "r5", parent="r4", edge="spawn")
    await log.append_many(THREAD, [started("r5"), *text("m", "x")])


def read(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.mark.parametrize("name", ["thread.jsonl", "thread.jsonl.gz"])
async def test_a_thread_is_carried_to_another_store_as_it_was(store_url: str, tmp_path: Path, name: str):
    async with make_log("memory://") as log, make_log(store_url) as there:
        await fill(log)
        count = await log.archive.export_file(THREAD, tmp_path / name)
        assert count == 1 + 5 + len(await log.entries(THREAD))
        assert all(isinstance(json.loads(line), dict) for line in read(tmp_path / name).splitlines())
        assert await there.archive.import_file(tmp_path / name) == THREAD
        assert await there.entries(THREAD) == await log.entries(THREAD)
        runs, theirs = await log.runs(THREAD), await there.runs(THREAD)
        assert theirs[:-1] == runs[:-1]
        assert theirs[-1].status == "truncated", "the run that was under way has no owner there"
        assert await there.restore(THREAD, "r4") == await log.restore(THREAD, "r4")
        assert await there.archive.import_file(tmp_path / name) == THREAD, "once more is no more"
        await there.append_many(THREAD, turn("r6"))
        entries = await there.entries(THREAD)
        assert await there.archive.import_file(tmp_path / name) == THREAD, "nor where it went on"
        assert await there.entries(THREAD) == entries


async def test_a_pruned_thread_is_carried_as_what_it_came_to(store_url: str):
    async with make_log(store_url) as log, make_log("memory://") as there:
        await log.append_many(THREAD, turn("r1", LONG))
        await log.archive.prune(keep_bytes=0)
        await log.append_many(THREAD, turn("r2", "London"))
        await there.archive.import_lines(log.archive.export_lines(THREAD))
        assert await there.restore(THREAD) == await log.restore(THREAD)
        entries = await there.entries(THREAD)
        assert seqs(entries) == list(range(1, 13))
        assert entries[0].epoch != (await log.entries(THREAD))[0].epoch
        await there.archive.import_lines(log.archive.export_lines(THREAD))
        assert await there.entries(THREAD) == entries, "the same one again is no error"
        await log.append_many(THREAD, turn("r3"))
        with pytest.raises(Conflict, match="exists already"):
            await there.archive.import_lines(log.archive.export_lines(THREAD))


HEADER = b'{"runcast":1,"thread_id":"thread","whole":true,"epoch":"e","last_seq":2}\n'
RUN = b'{"run":{"run_id":"r","edge":"continue","started_at":5,"status":"completed"}}\n'
EVENT = b'{"seq":1,"at":5,"event":{"type":"CUSTOM","name":"n","value":1}}\n'


BAD_IDS = [b"", b"\\u0000", b"a\\r\\nb", b"\\u2028", b"\\u0085", b"x" * 10_000]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([], "no lines"),
        ([b"{}\n"], "no exported thread"),
        ([b"not json\n"], "no exported thread"),
        ([b'{"runcast":9,"thread_id":"t"}\n'], "another format"),
        *(
            (([HEADER.replace(b'thread",', each + b'",'), RUN, EVENT]), "thread_id must be")
            for each in BAD_IDS
        ),
        *(
            (([HEADER.replace(b'"e"', b'"' + each + b'"'), RUN, EVENT]), "epoch must be")
            for each in BAD_IDS[1:]
        ),
        ([HEADER.replace(b'"e"', b'"' + b"e" * 65 + b'"'), RUN, EVENT], "epoch must be"),
        *(([HEADER, RUN.replace(b'"r"', b'"' + each + b'"'), EVENT], "line 2") for each in BAD_IDS),
        *(
            ([HEADER, RUN.replace(b'"edge"', b'"wire_parent":"' + each + b'","edge"')], "line 2")
            for each in BAD_IDS
        ),
        ([HEADER.replace(b"2}", b"true}"), RUN, EVENT], "last_seq is True"),
        ([HEADER.replace(b',"last_seq":2', b""), RUN, EVENT], "last_seq"),
        ([HEADER, RUN, EVENT], "has 1 entries of 2"),
        ([HEADER, RUN, EVENT, EVENT, EVENT], "has 3 entries of 2"),
        ([HEADER, EVENT], "line 2"),
        ([HEADER, RUN, b"{}\n"], "line 3"),
        ([HEADER, RUN, b'{"at":5,"event":{"type":1}}\n'], "line 3"),
        ([HEADER, RUN, b'{"at":"x","event":{"type":"CUSTOM","name":"n","value":1}}\n'], "line 3"),
        ([HEADER, RUN, EVENT, RUN.replace(b"continue", b"sideways")], "line 4"),
        ([HEADER, RUN.replace(b'"run_id":"r",', b"")], "line 2"),
        ([HEADER, RUN.replace(b'"run_id":"r"', b'"run_id":7')], "line 2"),
        ([HEADER, RUN.replace(b',"status":"completed"', b"")], "line 2"),
        ([HEADER, RUN.replace(b"completed", b"in_progress")], "line 2"),
        ([HEADER, RUN.replace(b"completed", b"x" * 3_000_000)], "line 2"),
        ([HEADER, RUN.replace(b'"started_at":5', b'"started_at":1e3')], "line 2"),
        ([HEADER, RUN.replace(b'"started_at":5', b'"started_at":5,"ended_at":-1')], "line 2"),
        ([HEADER, RUN.replace(b'"edge"', b'"usage":[1],"edge"')], "line 2"),
    ],
)
async def test_what_is_no_thread_is_refused_with_its_line(store_url: str, given: list[bytes], problem: str):
    async with make_log(store_url) as log:
        with pytest.raises(WireError, match=problem) as found:
            await log.archive.import_lines(lines(*given))
        assert len(str(found.value)) < 500, "in one line of a log"
        assert "\n" not in str(found.value)
        assert await log.thread(THREAD) is None, "and nothing of it is here"


async def test_no_time_of_an_imported_thread_is_of_the_future(store_url: str):
    clock = Clock()
    later = b"%d" % 2**52
    async with make_log(store_url, clock=clock) as log:
        run, event = RUN.replace(b":5", b":" + later), EVENT.replace(b":5", b":" + later)
        await log.archive.import_lines(
            lines(HEADER, run.replace(b'"status"', b'"ended_at":%s,"status"' % later), event, event)
        )
        thread = await log.thread(THREAD)
        assert thread is not None
        assert thread.updated_at == clock.now
        assert {entry.at for entry in await log.entries(THREAD)} == {clock.now}


async def test_a_thread_that_is_written_while_it_is_exported_says_what_the_export_holds(
    store_url: str, monkeypatch: pytest.MonkeyPatch
):
    store = open_store(store_url)
    async with RunLog(store) as log, make_log("memory://") as there:
        await log.append_many(THREAD, turn("r1"))
        read = store.thread

        async def read_before_a_run(key: Key) -> StoredThread | None:
            monkeypatch.undo()
            found = await read(key)
            await log.append_many(THREAD, turn("r2"))
            return found

        monkeypatch.setattr(store, "thread", read_before_a_run)
        exported = [line async for line in log.archive.export_lines(THREAD)]
        await there.archive.import_lines(lines(*exported))
        assert await there.entries(THREAD) == await log.entries(THREAD)


async def test_an_imported_run_is_never_found_for_recovery(store_url: str, monkeypatch: pytest.MonkeyPatch):
    """A fresh truncated run in a file must not start an agent."""
    clock = Clock()
    async with make_log(store_url, clock=clock) as log:
        fresh = b'"started_at":%d,"ended_at":%d' % (clock.now, clock.now + 5)
        cut = RUN.replace(b"completed", b"truncated").replace(b'"started_at":5', fresh)
        await log.archive.import_lines(lines(HEADER, cut, EVENT, EVENT))
        assert [run.status for run in await log.runs(THREAD)] == ["truncated"]
        assert await log.recovery.truncated_unresumed(2**40) == []

        # As if the importing process was killed: nothing is undone.
        monkeypatch.setattr(Importer, "undo", _nothing)
        header = HEADER.replace(b'thread",', b'half",')
        with pytest.raises(WireError):
            await log.archive.import_lines(lines(header, RUN, *[EVENT] * 1_500, b"broken"))
        clock.pass_ms(1_000_000)
        assert (await log.runs("half"))[0].status == "truncated"  # as seen: nobody has its lease
        assert await log.recovery.orphaned_runs() == []
        assert await log.recovery.recover() == []


async def _nothing(*_: object) -> None:
    pass


async def test_an_import_that_fails_half_way_leaves_nothing(store_url: str):
    async with make_log(store_url) as log:
        orphan = RUN.replace(b'"r"', b'"r2","parent":"nobody"')
        with pytest.raises(LineageError):
            await log.archive.import_lines(lines(HEADER, RUN, *[EVENT] * 1_500, orphan, EVENT))
        assert await log.thread(THREAD) is None
        await log.archive.import_lines(lines(HEADER, RUN, EVENT, EVENT))
        assert seqs(await log.entries(THREAD)) == [1, 2]


async def test_files_that_cannot_be_written_or_read_are_said_so(tmp_path: Path):
    async with make_log("memory://") as log:
        await log.append_many(THREAD, turn("r1"))
        with pytest.raises(StoreError, match="cannot be written"):
            await log.archive.export_file(THREAD, tmp_path / "nowhere" / "x.jsonl")
        with pytest.raises(UnknownThread):
            await log.archive.export_file("nobody", tmp_path / "x.jsonl")
        assert names_in(tmp_path) == []
        with pytest.raises(StoreError, match="cannot be read"):
            await log.archive.import_file(tmp_path / "x.jsonl")
        whole = gzip.compress(HEADER + RUN + EVENT)
        for damaged in (b"no gzip", whole[:-9], whole[:12] + b"\xff\xff" + whole[14:]):
            (tmp_path / "x.jsonl.gz").write_bytes(damaged)
            with pytest.raises(StoreError, match="cannot be read"):
                await log.archive.import_file(tmp_path / "x.jsonl.gz")
        assert await log.thread("thread-of-nobody") is None


async def test_a_small_file_that_unpacks_to_an_endless_line_is_refused(tmp_path: Path):
    """A compressed gigabyte is a megabyte; no more than one line's measure of it is ever held."""
    with gzip.open(tmp_path / "bomb.jsonl.gz", "wb", compresslevel=1) as bomb:
        for _ in range(80):
            bomb.write(b" " * (1 << 20))
    async with make_log("memory://") as log:
        with pytest.raises(WireError, match="a record of more than"):
            await log.archive.import_file(tmp_path / "bomb.jsonl.gz")
        assert await log.threads() == []


async def test_tenants_never_meet(store_url: str):
    async with make_log(store_url) as log:
        a, b = log.for_tenant("a"), log.for_tenant("b")
        await a.append_many(THREAD, turn("r1", "only a"))
        await a.save_snapshot(THREAD, {"of": "a"})
        await b.append_many(THREAD, turn("r1", "only b"))
        assert contents(await a.restore(THREAD)) == ["well?", "only a "]
        assert contents(await b.restore(THREAD)) == ["well?", "only b "]
        assert await b.snapshot(THREAD) is None
        assert await log.entries(THREAD) == []
        assert await log.threads() == []
        (entry, *_) = await b.entries(THREAD)
        assert isinstance(entry.event, RunStartedEvent)
        assert not await log.archive.delete(THREAD)
        assert (await b.archive.prune(what="threads")).threads == 1
        assert len(await a.entries(THREAD)) == 7
        for name in ("a", "b"):
            with pytest.raises(StoreError, match="bound to a tenant already"):
                a.for_tenant(name)
        with pytest.raises(StoreError, match="needs a name"):
            log.for_tenant("")
        await a.append(THREAD, started("r2"))
        await a.append(THREAD, CustomEvent(name="n", value=1))
        await b.append(THREAD, started("r2"))
        await a.close()
        assert (await a.runs(THREAD))[-1].last_seq == 9, "closing a view makes durable what it has"
        assert (await b.runs(THREAD))[-1].status == "in_progress"
        assert log.stats().unflushed == 0


async def test_an_archive_of_many_threads_is_imported_whole_with_their_raw_parts() -> None:
    here, elsewhere = open_store("memory://"), open_store("memory://")
    async with RunLog(here, raw="keep") as log, RunLog(elsewhere) as there:
        for n in range(3):
            begin, *rest = turn("r1")
            await log.append_many(f"t{n}", [begin, RawEvent(event={"n": n}), *rest, RawEvent(event="late")])
            await log.append_many(f"t{n}", turn("r2"))
        whole = [each async for each in log.archive.export_all()]
        assert await there.archive.import_all(lines(*whole)) == ["t0", "t1", "t2"]
        assert [each async for each in there.archive.export_all()] == whole
        for n in range(3):
            assert await there.archive.raws(f"t{n}") == await log.archive.raws(f"t{n}") != []
        assert await there.archive.import_all(lines(*whole)) == ["t0", "t1", "t2"], "once more is no more"
        await there.archive.forget("t1")
        with pytest.raises(Forgotten):
            await there.archive.import_all(lines(*whole))
