"""What travels between the log and a store: frozen records with payloads of bytes.

Knows the shape of threads, runs, events and derived things; does not know what an event is, or how they are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Edge = Literal["continue", "branch", "resume", "spawn"]
RunStatus = Literal["in_progress", "completed", "failed", "interrupted", "cancelled", "truncated"]
BlobKind = Literal["segment", "checkpoint", "snapshot"]


class Key(NamedTuple):
    """The name of a thread: whose, and which."""

    tenant: str
    thread_id: str


class NewEvent(NamedTuple):
    """One event on its way in; a tuple because there is one for every token of a model."""

    seq: int
    at: int
    type: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run that begins with the first event of its batch; `parent` is a run id of the same thread."""

    run_id: str
    parent: str | None
    edge: Edge
    wire_parent: str | None = None  # parentRunId as the wire had it: kept, never walked


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended; `terminal` is the type of the event that ended it."""

    status: RunStatus
    terminal: str | None
    usage: bytes | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to append to a thread, until somebody else is given a higher token."""

    key: Key
    owner: str
    token: int
    epoch: str
    last_seq: int
    last_run: StoredRun | None  # the newest run of the thread
    head: StoredRun | None  # the newest run that is history: not spawned by another
    cut: tuple[str, ...] = ()  # runs that had lost their owner, and were marked truncated by this very call


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction appends. Without events it only renews (`until`) or gives back (`until=None`) the lease."""

    key: Key
    owner: str
    token: int
    batch_id: str
    first_seq: int
    run: NewRun | int
    events: tuple[NewEvent, ...]
    raws: tuple[NewEvent, ...] = ()  # kept apart from the log, under the seq of the entry they came with
    end: RunEnd | None = None
    until: int | None = None
    now: int = 0

    @property
    def writes(self) -> bool:
        """Whether there is more to it than the lease."""
        return bool(self.events or self.raws or self.end)


@dataclass(frozen=True, slots=True)
class StoredThread:
    """A thread as the store has it."""

    key: Key
    epoch: str
    last_seq: int
    owner: str | None
    until: int | None
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as the store has it; `seq` is the store's own number for it, `parent_seq` its parent's."""

    seq: int
    run_id: str
    parent_seq: int | None
    edge: Edge
    attempt: int
    first_seq: int
    last_seq: int
    started_at: int
    ended_at: int | None
    status: RunStatus
    terminal: str | None
    wire_parent: str | None
    usage: bytes | None
    pruned: bool  # its events are gone; a segment holds what they came to


@dataclass(frozen=True, slots=True)
class Note:
    """A word from one process to others, about a run: kept until somebody has taken it off."""

    id: str  # there is one note of a name
    box: str  # where it lies, and whoever watches that finds it
    key: Key
    run_id: str
    body: bytes
    at: int
    until: int | None = None  # after this it means nothing any more


class StoredEvent(NamedTuple):
    """One event as the store has it."""

    seq: int
    run_id: str
    at: int
    type: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Page:
    """Some events of a thread, in order; `epoch` is None when there is no such thread."""

    epoch: str | None
    last_seq: int
    events: list[StoredEvent]


@dataclass(frozen=True, slots=True)
class BlobInfo:
    """A derived thing without its body: a run's segment, a checkpoint after it, or a snapshot at `seq`."""

    kind: BlobKind
    run: int
    seq: int
    at: int
    codec: str
    events: int
    sha256: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Blob:
    """A derived thing with its body."""

    info: BlobInfo
    body: bytes


@dataclass(frozen=True, slots=True)
class RunSize:
    """What a run's events weigh in the store, before anything is derived from them."""

    run: int
    events: int
    bytes: int
    raw_bytes: int
