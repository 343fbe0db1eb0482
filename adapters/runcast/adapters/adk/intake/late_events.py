"""Events that a run stored when it was over: its worker slept past its lease, and woke when another had its run.

Every event that the adapter stores carries a mark of its run. The runs of a thread follow each other, so an event
behind those of a later run is late. A run that continues a broken one stores a note first, which makes later all that
the broken one may still store. Events without a mark were stored by others, and count.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from runcast.slim.folding.run_metadata import METADATA_KEY
from runcast.slim.values.type_guards import as_mapping

if TYPE_CHECKING:
    from google.adk.events.event import Event

RUN = "run"  # in the mark: which run stored the event
TAKEN = "taken"  # in the mark of the note by which a run takes over


def stamp(event: Event, run: str) -> None:
    """Mark an event as one that this run stores."""
    given = event.custom_metadata or {}
    event.custom_metadata = {**given, METADATA_KEY: {**as_mapping(given.get(METADATA_KEY)), RUN: run}}


def counted(events: Iterable[Event]) -> list[Event]:
    """The events without late ones, and without the notes of runs that took over."""
    over, current = set[Any](), None
    kept: list[Event] = []
    for event in events:
        mark = as_mapping((event.custom_metadata or {}).get(METADATA_KEY))
        run = mark.get(RUN)
        if run is not None and run != current:
            if run in over:
                continue
            over.add(run)
            current = run
        if not mark.get(TAKEN):
            kept.append(event)
    return kept
