"""A run's folded events as bytes, each with its time; and the choice of checkpoints worth keeping.

Knows the form of a segment: one line with the times, then one line an event. Does not know stores or codecs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import orjson

from runcast.slim.compaction.compactor import compact
from runcast.slim.wire.codec import AnyEvent, decode, encode

Timed = tuple[int, AnyEvent]  # when the log received it, and the event


def fold_run(run: Sequence[Timed]) -> list[Timed]:
    """A run in fewer events of the same effect. A folded event has the time of its first part."""
    events = [event for _, event in run]
    place = {id(event): n for n, event in enumerate(events)}
    at, folded = 0, list[Timed]()
    for event in compact(events):
        # No kept event moves: a new one takes the place of the next old one.
        at = place.get(id(event), at)
        folded.append((run[min(at, len(run) - 1)][0], event))
        at += 1
    return folded


def to_bytes(run: Iterable[Timed]) -> bytes:
    """The body of a segment."""
    times, lines, last = list[int](), list[bytes](), 0
    for at, event in run:
        times.append(at - last)
        lines.append(encode(event))
        last = at
    return b"\n".join([orjson.dumps(times), *lines])


def from_bytes(body: bytes) -> list[Timed]:
    """The timed events of a segment."""
    head, *lines = body.split(b"\n")
    run, at = list[Timed](), 0
    for passed, line in zip(orjson.loads(head), lines, strict=True):
        at += passed
        run.append((at, decode(line, legacy=False)))
    return run


def list_to_bytes(events: Iterable[AnyEvent]) -> bytes:
    """The body of a checkpoint."""
    return b"\n".join(encode(event) for event in events)


def list_from_bytes(body: bytes) -> list[AnyEvent]:
    """The events of a checkpoint."""
    return [decode(line, legacy=False) for line in body.split(b"\n")]


def worth_keeping(seqs: Sequence[int]) -> set[int]:
    """The newest of some checkpoints, and of the others one for every doubling of their distance to it."""
    newest = max(seqs, default=0)
    kept = {newest}
    oldest_of: dict[int, int] = {}
    for seq in sorted(seqs):
        if seq != newest:
            oldest_of.setdefault((newest - seq).bit_length(), seq)
    return kept | set(oldest_of.values())
