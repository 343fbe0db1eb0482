"""The store in memory, for tests and for threads that need not outlive the process.

Knows the five promises of `base` and keeps them by never awaiting inside a call; does not know disks or other
processes, so two memory stores share nothing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count

from runcast.slim.stores import refusals
from runcast.slim.stores.memory_notes import MemoryNotes
from runcast.slim.stores.memory_thread import MemoryThread
from runcast.slim.stores.records import (
    APART,
    IMPORTER,
    Batch,
    Blob,
    BlobInfo,
    BlobKind,
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
from runcast.slim.stores.wakeups import Watcher, thread_topic


def connect(url: str) -> MemoryStore:
    """A new store for every `memory://`."""
    return MemoryStore()


class MemoryBlobs:
    """The derived data of a memory store."""

    def __init__(self) -> None:
        super().__init__()
        self._threads: dict[Key, MemoryThread] = {}

    async def rename(self, key: Key, title: str | None) -> bool:
        """Give the thread a title; see `Store.rename`."""
        thread = self._threads.get(key)
        if thread is not None:
            thread.title = title
        return thread is not None

    async def put_blob(self, key: Key, blob: Blob) -> None:
        """Store a blob; see `Store.put_blob`."""
        thread = self._threads.get(key)
        if thread is None:
            raise refusals.gone(key)
        info = blob.info
        thread.blobs[info.kind, info.run, info.seq] = blob

    async def blob_index(self, key: Key, kind: BlobKind) -> list[BlobInfo]:
        """The blobs of a kind, by seq, without their bodies."""
        return [blob.info for blob in self._blobs(key, kind)]

    async def blobs(self, key: Key, kind: BlobKind, runs: Sequence[int]) -> list[Blob]:
        """The blobs of some runs, by seq, with their bodies."""
        wanted = set(runs)
        return [blob for blob in self._blobs(key, kind) if blob.info.run in wanted]

    def _blobs(self, key: Key, kind: BlobKind) -> list[Blob]:
        thread = self._threads.get(key)
        kept = [blob for blob in thread.blobs.values() if blob.info.kind == kind] if thread else []
        return sorted(kept, key=lambda blob: (blob.info.seq, blob.info.run))

    async def drop_blobs(self, key: Key, kind: BlobKind, seqs: Sequence[int]) -> None:
        """Delete blobs by their seq."""
        thread, unwanted = self._threads.get(key), set(seqs)
        if thread is not None:
            for name in [each for each in thread.blobs if each[0] == kind and each[2] in unwanted]:
                del thread.blobs[name]


class MemoryRemoval(MemoryBlobs, MemoryNotes):
    """What leaves a memory store."""

    def __init__(self) -> None:
        super().__init__()
        self._tombstones: set[Key] = set()

    async def drop_events(self, key: Key, runs: Sequence[int]) -> None:
        """Delete the events and raw parts of runs, and mark the runs pruned."""
        thread, unwanted = self._threads.get(key), set(runs)
        if thread is not None:
            thread.events = {seq: kept for seq, kept in thread.events.items() if kept[0] not in unwanted}
            thread.raws = [kept for kept in thread.raws if kept[0] not in unwanted]
            for number in unwanted & thread.runs.keys():
                thread.runs[number] = replace(thread.runs[number], pruned=True)

    async def delete(
        self, key: Key, *, now: int, tombstone: bool = False, idle_since: int | None = None
    ) -> bool:
        """Delete the thread; see `Store.delete`."""
        thread, buried = self._threads.get(key), key in self._tombstones
        if thread is not None and thread.holder(now) is not None:
            raise refusals.busy(key, thread.owner)
        if thread is not None and idle_since is not None and thread.updated_at > idle_since:
            raise refusals.not_idle(key)
        self._threads.pop(key, None)
        self._drop_notes(key)
        self._tombstones.discard(key)
        if tombstone:
            self._tombstones.add(key)
        self._wakeups.wake(thread_topic(key))
        return thread is not None or (buried and not tombstone)

    async def forgotten(self, key: Key) -> bool:
        """Whether a tombstone stands for the thread."""
        return key in self._tombstones


class MemoryStore(MemoryRemoval):
    """A `Store` in this process's memory."""

    def __init__(self) -> None:
        super().__init__()
        self._run_numbers = count(1)

    async def open(self) -> None:
        """Nothing to do."""

    @asynccontextmanager
    async def apart(self) -> AsyncGenerator[MemoryStore]:
        """Itself: a renewal is a few assignments, and an overtaken one is harmless."""
        yield self

    async def close(self) -> None:
        """Nothing to release; what was written stays as long as this object."""

    async def acquire(
        self, key: Key, *, owner: str, now: int, until: int, epoch: str, anew: bool = False
    ) -> Lease:
        """Take the thread's lease; see `Store.acquire`."""
        thread = self._threads.get(key)
        if thread is None:
            if key in self._tombstones:
                raise refusals.forgotten(key)
            thread = self._threads[key] = MemoryThread(key, epoch, now, now)
        half = (thread.owner or "").startswith(IMPORTER) and not owner.startswith(IMPORTER)
        if half or thread.holder(now) not in (None, owner):
            raise refusals.taken(key, thread.owner, thread.until, now)
        cut = self._truncate(thread)
        thread.epoch = epoch if anew else thread.epoch
        thread.token += 1
        thread.owner, thread.until = owner, until
        runs = thread.ordered()
        history = [run for run in runs if run.edge not in APART]
        last, head = (newest[-1] if newest else None for newest in (runs, history))
        notes = sum(note.key == key for note in self._notes.values())
        return Lease(key, owner, thread.token, thread.epoch, thread.last_seq, last, head, cut, notes)

    async def renew(self, leases: Sequence[Lease], *, until: int) -> list[Lease]:
        """Let leases last until then; see `Store.renew`."""
        lost: list[Lease] = []
        for lease in leases:
            thread = self._threads.get(lease.key)
            if thread is None or (thread.owner, thread.token) != (lease.owner, lease.token):
                lost.append(lease)
            else:
                thread.until = until
        return lost

    def _truncate(self, thread: MemoryThread) -> tuple[str, ...]:
        lost = [(seq, run) for seq, run in thread.runs.items() if run.status == "in_progress"]
        for seq, run in lost:
            thread.runs[seq] = replace(run, status="truncated", ended_at=thread.updated_at)
        return tuple(run.run_id for _, run in lost)

    async def append(self, batch: Batch) -> int:
        """Write a batch; see `Store.append`."""
        thread = self._threads.get(batch.key)
        if thread is None:
            raise refusals.gone(batch.key)
        if thread.last_batch is not None and thread.last_batch[0] == batch.batch_id:
            return thread.last_batch[1]
        if (thread.owner, thread.token) != (batch.owner, batch.token):
            raise refusals.lost(batch.key, thread.owner)
        if thread.last_seq + 1 != batch.first_seq:
            raise refusals.misplaced(batch.key, batch.first_seq, thread.last_seq)
        number = self._write(thread, batch)
        thread.until = batch.until
        if batch.until is None:
            thread.owner = None
        self._wakeups.wake(thread_topic(batch.key))
        return number

    async def append_all(self, batches: Sequence[Batch]) -> list[int | None]:
        """None of them: nothing is saved by writing batches together."""
        return [None] * len(batches)

    def _write(self, thread: MemoryThread, batch: Batch) -> int:
        number = (
            self._begin(thread, batch, batch.run)
            if isinstance(batch.run, NewRun)
            else self._known(thread, batch.run)
        )
        for event in batch.events:
            thread.events[event.seq] = (number, event)
        thread.raws += [(number, raw) for raw in batch.raws]
        if batch.snapshot is not None:
            thread.keep_snapshot(number, batch.snapshot)
        if batch.end is not None:
            end = batch.end
            thread.runs[number] = replace(
                thread.runs[number],
                status=end.status,
                terminal=end.terminal,
                usage=end.usage,
                ended_at=batch.now,
            )
        if batch.writes:
            thread.last_seq += len(batch.events)
            thread.last_batch = (batch.batch_id, number)
            thread.updated_at = batch.now
        return number

    def _known(self, thread: MemoryThread, number: int) -> int:
        if number and number not in thread.runs:
            raise refusals.unknown_run(thread.key, number)
        return number

    def _begin(self, thread: MemoryThread, batch: Batch, run: NewRun) -> int:
        by_id = {known.run_id: known for known in thread.runs.values()}
        if run.run_id in by_id:
            raise refusals.used(batch.key, run.run_id)
        if run.parent is not None and run.parent not in by_id:
            raise refusals.no_parent(batch.key, run.parent)
        parent = by_id[run.parent] if run.parent is not None else None
        number = next(self._run_numbers)
        thread.runs[number] = StoredRun(
            seq=number,
            run_id=run.run_id,
            parent_seq=parent.seq if parent else None,
            edge=run.edge,
            attempt=parent.attempt + 1 if parent and run.edge == "resume" else 1,
            first_seq=batch.first_seq,
            last_seq=0,
            started_at=batch.now,
            ended_at=None,
            status="in_progress",
            terminal=None,
            wire_parent=run.wire_parent,
            usage=None,
            pruned=False,
            mark=run.mark,
        )
        return number

    async def thread(self, key: Key) -> StoredThread | None:
        """The thread, or None."""
        thread = self._threads.get(key)
        return thread.record() if thread else None

    async def threads(self, tenant: str, *, limit: int, after: str = "") -> list[StoredThread]:
        """Threads of a tenant ordered by thread id, from behind `after`."""
        keys = sorted(key for key in self._threads if key.tenant == tenant and key.thread_id > after)
        return [self._threads[key].record() for key in keys[:limit]]

    async def every(self, *, limit: int, after: Key) -> list[StoredThread]:
        """Threads of all tenants; see `Store.every`."""
        return [
            self._threads[key].record() for key in sorted(key for key in self._threads if key > after)[:limit]
        ]

    async def events(
        self, key: Key, *, after: int, upto: int | None = None, limit: int | None = None
    ) -> Page:
        """Events with `after < seq <= upto`, in order."""
        thread = self._threads.get(key)
        if thread is None:
            return Page(None, 0, [])
        last = thread.last_seq if upto is None else min(upto, thread.last_seq)
        found: list[StoredEvent] = []
        for seq in range(after + 1, last + 1):
            if limit is not None and len(found) >= limit:
                break
            if seq in thread.events:
                number, event = thread.events[seq]
                run = thread.runs[number]
                found.append(StoredEvent(seq, run.run_id, event.at, event.type, event.payload, run.mark))
        return Page(thread.epoch, thread.last_seq, found, thread.mark(after))

    async def raws(self, key: Key, *, after: int, limit: int | None = None) -> list[NewEvent]:
        """Raw parts; see `Store.raws`."""
        thread = self._threads.get(key)
        kept = [raw for _, raw in thread.raws if raw.seq > after] if thread else []
        return kept[:limit]

    async def runs(self, key: Key) -> list[StoredRun]:
        """All runs of the thread, oldest first."""
        thread = self._threads.get(key)
        return thread.ordered() if thread else []

    async def lineage(self, key: Key, run_id: str | None = None) -> list[StoredRun]:
        """The run and its history, oldest first; see `Store.lineage`."""
        runs = await self.runs(key)
        by_seq = {run.seq: run for run in runs}
        meant = [run for run in runs if (run.edge not in APART if run_id is None else run.run_id == run_id)]
        run = meant[-1] if meant else None
        chain: list[StoredRun] = []
        while run is not None:
            chain.append(run)
            run = None if run.edge in APART or run.parent_seq is None else by_seq[run.parent_seq]
        return chain[::-1]

    async def named(self, tenant: str, run_id: str) -> list[tuple[StoredThread, StoredRun]]:
        """Runs of this id in any thread of the tenant, oldest first."""
        found = [
            (thread.record(), run)
            for key, thread in self._threads.items()
            if key.tenant == tenant
            for run in thread.ordered()
            if run.run_id == run_id
        ]
        return sorted(found, key=lambda each: each[1].seq)

    async def orphaned_runs(self, tenant: str | None, *, now: int) -> list[tuple[Key, StoredRun]]:
        """Runs in progress without a valid lease; see `Store.orphaned_runs`."""
        return [
            (key, run)
            for key, thread in self._threads.items()
            if tenant in (None, key.tenant) and thread.holder(now) is None
            if not (thread.owner or "").startswith(IMPORTER)
            for run in thread.ordered()
            if run.status == "in_progress"
        ]

    async def truncated_unresumed(
        self, tenant: str | None, *, now: int, since: int
    ) -> list[tuple[Key, StoredRun]]:
        """Truncated runs that no run continues; see `Store.truncated_unresumed`."""
        return [
            (key, run)
            for key, thread in self._threads.items()
            if tenant in (None, key.tenant) and thread.holder(now) is None
            for run in [each for each in thread.ordered() if each.edge != "aside"][-1:]
            if run.status == "truncated" and (run.ended_at or 0) >= max(since, thread.created_at)
        ]

    async def sizes(self, key: Key) -> list[RunSize]:
        """The bytes of each run, oldest first."""
        thread = self._threads.get(key)
        if thread is None:
            return []
        weights = {number: [0, 0, 0] for number in thread.runs}
        for number, event in thread.events.values():
            weights[number][0] += 1
            weights[number][1] += len(event.payload)
        for number, raw in thread.raws:
            weights[number][2] += len(raw.payload)
        return [RunSize(number, *weight) for number, weight in weights.items()]

    async def watch(self, key: Key) -> Watcher:
        """A watch that wakes at every append to the thread."""
        return self._wakeups.watch(thread_topic(key))
