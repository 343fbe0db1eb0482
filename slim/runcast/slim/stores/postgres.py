"""PostgreSQL: the store for several workers and several web nodes.

Knows psycopg 3, its pool, advisory locks and LISTEN/NOTIFY; does not know what is stored. A thread's row is the lock
on the thread: the first statement of every transaction updates it. Every append notifies inside its transaction, so
that no reader wakes before it can read. One connection of each store listens for all threads, and wakes all of them
after a reconnect, because it cannot know what it missed. A dead line reports nothing by itself: a connection without an
answer is closed after a while, and the listening one is polled. PostgreSQL does not notice a vanished client either and
would keep the locks of its transaction: every session limits its time idle in a transaction and its wait for a lock.

Behind a pooler that hands out connections by transaction, LISTEN needs a direct address.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
    from psycopg_pool import AsyncConnectionPool, PoolTimeout
except ImportError as error:
    raise ImportError("PostgreSQL needs an extra: pip install 'runcast[postgres]'") from error

from runcast.slim.errors import StoreError
from runcast.slim.outage import Outage
from runcast.slim.stores import refusals
from runcast.slim.stores.sql import schema
from runcast.slim.stores.sql.database import Insert, Query, Row, Script, Wake
from runcast.slim.stores.sql.sql_store import SqlStore
from runcast.slim.stores.wakeups import Wakeups, Watcher
from runcast.slim.tasks import end

Pool: TypeAlias = AsyncConnectionPool[psycopg.AsyncConnection[Row]]
LOG = logging.getLogger(__name__)
CHANNEL = "runcast"
NOTIFY = "SELECT pg_notify(%s, topic) FROM unnest(%s::text[]) topic"
T = TypeVar("T")
MIGRATION_LOCK = 7_823_401_966_142  # any number, the same in every process: two migrations never run at once
# Reads the catalogue: `to_regclass` would cache the answer from before the wait for the lock.
META = """
SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = 'runcast_meta' AND n.nspname = ANY (current_schemas(false))
"""
# How a server answers a login that cannot succeed; psycopg gives a failed connection no SQLSTATE.
REFUSALS = (
    (
        re.compile(r"FATAL:  (role|database) (\".*\") does not exist"),
        r"it has no \1 \2; create it, or check the URL",
    ),
    (
        re.compile(r"FATAL:  .* authentication failed for user (\".*\")"),
        r"wrong user or password (user \1); check the URL",
    ),
    (
        re.compile(r"fe_sendauth: no password supplied"),
        "it asks for a password; give one in the URL, PGPASSWORD or ~/.pgpass",
    ),
    (
        re.compile(r"FATAL:  (?:no pg_hba.conf entry|pg_hba.conf rejects connection) for (host .*)"),
        r"its pg_hba.conf admits no \1",
    ),
)
# Values set by the server's administrator, the role or the URL stay.
BOUNDS = """
SELECT set_config(name, CASE name WHEN 'lock_timeout' THEN %s ELSE %s END, false) FROM pg_settings
WHERE name IN ('lock_timeout', 'idle_in_transaction_session_timeout') AND setting = '0'
"""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # between attempts to listen again
SILENCE = 3  # times the wait for a connection: how long an answer may take before the line counts as dead


def connect(url: str) -> SqlStore:
    """A store for a URL that libpq understands: `postgresql://user@host/name`."""
    return SqlStore(PostgresDatabase(url))


class PostgresDatabase:
    """A database by its URL. `pool_size` bounds the connections besides two: one listens, one renews leases."""

    skip_locked = "FOR NO KEY UPDATE OF t SKIP LOCKED"

    def __init__(self, url: str, *, pool_size: int = 8, timeout_ms: int = 10_000) -> None:
        self._url = url
        self._size = pool_size
        self._timeout = timeout_ms / 1000  # to get a connection
        self._silence = SILENCE * self._timeout
        self._wakeups = Wakeups()
        self._opening = asyncio.Lock()
        self._pool: Pool | None = None
        self._returns: set[asyncio.Future[None]] = set()  # connections on their way back to the pool
        self._listening: asyncio.Task[None] | None = None
        self._outage = Outage(LOG)
        self._heard = asyncio.Event()  # set while the listening connection is up

    async def open(self) -> None:
        """Connect and migrate."""
        await self._open()

    async def _open(self) -> Pool:
        async with self._opening:
            if self._pool is not None:
                return self._pool
            pool: Pool = AsyncConnectionPool(
                self._url, min_size=1, max_size=self._size, timeout=self._timeout, open=False, name="runcast",
                kwargs=self._options(), configure=self._bound,
            )  # fmt: skip
            try:
                with _ours():
                    await self._admitted()
                    await pool.open(wait=True, timeout=self._timeout)
                    await _migrate(pool, self._silence)
            except BaseException:
                await pool.close()
                raise
            self._pool = pool
            return pool

    async def _admitted(self) -> None:
        """Connect once: what a server refuses for good is an error at once; one that is not there yet is waited for."""
        try:
            async with asyncio.timeout(self._timeout):
                connection = await psycopg.AsyncConnection.connect(self._url, **self._options())
            await connection.close()
        except TimeoutError:
            pass
        except psycopg.OperationalError as error:
            if (reason := _refusal(str(error))) is not None:
                raise StoreError(f"PostgreSQL refuses: {reason}") from None

    def _options(self) -> dict[str, Any]:
        """The options of every connection."""
        try:
            read = conninfo_to_dict(self._url)
            if not all(int(each or 0) < 65_536 for each in str(read.get("port", "")).split(",")):
                raise ValueError
        except (
            psycopg.ProgrammingError,
            ValueError,
        ):  # its text, and so its traceback, may quote the password
            raise StoreError(
                "the PostgreSQL URL cannot be read: percent-encode special characters in user and password, "
                "put an IPv6 address in brackets, and let the port be a number"
            ) from None
        return {
            "autocommit": True,
            "connect_timeout": read.get("connect_timeout") or max(2, round(self._timeout)),
        }

    async def _bound(self, connection: psycopg.AsyncConnection[Row]) -> None:
        """Set the server's own time limits to ours."""
        bounds = [f"{seconds * 1000:.0f}" for seconds in (self._timeout, self._silence)]
        async with _answering(connection, self._silence):
            await connection.execute(BOUNDS.encode(), bounds)

    @asynccontextmanager
    async def apart(self) -> AsyncGenerator[PostgresDatabase]:
        """The same database with a connection of its own."""
        own = PostgresDatabase(self._url, pool_size=1, timeout_ms=round(self._timeout * 1000))
        try:
            yield own
        finally:
            await own.close()

    async def close(self) -> None:
        """Disconnect."""
        async with self._opening:
            listening, self._listening = self._listening, None
            await end([listening])
            pool, self._pool = self._pool, None
            if self._returns:
                await asyncio.wait(self._returns)
            if pool is not None:
                await pool.close()

    async def rows(self, sql: str, args: Sequence[object] = ()) -> list[Row]:
        """Read, outside any transaction. Connections that died while they were idle are passed over."""
        pool = self._pool or await self._open()
        with _ours():
            for attempt in range(self._size + 1):
                async with self._lent(pool) as connection, _answering(connection, self._silence):
                    try:
                        return await _rows(connection, sql, args)
                    except psycopg.OperationalError:
                        if not connection.broken or attempt == self._size:
                            raise
        raise StoreError("PostgreSQL closed every connection")

    async def run(self, script: Script[T]) -> T:
        """Run a script in a transaction."""
        pool = self._pool or await self._open()
        topics: list[str] = []
        with _ours():
            async with (
                self._lent(pool) as connection,
                _answering(connection, self._silence),
                connection.transaction(),
            ):
                result = await _perform(connection, script, topics)
        for topic in topics:  # sooner than the notification arrives
            self._wakeups.wake(topic)
        return result

    @asynccontextmanager
    async def _lent(self, pool: Pool) -> AsyncGenerator[psycopg.AsyncConnection[Row]]:
        """A connection of the pool. Its return is shielded: a cancelled return would lose it to the pool."""
        connection = await pool.getconn()
        try:
            async with connection:
                yield connection
        finally:
            back = asyncio.ensure_future(pool.putconn(connection))
            self._returns.add(back)
            back.add_done_callback(self._returns.discard)
            await asyncio.shield(back)

    async def watch(self, *topics: str) -> Watcher:
        """A watcher of these topics; returns once notifications arrive."""
        if self._pool is None:
            await self._open()
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen(), name="runcast-postgres-listen")
        watcher = self._wakeups.watch(*topics)
        try:
            async with asyncio.timeout(self._timeout):
                await self._heard.wait()
        except TimeoutError as error:
            watcher.close()
            raise StoreError("LISTEN failed: is PostgreSQL reachable, and not through a pooler?") from error
        return watcher

    async def _listen(self) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(self._url, **self._options()) as connection:
                    async with _answering(connection, self._silence):
                        await connection.execute(f"LISTEN {CHANNEL}")
                    pause = FIRST_PAUSE
                    self._outage.over("PostgreSQL is back, and notifies this process again")
                    self._heard.set()
                    self._wakeups.wake_all()
                    while True:
                        async for note in connection.notifies(timeout=self._timeout):
                            self._wakeups.wake(note.payload)
                        async with _answering(connection, self._silence):
                            await connection.execute("SELECT 1")
            except psycopg.Error as error:
                reason = str(error).strip().partition("\n")[0].rstrip(".:")
                self._outage.lost(f"lost the connection that listens ({reason}); trying until it is back")
                LOG.debug("listening again in %.1f s", pause)
            finally:
                self._heard.clear()
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)


async def _perform(connection: psycopg.AsyncConnection[Row], script: Script[T], topics: list[str]) -> T:
    """Run the steps of a script inside a transaction."""
    try:
        step = next(script)
        while True:
            rows: list[Row] = []
            match step:
                case Query(sql, args):
                    rows = await _rows(connection, sql, args)
                case Insert(table, columns, new) if new:  # one array for each column, one statement in all
                    arrays = ", ".join(f"%b::{type}[]" for type in columns.values())
                    sql = f"INSERT INTO {table} ({', '.join(columns)}) SELECT * FROM unnest({arrays})"
                    await connection.execute(
                        sql.encode(), [list(column) for column in zip(*new, strict=True)]
                    )
                case Wake(woken) if woken:
                    topics += woken
                    await connection.execute(NOTIFY, (CHANNEL, list(woken)))
                case _:
                    pass
            step = script.send(rows)
    except StopIteration as end:
        result: T = end.value
        return result


async def _migrate(pool: Pool, seconds: float) -> None:
    async with pool.connection() as connection, connection.transaction():
        async with _answering(connection, seconds):
            if await _version(connection) == schema.VERSION:
                return
            await connection.execute("SET LOCAL lock_timeout = 0")
        # The migration of another process may take long.
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
        for statement in schema.upgrade(await _version(connection), "postgres"):
            await connection.execute(statement.encode())
        await _rows(connection, schema.WRITE_VERSION, (str(schema.VERSION),))


async def _version(connection: psycopg.AsyncConnection[Row]) -> int:
    if not await _rows(connection, META):
        return 0
    return int((await _rows(connection, schema.READ_VERSION))[0][0])


async def _rows(connection: psycopg.AsyncConnection[Any], sql: str, args: Sequence[object] = ()) -> list[Row]:
    cursor = await connection.execute(_sql(sql), args)
    return await cursor.fetchall() if cursor.description else []


@asynccontextmanager
async def _answering(connection: psycopg.AsyncConnection[Any], seconds: float) -> AsyncGenerator[None]:
    """Close the connection when the block takes longer; its pending calls then fail."""
    timer = asyncio.get_running_loop().call_later(seconds, _hang_up, connection)
    try:
        yield
    finally:
        timer.cancel()


def _refusal(text: str) -> str | None:
    """What to do about a refusal that waiting cannot change. libpq's own text may quote a misread password."""
    found = ((pattern.search(text), reason) for pattern, reason in REFUSALS)
    return next((match.expand(reason) for match, reason in found if match), None)


def _hang_up(connection: psycopg.AsyncConnection[Any]) -> None:
    LOG.warning("PostgreSQL does not answer; the connection is given up")
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)  # wakes a pending read, which closing would not


@lru_cache(maxsize=512)
def _sql(text: str) -> bytes:
    """The statement with psycopg's placeholders."""
    return text.replace("?", "%s").encode()


@contextmanager
def _ours() -> Generator[None]:
    """Translate PostgreSQL's errors."""
    try:
        yield
    except PoolTimeout as error:
        raise StoreError("PostgreSQL cannot be reached: is it running, and is the URL right?") from error
    except psycopg.errors.ReadOnlySqlTransaction as error:
        raise StoreError(
            "this PostgreSQL only reads (a standby?): give the address of the primary"
        ) from error
    except psycopg.errors.DiskFull as error:
        raise StoreError("PostgreSQL's disk is full: free some space or prune, then go on") from error
    except psycopg.errors.LockNotAvailable as error:
        raise StoreError(
            "another session holds this thread's lock in PostgreSQL: try again; a session without a client ends soon"
        ) from error
    except (psycopg.DataError, psycopg.errors.ProgramLimitExceeded) as error:
        raise refusals.Unstorable(f"PostgreSQL refused a value: {error}".strip()) from error
    except psycopg.OperationalError as error:
        raise StoreError(f"the connection to PostgreSQL failed: {error}".strip()) from error
    except psycopg.Error as error:
        raise StoreError(f"PostgreSQL refused: {error}".strip()) from error
