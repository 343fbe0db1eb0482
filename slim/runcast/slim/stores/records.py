"""Frozen records between the log and a store, with payloads of bytes.

Knows the shape of threads, runs, events and derived data; does not know the meaning of an event, or how it is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from runcast.slim.errors import LineageError, StoreError

Edge = Literal["continue", "branch", "resume", "spawn", "aside"]
APART = ("spawn", "aside")  # edges of runs that are no history: no run continues them
RunStatus = Literal["in_progress", "completed", "failed", "interrupted", "cancelled", "truncated"]
BlobKind = Literal["segment", "checkpoint", "snapshot"]
SNAPSHOTS = 3  # that stay of a thread, unless its writer asks for another number
IMPORTER = "import:"  # an owner's prefix: what it left unfinished is no run of this host


class Key(NamedTuple):
    """A tenant and the id of one of its threads."""

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
    wire_parent: str | None = None  # parentRunId of the wire: stored, never followed
    mark: str = ""  # no other writing of this run has it; see `runcast.slim.entry`


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended; `terminal` is the type of the event that ended it."""

    status: RunStatus
    terminal: str | None
    usage: bytes | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to append to a thread, until another owner gets a higher token."""

    key: Key
    owner: str
    token: int
    epoch: str
    last_seq: int
    last_run: StoredRun | None  # the newest run of the thread
    head: StoredRun | None  # the newest run that is history: not spawned by another
    cut: tuple[str, ...] = ()  # runs without an owner that this call marked truncated
    notes: int = 0  # about the thread, in any box


@dataclass(frozen=True, slots=True)
class Batch:
    """The events of one append. It prolongs the lease (`until`) or releases it (`until=None`).

    A snapshot becomes one of its run, and the newest few of the thread stay.
    """

    key: Key
    owner: str
    token: int
    batch_id: str
    first_seq: int
    run: NewRun | int
    events: tuple[NewEvent, ...]
    # stored apart from the entries, under the seq of the entry they came with
    raws: tuple[NewEvent, ...] = ()
    end: RunEnd | None = None
    until: int | None = None
    now: int = 0
    snapshot: Blob | None = None

    @property
    def writes(self) -> bool:
        """Whether it concerns more than the lease."""
        return bool(self.events or self.raws or self.end)


Answer = int | StoreError | LineageError  # to a batch: its run's number, or the error that refuses it


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
    title: str | None = None  # that people gave it
    status: RunStatus | None = None  # of its newest run
    mark: str = ""  # of the run that holds `last_seq`


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
    pruned: bool  # its events are deleted; a segment holds their outcome
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A durable message in a mailbox, about a run; one listener consumes it."""

    id: str  # unique; posting it again is refused or replaces it
    box: str  # mailbox; its listeners receive the note
    key: Key
    run_id: str
    body: bytes
    at: int
    until: int | None = None  # stale after this


class StoredEvent(NamedTuple):
    """One event as the store has it."""

    seq: int
    run_id: str
    at: int
    type: str
    payload: bytes
    mark: str = ""  # of its run


@dataclass(frozen=True, slots=True)
class Page:
    """Some events of a thread, in order; `epoch` is None when there is no such thread."""

    epoch: str | None
    last_seq: int
    events: list[StoredEvent]
    mark: str = ""  # of the run that holds the seq before the first of them


@dataclass(frozen=True, slots=True)
class BlobInfo:
    """A blob without its body: a run's segment, a checkpoint after it, or a snapshot at `seq`."""

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
    """A blob with its body."""

    info: BlobInfo
    body: bytes


@dataclass(frozen=True, slots=True)
class RunSize:
    """The bytes of a run's events in the store, before anything is derived from them."""

    run: int
    events: int
    bytes: int
    raw_bytes: int
