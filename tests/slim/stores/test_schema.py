"""The schema: made and brought up to date by whoever comes first, refused when it is newer; and what a URL may say."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from pathlib import Path

import psycopg
import pytest

from runcast.slim.errors import StoreError
from runcast.slim.stores import MemoryStore, open_store
from runcast.slim.stores.contract.tools import THREAD, take, write_run
from runcast.slim.stores.sql import schema
from tests.servers import own_schema


def old_file(path: Path, version: int) -> str:
    """A file as an earlier version of the schema left it, with one run in it."""
    with sqlite3.connect(path) as connection:
        for statement in schema.upgrade(0, "sqlite"):
            if not any(
                later in statement
                for later in ("_raws", "_blobs", "_notes", "by_name", "runs_truncated", "ADD COLUMN")
            ):
                connection.execute(statement)
        connection.execute(schema.WRITE_VERSION, (str(version),))
        connection.execute(
            "INSERT INTO runcast_threads (tenant, thread_id, epoch, last_seq, created_at, updated_at) "
            "VALUES ('acme', 'thread', 'old', 1, 5, 5)"
        )
        connection.execute(
            "INSERT INTO runcast_runs (thread, run_id, edge, attempt, first_seq, started_at, status) "
            "VALUES (1, 'r', 'continue', 1, 1, 5, 'completed')"
        )
        connection.execute("INSERT INTO runcast_events VALUES (1, 1, 1, 5, 'CUSTOM', x'7b7d')")
    connection.close()
    return f"sqlite:///{path}"


async def test_an_older_file_is_brought_up_to_date_with_what_is_in_it(tmp_path: Path):
    store = open_store(old_file(tmp_path / "old.db", 1))
    page = await store.events(THREAD, after=0)
    assert [event.payload for event in page.events] == [b"{}"]
    assert await store.raws(THREAD, after=0) == []
    lease = await take(store)
    await write_run(store, lease, "next", "r")
    await store.close()
    with sqlite3.connect(tmp_path / "old.db") as connection:
        assert connection.execute(schema.READ_VERSION).fetchone() == (str(schema.VERSION),)
    connection.close()


async def test_a_newer_file_is_refused_and_left_alone(tmp_path: Path):
    url = old_file(tmp_path / "new.db", schema.VERSION + 1)
    before = (tmp_path / "new.db").read_bytes()
    store = open_store(url)
    with pytest.raises(StoreError, match=rf"schema version {schema.VERSION + 1}.*install the version"):
        await store.open()
    await store.close()
    with sqlite3.connect(tmp_path / "new.db") as connection:
        assert connection.execute(schema.READ_VERSION).fetchone() == (str(schema.VERSION + 1),)
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    connection.close()
    assert "runcast_blobs" not in tables
    assert len((tmp_path / "new.db").read_bytes()) == len(before)


@pytest.mark.server
async def test_a_newer_database_is_refused(postgres_server: str):
    url = own_schema(postgres_server)
    store = open_store(url)
    await store.open()
    await store.close()
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute("UPDATE runcast_meta SET value = '99'")
    with pytest.raises(StoreError, match="schema version 99"):
        await store.open()


@pytest.mark.server
async def test_an_older_database_is_brought_up_to_date(postgres_server: str):
    url = own_schema(postgres_server)
    store = open_store(url)
    await store.open()
    await store.close()
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute("DROP TABLE runcast_raws, runcast_blobs, runcast_notes")
        await connection.execute("DROP INDEX runcast_runs_by_name, runcast_runs_truncated")
        await connection.execute("ALTER TABLE runcast_threads DROP COLUMN title")
        await connection.execute("ALTER TABLE runcast_runs DROP COLUMN mark")
        await connection.execute("UPDATE runcast_meta SET value = '1'")
    lease = await take(store)
    await write_run(store, lease, "r")
    assert await store.raws(THREAD, after=0) == []
    await store.close()


async def test_many_stores_may_open_something_new_at_once(shared_url: str):
    stores = [open_store(shared_url) for _ in range(6)]
    await asyncio.gather(*(store.open() for store in stores))
    lease = await take(stores[0])
    await write_run(stores[0], lease, "r")
    assert [len((await store.events(THREAD, after=0)).events) for store in stores] == [3] * 6
    for store in stores:
        await store.close()


async def test_what_is_not_a_database_is_left_alone(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("no database, " * 100)
    store = open_store(f"sqlite:///{tmp_path}/notes.txt")
    with pytest.raises(StoreError, match="not a sound SQLite database"):
        await store.open()
    assert (tmp_path / "notes.txt").read_text() == "no database, " * 100


@pytest.mark.parametrize(
    "url",
    [
        "runs.db",
        "mysql://here/there",
        "base://",
        "url://",
        "sql://",
        "sqlite3.x://a",
        "sqlite://runs.db",
        "sqlite:///",
        "sqlite:///runs.db?mode=rw",
        "sqlite:///runs.db?max_bytes=many",
        "sqlite:///runs.db?cache=shared",
    ],
)
def test_a_url_that_names_no_store_is_refused_with_what_there_is(url: str):
    with pytest.raises(StoreError, match=r"sqlite:///runs\.db|there are: patience_ms"):
        open_store(url)


def test_a_url_names_a_store_and_its_options(tmp_path: Path):
    assert isinstance(open_store("memory://"), MemoryStore)
    open_store("sqlite:///runs.db?synchronous=full&patience_ms=5&poll_ms=5&max_bytes=5&mode=ro")


def test_a_missing_driver_is_said_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "runcast.slim.stores.postgres", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ImportError, match=r"runcast\[postgres\]"):
        open_store("postgresql://nobody@127.0.0.1/none")


@pytest.mark.server
async def test_a_server_that_is_not_there_is_said_in_a_sentence():
    from runcast.slim.stores.postgres import PostgresDatabase

    database = PostgresDatabase("postgresql://nobody:secret@127.0.0.1:1/none", timeout_ms=200)
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        await database.open()
    assert "secret" not in str(caught.value)
