"""Blobs and notes in SQL: the tables beside threads and events.

Knows their statements; does not know a driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runcast.slim.stores import refusals
from runcast.slim.stores.base import Watch
from runcast.slim.stores.records import Blob, BlobInfo, BlobKind, Key, Note
from runcast.slim.stores.sql import statements as say
from runcast.slim.stores.sql.database import Database, Query, Row, Script, Wake, once
from runcast.slim.stores.wakeups import box_topic

IN_ONE_LIST = 500


class SqlBlobs:
    """Derived data in SQL."""

    _db: Database

    async def rename(self, key: Key, title: str | None) -> bool:
        """Give the thread a title; see `Store.rename`."""

        def script() -> Script[bool]:
            return bool((yield Query(say.RENAME, (title, *key))))

        return await self._db.run(script())

    async def put_blob(self, key: Key, blob: Blob) -> None:
        """Store a blob; see `Store.put_blob`."""
        if not await self._db.run(once(say.PUT_BLOB, (*blob_values(blob, blob.info.run), *key))):
            raise refusals.gone(key)

    async def blob_index(self, key: Key, kind: BlobKind) -> list[BlobInfo]:
        """The blobs of a kind, by seq, without their bodies."""
        rows = await self._db.rows(f"{say.BLOB_INFO} ORDER BY seq, run", (*key, kind))
        return [BlobInfo(*row) for row in rows]

    async def blobs(self, key: Key, kind: BlobKind, runs: Sequence[int]) -> list[Blob]:
        """The blobs of some runs, by seq, with their bodies."""
        found: list[Blob] = []
        for some in _portions(runs):
            rows = await self._db.rows(f"{say.BLOBS} AND run IN {_list(some)}", (*key, kind, *some))
            found += [Blob(BlobInfo(*row[:-1]), row[-1]) for row in rows]
        return sorted(found, key=lambda blob: (blob.info.seq, blob.info.run))

    async def drop_blobs(self, key: Key, kind: BlobKind, seqs: Sequence[int]) -> None:
        """Delete blobs by their seq."""
        for some in _portions(seqs):
            await self._db.run(once(f"{say.DROP_BLOBS} AND seq IN {_list(some)}", (*key, kind, *some)))


class SqlNotes:
    """Notes in SQL."""

    _db: Database

    async def post(self, note: Note, *, replace: bool = False) -> bool:
        """Store a note; see `Store.post`."""

        def script() -> Script[bool]:
            values = (note.id, note.box, *note.key, note.run_id, note.body, note.at, note.until)
            stored = yield Query(say.POST_ANEW if replace else say.POST_ONCE, values)
            yield Wake([box_topic(note.box)] if stored else [])
            return bool(stored)

        return await self._db.run(script())

    async def notes(self, *boxes: str, limit: int | None = None) -> list[Note]:
        """The notes in these boxes, oldest first, at most `limit`."""
        if not boxes:
            return []
        args = (*boxes, say.ENDLESS if limit is None else limit)
        return [_note(row) for row in await self._db.rows(say.NOTES.format(_list(boxes)), args)]

    async def notes_about(
        self, tenant: str, run_id: str | None = None, *, thread_id: str | None = None
    ) -> list[Note]:
        """The notes about a run, or about a thread, in any box, oldest first."""
        column, name = ("run_id", run_id) if thread_id is None else ("thread_id", thread_id)
        return [_note(row) for row in await self._db.rows(say.NOTES_ABOUT.format(column), (tenant, name))]

    async def unpost(self, note: Note, *, instead: Note | None = None) -> bool:
        """Remove or replace a note; see `Store.unpost`."""
        known = (note.id, note.box, note.body)
        if instead is None:
            return bool(await self._db.run(once(say.UNPOST, known)))
        new = instead

        def script() -> Script[bool]:
            values = (new.box, *new.key, new.run_id, new.body, new.at, new.until)
            stored = yield Query(say.EXCHANGE, (*values, *known))
            yield Wake([box_topic(new.box)] if stored else [])
            return bool(stored)

        return await self._db.run(script())

    async def sweep_notes(self, *, before: int) -> int:
        """Remove the notes whose `until` is before this; returns their number."""
        return len(await self._db.run(once(say.SWEEP_NOTES, (before,))))

    async def listen(self, *boxes: str) -> Watch:
        """A watch that wakes at every post to one of these boxes."""
        return await self._db.watch(*map(box_topic, boxes))


def blob_values(blob: Blob, run: int) -> Row:
    """The columns of a blob behind its thread, as one of this run."""
    info = blob.info
    place = (info.kind, info.seq, run, info.at)
    return (*place, info.codec, info.events, info.sha256, info.size, blob.body)


def _note(row: Row) -> Note:
    id, box, tenant, thread_id, *rest = row
    return Note(id, box, Key(tenant, thread_id), *rest)


def _portions(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    return (numbers[at : at + IN_ONE_LIST] for at in range(0, len(numbers), IN_ONE_LIST))


def _list(values: Sequence[object]) -> str:
    return "(" + ", ".join("?" * len(values)) + ")"
