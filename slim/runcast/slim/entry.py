"""An entry: an event with its place in a thread's log, and the history that a place belongs to.

Knows the shape that the log, the mapper and the HTTP API share; does not know how entries are stored or sent.

A log can lose its tail: an older copy is restored, the power fails, a standby that lags takes over. It then gives the lost
seqs out again under the same epoch. So each run has a *mark*, made by its writer: the seq at which it begins, a dot and
random characters. A writer gives a seq of its run to one event only, and a log only grows behind a run, so a mark and a
seq together name one event and everything before it. A position is bound to its history by the mark of the entry it
stands at, written behind the epoch: `k3f9x2~7.1f0c2b9a`. A bare epoch is a position that is not bound.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from runcast.slim.wire.codec import AnyEvent

LONGEST_BOUND = 128  # characters of an epoch with a mark
BOUND = re.compile(r"(.*)~([0-9]{1,16}\.[0-9A-Za-z]{1,32})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Entry:
    """One event in a thread's log. `seq` counts 1, 2, 3, … without holes and means nothing under another `epoch`."""

    thread_id: str
    seq: int
    epoch: str  # names this incarnation of the thread's log; a deleted and re-created thread has another
    run_id: str
    at: int  # when the log received it, milliseconds since the Unix epoch, UTC
    event: AnyEvent
    mark: str = ""  # of its run; empty where the run was written before there were marks

    @property
    def history(self) -> str:
        """The epoch as a reader brings it back: bound to this entry's history."""
        return bound(self.epoch, self.mark)


def mark_of(first_seq: int, random: str) -> str:
    """The mark of a run that begins at this seq."""
    return f"{first_seq}.{random[:8]}"


def is_mark(text: object) -> TypeGuard[str]:
    """Whether text from outside is a mark."""
    return isinstance(text, str) and BOUND.fullmatch(f"~{text}") is not None


def bound(epoch: str, mark: str) -> str:
    """An epoch and a mark as one text."""
    return f"{epoch}~{mark}" if mark else epoch


def unbound(history: str) -> tuple[str, str]:
    """The epoch and the mark of such a text; no mark in one that was issued without."""
    found = BOUND.fullmatch(history) if "~" in history else None
    return (found[1], found[2]) if found else (history, "")


def is_other_history(last: int, mark: str, seq: int, other: str) -> bool:
    """Whether an entry contradicts what a reader holds up to `last`, an entry of the run marked `mark`.

    The entry is `seq` of the run marked `other`. A run is an unbroken stretch of its thread, so an earlier entry of
    another run lies before this run's beginning, and a later one in a run that begins behind `last`.
    """
    if not mark or not other or mark == other:
        return False
    return begins(other) <= last if seq > last else begins(mark) <= seq


def begins(mark: str) -> int:
    """The seq at which a marked run begins."""
    return int(mark.partition(".")[0])
