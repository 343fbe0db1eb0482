"""What the log says about threads, runs and itself: plain frozen data.

Knows names and meanings; does not know where any of it is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ag_ui.core import TokenUsage

from runcast.slim.stores.records import Edge, RunStatus
from runcast.slim.wire import AnyEvent


@dataclass(frozen=True, slots=True)
class ThreadInfo:
    """A thread: which incarnation of it, how long it is, and whether somebody is writing it."""

    thread_id: str
    epoch: str
    last_seq: int
    created_at: int  # milliseconds since the Unix epoch, here and everywhere
    updated_at: int
    owner: str | None  # whose lease was the last, while it runs
    lease_until: int | None


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run and its place in the thread's tree. `parent` is the run it goes on from, whatever the wire said."""

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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A stored picture of a thread, as it was at `seq`."""

    thread_id: str
    run_id: str
    seq: int
    at: int
    data: dict[str, Any]
    size: int  # bytes in the store


@dataclass(frozen=True, slots=True)
class Portion:
    """Events that belong together, and the `seq` that a client has once it has all of them."""

    epoch: str | None  # None for a thread that nobody has written yet
    seq: int
    events: list[AnyEvent]


@dataclass(frozen=True, slots=True)
class ThreadSize:
    """What a thread weighs in the store, in bytes of payload."""

    entries: int
    events: int
    raw: int  # what was kept apart
    segments: int
    checkpoints: int
    snapshots: int


@dataclass(frozen=True, slots=True)
class Compacted:
    """What `compact` did: how many runs got a segment, and what they weighed before and after."""

    runs: int
    events: int  # as they came
    kept: int  # after folding
    raw_bytes: int
    segment_bytes: int
    checkpoint_bytes: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """What `prune` let go of."""

    runs: int
    threads: int
    events: int
    bytes: int


@dataclass(frozen=True, slots=True)
class LogStats:
    """Counters since the log was made, and what it holds right now."""

    appended: int  # entries given a seq
    flushed: int  # of them durable
    batches: int
    unflushed: int
    lost: int  # entries given up: their lease was taken, or the store refused for too long
    violations: int
    raw_dropped: int
    store_errors: int
    leases_lost: int
    writers: int
    readers: int
    readers_cut: int
    derive_errors: int
