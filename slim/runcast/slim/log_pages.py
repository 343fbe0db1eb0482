"""Entries in pages, and records in the words of the log.

Knows that entries of pruned runs come from their segments; does not know who reads. What a segment holds stands at
the first seqs of its run, and the last seq it covers belongs to its last event; so a reader may begin before such a run
or behind it, but not inside, where a seq says nothing about folded events.
"""

from __future__ import annotations

from collections.abc import Sequence

from runcast.slim.entry import Entry
from runcast.slim.errors import UnknownThread
from runcast.slim.log_derived import Derived
from runcast.slim.log_ends import usage_of
from runcast.slim.log_info import RunInfo, ThreadInfo
from runcast.slim.stores import Store
from runcast.slim.stores.records import Key, Page, StoredEvent, StoredRun, StoredThread
from runcast.slim.wire import decode


class Pages:
    """Reads one store's threads."""

    def __init__(self, store: Store, derived: Derived) -> None:
        self._store = store
        self._derived = derived

    async def page(self, key: Key, after: int, limit: int | None) -> tuple[str | None, list[Entry]]:
        """The thread's epoch, and entries behind `after`: about so many, for a pruned run is given whole."""
        found = await self._store.events(key, after=after, limit=limit)
        if found.epoch is None:
            return None, []
        together = _together(found.events, after)
        if not together and after < found.last_seq:
            return found.epoch, await self._pruned(key, found, after)
        return found.epoch, [_entry(key, found.epoch, row) for row in together]

    async def _pruned(self, key: Key, found: Page, after: int) -> list[Entry]:
        runs = await self._store.runs(key)
        run = next(run for run in runs if run.first_seq <= after + 1 <= run.last_seq)
        if run.first_seq != after + 1 or not run.pruned:
            raise UnknownThread(
                f"the entries of run {run.run_id!r} were folded when it was pruned, and seq {after} lies inside it: "
                f"restore the thread, or read it from after={run.first_seq - 1}"
            )
        segment = (await self._derived.segments(key, [run]))[run.seq]
        first, count = run.first_seq, len(segment.events)
        seqs = [*range(first, first + count - 1), segment.seq]
        return [
            Entry(key.thread_id, seq, found.epoch or "", run.run_id, at, event)
            for seq, (at, event) in zip(seqs, segment.events, strict=True)
        ]

    async def entries(self, key: Key, after: int, limit: int | None) -> list[Entry]:
        """Entries behind `after`, over as many pages as it takes."""
        found: list[Entry] = []
        while limit is None or len(found) < limit:
            entries = (await self.page(key, after, None if limit is None else limit - len(found)))[1]
            if not entries:
                break
            found += entries
            after = entries[-1].seq
        return found


def _together(rows: Sequence[StoredEvent], after: int) -> Sequence[StoredEvent]:
    """Those that follow `after`, and each other, without a hole."""
    if rows and rows[-1].seq == after + len(rows):
        return rows
    return [row for n, row in enumerate(rows, after + 1) if row.seq == n]


def _entry(key: Key, epoch: str, row: StoredEvent) -> Entry:
    return Entry(key.thread_id, row.seq, epoch, row.run_id, row.at, decode(row.payload, legacy=False))


def thread_info(thread: StoredThread, now: int) -> ThreadInfo:
    """A thread in the words of the log."""
    leased = thread.owner is not None and (thread.until or 0) >= now
    return ThreadInfo(
        thread.key.thread_id,
        thread.epoch,
        thread.last_seq,
        thread.created_at,
        thread.updated_at,
        thread.owner if leased else None,
        thread.until if leased else None,
    )


def run_info(run: StoredRun, names: dict[int, str], *, leased: bool) -> RunInfo:
    """A run in the words of the log. One in progress that nobody has the lease for has lost its owner."""
    status = "truncated" if run.status == "in_progress" and not leased else run.status
    return RunInfo(
        run.run_id,
        names.get(run.parent_seq or 0),
        run.edge,
        run.attempt,
        status,
        run.first_seq,
        run.last_seq,
        run.started_at,
        run.ended_at,
        run.terminal,
        usage_of(run.usage),
        run.wire_parent,
        run.pruned,
    )
