"""An entry: an event with its place in a thread's log.

Knows the shape that the log, the mapper and the HTTP API share; does not know how entries are stored or sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runcast.slim.wire.codec import AnyEvent


@dataclass(frozen=True, slots=True)
class Entry:
    """One event in a thread's log. `seq` counts 1, 2, 3, … without holes and means nothing under another `epoch`."""

    thread_id: str
    seq: int
    epoch: str  # names this incarnation of the thread's log; a deleted and re-created thread has another
    run_id: str
    at: int  # when the log received it, milliseconds since the Unix epoch, UTC
    event: AnyEvent
