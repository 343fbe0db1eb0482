"""Notes: durable messages in named mailboxes, between the processes that share a store.

A note is consumed by one listener. Knows time, owners and tenants; does not know the content of a note. A tenant's
view posts notes and reads those about its own runs; mailboxes hold the notes of all tenants, so only the log itself
reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from runcast.slim.errors import StoreError
from runcast.slim.log.log_options import Scope
from runcast.slim.stores import Watch, refusals
from runcast.slim.stores.base import NoteBoxes
from runcast.slim.stores.records import Note


class Notes:
    """The notes of a log's store, as `RunLog.notes`."""

    def __init__(self, store: NoteBoxes, clock: Callable[[], int], scope: Scope) -> None:
        self._store = store
        self._clock = clock
        self._scope = scope

    async def leave(
        self,
        id: str,
        *,
        box: str,
        body: bytes,
        thread_id: str = "",
        run_id: str = "",
        lasting_ms: int | None = None,
        replace: bool = False,
        after: int = 0,
    ) -> Note | None:
        """Post a note, durable when this returns. None when a note of this `id` exists; `replace` replaces it. After
        `lasting_ms` it is stale, and `sweep` may remove it. It is younger than one of the time `after`."""
        now, key = self._clock(), self._scope.key(thread_id)
        until = None if lasting_ms is None else now + lasting_ms
        note = Note(
            refusals.unless_text("a note's id", id),
            refusals.unless_text("a box", box),
            key,
            refusals.unless_text("a run id", run_id),
            body,
            max(now, after + 1),
            until,
        )
        return note if await self._store.post(note, replace=replace) else None

    async def about(self, run_id: str) -> list[Note]:
        """The notes about a run of this tenant, in any box, oldest first."""
        return await self._store.notes_about(self._scope.tenant, run_id)

    async def of_thread(self, thread_id: str) -> list[Note]:
        """The notes about a thread, in any box, oldest first."""
        return await self._store.notes_about(self._scope.tenant, thread_id=thread_id)

    async def exchange(self, note: Note, body: bytes) -> Note | None:
        """The note with another body, unless it has changed meanwhile: then None. One of several callers gets it."""
        if not self._scope.covers(note.key):
            raise _refused()
        new = replace(note, body=body)
        return new if await self._store.unpost(note, instead=new) else None

    async def take(self, note: Note) -> bool:
        """Remove a note unless it has changed; True for exactly one of several callers."""
        if not self._scope.covers(note.key):
            raise _refused()
        return await self._store.unpost(note)

    async def read(self, *boxes: str, limit: int | None = None) -> list[Note]:
        """The notes in these boxes, oldest first, of all tenants."""
        return await self._unbound().notes(*boxes, limit=limit)

    async def listen(self, *boxes: str) -> Watch:
        """A watch that wakes for every note posted to one of these boxes."""
        return await self._unbound().listen(*boxes)

    async def sweep(self, *, spare_ms: int = 0) -> int:
        """Remove notes that have been stale for `spare_ms`; returns their number."""
        return await self._unbound().sweep_notes(before=self._clock() - spare_ms)

    def is_over(self, note: Note) -> bool:
        """Whether the note is stale."""
        return note.until is not None and note.until < self._clock()

    def _unbound(self) -> NoteBoxes:
        if self._scope.bound:
            raise _refused()
        return self._store


def _refused() -> StoreError:
    return StoreError("a tenant's log does not read the notes of others: ask the log it was made from")
