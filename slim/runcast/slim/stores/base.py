"""What a store is: records in, records out, one transaction a call.

Knows the calls, and the promises every store keeps; does not know what an
event is (a payload is bytes), what time it is or who is writing (both come in as arguments). Five promises:

1. `seq` counts 1, 2, 3, … per thread without holes. A batch says where it begins; a batch that does not begin
   right after the last one is refused with `Conflict`, whole.
2. The same batch again (same `batch_id`) gives the same answer and writes nothing: a lost answer can be retried.
3. Only the holder of a thread's lease appends. Every new holder gets a higher token, and an older token is refused
   whatever its deadline says: a writer that slept through its lease cannot write into the next one's log.
4. A call either happened or did not. After an error nothing of it is there.
5. After `watch` has returned, every later append to that thread rings the bell, whichever process made it; after
   `listen` has, every later `post` to one of the boxes does.

A *note* is a word between processes: left in a box, found by whoever listens there, taken off by one of them.
A `tenant` is part of every key, so that no call can reach across.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    """A bell for one thread, or for some boxes."""

    async def wait(self) -> None:
        """Return after the next append or post; at once if there was one since the last return."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


class Store(Protocol):
    """Where threads are kept. Any call may raise `StoreError`; nothing is half written when it does."""

    async def open(self) -> None:
        """Connect and bring the schema up to date; called by every other method when it was not."""
        ...

    async def close(self) -> None:
        """Let go of everything; the store can be opened again."""
        ...

    async def acquire(self, key: Key, *, owner: str, now: int, until: int, epoch: str) -> Lease:
        """Take the thread's lease, making the thread (as `epoch`) if there is none; `Conflict` while another holds it.

        A run still in progress then has lost its owner, and is marked truncated.
        """
        ...

    async def append(self, batch: Batch) -> int:
        """Write a batch and give back its run's number; `Conflict` or `LineageError` when it does not fit."""
        ...

    async def thread(self, key: Key) -> StoredThread | None:
        """The thread, or None."""
        ...

    async def threads(self, tenant: str, *, limit: int, after: str = "") -> list[StoredThread]:
        """Threads of a tenant by thread id, those behind `after`."""
        ...

    async def events(
        self, key: Key, *, after: int, upto: int | None = None, limit: int | None = None
    ) -> Page:
        """Events with `after < seq <= upto`, in order."""
        ...

    async def raws(self, key: Key, *, after: int, limit: int | None = None) -> list[NewEvent]:
        """What was kept apart, under the seq it came with."""
        ...

    async def runs(self, key: Key) -> list[StoredRun]:
        """All runs of the thread, oldest first."""
        ...

    async def lineage(self, key: Key, run_id: str | None = None) -> list[StoredRun]:
        """The run and what is its history, oldest first; a spawned run has none. Empty when there is no such run.

        Without an id: the newest run that was not spawned.
        """
        ...

    async def named(self, tenant: str, run_id: str) -> list[tuple[StoredThread, StoredRun]]:
        """Runs of this id in any thread of the tenant, oldest first."""
        ...

    async def stranded(self, tenant: str | None, *, now: int) -> list[tuple[Key, StoredRun]]:
        """Runs in progress whose owner's lease has run out; without a tenant, everybody's."""
        ...

    async def left(self, tenant: str | None, *, now: int, since: int) -> list[tuple[Key, StoredRun]]:
        """Truncated runs that nobody went on from: the newest of threads without an owner, with events after `since`."""
        ...

    async def put_blob(self, key: Key, blob: Blob) -> None:
        """Keep a derived thing, in place of an equal one (same kind, run and seq)."""
        ...

    async def blob_index(self, key: Key, kind: BlobKind) -> list[BlobInfo]:
        """What there is of a kind, by seq, without the bodies."""
        ...

    async def blobs(self, key: Key, kind: BlobKind, runs: Sequence[int]) -> list[Blob]:
        """Those of some runs, by seq, with their bodies."""
        ...

    async def drop_blobs(self, key: Key, kind: BlobKind, seqs: Sequence[int]) -> None:
        """Forget derived things by their seq."""
        ...

    async def drop_events(self, key: Key, runs: Sequence[int]) -> None:
        """Forget the events of runs (and what was kept apart with them) and mark the runs pruned."""
        ...

    async def sizes(self, key: Key) -> list[RunSize]:
        """What the runs weigh, oldest first."""
        ...

    async def delete(self, key: Key, *, now: int) -> bool:
        """Forget the thread and all that hangs on it; `Conflict` while somebody holds its lease."""
        ...

    async def watch(self, key: Key) -> Watch:
        """A bell that rings at every append to the thread, which need not exist yet."""
        ...

    async def post(self, note: Note, *, replace: bool = False) -> bool:
        """Leave a note, unless there is one of its name: then False, or with `replace` in the place of that."""
        ...

    async def notes(self, *boxes: str, limit: int | None = None) -> list[Note]:
        """The notes in these boxes, oldest first, so many at the most."""
        ...

    async def notes_about(self, tenant: str, run_id: str) -> list[Note]:
        """The notes about a run, in any box, oldest first."""
        ...

    async def unpost(self, note: Note) -> bool:
        """Take a note off, if it is there as it is here; True for one caller of many."""
        ...

    async def sweep_notes(self, *, before: int) -> int:
        """Take off the notes whose `until` lies before this; answers how many."""
        ...

    async def listen(self, *boxes: str) -> Watch:
        """A bell that rings at every post to one of these boxes."""
        ...
