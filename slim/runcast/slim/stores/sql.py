"""The store in SQL, once for every database that speaks enough of it.

Knows the statements and what their answers mean; does not know a driver. A `Database` gives it reads and
transactions, with `?` for an argument, and turns the driver's errors into `StoreError`. The first statement of a
transaction is always a write, so that a database which takes its lock on writing has it from the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from runcast.slim.stores import refuse
from runcast.slim.stores import statements as say
from runcast.slim.stores.base import Watch
from runcast.slim.stores.bells import bell_name, box_name
from runcast.slim.stores.records import (
    Batch,
    Blob,
    BlobInfo,
    BlobKind,
    Key,
    Lease,
    NewEvent,
    NewRun,
    Note,
    Page,
    RunSize,
    StoredEvent,
    StoredRun,
    StoredThread,
)

Row = tuple[Any, ...]  # a column's type is the statement's business
IN_ONE_LIST = 500


class Transaction(Protocol):
    """What can be done between a begin and a commit."""

    async def rows(self, sql: str, args: Sequence[object] = ()) -> list[Row]:
        """Run one statement and give back its rows."""
        ...

    async def insert(
        self, table: str, common: dict[str, object], columns: dict[str, str], rows: Sequence[Row]
    ) -> None:
        """Insert many rows that share some values; `columns` maps a name to its SQL type."""
        ...

    async def ring(self, name: str) -> None:
        """Wake the watchers of this name once the transaction is committed."""
        ...


class Database(Protocol):
    """A driver, ready to use: opened by need, errors already ours."""

    async def open(self) -> None:
        """Connect and migrate."""
        ...

    async def close(self) -> None:
        """Disconnect."""
        ...

    async def rows(self, sql: str, args: Sequence[object] = ()) -> list[Row]:
        """Read, outside any transaction."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Commit at the end, or roll back on any exception."""
        ...

    async def watch(self, *names: str) -> Watch:
        """A bell that rings under any of these names."""
        ...


class SqlStore:
    """A `Store` over a `Database`."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def open(self) -> None:
        """Connect and bring the schema up to date."""
        await self._db.open()

    async def close(self) -> None:
        """Let go of everything; the store can be opened again."""
        await self._db.close()

    async def acquire(self, key: Key, *, owner: str, now: int, until: int, epoch: str) -> Lease:
        """Take the thread's lease; see `Store.acquire`."""
        async with self._db.transaction() as tx:
            rows = await tx.rows(say.ACQUIRE, (*key, epoch, owner, until, now, now, owner, now))
            if not rows:
                held = await tx.rows(say.HOLDER, key)
                raise refuse.held(key, held[0][0], held[0][1], now)
            thread, found, token, last_seq = rows[0]
            cut = tuple(row[0] for row in await tx.rows(say.TRUNCATE, (thread,)))
            newest = [_run(row) for row in await tx.rows(say.NEWEST_RUNS, (thread, thread))]
        last = newest[-1] if newest else None
        head = next((run for run in reversed(newest) if run.edge != "spawn"), None)
        return Lease(key, owner, token, found, last_seq, last, head, cut)

    async def append(self, batch: Batch) -> int:
        """Write a batch; see `Store.append`."""
        async with self._db.transaction() as tx:
            thread = await self._claim(tx, batch)
            if thread is None:
                return await self._repeated(tx, batch)
            run = batch.run
            if isinstance(run, NewRun):
                run = await self._begin(tx, thread, batch, run)
            await _write(tx, thread, run, batch)
            await tx.ring(bell_name(batch.key))
        return run

    async def _claim(self, tx: Transaction, batch: Batch) -> int | None:
        """Move the thread forward by the batch if it fits there and the lease still stands."""
        count, name = len(batch.events), batch.batch_id if batch.writes else None
        run = batch.run if name and isinstance(batch.run, int) else None
        lease = (batch.owner if batch.until is not None else None, batch.until)
        here = (*batch.key, batch.owner, batch.token, batch.first_seq - 1)
        rows = await tx.rows(say.CLAIM, (count, name, run, *lease, batch.now if name else None, *here, name))
        return rows[0][0] if rows else None

    async def _repeated(self, tx: Transaction, batch: Batch) -> int:
        """The answer to a batch that was already written, or why it cannot be."""
        found = await tx.rows(say.HOLDER, batch.key)
        if not found:
            raise refuse.gone(batch.key)
        owner, _, token, last_seq, last_batch, last_run = found[0]
        if batch.writes and last_batch == batch.batch_id:
            return int(last_run)
        if (owner, token) != (batch.owner, batch.token):
            raise refuse.lost(batch.key, owner)
        raise refuse.misplaced(batch.key, batch.first_seq, last_seq)

    async def _begin(self, tx: Transaction, thread: int, batch: Batch, run: NewRun) -> int:
        known = {row[0]: row[1:] for row in await tx.rows(say.KNOWN_RUNS, (thread, run.run_id, run.parent))}
        if run.run_id in known:
            raise refuse.used(batch.key, run.run_id)
        if run.parent is not None and run.parent not in known:
            raise refuse.no_parent(batch.key, run.parent)
        parent, attempt = known[run.parent] if run.parent is not None else (None, 0)
        attempt = attempt + 1 if run.edge == "resume" else 1
        values = (thread, run.run_id, parent, run.edge, attempt, batch.first_seq, batch.now)
        number = (await tx.rows(say.BEGIN_RUN, (*values, run.wire_parent)))[0][0]
        await tx.rows(say.REMEMBER_RUN, (number, thread))
        return int(number)

    async def thread(self, key: Key) -> StoredThread | None:
        """The thread, or None."""
        rows = await self._db.rows(f"{say.THREADS} AND thread_id = ?", key)
        return _thread(rows[0]) if rows else None

    async def threads(self, tenant: str, *, limit: int, after: str = "") -> list[StoredThread]:
        """Threads of a tenant by thread id, those behind `after`."""
        sql = f"{say.THREADS} AND thread_id > ? ORDER BY thread_id LIMIT ?"
        return [_thread(row) for row in await self._db.rows(sql, (tenant, after, limit))]

    async def events(
        self, key: Key, *, after: int, upto: int | None = None, limit: int | None = None
    ) -> Page:
        """Events with `after < seq <= upto`, in order."""
        end = say.ENDLESS if upto is None else upto
        found: list[StoredEvent] = []
        while True:
            # `seq` has no holes but where runs were pruned: a window as wide as the limit is enough, and cheap.
            wanted = None if limit is None else limit - len(found)
            window = end if wanted is None else min(end, after + wanted)
            rows = await self._db.rows(say.EVENTS, (after, window, *key))
            if not rows:
                return Page(None, 0, [])
            epoch, last_seq = rows[0][:2]
            found += [StoredEvent._make(row[2:]) for row in rows if row[2] is not None]
            end = min(end, last_seq)
            if window >= end or len(found) == limit:
                return Page(epoch, last_seq, found)
            gap = await self._db.rows(say.NEXT_EVENT, (*key, window))
            after = end if gap[0][0] is None else int(gap[0][0]) - 1

    async def raws(self, key: Key, *, after: int, limit: int | None = None) -> list[NewEvent]:
        """What was kept apart, under the seq it came with."""
        rows = await self._db.rows(say.RAWS, (*key, after, say.ENDLESS if limit is None else limit))
        return [NewEvent._make(row) for row in rows]

    async def runs(self, key: Key) -> list[StoredRun]:
        """All runs of the thread, oldest first."""
        sql = f"{say.RUNS} WHERE t.tenant = ? AND t.thread_id = ? ORDER BY r.first_seq"
        return [_run(row) for row in await self._db.rows(sql, key)]

    async def lineage(self, key: Key, run_id: str | None = None) -> list[StoredRun]:
        """The run and what is its history, oldest first; see `Store.lineage`."""
        sql, args = (say.HEAD_LINEAGE, key) if run_id is None else (say.LINEAGE, (*key, run_id))
        return [_run(row) for row in await self._db.rows(sql, args)]

    async def named(self, tenant: str, run_id: str) -> list[tuple[StoredThread, StoredRun]]:
        """Runs of this id in any thread of the tenant, oldest first."""
        rows = await self._db.rows(say.NAMED, (tenant, run_id))
        return [(_thread(row[-8:]), _run(row[:-8])) for row in rows]

    async def stranded(self, tenant: str | None, *, now: int) -> list[tuple[Key, StoredRun]]:
        """Runs in progress whose owner's lease has run out; without a tenant, everybody's."""
        only, args = ("", (now,)) if tenant is None else (" AND t.tenant = ?", (now, tenant))
        rows = await self._db.rows(f"{say.STRANDED}{only} ORDER BY r.id", args)
        return [(Key(*row[-2:]), _run(row[:-2])) for row in rows]

    async def left(self, tenant: str | None, *, now: int, since: int) -> list[tuple[Key, StoredRun]]:
        """Truncated runs that nobody went on from; see `Store.left`."""
        only, args = ("", (since, now)) if tenant is None else (" AND t.tenant = ?", (since, now, tenant))
        rows = await self._db.rows(f"{say.LEFT}{only} ORDER BY r.id", args)
        return [(Key(*row[-2:]), _run(row[:-2])) for row in rows]

    async def put_blob(self, key: Key, blob: Blob) -> None:
        """Keep a derived thing, in place of an equal one (same kind, run and seq)."""
        info = blob.info
        values = (
            info.kind,
            info.seq,
            info.run,
            info.at,
            info.codec,
            info.events,
            info.sha256,
            info.size,
            blob.body,
        )
        async with self._db.transaction() as tx:
            if not await tx.rows(say.PUT_BLOB, (*values, *key)):
                raise refuse.gone(key)

    async def blob_index(self, key: Key, kind: BlobKind) -> list[BlobInfo]:
        """What there is of a kind, by seq, without the bodies."""
        rows = await self._db.rows(f"{say.BLOB_INFO} ORDER BY seq, run", (*key, kind))
        return [BlobInfo(*row) for row in rows]

    async def blobs(self, key: Key, kind: BlobKind, runs: Sequence[int]) -> list[Blob]:
        """Those of some runs, by seq, with their bodies."""
        found: list[Blob] = []
        for some in _portions(runs):
            rows = await self._db.rows(f"{say.BLOBS} AND run IN {_list(some)}", (*key, kind, *some))
            found += [Blob(BlobInfo(*row[:-1]), row[-1]) for row in rows]
        return sorted(found, key=lambda blob: (blob.info.seq, blob.info.run))

    async def drop_blobs(self, key: Key, kind: BlobKind, seqs: Sequence[int]) -> None:
        """Forget derived things by their seq."""
        async with self._db.transaction() as tx:
            for some in _portions(seqs):
                await tx.rows(f"{say.DROP_BLOBS} AND seq IN {_list(some)}", (*key, kind, *some))

    async def drop_events(self, key: Key, runs: Sequence[int]) -> None:
        """Forget the events of runs (and what was kept apart with them) and mark the runs pruned."""
        async with self._db.transaction() as tx:
            for run in runs:
                for thread, first in await tx.rows(say.MARK_PRUNED, (run, *key)):
                    last = (await tx.rows(say.NEXT_RUN, (thread, first)))[0][0]
                    stretch = (thread, first, say.ENDLESS if last is None else last - 1)
                    await tx.rows(f"DELETE FROM runcast_events {say.STRETCH}", stretch)
                    await tx.rows(f"DELETE FROM runcast_raws {say.STRETCH}", stretch)

    async def sizes(self, key: Key) -> list[RunSize]:
        """What the runs weigh, oldest first."""
        return [RunSize(*row) for row in await self._db.rows(say.SIZES, (*key, *key, *key))]

    async def delete(self, key: Key, *, now: int) -> bool:
        """Forget the thread and all that hangs on it; `Conflict` while somebody holds its lease."""
        async with self._db.transaction() as tx:
            free = await tx.rows(say.FREE_THREAD, (*key, now))
            if not free:
                held = await tx.rows(say.HOLDER, key)
                if held:
                    raise refuse.busy(key, held[0][0])
                return False
            for table in ("events", "raws", "blobs", "runs"):
                await tx.rows(f"DELETE FROM runcast_{table} WHERE thread = ?", free[0])
            await tx.rows("DELETE FROM runcast_threads WHERE id = ?", free[0])
            await tx.ring(bell_name(key))
        return True

    async def watch(self, key: Key) -> Watch:
        """A bell that rings at every append to the thread, which need not exist yet."""
        return await self._db.watch(bell_name(key))

    async def post(self, note: Note, *, replace: bool = False) -> bool:
        """Leave a note; see `Store.post`."""
        values = (note.id, note.box, *note.key, note.run_id, note.body, note.at, note.until)
        async with self._db.transaction() as tx:
            if not await tx.rows(say.POST_ANEW if replace else say.POST_ONCE, values):
                return False
            await tx.ring(box_name(note.box))
        return True

    async def notes(self, *boxes: str, limit: int | None = None) -> list[Note]:
        """The notes in these boxes, oldest first, so many at the most."""
        if not boxes:
            return []
        args = (*boxes, say.ENDLESS if limit is None else limit)
        return [_note(row) for row in await self._db.rows(say.NOTES.format(_list(boxes)), args)]

    async def notes_about(self, tenant: str, run_id: str) -> list[Note]:
        """The notes about a run, in any box, oldest first."""
        return [_note(row) for row in await self._db.rows(say.NOTES_ABOUT, (tenant, run_id))]

    async def unpost(self, note: Note) -> bool:
        """Take a note off; see `Store.unpost`."""
        async with self._db.transaction() as tx:
            return bool(await tx.rows(say.UNPOST, (note.id, note.box, note.body)))

    async def sweep_notes(self, *, before: int) -> int:
        """Take off the notes whose `until` lies before this; answers how many."""
        async with self._db.transaction() as tx:
            return len(await tx.rows(say.SWEEP_NOTES, (before,)))

    async def listen(self, *boxes: str) -> Watch:
        """A bell that rings at every post to one of these boxes."""
        return await self._db.watch(*map(box_name, boxes))


async def _write(tx: Transaction, thread: int, run: int, batch: Batch) -> None:
    """The rows of a batch that has its place."""
    common: dict[str, object] = {"thread": thread, "run": run}
    if batch.events:
        await tx.insert("runcast_events", common, say.EVENT_COLUMNS, batch.events)
    if batch.raws:
        await tx.insert("runcast_raws", common, say.EVENT_COLUMNS, batch.raws)
    if batch.end is not None:
        end = batch.end
        if not await tx.rows(say.END_RUN, (end.status, end.terminal, end.usage, batch.now, run, thread)):
            raise refuse.unknown_run(batch.key, run)


def _run(row: Row) -> StoredRun:
    values: Row = (*row[:-1], bool(row[-1]))
    return StoredRun(*values)


def _thread(row: Row) -> StoredThread:
    return StoredThread(Key(*row[:2]), *row[2:])


def _note(row: Row) -> Note:
    id, box, tenant, thread_id, *rest = row
    return Note(id, box, Key(tenant, thread_id), *rest)


def _portions(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    return (numbers[at : at + IN_ONE_LIST] for at in range(0, len(numbers), IN_ONE_LIST))


def _list(values: Sequence[object]) -> str:
    return "(" + ", ".join("?" * len(values)) + ")"
