"""Entries in pages, and stored records as `ThreadInfo` and `RunInfo`.

Knows that entries of a pruned run come from its segment; does not know the reader. The events of a segment take the
first seqs of its run, and the last event takes the last seq that the segment covers. So a reader may begin before or
behind such a run, but not inside it, where a seq no longer names one event.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ag_ui.core import RunStartedEvent

from runcast.slim.archive.derived import Derived
from runcast.slim.archive.info import RunInfo, ThreadInfo
from runcast.slim.archive.run_end import usage_of
from runcast.slim.entry import Entry, unbound
from runcast.slim.errors import Conflict, UnknownThread
from runcast.slim.stores import Store
from runcast.slim.stores.records import Key, NewEvent, Page, StoredEvent, StoredRun, StoredThread
from runcast.slim.tasks import HEAVY, beside
from runcast.slim.wire.codec import AnyEvent, decode, encode


class Pages:
    """Reads one store's threads."""

    def __init__(self, store: Store, derived: Derived) -> None:
        self._store = store
        self._derived = derived

    async def page(
        self, key: Key, after: int, limit: int | None, history: str | None = None
    ) -> tuple[str | None, list[Entry]]:
        """The thread's epoch, and about `limit` entries behind `after`: a pruned run comes whole.

        With a `history`, `UnknownThread` for a position of another one.
        """
        found = await self._store.events(key, after=after, limit=limit)
        if found.epoch is None:
            return None, []
        if history is not None:
            refuse_other_history(key, found, after, history)
        together = _together(found.events, after)
        if not together and after < found.last_seq and limit != 0:
            return found.epoch, await self._pruned(key, found, after)
        return found.epoch, await _read(key, found.epoch, together)

    async def _pruned(self, key: Key, found: Page, after: int) -> list[Entry]:
        runs = await self._store.runs(key)
        run = next(run for run in runs if run.first_seq <= after + 1 <= run.last_seq)
        if run.first_seq != after + 1 or not run.pruned:
            raise UnknownThread(
                f"run {run.run_id!r} was pruned and its entries were folded; seq {after} lies inside it: "
                f"restore the thread, or read it from after={run.first_seq - 1}"
            )
        segment = (await self._derived.segments(key, [run]))[run.seq]
        first, count = run.first_seq, len(segment.events)
        seqs = [*range(first, first + count - 1), segment.seq]
        return [
            Entry(key.thread_id, seq, found.epoch or "", run.run_id, at, event, run.mark)
            for seq, (at, event) in zip(seqs, segment.events, strict=True)
        ]

    async def again(self, key: Key, seq: int, event: AnyEvent, *, redacted: bool) -> Entry:
        """The entry at this place, if it is this event; `Conflict` if it is another. A redacted one is compared by its
        type alone."""
        page = await self._store.events(key, after=seq - 1, upto=seq)
        for entry in await _read(key, page.epoch or "", page.events):
            if _is_same(entry.event, event, redacted):
                return entry
        raise Conflict(f"seq {seq} of thread {key.thread_id!r} is taken by another event: read it first")

    async def entries(
        self, key: Key, after: int, limit: int | None, history: str | None = None
    ) -> list[Entry]:
        """Entries behind `after`, read page by page."""
        found: list[Entry] = []
        while True:
            wanted = None if limit is None else limit - len(found)
            entries = (await self.page(key, after, wanted, history))[1]
            found += entries
            if not entries or (limit is not None and len(found) >= limit):
                return found
            after, history = entries[-1].seq, history and entries[-1].history


def _is_same(kept: AnyEvent, event: AnyEvent, redacted: bool) -> bool:
    if isinstance(kept, RunStartedEvent) and isinstance(event, RunStartedEvent):
        return kept.run_id == event.run_id
    return type(kept) is type(event) and (redacted or encode(kept) == encode(event))


async def _read(key: Key, epoch: str, rows: Sequence[StoredEvent]) -> list[Entry]:
    """The entries of these rows; many bytes are read beside the event loop."""

    def entries() -> list[Entry]:
        return [stored_entry(key, epoch, row.run_id, row, row.mark) for row in rows]

    return await beside(entries) if is_heavy(rows) else entries()


def is_heavy(rows: Iterable[StoredEvent | NewEvent]) -> bool:
    """Whether reading these events would hold up the event loop."""
    return sum(len(row.payload) for row in rows) >= HEAVY


def _together(rows: Sequence[StoredEvent], after: int) -> Sequence[StoredEvent]:
    """The rows that follow `after` and each other without a gap."""
    if rows and rows[-1].seq == after + len(rows):
        return rows
    return [row for n, row in enumerate(rows, after + 1) if row.seq == n]


def stored_entry(key: Key, epoch: str, run_id: str, row: StoredEvent | NewEvent, mark: str) -> Entry:
    """An entry from the bytes of its event."""
    return Entry(key.thread_id, row.seq, epoch, run_id, row.at, decode(row.payload, legacy=False), mark)


def refuse_other_history(key: Key, found: Page, after: int, history: str | None) -> None:
    """Raise `UnknownThread` for a position that was not taken from this log, read from behind `after`.

    `history` is an epoch, perhaps bound; without one the position only has to lie within the log.
    """
    name, (epoch, mark) = key.thread_id, unbound(history or "")
    if epoch and found.epoch is not None and epoch != found.epoch:
        raise UnknownThread(
            f"thread {name!r} was created anew (epoch {found.epoch}, not {epoch}): restore it and attach again"
        )
    if after > found.last_seq:
        raise UnknownThread(
            f"thread {name!r} ends at seq {found.last_seq}, before {after}: restore it and attach again"
        )
    if after and mark and mark != found.mark:
        raise UnknownThread(
            f"thread {name!r} has lost the entries that seq {after} was taken from and holds others there: "
            "restore it and attach again"
        )


def thread_info(thread: StoredThread, now: int) -> ThreadInfo:
    """A stored thread as the log describes it."""
    leased = thread.owner is not None and (thread.until or 0) >= now
    return ThreadInfo(
        thread.key.thread_id,
        thread.epoch,
        thread.last_seq,
        thread.created_at,
        thread.updated_at,
        thread.owner if leased else None,
        thread.until if leased else None,
        thread.title,
        "truncated" if thread.status == "in_progress" and not leased else thread.status,
        thread.mark,
    )


def run_info(run: StoredRun, names: dict[int, str], *, leased: bool) -> RunInfo:
    """A stored run as the log describes it. A run in progress without a lease has lost its owner."""
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


async def runs_of(store: Store, key: Key, now: int) -> list[RunInfo]:
    """The runs of a thread without its asides, oldest first."""
    thread, runs = await store.thread(key), await store.runs(key)
    leased = thread is not None and thread_info(thread, now).owner is not None
    names = {run.seq: run.run_id for run in runs}
    return [run_info(run, names, leased=leased) for run in runs if run.edge != "aside"]
