"""A run's folded events as bytes, each with its time; and the choice of checkpoints worth keeping.

Knows the form of a segment: one line with the times, then one line an event. Does not know stores or codecs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import orjson

from runcast.slim.compaction.stored_lines import compact_lines
from runcast.slim.wire.codec import AnyEvent, decode, encode

Timed = tuple[int, AnyEvent]  # when the log received it, and the event


def fold_rows(times: Sequence[int], lines: Sequence[bytes]) -> tuple[int, bytes]:
    """The body of a run's segment, and the number of its events. A folded event has the time of its first part."""
    kept = compact_lines(lines)
    at = [times[min(number, len(times) - 1)] for number, _ in kept]
    passed = [now - before for before, now in zip([0, *at], at, strict=False)]
    return len(kept), b"\n".join([orjson.dumps(passed), *(line for _, line in kept)])


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
