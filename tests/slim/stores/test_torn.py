"""Each call of a real driver fails once, early or with its answer lost: a call of the store happened or it did not."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from runcast.slim.errors import Conflict, StoreError
from runcast.slim.stores import Store, open_store
from runcast.slim.stores.contract.tools import NOW, THREAD, TTL, batch, blob, take
from runcast.slim.stores.records import Key, Lease, NewEvent, NewRun, Note, RunEnd
from tests.slim.conftest import empty

OTHER = Key("acme", "other")


class Line:
    """What leads to the database: its calls are counted, and one of them fails."""

    def __init__(self, *, late: bool) -> None:
        self.late = late  # it is made, and its answer is lost
        self.calls = self.fails = 0
        self.task: asyncio.Task[Any] | None = None  # whose calls these are

    @contextmanager
    def failing(self, number: int) -> Iterator[None]:
        self.calls, self.fails, self.task = 0, number, asyncio.current_task()
        try:
            yield
        finally:
            self.fails = 0

    def breaks(self) -> bool:
        """Whether the call that is made now is the one that fails."""
        self.calls += 1
        return self.calls == self.fails


@dataclass(frozen=True)
class Torn:
    """A store over such a line, and another process' eyes."""

    line: Line
    url: str
    eyes: Any  # a connection of the driver


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def torn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Torn]:
    url = empty(request.param, request)
    if request.param == "sqlite":
        line = Line(late=False)  # once it has done a statement, it says so
        with closing(sqlite3.connect(urlsplit(url).path[1:], isolation_level=None)) as eyes:
            monkeypatch.setattr(sqlite3, "connect", partial(_connect, line, sqlite3.connect))
            yield Torn(line, f"{url}?poll_ms=60000", eyes)
        return
    line, wait = Line(late=True), psycopg.AsyncConnection.wait

    async def waited(self: Any, *asked: Any, **more: Any) -> Any:
        answer = await wait(self, *asked, **more)
        if asyncio.current_task() is line.task and line.breaks():  # others are the pool's own
            self.pgconn.finish()
            raise psycopg.OperationalError("the answer was lost")
        return answer

    monkeypatch.setattr(psycopg.AsyncConnection, "wait", waited)
    with psycopg.connect(url, autocommit=True) as eyes:
        yield Torn(line, f"{url}&application_name=torn", eyes)


def _connect(line: Line, connect: Callable[..., Any], *given: Any, **more: Any) -> sqlite3.Connection:
    def check() -> None:
        if line.breaks():
            raise sqlite3.OperationalError("disk I/O error")

    class Connection(sqlite3.Connection):
        def execute(self, *asked: Any) -> sqlite3.Cursor:
            check()
            return super().execute(*asked)

        def executemany(self, *asked: Any) -> sqlite3.Cursor:
            check()
            return super().executemany(*asked)

    check()
    made: sqlite3.Connection = connect(*given, factory=Connection, **more)
    return made


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = open_store(url)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


TABLES = ("threads", "runs", "events", "raws", "blobs", "notes")


def stored(eyes: Any) -> list[list[str]]:
    """All that stands in the database, as no code of ours reads it; a token only rises, and is left out."""
    found: list[list[str]] = []
    for table in TABLES:
        rows = eyes.execute(f"SELECT * FROM runcast_{table}")
        left = [n for n, column in enumerate(rows.description) if column[0] != "token"]
        found.append(sorted(repr([row[n] for n in left]) for row in rows.fetchall()))
    return found


Call = Callable[[], Awaitable[Any]]
AGAIN = object()  # the same answer as before


async def happens_once(torn: Torn, call: Call, again: Any = AGAIN) -> Any:
    """Every call of the driver fails in turn, and nothing has changed; or all has, where only the last answer was lost:
    then the same call again finds that out. Returns the answer."""
    before, number = stored(torn.eyes), 0
    while True:
        number += 1
        answer, failed = None, False
        with torn.line.failing(number):
            try:
                answer = await call()
            except StoreError:
                failed = True
        after = stored(torn.eyes)
        if failed and after != before:
            assert torn.line.late, "half of it was done, and an error raised"
            answer = await call()
            assert again is AGAIN or answer == again
            assert stored(torn.eyes) == after
            return answer
        if after != before or torn.line.calls < number:
            return answer


async def fenced(store: Store, lease: Lease) -> None:
    """No other owner comes in, and no older token of this one."""
    with pytest.raises(Conflict):
        await take(store, lease.key, owner="thief")
    for old in (replace(lease, token=lease.token - 1), replace(lease, owner="thief")):
        with pytest.raises(Conflict):
            await store.append(batch(old, (await store.events(lease.key, after=0)).last_seq + 1, id="stolen"))


async def all_of(store: Store, *batches: Any) -> list[int]:
    """As the committer does it: together, and alone what was not written so."""
    answers = await store.append_all(batches)
    return [
        await store.append(each) if answer is None else answer
        for each, answer in zip(batches, answers, strict=True)
    ]


async def released(store: Store, lease: Lease, first: int) -> None:
    """Release a lease; one that is released already is refused."""
    try:
        await store.append(batch(lease, first, 0, until=None))
    except Conflict:
        assert (await store.thread(lease.key)).owner is None  # type: ignore[union-attr]  # it is there


async def test_a_call_happened_or_it_did_not_and_the_same_again_is_harmless(torn: Torn):
    async with opened(torn.url) as eyes, opened(torn.url) as store:
        once = partial(happens_once, torn)
        lease = await once(lambda: take(store))
        other = await once(lambda: take(store, OTHER))
        await fenced(eyes, lease)
        raw = NewEvent(1, NOW, "RAW", b"raw")
        begins = batch(
            lease, 1, 3, run=NewRun("r1", None, "continue"), raws=(raw,), snapshot=blob("snapshot", 0, 3)
        )
        run = await once(lambda: store.append(begins))
        ends = batch(lease, 4, 2, run=run, end=RunEnd("completed", "RUN_FINISHED", b"[]"))
        whole = batch(other, 1, run=NewRun("r", None, "continue"), end=RunEnd("failed", None), until=None)
        await once(lambda: store.append_all([ends, whole]))
        numbers = await all_of(store, ends, whole)
        assert numbers[0] == run != numbers[1]
        second = batch(lease, 6, 3, run=NewRun("r2", "r1", "continue"), until=NOW + 2 * TTL)
        await once(lambda: store.append(second))
        assert await once(lambda: store.renew([lease], until=NOW + 3 * TTL)) == []
        await fenced(eyes, lease)
        await once(lambda: store.put_blob(THREAD, blob("segment", run, 5)))
        await once(lambda: store.rename(THREAD, "a title"))
        note = Note("n", "box", THREAD, "r1", b"1", NOW)
        await once(lambda: store.post(note), False)
        moved = replace(note, box="moved", body=b"2")
        await once(lambda: store.unpost(note, instead=moved), False)
        assert (await eyes.notes("box"), await eyes.notes("moved")) == ([], [moved])
        await once(lambda: store.unpost(moved), False)
        await once(lambda: store.drop_events(THREAD, [run]))
        page = await once(lambda: store.events(THREAD, after=0, limit=2))  # behind a gap
        assert ([each.seq for each in page.events], page.last_seq) == ([6, 7], 8)
        await once(lambda: released(store, lease, 9))
        await once(lambda: take(store, owner="next"))
        await once(lambda: store.delete(THREAD, now=NOW + 9 * TTL, tombstone=True), False)
        await once(lambda: store.delete(OTHER, now=NOW), False)
        threads, *others = stored(torn.eyes)
        assert len(threads) == 1, "the tombstone"
        assert others == [[], [], [], [], []]


async def test_an_opening_that_fails_leaves_nothing_and_the_next_one_opens(torn: Torn):
    number = 0
    while not number or torn.line.calls >= number:
        number += 1 if number < 6 else 9  # a migration has forty statements, all alike
        store = open_store(torn.url)
        with torn.line.failing(number), suppress(StoreError):
            await store.open()
        await take(
            store, owner=str(number), now=NOW + number * 2 * TTL
        )  # it opens itself where it is not open
        await store.close()
        await gone(torn)


async def gone(torn: Torn) -> None:
    """No connection of a store is left."""
    async with asyncio.timeout(20):
        while any(each.name == "runcast-sqlite" for each in threading.enumerate()):  # noqa: ASYNC110  they end by themselves
            await asyncio.sleep(0.002)
        if isinstance(torn.eyes, psycopg.Connection):
            asked = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'torn'"
            while torn.eyes.execute(asked).fetchall():  # noqa: ASYNC110  as above
                await asyncio.sleep(0.002)


@pytest.mark.parametrize("torn", ["sqlite"], indirect=True)  # PostgreSQL notifies
async def test_who_watches_a_file_hears_other_processes_also_after_a_look_that_failed(torn: Torn):
    """Where the first look fails there is no watch, and nothing is kept of it."""
    async with opened(torn.url.replace("60000", "1")) as store:
        with torn.line.failing(1), pytest.raises(StoreError, match="I/O error"):
            await store.watch(THREAD)
        watch: Any = await store.watch(THREAD)
        with torn.line.failing(1):
            await asyncio.wait_for(watch.wait(), 20)  # it wakes, and its next read may raise the error
        while watch.woken.is_set():  # and once more, since something may have been missed
            watch.woken.clear()
            await asyncio.sleep(0.01)
        torn.eyes.execute("UPDATE runcast_meta SET value = value")
        await asyncio.wait_for(watch.wait(), 20)
        await asyncio.sleep(0.02)
        assert not watch.woken.is_set(), "nothing has changed since"
        watch.close()
        torn.line.calls = 1
        async with asyncio.timeout(20):
            while torn.line.calls:  # nobody watches: it looks no more
                torn.line.calls = 0
                await asyncio.sleep(0.05)


async def test_a_page_at_the_end_is_read_at_one_stroke(torn: Torn):
    async with opened(torn.url) as store:
        lease = await take(store)
        await store.append(batch(lease, 1, 3, run=NewRun("r", None, "continue")))
        for after, limit, found in ((0, 9, 3), (2, 9, 1), (3, 9, 0), (0, 2, 2)):
            with torn.line.failing(0):
                assert len((await store.events(THREAD, after=after, limit=limit)).events) == found
            assert torn.line.calls <= 2, "PostgreSQL may prepare it"
