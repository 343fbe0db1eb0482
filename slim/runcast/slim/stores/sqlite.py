"""SQLite, the default store: one file, nothing to install, several processes at once.

Knows write-ahead logging and the meaning of SQLite's errors; does not know what is stored. One connection writes,
another reads beside it, each in a thread of its own. A transaction runs there in one piece, so transactions take turns
and none is left half done by a cancelled caller. Writes wait for a lock held by another process.

Durable means: committed to the write-ahead log. That survives kill -9; `synchronous="FULL"` survives a power cut
too, for one fsync a batch.

Readers in this process are woken by the commit itself. SQLite has no notification for other processes, so while there
are watchers, a store polls `PRAGMA data_version` every `poll_ms` (a few microseconds, no read of the file) and wakes
them when another connection has committed.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread, current_thread
from types import TracebackType
from typing import Any, Literal, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from weakref import finalize

from runcast.slim.errors import StoreError
from runcast.slim.stores import refusals
from runcast.slim.stores.sql import schema
from runcast.slim.stores.sql.database import Insert, Query, Row, Script, Wake
from runcast.slim.stores.sql.sql_store import SqlStore
from runcast.slim.stores.wakeups import Wakeups, Watcher
from runcast.slim.tasks import end

MEMORY = ":memory:"
T = TypeVar("T")

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

    skip_locked = ""  # one transaction writes at a time

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
        self._translated = _Translated(self._path, self._patience)
        self._wakeups = Wakeups()
        self._opening = asyncio.Lock()
        self._writer: _Connection | None = None
        self._reader: _Connection | None = None
        self._following: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect and migrate."""
        async with self._opening:
            if self._writer is not None:
                return
            with self._translated:
                writer = await self._connect()
                try:
                    await self._prepare(writer)
                    self._reader = writer if self._path == MEMORY else await self._connect()
                except BaseException:
                    await writer.close()
                    raise
            self._writer = writer

    async def _connect(self) -> _Connection:
        name = MEMORY if self._path == MEMORY else f"file:{quote(self._path)}?mode={self._mode}"
        return await _Connection.open(name, self._patience)

    async def _prepare(self, writer: _Connection) -> None:
        if self._mode == "ro":
            found = await writer.submit(_version)
            if found != schema.VERSION:
                raise refusals.other_schema(found, schema.VERSION)
            return
        if self._path != MEMORY:
            await self._write_ahead(writer)
        await writer.rows(f"PRAGMA synchronous = {self._synchronous}")
        await writer.rows("PRAGMA foreign_keys = ON")
        if self._max_bytes is not None:
            ((page,),) = await writer.rows("PRAGMA page_size")
            await writer.rows(f"PRAGMA max_page_count = {max(1, self._max_bytes // page)}")
        if await writer.submit(_version) != schema.VERSION:
            await writer.submit(_migrate)

    async def _write_ahead(self, writer: _Connection) -> None:
        """Switch to WAL. SQLite does not wait for its lock here when two processes open a new file at once."""
        loop = asyncio.get_running_loop()
        patience = loop.time() + self._patience
        while True:
            try:
                await writer.rows("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if not _locked(error) or loop.time() > patience:
                    raise
                await asyncio.sleep(0.01)
            else:
                return

    @asynccontextmanager
    async def apart(self) -> AsyncGenerator[SqliteDatabase]:
        """Itself: a transaction runs in the connection's own thread, whichever event loop asks for it."""
        yield self

    async def close(self) -> None:
        """Disconnect."""
        async with self._opening:
            await self._disconnect()

    async def _disconnect(self) -> None:
        following, self._following = self._following, None
        await end([following])
        connections = {self._reader, self._writer} - {None}
        self._reader = self._writer = None
        for connection in connections:
            if connection is not None:
                await connection.close()

    async def rows(self, sql: str, args: Sequence[object] = ()) -> list[Row]:
        """Read, outside any transaction."""
        if self._reader is None:
            await self.open()
        if self._reader is None:
            raise StoreError(f"{self._path} was closed while it was being read: open it again")
        with self._translated:
            return await self._reader.rows(sql, args)

    async def run(self, script: Script[T]) -> T:
        """Run a script in a transaction. A cancelled caller does not stop it."""
        if self._writer is None:
            await self.open()
        if self._writer is None:
            raise StoreError(f"{self._path} was closed while it was being written: open it again")
        with self._translated:
            topics: list[str] = []
            return await self._writer.submit(_perform, script, topics, then=partial(self._wake, topics))

    def _wake(self, topics: Sequence[str]) -> None:
        for topic in topics:
            self._wakeups.wake(topic)

    async def watch(self, *topics: str) -> Watcher:
        """A watcher of these topics."""
        if self._writer is None:
            await self.open()
        if self._following is None and self._path != MEMORY:
            first = await self._data_version()
            watcher = self._wakeups.watch(*topics)
            if self._following is None:  # else another caller was quicker
                self._following = asyncio.create_task(self._follow(first), name="runcast-sqlite-follow")
            return watcher
        return self._wakeups.watch(*topics)

    async def _follow(self, seen: object) -> None:
        """Wake watchers for the commits of other processes, while there are watchers."""
        try:
            while len(self._wakeups) and self._writer is not None:
                await asyncio.sleep(self._poll)
                now: object = None
                with suppress(StoreError):  # watchers wake, and their next read may raise it
                    now = await self._data_version()
                if now != seen:
                    seen = now
                    self._wakeups.wake_all()
        finally:
            self._following = None

    async def _data_version(self) -> object:
        writer = self._writer
        if writer is None:
            raise StoreError(f"{self._path} is closed")
        with self._translated:
            return (await writer.rows("PRAGMA data_version"))[0][0]


class _Translated:
    """Translates SQLite's errors."""

    def __init__(self, path: str, patience: float) -> None:
        self._path = path
        self._patience = patience

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        if isinstance(error, sqlite3.DataError | UnicodeError | OverflowError):
            raise refusals.Unstorable(f"SQLite cannot hold this value: {error}") from error
        if isinstance(error, sqlite3.Error):
            raise _meaning(error, self._path, self._patience) from error


_Call = tuple[asyncio.AbstractEventLoop, Callable[[], Any], asyncio.Future[Any], Callable[[], None] | None]
_Calls = SimpleQueue[_Call | None]


class _Connection:
    """A connection in a thread of its own, which runs one call at a time."""

    def __init__(self) -> None:
        self._calls: _Calls = SimpleQueue()
        self._connection: sqlite3.Connection | None = None
        thread = Thread(target=_serve, args=(self._calls,), name="runcast-sqlite", daemon=True)
        thread.start()
        finalize(self, _leave, self._calls, thread)  # when the program ends, too: what was asked for is done

    @classmethod
    async def open(cls, name: str, patience: float) -> _Connection:
        """Connect."""
        made = cls()
        connect = partial(sqlite3.connect, name, uri=name != MEMORY, timeout=patience, isolation_level=None)
        try:
            made._connection = await made._ask(connect)
        except BaseException:
            made._calls.put(None)
            raise
        return made

    def submit(
        self, work: Callable[..., T], *args: object, then: Callable[[], None] | None = None
    ) -> asyncio.Future[T]:
        """Run a function of the connection in its thread, then `then` in the event loop. A cancelled caller stops neither."""
        return self._ask(partial(work, self._connection, *args), then)

    def _ask(self, work: Callable[[], T], then: Callable[[], None] | None = None) -> asyncio.Future[T]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._calls.put((loop, work, answer, then))
        return answer

    async def rows(self, sql: str, args: Sequence[object] = ()) -> list[Row]:
        """Run one statement."""
        return await self.submit(_rows, sql, args)

    async def close(self) -> None:
        """Disconnect, after the calls that are under way."""
        await self.submit(sqlite3.Connection.close)
        self._calls.put(None)


def _serve(calls: _Calls) -> None:
    """The thread of a connection."""
    while (call := calls.get()) is not None:
        loop, work, answer, then = call
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:  # noqa: BLE001  raised where the call is waited for
            error = raised
        with suppress(RuntimeError):  # the caller's event loop is closed
            loop.call_soon_threadsafe(_settle, answer, result, error, then)
        del call, work, answer, then, result, error  # nothing is kept while the thread waits


def _settle(
    answer: asyncio.Future[Any], result: object, error: BaseException | None, then: Callable[[], None] | None
) -> None:
    if error is None and then is not None:
        then()
    if answer.done():
        return  # its caller was cancelled
    if error is None:
        answer.set_result(result)
    else:
        answer.set_exception(error)


def _leave(calls: _Calls, thread: Thread) -> None:
    calls.put(None)
    if thread is not current_thread():
        thread.join()


def _rows(connection: sqlite3.Connection, sql: str, args: Sequence[object] = ()) -> list[Row]:
    return connection.execute(sql, args).fetchall()


def _perform(connection: sqlite3.Connection, script: Script[T], topics: list[str]) -> T:
    """Run a script in a transaction, which holds SQLite's lock from its start."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        step = next(script)
        while True:
            rows: list[Row] = []
            match step:
                case Query(sql, args):
                    rows = _rows(connection, sql, args)
                case Insert(table, columns, new):
                    places = ", ".join("?" * len(columns))
                    connection.executemany(
                        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", new
                    )
                case Wake(woken):
                    topics += woken
            step = script.send(rows)
    except StopIteration as end:
        connection.execute("COMMIT")
        result: T = end.value
        return result
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _version(connection: sqlite3.Connection) -> int:
    if not _rows(connection, "SELECT 1 FROM sqlite_master WHERE name = 'runcast_meta'"):
        return 0
    return int(_rows(connection, schema.READ_VERSION)[0][0])


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring the schema up to date, unless another process has done so meanwhile."""

    def script() -> Script[None]:
        for statement in schema.upgrade(_version(connection), "sqlite"):
            yield Query(statement)
        yield Query(schema.WRITE_VERSION, (str(schema.VERSION),))

    _perform(connection, script(), [])


def _locked(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def _meaning(error: sqlite3.Error, path: str, patience: float) -> StoreError:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_READONLY"):
        return refusals.read_only(path)
    if name == "SQLITE_FULL":
        return StoreError(f"{path} is full (the disk, or max_bytes): free some space or prune, then retry")
    if _locked(error):
        return StoreError(
            f"{path} was locked by another process for {patience:g} s: end that process or its transaction"
        )
    if name == "SQLITE_CANTOPEN":
        return StoreError(f"{path} cannot be opened: does its folder exist, and may it be written?")
    if name in ("SQLITE_NOTADB", "SQLITE_CORRUPT"):
        return StoreError(f"{path} is not a sound SQLite database ({error}): restore it from a copy")
    return StoreError(f"{path}: {error}")
