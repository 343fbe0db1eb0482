"""SQLite, the default store: one file, nothing to install, several processes at once.

Knows aiosqlite, write-ahead logging and what SQLite's errors mean; does not know what is stored. One connection
writes (its transactions take turns), another reads beside it. A lock held by another process is waited for.

Durable means: committed to the write-ahead log. That survives kill -9; `synchronous="FULL"` survives a power cut
too, for one fsync a batch.

Readers in this process are woken by the commit itself. SQLite tells nobody about the commits of other processes,
so while somebody watches, a store also asks `PRAGMA data_version` every `poll_ms` (a few microseconds, no read of
the file) and rings when another connection has committed.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import aiosqlite

from runcast.slim.errors import StoreError
from runcast.slim.stores import refuse, schema
from runcast.slim.stores.bells import Bell, Bells
from runcast.slim.stores.sql import Row, SqlStore

BULK_ROWS = 256  # as many rows in one statement; 4 values each stay far below SQLite's bound on arguments
MEMORY = ":memory:"


NUMBERS = ("patience_ms", "poll_ms", "max_bytes")
WORDS = {"mode": ("rwc", "ro"), "synchronous": ("NORMAL", "FULL")}


def connect(url: str) -> SqlStore:
    """A store for `sqlite:///relative.db`, `sqlite:////absolute.db` or `sqlite:///:memory:`, with options as a query."""
    parts = urlsplit(url)
    path = unquote(parts.path).removeprefix("/")
    if parts.netloc or not path:
        raise StoreError(
            "an SQLite URL has three slashes and a path: sqlite:///runs.db, or sqlite:////var/runs.db"
        )
    query = parse_qsl(parts.query, keep_blank_values=True)
    options: dict[str, Any] = {name: _option(name, value) for name, value in query}
    return SqlStore(SqliteDatabase(path, **options))


def _option(name: str, value: str) -> str | int:
    if name in NUMBERS and value.isdecimal():
        return int(value)
    for word in WORDS.get(name, ()):
        if value.lower() == word.lower():
            return word
    raise StoreError(f"{name}={value} is no option of SQLite; there are: {', '.join([*NUMBERS, *WORDS])}")


class SqliteDatabase:
    """A file, or `:memory:`. `mode="ro"` never writes; `max_bytes` bounds the file, and a full one is a `StoreError`.

    `patience_ms` is how long a write waits for the lock that another process holds.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        mode: Literal["rwc", "ro"] = "rwc",
        synchronous: Literal["NORMAL", "FULL"] = "NORMAL",
        patience_ms: int = 30_000,
        poll_ms: int = 50,
        max_bytes: int | None = None,
    ) -> None:
        self._path = str(path)
        self._mode = mode
        self._synchronous = synchronous
        self._patience = patience_ms / 1000
        self._poll = poll_ms / 1000
        self._max_bytes = max_bytes
        self._bells = Bells()
        self._opening = asyncio.Lock()
        self._turn = asyncio.Lock()  # transactions on the writing connection, one after the other
        self._writer: aiosqlite.Connection | None = None
        self._reader: aiosqlite.Connection | None = None
        self._following: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect and migrate."""
        async with self._opening:
            if self._writer is not None:
                return
            with self._ours():
                self._writer = await self._connect()
            try:
                with self._ours():
                    await self._prepare(self._writer)
                    alone = self._path == MEMORY or self._mode == "ro"
                    self._reader = self._writer if alone else await self._connect()
            except BaseException:
                await self._disconnect()
                raise

    async def _connect(self) -> aiosqlite.Connection:
        name = MEMORY if self._path == MEMORY else f"file:{quote(self._path)}?mode={self._mode}"
        connection = aiosqlite.connect(
            name,
            uri=name != MEMORY,
            timeout=self._patience,
            isolation_level="IMMEDIATE",
            cached_statements=256,
        )
        # A program that ends without close() must end: what is committed is safe without this thread.
        thread: Any = getattr(connection, "_thread", connection)
        thread.daemon = True
        try:
            return await connection
        except BaseException:
            # The thread still has a last word for this event loop: it must be out before the loop may close.
            await asyncio.to_thread(thread.join, self._patience)
            raise

    async def _prepare(self, writer: aiosqlite.Connection) -> None:
        if self._mode == "ro":
            await self._check_version(writer)
            return
        if self._path != MEMORY:
            await self._write_ahead(writer)
        await writer.execute(f"PRAGMA synchronous = {self._synchronous}")
        await writer.execute("PRAGMA foreign_keys = ON")
        if self._max_bytes is not None:
            ((page,),) = await writer.execute_fetchall("PRAGMA page_size")
            await writer.execute(f"PRAGMA max_page_count = {max(1, self._max_bytes // page)}")
        await self._migrate(writer)

    async def _write_ahead(self, writer: aiosqlite.Connection) -> None:
        """Switch to WAL. SQLite does not wait for its lock here when two processes open a new file at once."""
        loop = asyncio.get_running_loop()
        patience = loop.time() + self._patience
        while True:
            try:
                await writer.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if not _locked(error) or loop.time() > patience:
                    raise
                await asyncio.sleep(0.01)
            else:
                return

    async def _check_version(self, reader: aiosqlite.Connection) -> None:
        found = await self._version(reader)
        if found != schema.VERSION:
            raise refuse.other_schema(found, schema.VERSION)

    async def _version(self, connection: aiosqlite.Connection) -> int:
        meta = "SELECT 1 FROM sqlite_master WHERE name = 'runcast_meta'"
        if not list(await connection.execute_fetchall(meta)):
            return 0
        return int(next(iter(await connection.execute_fetchall(schema.READ_VERSION)))[0])

    async def _migrate(self, writer: aiosqlite.Connection) -> None:
        if await self._version(writer) == schema.VERSION:
            return
        await writer.execute("BEGIN IMMEDIATE")
        try:
            for statement in schema.upgrade(await self._version(writer), "sqlite"):
                await writer.execute(statement)
            await writer.execute(schema.WRITE_VERSION, (str(schema.VERSION),))
        except BaseException:
            await writer.rollback()
            raise
        await writer.commit()

    async def close(self) -> None:
        """Disconnect."""
        async with self._opening:
            await self._disconnect()

    async def _disconnect(self) -> None:
        following, self._following = self._following, None
        if following is not None:
            following.cancel()
            await asyncio.wait([following])
        connections = {self._reader, self._writer} - {None}
        self._reader = self._writer = None
        for connection in connections:
            if connection is not None:
                await connection.close()

    async def rows(self, sql: str, args: Sequence[object] = ()) -> list[Row]:
        """Read, outside any transaction."""
        if self._reader is None:
            await self.open()
        reader = self._reader
        if reader is None:
            raise StoreError(f"{self._path} was closed while it was being read: open it again")
        with self._ours():
            # Where one connection does both, a read must not see half a transaction.
            async with self._turn if reader is self._writer else nullcontext():
                return list(await reader.execute_fetchall(sql, args))  # type: ignore[arg-type]  # rows are tuples

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[SqliteTransaction]:
        """Commit at the end, or roll back on any exception."""
        if self._mode == "ro":
            raise refuse.read_only(self._path)
        if self._writer is None:
            await self.open()
        async with self._turn:
            writer = self._writer
            if writer is None:
                raise StoreError(f"{self._path} was closed while it was being written: open it again")
            transaction = SqliteTransaction(writer)
            with self._ours():
                try:
                    yield transaction
                    await writer.commit()
                except BaseException:
                    await writer.rollback()
                    raise
        for name in transaction.names:
            self._bells.ring(name)

    async def watch(self, *names: str) -> Bell:
        """A bell that rings under any of these names."""
        if self._writer is None:
            await self.open()
        bell = self._bells.watch(*names)
        if self._following is None and self._path != MEMORY:
            first = await self._data_version()
            self._following = asyncio.create_task(self._follow(first), name="runcast-sqlite-follow")
        return bell

    async def _follow(self, seen: object) -> None:
        """Ring for the commits of others while anybody listens."""
        try:
            while len(self._bells):
                await asyncio.sleep(self._poll)
                now = await self._data_version()
                if now != seen:
                    seen = now
                    self._bells.ring_all()
        except StoreError:
            self._bells.ring_all()  # whoever reads next finds out what is wrong
        finally:
            self._following = None

    async def _data_version(self) -> object:
        writer = self._writer
        if writer is None:
            raise StoreError(f"{self._path} is closed")
        with self._ours():
            return next(iter(await writer.execute_fetchall("PRAGMA data_version")))[0]

    @contextmanager
    def _ours(self) -> Generator[None]:
        """Say what SQLite's errors mean."""
        try:
            yield
        except sqlite3.Error as error:
            raise _meaning(error, self._path, self._patience) from error
        except (UnicodeError, OverflowError) as error:
            raise StoreError(f"SQLite cannot hold this value: {error}") from error


class SqliteTransaction:
    """What can be done between a begin and a commit; SQLite begins, and takes its lock, at the first write."""

    def __init__(self, writer: aiosqlite.Connection) -> None:
        self._writer = writer
        self.names: list[str] = []

    async def rows(self, sql: str, args: Sequence[object] = ()) -> list[Row]:
        """Run one statement and give back its rows."""
        return list(await self._writer.execute_fetchall(sql, args))  # type: ignore[arg-type]  # rows are tuples

    async def insert(
        self, table: str, common: dict[str, object], columns: dict[str, str], rows: Sequence[Row]
    ) -> None:
        """Insert many rows that share some values; whole bulks in one statement, the rest row by row."""
        names, shared = ", ".join([*common, *columns]), tuple(common.values())
        whole = len(rows) - len(rows) % BULK_ROWS
        if whole:
            bulk = f"INSERT INTO {table} ({names}) VALUES {_places(len(common), len(columns), BULK_ROWS)}"
            for at in range(0, whole, BULK_ROWS):
                values = chain(shared, chain.from_iterable(rows[at : at + BULK_ROWS]))
                await self._writer.execute_fetchall(bulk, list(values))
        if whole < len(rows):
            one = f"INSERT INTO {table} ({names}) VALUES {_places(len(common), len(columns), 1)}"
            await self._writer.executemany(one, [shared + tuple(row) for row in rows[whole:]])

    async def ring(self, name: str) -> None:
        """Wake the watchers of this name once the transaction is committed."""
        self.names.append(name)


def _places(common: int, own: int, rows: int) -> str:
    """Argument numbers for rows that share their first values."""
    shared = [f"?{n}" for n in range(1, common + 1)]
    starts = range(common + 1, common + 1 + own * rows, own)
    return ", ".join("(" + ", ".join([*shared, *(f"?{s + n}" for n in range(own))]) + ")" for s in starts)


def _locked(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def _meaning(error: sqlite3.Error, path: str, patience: float) -> StoreError:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_READONLY"):
        return refuse.read_only(path)
    if name == "SQLITE_FULL":
        return StoreError(f"{path} is full (the disk, or max_bytes): free some space or prune, then go on")
    if _locked(error):
        return StoreError(f"{path} was locked by another process for {patience:g} s: what is holding it?")
    if name == "SQLITE_CANTOPEN":
        return StoreError(f"{path} cannot be opened: does its folder exist, and may it be written?")
    if name in ("SQLITE_NOTADB", "SQLITE_CORRUPT"):
        return StoreError(f"{path} is not a sound SQLite database ({error}): restore it from a copy")
    return StoreError(f"{path}: {error}")
