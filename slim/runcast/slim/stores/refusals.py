"""The errors with which every store refuses a call, so that the same mistake reads the same everywhere.

Knows the sentences and their classes; does not know how a store detects a mistake.
"""

from __future__ import annotations

from runcast.slim.errors import Conflict, Forgotten, LineageError, StoreError
from runcast.slim.stores.records import IMPORTER, Key


class Unstorable(StoreError):
    """A value that this database cannot hold: the other batches of its transaction are not to blame."""


def taken(key: Key, owner: str | None, until: int | None, now: int) -> Conflict:
    """Another owner's lease is still valid, or an import was killed."""
    left = max(0, (until or now) - now)
    if not left and (owner or "").startswith(IMPORTER):
        return Conflict(f"the import of thread {key.thread_id!r} was killed: repeat it, or delete the thread")
    return Conflict(
        f"thread {key.thread_id!r} is being written by {owner}; its lease is valid for {left} ms more: "
        "wait for the run to end, stop it there, or try again when the lease has expired"
    )


def lost(key: Key, owner: str | None) -> Conflict:
    """The lease went to another owner, or was released."""
    by = f"now belongs to {owner}" if owner else "was released"
    return Conflict(
        f"the lease on thread {key.thread_id!r} {by}: this writer cannot append to its run any more"
    )


def misplaced(key: Key, first_seq: int, last_seq: int) -> Conflict:
    """A batch that does not begin right after the last event."""
    return Conflict(
        f"thread {key.thread_id!r} continues at seq {last_seq + 1}, not at {first_seq}: "
        "read its entries and append behind them"
    )


def gone(key: Key) -> Conflict:
    """The thread was deleted under its writer."""
    return Conflict(f"thread {key.thread_id!r} was deleted: acquire it again to begin a new one")


def forgotten(key: Key) -> Forgotten:
    """The thread was forgotten, and its id stays taken."""
    return Forgotten(
        f"thread {key.thread_id!r} was forgotten: use another id, or delete its tombstone (`runcast rm --reuse`)"
    )


def used(key: Key, run_id: str) -> Conflict:
    """A second run of the same id."""
    return Conflict(
        f"run {run_id!r} is already in thread {key.thread_id!r}: give every run an id of its own, a resumed one too"
    )


def no_parent(key: Key, parent: str) -> LineageError:
    """A parent that does not exist."""
    return LineageError(
        f"run {parent!r} is not in thread {key.thread_id!r}: a run's parent is an earlier run of the same thread"
    )


def unknown_run(key: Key, number: int) -> Conflict:
    """Events for a run that this thread does not have."""
    return Conflict(f"thread {key.thread_id!r} has no run number {number}: begin it with its first event")


def busy(key: Key, owner: str | None) -> Conflict:
    """A thread that cannot be deleted yet."""
    return Conflict(f"thread {key.thread_id!r} is being written by {owner}: stop its run, then delete it")


def not_idle(key: Key) -> Conflict:
    """A thread that was old and is written to again."""
    return Conflict(f"thread {key.thread_id!r} was written to meanwhile: it stays")


def other_schema(found: int, known: int) -> StoreError:
    """A database of a version that cannot be used."""
    if found > known:
        return StoreError(
            f"the database has schema version {found}, this runcast knows up to {known}: "
            "install the version of runcast that made it, or a newer one"
        )
    return StoreError(f"the database has schema version {found}, not {known}: open it once for writing")


def read_only(what: str) -> StoreError:
    """A write to a store opened for reading."""
    return StoreError(f"{what} is open for reading only: open it without mode=ro, or make it writable")


def unless_text(what: str, text: str) -> str:
    """The text, if every database can store it."""
    if "\0" in text or not (text.isascii() or all(each < "\ud800" or each > "\udfff" for each in text)):
        raise StoreError(f"{what} must be text without NUL and half characters, not {text!r:.80}")
    return text
