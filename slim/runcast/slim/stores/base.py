"""The protocol of a store: records in, records out, one transaction for each call.

Knows the calls, and the promises every store keeps; does not know events (a payload is bytes), the time or the
writer (both are arguments). Five promises:

1. `seq` counts 1, 2, 3, … in each thread without holes. A batch names its first seq; a batch that does not begin
   right after the last one is refused with `Conflict`, whole.
2. The same batch again (same `batch_id`) gets the same answer and writes nothing: a lost answer can be retried.
3. Only the holder of a thread's lease appends. Every new holder gets a higher token, and an older token is refused
   whatever its deadline: a writer that slept past its lease cannot write into the next one's log.
4. A call either happened or did not. After an error nothing of it is stored.
5. After `watch` has returned, every later append to that thread wakes the watch, from whichever process it came;
   after `listen` has, every later `post` to one of the boxes does.

A *note* is a durable message in a named mailbox, consumed by exactly one listener. A `tenant` is part of every key, so
that no call can reach another tenant.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from runcast.slim.stores.records import (
    Batch,
    Blob,
    BlobInfo,
    BlobKind,
    Key,
    Lease,
    NewEvent,
    Note,
    Page,
    RunSize,
    StoredRun,
    StoredThread,
)


class Watch(Protocol):
    """A wake-up for one thread, or for some boxes."""

    async def wait(self) -> None:
        """Return after the next append or post; at once if there was one since the last return."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


class Threads(Protocol):
    """Threads, their leases and their runs."""

    async def acquire(
        self, key: Key, *, owner: str, now: int, until: int, epoch: str, anew: bool = False
    ) -> Lease:
        """Take the thread's lease, and create the thread (as `epoch`) if there is none; `Conflict` while another
        owner holds it, or when a killed import has left it: an `IMPORTER` takes that. A run still in progress has then lost
        its owner, and is marked truncated. `anew` gives a thread that is there this epoch too."""
        ...

    async def renew(self, leases: Sequence[Lease], *, until: int) -> list[Lease]:
        """Let leases last until then; returns those that are lost. A thread that another
        session is writing to at the moment is passed over."""
        ...

    async def thread(self, key: Key) -> StoredThread | None:
        """The thread, or None."""
        ...

    async def threads(self, tenant: str, *, limit: int, after: str = "") -> list[StoredThread]:
        """Threads of a tenant ordered by thread id, from behind `after`."""
        ...

    async def rename(self, key: Key, title: str | None) -> bool:
        """Give the thread a title, or take it away; False when there is no such thread. Needs no lease."""
        ...

    async def runs(self, key: Key) -> list[StoredRun]:
        """All runs of the thread, oldest first."""
        ...

    async def lineage(self, key: Key, run_id: str | None = None) -> list[StoredRun]:
        """The run and its history, oldest first; a spawned run has no history. Empty when there is no such run.

        Without an id: the newest run that was not spawned.
        """
        ...

    async def named(self, tenant: str, run_id: str) -> list[tuple[StoredThread, StoredRun]]:
        """Runs of this id in any thread of the tenant, oldest first."""
        ...

    async def orphaned_runs(self, tenant: str | None, *, now: int) -> list[tuple[Key, StoredRun]]:
        """Runs in progress whose owner's lease has expired, but no half-imported ones; without a tenant, of all tenants."""
        ...

    async def truncated_unresumed(
        self, tenant: str | None, *, now: int, since: int
    ) -> list[tuple[Key, StoredRun]]:
        """Truncated runs that no run continues: the newest of threads without an owner, ended after `since` and after
        their thread was made here (an imported run was not)."""
        ...

    async def every(self, *, limit: int, after: Key) -> list[StoredThread]:
        """Threads of all tenants ordered by tenant and thread id, from behind `after`."""
        ...

    async def delete(
        self, key: Key, *, now: int, tombstone: bool = False, idle_since: int | None = None
    ) -> bool:
        """Delete the thread and everything stored with it, notes too; `Conflict` while a writer holds its lease, and with
        `idle_since` when it was written to after that.

        A tombstone keeps the id, and nothing else: `acquire` raises `Forgotten` until it is deleted without one.
        """
        ...

    async def forgotten(self, key: Key) -> bool:
        """Whether a tombstone stands for the thread."""
        ...


class Events(Protocol):
    """Events, and the raw parts kept beside them."""

    async def append(self, batch: Batch) -> int:
        """Write a batch and return its run's number; `Conflict` or `LineageError` when it does not fit."""
        ...

    async def append_all(self, batches: Sequence[Batch]) -> list[int | None]:
        """Write the batches of several threads, one of each, in one transaction. Each is answered by its run's number,
        or by None: nothing of it is written, and `append` writes it by itself or refuses it."""
        ...

    async def events(
        self, key: Key, *, after: int, upto: int | None = None, limit: int | None = None
    ) -> Page:
        """Events with `after < seq <= upto`, in order."""
        ...

    async def raws(self, key: Key, *, after: int, limit: int | None = None) -> list[NewEvent]:
        """Raw parts, each under the seq of the entry it came with."""
        ...

    async def drop_events(self, key: Key, runs: Sequence[int]) -> None:
        """Delete the events and raw parts of runs, and mark the runs pruned."""
        ...

    async def sizes(self, key: Key) -> list[RunSize]:
        """The bytes of each run, oldest first."""
        ...

    async def watch(self, key: Key) -> Watch:
        """A watch that wakes at every append to the thread, which need not exist yet."""
        ...


class Blobs(Protocol):
    """Derived data: segments, checkpoints and snapshots."""

    async def put_blob(self, key: Key, blob: Blob) -> None:
        """Store a blob in place of an equal one (same kind, run and seq)."""
        ...

    async def blob_index(self, key: Key, kind: BlobKind) -> list[BlobInfo]:
        """The blobs of a kind, by seq, without their bodies."""
        ...

    async def blobs(self, key: Key, kind: BlobKind, runs: Sequence[int]) -> list[Blob]:
        """The blobs of some runs, by seq, with their bodies."""
        ...

    async def drop_blobs(self, key: Key, kind: BlobKind, seqs: Sequence[int]) -> None:
        """Delete blobs by their seq."""
        ...


class NoteBoxes(Protocol):
    """Notes between processes, in named mailboxes."""

    async def post(self, note: Note, *, replace: bool = False) -> bool:
        """Store a note, unless its id is taken: then return False, or with `replace` replace that note."""
        ...

    async def notes(self, *boxes: str, limit: int | None = None) -> list[Note]:
        """The notes in these boxes, oldest first, at most `limit`."""
        ...

    async def notes_about(
        self, tenant: str, run_id: str | None = None, *, thread_id: str | None = None
    ) -> list[Note]:
        """The notes about a run, or about a thread, in any box, oldest first."""
        ...

    async def unpost(self, note: Note, *, instead: Note | None = None) -> bool:
        """Remove a note if it is unchanged, or put another of its id in its place; True for exactly one of several
        callers."""
        ...

    async def sweep_notes(self, *, before: int) -> int:
        """Remove the notes whose `until` is before this; returns their number."""
        ...

    async def listen(self, *boxes: str) -> Watch:
        """A watch that wakes at every post to one of these boxes."""
        ...


class Store(Threads, Events, Blobs, NoteBoxes, Protocol):
    """The place where threads are stored. Any call may raise `StoreError`; nothing is half written when it does."""

    async def open(self) -> None:
        """Connect and bring the schema up to date; every other method does so when it was not called."""
        ...

    def apart(self) -> AbstractAsyncContextManager[Store]:
        """The open store for the event loop of another thread, which may renew leases while this one is busy."""
        ...

    async def close(self) -> None:
        """Release all resources; the store can be opened again."""
        ...
