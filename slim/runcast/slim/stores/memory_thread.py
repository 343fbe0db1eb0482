"""What the store in memory holds of one thread.

Knows records and their order; does not know leases or the promises of a store.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

from runcast.slim.stores.records import (
    SNAPSHOTS,
    Blob,
    BlobKind,
    Key,
    NewEvent,
    StoredRun,
    StoredThread,
)


@dataclass(slots=True)
class MemoryThread:
    """One thread: its lease, and everything that is stored of it."""

    key: Key
    epoch: str
    created_at: int
    updated_at: int
    token: int = 0
    owner: str | None = None
    until: int | None = None
    last_batch: tuple[str, int] | None = None  # its id, and the run it wrote to
    last_seq: int = 0
    title: str | None = None
    # by seq, with the run's number
    events: dict[int, tuple[int, NewEvent]] = field(default_factory=dict[int, tuple[int, NewEvent]])
    raws: list[tuple[int, NewEvent]] = field(default_factory=list[tuple[int, NewEvent]])
    # by the store's number, oldest first
    runs: dict[int, StoredRun] = field(default_factory=dict[int, StoredRun])
    blobs: dict[tuple[BlobKind, int, int], Blob] = field(
        default_factory=dict[tuple[BlobKind, int, int], Blob]
    )

    def holder(self, now: int) -> str | None:
        """The owner of the lease, unless it has expired."""
        return None if self.until is None or self.until < now else self.owner

    def record(self) -> StoredThread:
        """The thread as the store gives it."""
        newest = [run for run in self.runs.values() if run.edge != "aside"][-1:]
        status = newest[0].status if newest else None
        place = (self.key, self.epoch, self.last_seq, self.owner, self.until)
        times = (self.created_at, self.updated_at)
        return StoredThread(*place, *times, self.title, status, self.mark(self.last_seq))

    def mark(self, seq: int) -> str:
        """The mark of the run that holds this seq."""
        before = [run.mark for run in self.runs.values() if run.first_seq <= seq]
        return before[-1] if before else ""

    def ordered(self) -> list[StoredRun]:
        """The runs with their present ends: right before the next run, or at the last event."""
        return [
            replace(run, last_seq=self.last_seq if after is None else after.first_seq - 1)
            for run, after in pairwise([*self.runs.values(), None])
            if run is not None  # only the last one is
        ]

    def keep_snapshot(self, run: int, blob: Blob) -> None:
        """Add a snapshot of a run, and keep the newest few."""
        info = replace(blob.info, run=run)
        self.blobs[info.kind, info.run, info.seq] = replace(blob, info=info)
        kept = sorted(name for name in self.blobs if name[0] == info.kind)  # a later run has a later seq
        for name in kept[:-SNAPSHOTS]:
            del self.blobs[name]
