"""Notes in memory, for the store beside it.

Knows boxes and ids; does not know threads.
"""

from __future__ import annotations

from collections.abc import Iterable

from runcast.slim.stores.records import Key, Note
from runcast.slim.stores.wakeups import Wakeups, Watcher, box_topic


class MemoryNotes:
    """The notes of a memory store."""

    def __init__(self) -> None:
        self._notes: dict[str, Note] = {}
        self._wakeups = Wakeups()

    async def post(self, note: Note, *, replace: bool = False) -> bool:
        """Store a note; see `Store.post`."""
        if note.id in self._notes and not replace:
            return False
        self._notes[note.id] = note
        self._wakeups.wake(box_topic(note.box))
        return True

    async def notes(self, *boxes: str, limit: int | None = None) -> list[Note]:
        """The notes in these boxes, oldest first, at most `limit`."""
        return self._sorted(each for each in self._notes.values() if each.box in boxes)[:limit]

    async def notes_about(
        self, tenant: str, run_id: str | None = None, *, thread_id: str | None = None
    ) -> list[Note]:
        """The notes about a run, or about a thread, in any box, oldest first."""
        return self._sorted(
            each
            for each in self._notes.values()
            if each.key.tenant == tenant
            and thread_id in (None, each.key.thread_id)
            and run_id in (None, each.run_id)
        )

    async def unpost(self, note: Note, *, instead: Note | None = None) -> bool:
        """Remove or replace a note; see `Store.unpost`."""
        kept = self._notes.get(note.id)
        if kept is None or (kept.box, kept.body) != (note.box, note.body):
            return False
        if instead is None:
            del self._notes[note.id]
            return True
        return await self.post(instead, replace=True)

    async def sweep_notes(self, *, before: int) -> int:
        """Remove the notes whose `until` is before this; returns their number."""
        stale = [each.id for each in self._notes.values() if each.until is not None and each.until < before]
        for id in stale:
            del self._notes[id]
        return len(stale)

    async def listen(self, *boxes: str) -> Watcher:
        """A watch that wakes at every post to one of these boxes."""
        return self._wakeups.watch(*map(box_topic, boxes))

    def _drop_notes(self, key: Key) -> None:
        """Remove every note of a thread."""
        gone = [each.id for each in self._notes.values() if each.key == key and key.thread_id]
        for id in gone:
            del self._notes[id]

    def _sorted(self, notes: Iterable[Note]) -> list[Note]:
        return sorted(notes, key=lambda note: (note.at, note.id))
