"""PostgreSQL's own troubles: connections that go, standbys that only read, one thread that dwarfs the others."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from traceback import format_exception
from typing import Any

import psycopg
import pytest
from ag_ui.core import CustomEvent
from psycopg_pool import AsyncConnectionPool

from runcast.slim.errors import StoreError
from runcast.slim.log.run_log import RunLog
from runcast.slim.stores import open_store, postgres
from runcast.slim.stores.contract.tools import NOW, THREAD, TTL, batch, seqs, take, write_run
from runcast.slim.stores.postgres import PostgresDatabase
from runcast.slim.stores.records import Key, NewRun
from runcast.slim.stores.sql.sql_store import SqlStore
from runcast.slim.stores.wakeups import Wakeups, Watcher
from tests.servers import own_schema
from tests.slim.logs import started

pytestmark = pytest.mark.server


def empty(request: pytest.FixtureRequest) -> str:
    """Something empty for the contract."""
    return own_schema(request.getfixturevalue("postgres_server"))


@pytest.fixture
def url(postgres_server: str) -> str:
    return own_schema(postgres_server)


async def end_connections(url: str, which: str) -> None:
    """What a restart or a firewall does to connections whose last statement looks like this."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE %s AND pid <> pg_backend_pid()",
            (which,),
        )


async def test_what_the_server_refuses_for_good_is_said_at_once_without_the_password(postgres_server: str):
    async with await psycopg.AsyncConnection.connect(postgres_server, autocommit=True) as connection:
        await connection.execute("CREATE ROLE guarded LOGIN PASSWORD 'right'")
        (row,) = await (await connection.execute("SHOW hba_file")).fetchall()
        rules = await asyncio.to_thread(Path(row[0]).read_text)
        await asyncio.to_thread(
            Path(row[0]).write_text,
            f"host all barred all reject\nhost all guarded all scram-sha-256\n{rules}",
        )
        await connection.execute("SELECT pg_reload_conf()")
    place = postgres_server.partition("@")[2].partition("/")[0]
    refused = {
        f"nobody:s3cret@{place}/runcast": 'no role "nobody"',
        f"runcast:s3cret@{place}/none": 'no database "none"',
        f"guarded:s3cret@{place}/runcast": 'wrong user or password .user "guarded".',
        f"guarded@{place}/runcast": "asks for a password",
        f"barred:s3cret@{place}/runcast": 'admits no host .*, user "barred"',
        "u:s3cret/w@h/runcast": "port be a number",  # half of the password stands for a port
        "h:99999/runcast": "port be a number",
    }
    for address, reason in refused.items():
        database = PostgresDatabase(
            f"postgresql://{address}", timeout_ms=600_000
        )  # it does not wait that long
        with pytest.raises(StoreError, match=reason) as caught:
            await asyncio.wait_for(database.open(), 60)
        assert "s3cret" not in "".join(format_exception(caught.value))


async def test_an_append_rings_in_another_store(url: str):
    here, there = open_store(url), open_store(url)
    watch = await there.watch(THREAD)
    lease = await take(here)
    run = await here.append(batch(lease, 1, run=NewRun("r", None, "continue")))
    for first in range(2, 6):
        await asyncio.wait_for(watch.wait(), 60)
        await here.append(batch(lease, first, run=run))
    await asyncio.wait_for(watch.wait(), 60)
    assert (await there.events(THREAD, after=0)).last_seq == 5
    watch.close()
    await here.close()
    await there.close()


async def test_a_lost_listener_comes_back_and_rings_for_what_it_missed(
    url: str, caplog: pytest.LogCaptureFixture
):
    here, there = open_store(url), open_store(url)
    lease = await take(here)
    watch = await there.watch(THREAD)
    await asyncio.wait_for(watch.wait(), 60)
    await end_connections(url, "LISTEN%")
    await here.append(batch(lease, 1, run=NewRun("r", None, "continue")))
    await asyncio.wait_for(watch.wait(), 60)
    assert (await there.events(THREAD, after=0)).last_seq == 1
    assert "lost the connection that listens" in caplog.text
    assert "PostgreSQL is back" in caplog.text
    watch.close()
    await here.close()
    await there.close()


async def test_a_watch_that_cannot_listen_is_refused_and_kept_by_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    store = SqlStore(PostgresDatabase(url, timeout_ms=300))
    monkeypatch.setattr(postgres, "CHANNEL", "no name")
    closed, forget = list[Watcher](), Wakeups.forget

    def forgets(self: Wakeups, watcher: Watcher) -> None:
        closed.append(watcher)
        forget(self, watcher)

    monkeypatch.setattr(Wakeups, "forget", forgets)
    with pytest.raises(StoreError, match="LISTEN failed"):
        await store.watch(THREAD)
    assert len(closed) == 1
    monkeypatch.undo()
    watch = None
    while watch is None:
        with suppress(StoreError):
            watch = await store.watch(THREAD)
    await asyncio.wait_for(watch.wait(), 60)
    caplog.clear()
    caplog.set_level("DEBUG", "runcast.slim.stores.postgres")
    await end_connections(url, "%")
    await asyncio.wait_for(watch.wait(), 60)
    assert "listening again in 0.1 s" in caplog.text, "it has listened meanwhile"
    watch.close()
    await store.close()


async def test_a_lost_connection_is_a_typed_error_and_the_next_call_works(url: str):
    store = open_store(url)
    lease = await take(store)
    await end_connections(url, "%")
    with pytest.raises(StoreError, match="the connection to PostgreSQL failed"):
        await store.append(batch(lease, 1, run=NewRun("r", None, "continue")))
    patience = 50
    while patience:
        try:
            await store.append(batch(lease, 1, run=NewRun("r", None, "continue")))
            break
        except StoreError:
            patience -= 1
            await asyncio.sleep(0.1)
    assert seqs(await store.events(THREAD, after=0)) == [1]
    await store.close()


async def test_a_read_passes_over_connections_that_died_while_nobody_used_them(url: str):
    store = open_store(url)
    await take(store)
    await end_connections(url, "%")
    assert (await store.events(THREAD, after=0)).last_seq == 0
    await store.close()


async def test_a_database_that_only_reads_says_so(url: str):
    writing = open_store(url)
    lease = await take(writing)
    await write_run(writing, lease, "r")
    await writing.close()
    reading = open_store(url.replace("search_path", "default_transaction_read_only%3Don%20-csearch_path"))
    assert seqs(await reading.events(THREAD, after=0)) == [1, 2, 3]
    with pytest.raises(StoreError, match="only reads"):
        await take(reading)
    await reading.close()


async def test_an_id_that_no_column_can_hold_is_a_typed_error(url: str):
    store = open_store(url)
    with pytest.raises(StoreError, match="refused"):
        await take(store, Key("acme", "nul \0"))
    await take(store)
    await store.close()


@pytest.mark.parametrize("early", range(4))
@pytest.mark.parametrize("late", range(4))
async def test_a_reader_that_is_cancelled_takes_no_connection_with_it(
    url: str, monkeypatch: pytest.MonkeyPatch, early: int, late: int
):
    """Also while it gives its connection back, and somebody begins to wait for that very one."""
    giving_back = AsyncConnectionPool.putconn
    database = PostgresDatabase(url, pool_size=1, timeout_ms=2_000)
    await database.open()

    async def turns(count: int) -> None:
        for _ in range(count):
            await asyncio.sleep(0)

    async def cancel() -> None:
        await turns(late)
        reader.cancel()

    async def give_back(pool: Any, connection: Any) -> None:
        monkeypatch.undo()
        tasks.append(asyncio.create_task(database.rows("SELECT 2")))
        await turns(early)
        tasks.append(asyncio.create_task(cancel()))
        await giving_back(pool, connection)

    tasks: list[asyncio.Task[Any]] = []
    monkeypatch.setattr(AsyncConnectionPool, "putconn", give_back)
    reader = asyncio.create_task(database.rows("SELECT 1"))
    await asyncio.wait([reader])
    assert await tasks[0] == [(2,)]
    await tasks[1]
    await database.close()


async def test_nobody_waits_for_a_lock_longer_than_for_a_connection(url: str):
    store = SqlStore(PostgresDatabase(url, timeout_ms=300))
    lease = await take(store)
    async with await psycopg.AsyncConnection.connect(url) as other:
        await other.execute("UPDATE runcast_threads SET updated_at = updated_at")
        with pytest.raises(StoreError, match="another session holds this thread's lock"):
            await store.append(batch(lease, 1, run=NewRun("r", None, "continue")))
    await store.append(batch(lease, 1, run=NewRun("r", None, "continue")))
    assert seqs(await store.events(THREAD, after=0)) == [1]
    await store.close()


@pytest.mark.parametrize(
    ("said", "lock", "idle"),
    [("", "10s", "30s"), ("-clock_timeout%3D4s%20", "4s", "30s")],
    ids=["nothing", "one of them"],
)
async def test_sessions_end_by_themselves_unless_the_url_says_when(url: str, said: str, lock: str, idle: str):
    database = PostgresDatabase(url.replace("-csearch_path", f"{said}-csearch_path"))
    asked = "SELECT current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout')"
    assert [tuple(row) for row in await database.rows(asked)] == [(lock, idle)]
    await database.close()


async def test_a_thread_that_another_session_locks_keeps_no_other_lease_from_being_renewed(url: str):
    store = open_store(url)
    leases = [await take(store, Key("acme", name)) for name in ("a", "b")]
    async with await psycopg.AsyncConnection.connect(url) as other:
        await other.execute("SELECT 1 FROM runcast_threads WHERE thread_id = 'a' FOR UPDATE")
        async with asyncio.timeout(60):
            assert await store.renew(leases, until=NOW + 9 * TTL) == [], "passed over is not lost"
        await other.rollback()
    untils = [(await store.thread(lease.key)).until for lease in leases]  # type: ignore[union-attr]  # they are there
    assert untils == [NOW + TTL, NOW + 9 * TTL]
    await store.close()


async def test_two_stores_write_different_threads_at_once(url: str):
    stores = [open_store(url) for _ in range(3)]

    async def write(n: int) -> None:
        lease = await take(stores[n % 3], Key("acme", f"thread {n}"), owner=f"owner {n}")
        run = await stores[n % 3].append(batch(lease, 1, run=NewRun("r", None, "continue")))
        for first in range(2, 42, 4):
            await stores[n % 3].append(batch(lease, first, 4, run=run))

    await asyncio.gather(*(write(n) for n in range(12)))
    for n in range(12):
        assert seqs(await stores[0].events(Key("acme", f"thread {n}"), after=0)) == list(range(1, 42))
    for store in stores:
        await store.close()


async def test_a_thread_that_another_session_locks_delays_no_other(url: str):
    log = RunLog(open_store(url), derive="manual")
    for name in ("a", "b", "c"):
        await log.append(name, started("r", thread_id=name))
    async with await psycopg.AsyncConnection.connect(url) as other:
        await other.execute("SELECT 1 FROM runcast_threads WHERE thread_id = 'a' FOR UPDATE")
        for name in ("a", "b", "c"):
            await log.append(name, CustomEvent(name="n", value=1))
        waiting = asyncio.ensure_future(log.flush("a"))
        async with asyncio.timeout(60):
            for n in range(20):
                for name in ("b", "c"):
                    await log.append_many(name, [CustomEvent(name="n", value=n)])
        assert not waiting.done()
        await other.rollback()
    await waiting
    assert len(await log.entries("a")) == 2
    assert len(await log.entries("b")) == 22
    await log.close()


async def test_a_statement_that_is_refused_is_asked_once(url: str):
    """Only a connection that died while nobody used it is passed over."""
    database = PostgresDatabase(url.replace("-csearch_path", "-cstatement_timeout%3D200%20-csearch_path"))
    await database.rows("CREATE SEQUENCE tries")
    with pytest.raises(StoreError, match="statement timeout"):
        await database.rows("SELECT nextval('tries'), pg_sleep(60)")
    assert await database.rows("SELECT last_value FROM tries") == [(1,)]
    await database.close()


async def test_the_migration_of_another_process_may_take_long(url: str):
    async with await psycopg.AsyncConnection.connect(url) as other:
        await other.execute("SELECT pg_advisory_xact_lock(%s)", (postgres.MIGRATION_LOCK,))
        database = PostgresDatabase(url, timeout_ms=600)
        opening = asyncio.ensure_future(database.open())
        await asyncio.wait([opening], timeout=0.75)  # longer than any other lock is waited for
        await other.rollback()
        await opening
    assert await database.rows("SELECT count(*) FROM runcast_threads") == [(0,)]
    await database.close()


async def test_a_database_that_is_closed_has_every_connection_back(url: str, monkeypatch: pytest.MonkeyPatch):
    """Also the one of a caller that was cancelled while it gave its connection back."""
    giving_back, gives_back, may = AsyncConnectionPool.putconn, asyncio.Event(), asyncio.Event()

    async def give_back(pool: Any, connection: Any) -> None:
        gives_back.set()
        await may.wait()
        await giving_back(pool, connection)

    database = PostgresDatabase(url)
    await database.open()
    monkeypatch.setattr(AsyncConnectionPool, "putconn", give_back)
    reader = asyncio.create_task(database.rows("SELECT 1"))
    await gives_back.wait()
    reader.cancel()
    await asyncio.wait([reader])
    closing = asyncio.create_task(database.close())
    await asyncio.wait([closing], timeout=0.2)
    assert not closing.done()
    may.set()
    await closing


async def test_a_store_apart_has_one_connection_with_the_same_bounds_and_gives_it_back(url: str):
    count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'apart'"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as other:

        async def connections() -> int:
            ((found,),) = await (await other.execute(count)).fetchall()
            return int(found)

        store = PostgresDatabase(f"{url}&application_name=apart", timeout_ms=9_000)
        async with store.apart() as apart:
            assert await apart.rows("SELECT current_setting('lock_timeout')") == [("9s",)]
            slow = "SELECT pg_backend_pid(), pg_sleep(0.05)"
            pids = {rows[0][0] for rows in await asyncio.gather(*(apart.rows(slow) for _ in range(3)))}
            assert len(pids) == 1
            assert await connections() == 1
        async with asyncio.timeout(30):
            while await connections():  # noqa: ASYNC110  the server ends them
                await asyncio.sleep(0.02)
        await store.close()


async def test_a_watch_of_a_store_that_is_not_open_opens_it(url: str):
    store = SqlStore(PostgresDatabase(url.replace("/postgres?", "/nowhere?"), timeout_ms=600_000))
    with pytest.raises(StoreError, match='no database "nowhere"'):
        await asyncio.wait_for(store.watch(THREAD), 60)
    await store.close()


async def test_a_connection_that_only_listens_is_asked_whether_it_still_answers(url: str):
    store = SqlStore(PostgresDatabase(f"{url}&application_name=listens", timeout_ms=2_000))
    watch = await store.watch(THREAD)
    asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'listens' AND query = 'SELECT 1'"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as other, asyncio.timeout(60):
        while (await (await other.execute(asked)).fetchall()) != [(1,)]:  # noqa: ASYNC110  another session
            await asyncio.sleep(0.02)
    watch.close()
    await store.close()
