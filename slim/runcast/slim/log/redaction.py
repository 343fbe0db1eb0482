"""The seam for redaction before the first write, and the adapter that fits a plain callable to it.

Knows that a secret may be split over deltas, so one redactor serves one thread; does not know what a secret is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from runcast.slim.errors import StoreError
from runcast.slim.wire.codec import AnyEvent


class EventStream(Protocol):
    """Redacts one thread's events in order; it may hold text back until it is certain."""

    def feed(self, event: AnyEvent, data: bytes | None = None) -> Sequence[AnyEvent]:
        """The events that may be written now. `data`, the event's bytes, saves encoding it for the search."""
        ...

    def close(self) -> Sequence[AnyEvent]:
        """The events held back."""
        ...


class StreamsRedacted(Protocol):
    """A redactor that makes one for every thread, so that a secret split over deltas is found."""

    def stream(self) -> EventStream:
        """A redactor for the events of one thread."""
        ...


Redaction = StreamsRedacted | Callable[[AnyEvent], AnyEvent | None]
"""Removes secrets before the first write; a plain callable receives one event at a time, and None drops it."""


class _OneByOne:
    """A plain callable in the place of a redactor."""

    def __init__(self, redact: Callable[[AnyEvent], AnyEvent | None]) -> None:
        self._redact = redact

    def feed(self, event: AnyEvent, data: bytes | None = None) -> Sequence[AnyEvent]:
        """The event without its secrets."""
        kept = self._redact(event)
        return () if kept is None else (kept,)

    def close(self) -> Sequence[AnyEvent]:
        """Nothing: no event is held back."""
        return ()


def for_threads(redaction: Redaction | None) -> Callable[[], EventStream | None]:
    """The function that makes a redactor for a thread; an unsuitable object is refused."""
    if redaction is None:
        return lambda: None
    stream = getattr(redaction, "stream", None)
    if stream is not None:
        made: Callable[[], EventStream] = stream
        return made
    if not callable(redaction):
        raise StoreError("a redactor is a callable from event to event, or has a stream()")
    each = redaction
    return lambda: _OneByOne(each)
