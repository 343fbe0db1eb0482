"""The sentences with which every store refuses, so that the same mistake reads the same everywhere.

Knows what to say and which class says it; does not know how a store found out.
"""

from __future__ import annotations

from runcast.slim.errors import Conflict, LineageError, StoreError
from runcast.slim.stores.records import Key


def held(key: Key, owner: str | None, until: int | None, now: int) -> Conflict:
    """Somebody else's lease still runs."""
    left = max(0, (until or now) - now)
    return Conflict(
        f"thread {key.thread_id!r} is being written by {owner}, whose lease runs for {left} ms more: "
        "wait for the run to end, stop it there, or try again when the lease has run out"
    )


def lost(key: Key, owner: str | None) -> Conflict:
    """The lease was given to somebody else, or back."""
    by = f"now belongs to {owner}" if owner else "was given back"
    return Conflict(f"the lease on thread {key.thread_id!r} {by}: this writer may append no more to its run")


def misplaced(key: Key, first_seq: int, last_seq: int) -> Conflict:
    """A batch that does not begin right after the last event."""
    return Conflict(
        f"thread {key.thread_id!r} goes on at seq {last_seq + 1}, not at {first_seq}: "
        "read what is there and append behind it"
    )


def gone(key: Key) -> Conflict:
    """The thread was deleted under its writer."""
    return Conflict(f"thread {key.thread_id!r} was deleted: acquire it again to begin a new one")


def used(key: Key, run_id: str) -> Conflict:
    """A second run of the same name."""
    return Conflict(
        f"run {run_id!r} is already in thread {key.thread_id!r}: give every run an id of its own, a resumed one too"
    )


def no_parent(key: Key, parent: str) -> LineageError:
    """A parent that is not there."""
    return LineageError(
        f"run {parent!r} is not in thread {key.thread_id!r}: a run's parent is an earlier run of the same thread"
    )


def unknown_run(key: Key, number: int) -> Conflict:
    """Events for a run that this thread does not have."""
    return Conflict(f"thread {key.thread_id!r} has no run number {number}: begin it with its first event")


def busy(key: Key, owner: str | None) -> Conflict:
    """A thread that cannot be deleted yet."""
    return Conflict(f"thread {key.thread_id!r} is being written by {owner}: stop its run, then delete it")


def other_schema(found: int, known: int) -> StoreError:
    """A database of another version that cannot be brought here."""
    if found > known:
        return StoreError(
            f"the database has schema version {found}, this runcast knows up to {known}: "
            "install the version of runcast that made it, or a newer one"
        )
    return StoreError(f"the database has schema version {found}, not {known}: open it once for writing")


def read_only(what: str) -> StoreError:
    """A write to what was opened for reading."""
    return StoreError(f"{what} is open for reading only: open it without mode=ro, or make it writable")


def unless_text(what: str, text: str) -> str:
    """The text, if every database can hold it."""
    if "\0" in text or any("\ud800" <= half <= "\udfff" for half in text if not half.isascii()):
        raise StoreError(f"{what} has to be text without NUL and half characters, which {text!r:.80} is not")
    return text
