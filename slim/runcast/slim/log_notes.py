"""Notes between the processes that share a store: left in a box, heard by whoever listens there, taken off by one.

Knows time, owners and tenants; does not know what a note says. A tenant's view leaves notes and reads those about its
own runs: boxes are everybody's, and only the log itself opens them.
"""

from __future__ import annotations

from collections.abc import Callable

from runcast.slim.errors import StoreError
from runcast.slim.stores import Store, Watch, refuse
from runcast.slim.stores.records import Key, Note


class Notes:
    """The notes of a log's store, as `RunLog.notes`."""

    def __init__(self, store: Store, clock: Callable[[], int], tenant: str, *, bound: bool) -> None:
        self._store = store
        self._clock = clock
        self._tenant = tenant
        self._bound = bound

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
    ) -> Note | None:
        """Leave a note, durable when this returns. None when one of this `id` is there already: `replace` takes its
        place instead. After `lasting_ms` it means nothing any more, and `sweep` may take it off."""
        now = self._clock()
        key = Key(self._tenant, refuse.unless_text("a thread id", thread_id))
        until = None if lasting_ms is None else now + lasting_ms
        note = Note(
            refuse.unless_text("a note's id", id),
            refuse.unless_text("a box", box),
            key,
            refuse.unless_text("a run id", run_id),
            body,
            now,
            until,
        )
        return note if await self._store.post(note, replace=replace) else None

    async def about(self, run_id: str) -> list[Note]:
        """The notes about a run of this tenant, in any box, oldest first."""
        return await self._store.notes_about(self._tenant, run_id)

    async def take(self, note: Note) -> bool:
        """Take a note off as it was read; True for one of all who try."""
        if self._bound and note.key.tenant != self._tenant:
            raise _refused()
        return await self._store.unpost(note)

    async def read(self, *boxes: str, limit: int | None = None) -> list[Note]:
        """What lies in these boxes, oldest first, of all tenants."""
        return await self._unbound().notes(*boxes, limit=limit)

    async def listen(self, *boxes: str) -> Watch:
        """A bell that rings for every note that is left in one of these boxes."""
        return await self._unbound().listen(*boxes)

    async def sweep(self, *, spare_ms: int = 0) -> int:
        """Take off what has meant nothing for so long; answers how many notes that were."""
        return await self._unbound().sweep_notes(before=self._clock() - spare_ms)

    def is_over(self, note: Note) -> bool:
        """Whether the note means nothing any more."""
        return note.until is not None and note.until < self._clock()

    def _unbound(self) -> Store:
        if self._bound:
            raise _refused()
        return self._store


def _refused() -> StoreError:
    return StoreError("a tenant's log does not read what was left for others: ask the log it was made from")
