"""The store in SQL, once for every database with enough of the language.

Knows the statements and the meaning of their answers; does not know a driver.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress

from runcast.slim.errors import Conflict, LineageError
from runcast.slim.stores import refusals
from runcast.slim.stores.base import Watch
from runcast.slim.stores.records import (
    APART,
    Batch,
    Key,
    Lease,
    NewEvent,
    NewRun,
    Page,
    RunSize,
    StoredEvent,
    StoredRun,
    StoredThread,
)
from runcast.slim.stores.sql import statements as say
from runcast.slim.stores.sql.database import Database, Insert, Query, Row, Script, Wake
from runcast.slim.stores.sql.removal import SqlRemoval
from runcast.slim.stores.sql.side_tables import SqlBlobs, SqlNotes, blob_values
from runcast.slim.stores.wakeups import thread_topic

IN_ONE_TRANSACTION = 200  # batches: each takes 10 of the arguments that a statement may have


class SqlStore(SqlRemoval, SqlBlobs, SqlNotes):
    """A `Store` over a `Database`."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def open(self) -> None:
        """Connect and bring the schema up to date."""
        await self._db.open()

    @asynccontextmanager
    async def apart(self) -> AsyncGenerator[SqlStore]:
        """The open store for the event loop of another thread."""
        async with self._db.apart() as database:
            yield SqlStore(database)

    async def close(self) -> None:
        """Release all resources; the store can be opened again."""
        await self._db.close()

    async def acquire(
        self, key: Key, *, owner: str, now: int, until: int, epoch: str, anew: bool = False
    ) -> Lease:
        """Take the thread's lease; see `Store.acquire`."""

        def script() -> Script[Lease]:
            values = (*key, epoch, owner, until, now, now, int(anew), owner, now, *key)
            rows = yield Query(say.ACQUIRE, values)
            if not rows:
                held = yield Query(say.HOLDER, key)
                if not held[0][-1]:
                    raise refusals.forgotten(key)
                raise refusals.taken(key, held[0][0], held[0][1], now)
            thread, found, token, last_seq, notes = rows[0]
            if token == 1:  # made just now, so that no run is in it
                return Lease(key, owner, token, found, last_seq, None, None, notes=notes)
            cut = tuple(row[0] for row in (yield Query(say.TRUNCATE, (thread,))))
            newest = [_run(row) for row in (yield Query(say.NEWEST_RUNS, (thread, thread)))]
            last = newest[-1] if newest else None
            head = next((run for run in reversed(newest) if run.edge not in APART), None)
            return Lease(key, owner, token, found, last_seq, last, head, cut, notes)

        return await self._db.run(script())

    async def renew(self, leases: Sequence[Lease], *, until: int) -> list[Lease]:
        """Let leases last until then; see `Store.renew`."""

        def script(some: Sequence[Lease]) -> Script[list[Lease]]:
            values = [value for lease in some for value in (*lease.key, lease.owner, lease.token)]
            rows = yield Query(say.renew(len(some), self._db.skip_locked), [*values, until])
            renewed = {Key(*row) for row in rows}
            lost: list[Lease] = []
            for lease in (each for each in some if each.key not in renewed):
                holders = yield Query(say.HOLDER, lease.key)
                if [(holder[0], holder[2]) for holder in holders] != [(lease.owner, lease.token)]:
                    lost.append(lease)
            return lost

        lots = [leases[at : at + IN_ONE_TRANSACTION] for at in range(0, len(leases), IN_ONE_TRANSACTION)]
        return [lease for lot in lots for lease in await self._db.run(script(lot))]

    async def append(self, batch: Batch) -> int:
        """Write a batch; see `Store.append`."""
        return (await self._db.run(self._append([batch])))[batch.key]

    async def append_all(self, batches: Sequence[Batch]) -> list[int | None]:
        """Write the batches of several threads; see `Store.append_all`."""
        written: dict[Key, int] = {}
        for at in range(0, len(batches), IN_ONE_TRANSACTION):
            with suppress(Conflict, LineageError, refusals.Unstorable):  # `append` finds out which one it was
                written |= await self._db.run(
                    self._append(batches[at : at + IN_ONE_TRANSACTION], together=True)
                )
        return [written.get(batch.key) for batch in batches]

    def _append(self, batches: Sequence[Batch], *, together: bool = False) -> Script[dict[Key, int]]:
        """Write the batches that fit, in one transaction; returns their runs. One by itself must fit."""
        threads = yield from self._claim_all(batches) if together else self._claim(batches[0])
        if not threads and not together:
            return {batches[0].key: (yield from self._repeated(batches[0]))}
        runs: dict[Key, int] = {}
        events: list[Row] = []
        raws: list[Row] = []
        for batch in batches:
            thread = threads.get(batch.key)
            if thread is None:
                continue
            run = (
                batch.run
                if isinstance(batch.run, int)
                else (yield from self._begin(thread, batch, batch.run))
            )
            runs[batch.key] = run
            events += [(thread, run, *event) for event in batch.events]
            raws += [(thread, run, *raw) for raw in batch.raws]
            if batch.snapshot is not None:
                yield Query(say.PUT_SNAPSHOT, (thread, *blob_values(batch.snapshot, run)))
                yield Query(say.DROP_OLD_SNAPSHOTS, (thread, thread))
            if (end := batch.end) is not None:
                ended = (end.status, end.terminal, end.usage, batch.now, run, thread)
                if not (yield Query(say.END_RUN, ended)):
                    raise refusals.unknown_run(batch.key, run)
        for table, rows in (("runcast_events", events), ("runcast_raws", raws)):
            if rows:
                yield Insert(table, say.EVENT_COLUMNS, rows)
        yield Wake([thread_topic(key) for key in runs])
        return runs

    def _claim(self, batch: Batch) -> Script[dict[Key, int]]:
        """The thread that a batch may be written to, if it may."""
        name, holder, until, now = _lasting(batch)
        place = (*batch.key, batch.owner, batch.token, batch.first_seq, name or " ")
        rows = yield Query(say.CLAIM, (len(batch.events), name, holder, until, now, *place))
        return {batch.key: rows[0][0]} if rows else {}

    def _claim_all(self, batches: Sequence[Batch]) -> Script[dict[Key, int]]:
        """The threads of the batches that may be written, without those that another session writes to."""
        values: list[object] = []
        for batch in batches:
            values += (
                *batch.key,
                batch.owner,
                batch.token,
                batch.first_seq,
                len(batch.events),
                *_lasting(batch),
            )
        rows = yield Query(say.claim_all(len(batches), self._db.skip_locked), values)
        return {Key(*row[:2]): row[2] for row in rows}

    def _repeated(self, batch: Batch) -> Script[int]:
        """The answer to a batch that was already written, or the error that refuses it."""
        found = yield Query(say.HOLDER, batch.key)
        if not found:
            raise refusals.gone(batch.key)
        owner, _, token, last_seq, last_batch, epoch = found[0]
        if not epoch:
            raise refusals.gone(batch.key)
        if last_batch == batch.batch_id:
            if isinstance(batch.run, int):
                return batch.run
            return int((yield Query(say.RUN_NUMBER, (*batch.key, batch.run.run_id)))[0][0])
        if (owner, token) != (batch.owner, batch.token):
            raise refusals.lost(batch.key, owner)
        raise refusals.misplaced(batch.key, batch.first_seq, last_seq)

    def _begin(self, thread: int, batch: Batch, run: NewRun) -> Script[int]:
        parent, attempt = None, 1
        if run.parent is not None:
            known = yield Query(say.PARENT, (thread, run.parent))
            if not known:
                raise refusals.no_parent(batch.key, run.parent)
            parent, before = known[0]
            attempt = before + 1 if run.edge == "resume" else 1
        values: Row = (thread, run.run_id, parent, run.edge, attempt, batch.first_seq, batch.now)
        begun = yield Query(say.BEGIN_RUN, (*values, run.wire_parent, run.mark))
        if not begun:
            raise refusals.used(batch.key, run.run_id)
        return int(begun[0][0])

    async def thread(self, key: Key) -> StoredThread | None:
        """The thread, or None."""
        rows = await self._db.rows(f"{say.THREADS} AND t.thread_id = ?", key)
        return _thread(rows[0]) if rows else None

    async def threads(self, tenant: str, *, limit: int, after: str = "") -> list[StoredThread]:
        """Threads of a tenant ordered by thread id, from behind `after`."""
        sql = f"{say.THREADS} AND t.thread_id > ? ORDER BY t.thread_id LIMIT ?"
        return [_thread(row) for row in await self._db.rows(sql, (tenant, after, limit))]

    async def every(self, *, limit: int, after: Key) -> list[StoredThread]:
        """Threads of all tenants; see `Store.every`."""
        sql = f"{say.EVERY} AND (t.tenant, t.thread_id) > (?, ?) ORDER BY t.tenant, t.thread_id LIMIT ?"
        return [_thread(row) for row in await self._db.rows(sql, (*after, limit))]

    async def events(
        self, key: Key, *, after: int, upto: int | None = None, limit: int | None = None
    ) -> Page:
        """Events with `after < seq <= upto`, in order."""
        end = say.ENDLESS if upto is None else upto
        found: list[StoredEvent] = []
        mark: str | None = None
        while True:
            # `seq` has no holes but where runs were pruned: a window as wide as the limit is enough, and cheap.
            wanted = None if limit is None else limit - len(found)
            window = end if wanted is None else min(end, after + wanted)
            rows = await self._db.rows(say.EVENTS, (after, *key, after, window))
            if not rows:
                return Page(None, 0, [])
            epoch, last_seq, before = rows[0][:3]
            mark = before if mark is None else mark
            found += [StoredEvent._make(row[3:]) for row in rows if row[3] is not None]
            end = min(end, last_seq)
            if window >= end or len(found) == limit:
                return Page(epoch, last_seq, found, mark or "")
            gap = await self._db.rows(say.NEXT_EVENT, (*key, window))
            after = end if gap[0][0] is None else int(gap[0][0]) - 1

    async def raws(self, key: Key, *, after: int, limit: int | None = None) -> list[NewEvent]:
        """Raw parts; see `Store.raws`."""
        rows = await self._db.rows(say.RAWS, (*key, after, say.ENDLESS if limit is None else limit))
        return [NewEvent._make(row) for row in rows]

    async def runs(self, key: Key) -> list[StoredRun]:
        """All runs of the thread, oldest first."""
        sql = f"{say.RUNS} WHERE t.tenant = ? AND t.thread_id = ? ORDER BY r.first_seq"
        return [_run(row) for row in await self._db.rows(sql, key)]

    async def lineage(self, key: Key, run_id: str | None = None) -> list[StoredRun]:
        """The run and its history, oldest first; see `Store.lineage`."""
        sql, args = (say.HEAD_LINEAGE, key) if run_id is None else (say.LINEAGE, (*key, run_id))
        return [_run(row) for row in await self._db.rows(sql, args)]

    async def named(self, tenant: str, run_id: str) -> list[tuple[StoredThread, StoredRun]]:
        """Runs of this id in any thread of the tenant, oldest first."""
        rows = await self._db.rows(say.NAMED, (tenant, run_id))
        return [(_thread(row[-11:]), _run(row[:-11])) for row in rows]

    async def orphaned_runs(self, tenant: str | None, *, now: int) -> list[tuple[Key, StoredRun]]:
        """Runs in progress without a valid lease; see `Store.orphaned_runs`."""
        only, args = ("", (now,)) if tenant is None else (" AND t.tenant = ?", (now, tenant))
        rows = await self._db.rows(f"{say.ORPHANED}{only} ORDER BY r.id", args)
        return [(Key(*row[-2:]), _run(row[:-2])) for row in rows]

    async def truncated_unresumed(
        self, tenant: str | None, *, now: int, since: int
    ) -> list[tuple[Key, StoredRun]]:
        """Truncated runs that no run continues; see `Store.truncated_unresumed`."""
        only, args = ("", (since, now)) if tenant is None else (" AND t.tenant = ?", (since, now, tenant))
        rows = await self._db.rows(f"{say.UNRESUMED}{only} ORDER BY r.id", args)
        return [(Key(*row[-2:]), _run(row[:-2])) for row in rows]

    async def sizes(self, key: Key) -> list[RunSize]:
        """The bytes of each run, oldest first."""
        return [RunSize(*row) for row in await self._db.rows(say.SIZES, (*key, *key, *key))]

    async def watch(self, key: Key) -> Watch:
        """A watch that wakes at every append to the thread."""
        return await self._db.watch(thread_topic(key))


def _lasting(batch: Batch) -> Row:
    """What a batch leaves in its thread: its name, and who holds the lease until when. The moment is that of a write."""
    holder = None if batch.until is None else batch.owner
    return (
        (batch.batch_id, holder, batch.until, batch.now)
        if batch.writes
        else (None, holder, batch.until, None)
    )


def _run(row: Row) -> StoredRun:
    values: Row = (*row[:-2], bool(row[-2]), row[-1])
    return StoredRun(*values)


def _thread(row: Row) -> StoredThread:
    return StoredThread(Key(*row[:2]), *row[2:])
