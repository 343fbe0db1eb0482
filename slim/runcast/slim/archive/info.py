"""Descriptions of threads, runs and the log itself: plain frozen data.

Knows names and meanings; does not know where the data is stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ag_ui.core import Message, TokenUsage

from runcast.slim.entry import bound
from runcast.slim.stores.records import Edge, RunStatus
from runcast.slim.wire.codec import AnyEvent


@dataclass(frozen=True, slots=True)
class ThreadInfo:
    """A thread: its incarnation, its length, and its writer if there is one."""

    thread_id: str
    epoch: str
    last_seq: int
    created_at: int  # milliseconds since the Unix epoch, here and everywhere
    updated_at: int
    owner: str | None  # the holder of a valid lease
    lease_until: int | None
    title: str | None = None  # that people gave it
    status: RunStatus | None = None  # of its newest run; None before the first one
    mark: str = ""  # of the run that holds `last_seq`: what binds a position at the end of the log


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run and its place in the thread's tree. `parent` is the run it continues, independent of the wire."""

    run_id: str
    parent: str | None
    edge: Edge
    attempt: int  # 1, and one more for every `resume`
    status: RunStatus
    first_seq: int
    last_seq: int
    started_at: int
    ended_at: int | None
    terminal: str | None  # the type of the event that ended it; None for a truncated run
    usage: tuple[TokenUsage, ...] | None
    wire_parent: str | None  # `parentRunId` as RUN_STARTED had it
    pruned: bool  # its entries come from its segment, folded


@dataclass(slots=True)
class Claim:
    """What the writer of a thread knows once it has the lease. No other writer moves the thread meanwhile."""

    fresh: bool  # no run was ever written to it
    notes: int  # about the thread when the lease was taken
    seq: int  # the thread's last one
    history: str  # the epoch bound to that place
    before: Iterable[Message] | None = (
        None  # that the run begins with, if the caller has read them: else the log reads them
    )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A stored snapshot of a thread, as it was at `seq`."""

    thread_id: str
    run_id: str
    seq: int
    at: int
    data: dict[str, Any]
    size: int  # bytes in the store


@dataclass(frozen=True, slots=True)
class Portion:
    """Events that belong together, and the `seq` that a client reaches once all of them are applied."""

    epoch: str | None  # None for a thread that does not exist yet
    seq: int
    events: list[AnyEvent]
    mark: str = ""

    @property
    def history(self) -> str | None:
        """The `epoch` to continue with: bound to the history that holds these events."""
        return self.epoch and bound(self.epoch, self.mark)


@dataclass(frozen=True, slots=True)
class ThreadSize:
    """The size of a thread in the store, in bytes of payload."""

    entries: int
    events: int
    raw: int  # raw parts
    segments: int
    checkpoints: int
    snapshots: int


@dataclass(frozen=True, slots=True)
class Compacted:
    """The result of `compact`: how many runs got a segment, and their size before and after."""

    runs: int
    events: int  # before folding
    kept: int  # after folding
    raw_bytes: int
    segment_bytes: int
    checkpoint_bytes: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """The amount that `prune` removed."""

    runs: int
    threads: int
    events: int
    bytes: int


@dataclass(frozen=True, slots=True)
class LogStats:
    """Counters since the log was made, and its present load."""

    appended: int  # entries given a seq
    flushed: int  # of them durable
    batches: int
    unflushed: int
    lost: int  # entries dropped: their lease was taken, or the store failed for too long
    violations: int
    raw_dropped: int
    store_errors: int
    leases_lost: int
    writers: int
    readers: int
    readers_cut: int
    derive_errors: int
