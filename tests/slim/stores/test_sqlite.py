"""SQLite's own troubles: full disks, read-only files, other processes, programs that forget to close."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from runcast.slim.errors import Conflict, StoreError
from runcast.slim.stores import open_store
from runcast.slim.stores.contract.tools import NOW, THREAD, TTL, batch, seqs, take, write_run
from runcast.slim.stores.records import Batch, Key, NewEvent, NewRun, Note
from runcast.slim.stores.sql.database import Query, Script
from runcast.slim.stores.sql.sql_store import SqlStore
from runcast.slim.stores.sqlite import SqliteDatabase, connect


def empty(request: pytest.FixtureRequest) -> str:
    """Something empty for the contract."""
    return f"sqlite:///{request.getfixturevalue('tmp_path')}/runs.db"


def child(code: str, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, *args], stdout=subprocess.PIPE, text=True)


async def test_a_full_disk_is_a_typed_error_and_half_of_nothing(tmp_path: Path):
    store = open_store(f"sqlite:///{tmp_path}/runs.db?max_bytes=300000")
    lease = await take(store)
    run = await write_run(store, lease, "r")
    heavy = tuple(NewEvent(4 + n, NOW, "CUSTOM", bytes(1000)) for n in range(400))
    too_much = Batch(THREAD, "me", lease.token, "heavy", 4, run, heavy, until=NOW + TTL)
    with pytest.raises(StoreError, match="full"):
        await store.append(too_much)
    assert seqs(await store.events(THREAD, after=0)) == [1, 2, 3]
    await store.append(batch(lease, 4, run=run))
    assert seqs(await store.events(THREAD, after=0)) == [1, 2, 3, 4]
    await store.close()


async def test_a_file_opened_for_reading_is_read_while_another_writes(tmp_path: Path):
    writing = open_store(f"sqlite:///{tmp_path}/runs.db")
    lease = await take(writing)
    run = await write_run(writing, lease, "r")
    reading = open_store(f"sqlite:///{tmp_path}/runs.db?mode=ro")
    assert seqs(await reading.events(THREAD, after=0)) == [1, 2, 3]
    with pytest.raises(StoreError, match="reading only"):
        await take(reading, owner="other")
    watch = await reading.watch(THREAD)
    await writing.append(batch(lease, 4, run=run))
    await asyncio.wait_for(watch.wait(), 60)
    assert seqs(await reading.events(THREAD, after=3)) == [4]
    watch.close()
    await reading.close()
    await writing.close()


async def test_a_file_of_an_older_schema_is_not_touched_by_a_reader(tmp_path: Path):
    (tmp_path / "runs.db").touch()
    store = open_store(f"sqlite:///{tmp_path}/runs.db?mode=ro")
    with pytest.raises(StoreError, match="open it once for writing"):
        await store.open()
    assert (tmp_path / "runs.db").read_bytes() == b""


async def test_a_folder_that_is_not_there_is_said_in_a_sentence(tmp_path: Path):
    store = open_store(f"sqlite:///{tmp_path}/nowhere/runs.db")
    with pytest.raises(StoreError, match="does its folder exist"):
        await store.threads("", limit=1)


async def test_an_id_that_no_column_can_hold_is_a_typed_error(tmp_path: Path):
    store = open_store(f"sqlite:///{tmp_path}/runs.db")
    with pytest.raises(StoreError, match="cannot hold"):
        await take(store, Key("acme", "half \ud83d"))
    await take(store)
    await store.close()


HOLD = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
time.sleep(float(sys.argv[2]))
connection.execute("COMMIT")
"""


async def test_a_lock_of_another_process_is_waited_for(tmp_path: Path):
    store = open_store(f"sqlite:///{tmp_path}/runs.db")
    lease = await take(store)
    with child(HOLD, f"{tmp_path}/runs.db", "0.3") as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        await store.append(batch(lease, 1, run=NewRun("r", None, "continue")))
    await store.close()


async def test_and_not_for_ever(tmp_path: Path):
    store = open_store(f"sqlite:///{tmp_path}/runs.db?patience_ms=50")
    lease = await take(store)
    with child(HOLD, f"{tmp_path}/runs.db", "0.5") as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match="locked by another process"):
            await store.append(batch(lease, 1, run=NewRun("r", None, "continue")))
    await store.append(batch(lease, 1, run=NewRun("r", None, "continue")))
    await store.close()


WRITE = """
import asyncio, sys
from runcast.slim.stores import open_store
from runcast.slim.stores.contract.tools import batch, take
from runcast.slim.stores.records import Key, NewRun

async def main(url, thread):
    store = open_store(url)
    lease = await take(store, Key("acme", thread), owner=thread)
    run = await store.append(batch(lease, 1, run=NewRun("r", None, "continue")))
    for first in range(2, 202, 4):
        await store.append(batch(lease, first, 4, run=run))
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_processes_that_write_different_threads_of_one_file_lose_nothing(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/runs.db"
    writers = [child(WRITE, url, f"thread {n}") for n in range(4)]
    for writer in writers:
        assert await asyncio.to_thread(writer.communicate) == ("", None)
        assert writer.returncode == 0
    store = open_store(url)
    for n in range(4):
        assert seqs(await store.events(Key("acme", f"thread {n}"), after=0)) == list(range(1, 202))
    await store.close()


async def test_the_commits_of_another_process_ring_here(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/runs.db"
    store = open_store(url)
    key = Key("acme", "elsewhere")
    watch = await store.watch(key)
    with child(WRITE, url, "elsewhere"):
        seen = 0
        while seen < 201:
            await asyncio.wait_for(watch.wait(), 60)
            seen = (await store.events(key, after=0)).last_seq
    watch.close()
    await store.close()


FORGET = """
import asyncio, sys
from runcast.slim.stores import open_store
from runcast.slim.stores.contract.tools import take

store = open_store(sys.argv[1])
asyncio.run(take(store))
print("written", flush=True)
"""


async def test_a_program_that_forgets_to_close_ends_all_the_same(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/runs.db"
    with child(FORGET, url) as program:
        assert (await asyncio.to_thread(program.communicate, timeout=30))[0] == "written\n"
    assert program.returncode == 0
    store = open_store(url)
    with pytest.raises(Conflict):
        await take(store, owner="other")
    await store.close()


async def test_a_transaction_that_is_cancelled_leaves_nothing_and_hinders_nobody(tmp_path: Path):
    store = open_store(f"sqlite:///{tmp_path}/runs.db")
    lease = await take(store)
    run = await store.append(batch(lease, 1, run=NewRun("r", None, "continue")))
    last = 1
    for steps in range(12):
        task = asyncio.ensure_future(
            store.append(batch(lease, last + 1, 2, run=run, id=f"try {last} {steps}"))
        )
        for _ in range(steps):
            await asyncio.sleep(0.0002)
        task.cancel()
        await asyncio.wait([task])
        last = (await store.events(THREAD, after=0)).last_seq
        assert last % 2 == 1
    await store.append(batch(lease, last + 1, run=run))
    assert seqs(await store.events(THREAD, after=0)) == list(range(1, last + 2))
    await store.close()


async def test_a_transaction_that_fails_takes_no_other_with_it(tmp_path: Path):
    """They share a connection: a rollback must not reach into another one's statements."""
    database = SqliteDatabase(tmp_path / "runs.db")
    store = SqlStore(database)
    await store.open()
    notes = [Note(f"n{n}", "box", THREAD, "r", b"", n) for n in range(20)]

    async def fails() -> None:
        def script() -> Script[None]:
            yield Query("INSERT INTO runcast_meta VALUES ('half', 'done')")
            time.sleep(0.005)  # in the thread of the connection
            raise Conflict("on purpose")

        with pytest.raises(Conflict, match="on purpose"):
            await database.run(script())

    await asyncio.gather(*(each for note in notes for each in (store.post(note), fails())))
    assert await store.notes("box") == notes
    assert await database.rows("SELECT 1 FROM runcast_meta WHERE name = 'half'") == []
    await store.close()


async def test_many_threads_are_written_in_few_transactions(tmp_path: Path):
    store = open_store(f"sqlite:///{tmp_path}/runs.db")
    keys = [Key("", f"t{n}") for n in range(150)]
    leases = [(await take(store, key), key) for key in keys]
    batches = [
        Batch(
            key,
            "me",
            lease.token,
            key.thread_id,
            1,
            NewRun("r", None, "continue"),
            (NewEvent(1, NOW, "CUSTOM", b"{}"),),
            until=NOW,
        )
        for lease, key in leases
    ]
    assert None not in await store.append_all(batches)
    for key in keys:
        assert seqs(await store.events(key, after=0)) == [1]
    await store.close()


async def test_a_read_waits_for_no_write_of_this_process(tmp_path: Path):
    database = SqliteDatabase(tmp_path / "runs.db")
    await database.open()
    writes, has_read = threading.Event(), threading.Event()

    def script() -> Script[bool]:
        yield Query("INSERT INTO runcast_meta VALUES ('half', 'done')")
        writes.set()
        return has_read.wait(20)

    writing = asyncio.ensure_future(database.run(script()))
    await asyncio.to_thread(writes.wait, 20)
    assert await database.rows("SELECT 1 FROM runcast_meta WHERE name = 'half'") == []
    has_read.set()
    assert await writing
    assert await database.rows("SELECT value FROM runcast_meta WHERE name = 'half'") == [("done",)]
    await database.close()


async def test_a_new_file_that_another_process_holds_is_not_waited_for_for_ever(tmp_path: Path):
    """SQLite itself does not wait when a file is switched to write-ahead logging."""
    store = open_store(f"sqlite:///{tmp_path}/runs.db?patience_ms=40")
    with closing(sqlite3.connect(tmp_path / "runs.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        async with asyncio.timeout(20):
            with pytest.raises(StoreError, match="locked by another process"):
                await store.open()
        other.execute("COMMIT")
        await take(store)
    await store.close()


@pytest.mark.parametrize(
    "wrong",
    [
        "sqlite://host/runs.db",
        "sqlite://",
        "sqlite:///runs.db?mode=5",
        "sqlite:///runs.db?mode=rw",
        "sqlite:///runs.db?mode=",
        "sqlite:///runs.db?poll_ms=x",
        "sqlite:///runs.db?poll_ms=-1",
        "sqlite:///runs.db?synchronous=OFF",
        "sqlite:///runs.db?vfs=unix",
    ],
)
def test_an_address_with_a_mistake_in_it_is_refused(wrong: str):
    with pytest.raises(StoreError, match=r"three slashes and a path|is no option of SQLite"):
        open_store(wrong)


def settings() -> Script[list[object]]:
    found: list[object] = []
    for name in ("journal_mode", "synchronous", "foreign_keys"):
        found += (yield Query(f"PRAGMA {name}"))[0]
    return found


@pytest.mark.parametrize(("said", "number"), [("", 1), ("?synchronous=full", 2)])
async def test_a_file_is_written_ahead_and_as_surely_as_the_address_says(
    tmp_path: Path, said: str, number: int
):
    store = connect(f"sqlite:///{tmp_path}/runs.db{said}")
    assert await store._db.run(settings()) == ["wal", number, 1]  # pyright: ignore[reportPrivateUsage]
    await take(store)
    await store.close()
    assert os.listdir(tmp_path) == ["runs.db"], "it is whole when it is closed"


def threads() -> int:
    return sum(each.name == "runcast-sqlite" for each in threading.enumerate())


async def none_left(before: int) -> None:
    async with asyncio.timeout(30):
        while threads() > before:  # noqa: ASYNC110  threads end by themselves
            await asyncio.sleep(0.01)


async def test_a_store_that_is_closed_or_cannot_open_leaves_no_thread(tmp_path: Path):
    before = threads()
    store = open_store("sqlite:///:memory:")
    await write_run(store, await take(store), "r")
    assert seqs(await store.events(THREAD, after=0)) == [1, 2, 3]
    assert threads() == before + 1
    await store.close()
    await none_left(before)
    (tmp_path / "text.db").write_bytes(b"this is no database, " * 100)
    for path, reason in (
        ("text.db", "not a sound SQLite database"),
        ("none/runs.db", "does its folder exist"),
    ):
        with pytest.raises(StoreError, match=reason):
            await open_store(f"sqlite:///{tmp_path}/{path}").open()
        await none_left(before)


async def test_another_process_may_hold_a_new_file_while_it_is_opened(tmp_path: Path):
    """SQLite does not wait by itself when the journal's mode changes."""
    path = tmp_path / "runs.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE theirs (a)")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match=r"locked by another process for 0[.]05 s"):
            await open_store(f"sqlite:///{path}?patience_ms=50").open()
        store = open_store(f"sqlite:///{path}")
        opening = asyncio.create_task(store.open())
        await asyncio.wait([opening], timeout=0.2)
        assert not opening.done()
        other.execute("COMMIT")
        await opening
    await take(store)
    await store.close()


async def test_one_task_follows_the_file_while_somebody_watches(tmp_path: Path):
    def following() -> int:
        return sum(each.get_name() == "runcast-sqlite-follow" for each in asyncio.all_tasks())

    alone = open_store("sqlite:///:memory:")
    watch = await alone.watch(THREAD)
    assert following() == 0, "nobody else can write to it"
    watch.close()
    await alone.close()
    url = f"sqlite:///{tmp_path}/runs.db?poll_ms=5"
    store, other = open_store(url), open_store(url)
    lease = await take(other)
    for first in (1, 2):
        watches = await asyncio.gather(*(store.watch(THREAD) for _ in range(3)))
        assert following() == 1
        run = NewRun(f"r{first}", None, "continue")
        await other.append(batch(lease, first, run=run))
        for each in watches:
            await asyncio.wait_for(each.wait(), 30)
            each.close()
        async with asyncio.timeout(30):
            while following():  # noqa: ASYNC110  it ends by itself
                await asyncio.sleep(0.005)
    await store.close()
    await other.close()


async def test_an_error_of_a_sound_file_asks_for_no_copy(tmp_path: Path):
    store = connect(f"sqlite:///{tmp_path}/runs.db")
    with pytest.raises(StoreError, match=r"runs.db: no such table: nowhere$"):
        await store._db.rows("SELECT * FROM nowhere")  # pyright: ignore[reportPrivateUsage]
    await store.close()
