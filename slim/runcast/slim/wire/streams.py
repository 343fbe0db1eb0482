"""Reads and writes streams of events as bytes: JSON Lines and JSON arrays, one event at a time.

A reader holds one event and remembers what older dialects depend on: the thread, the run and what is open. It counts
unknown event types instead of dropping them, and parts of unknown kinds that it drops. The source is a file opened in binary, or any iterable of chunks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Protocol, cast

from pydantic.alias_generators import to_camel

from runcast.slim.dialects.upgrade import Upgrader
from runcast.slim.errors import WireError
from runcast.slim.values.lifecycles import STREAMS, wire_type
from runcast.slim.values.protocol_shapes import UnknownEvent
from runcast.slim.wire.codec import AnyEvent, encode, plainly, thoroughly
from runcast.slim.wire.splitters import ArraySplitter, LineSplitter, Splitter

_CHUNK: Final = 65_536
_MAX_BYTES: Final = 64 * 1024 * 1024
_MAX_NAMES: Final = 100
_NUMBER: Final = re.compile(r"(?<=\.)[0-9]+")

# The fields that an Upgrader has to know of events that needed no upgrade, by their wire's keys.
_NOTED: Final[Mapping[str, Mapping[str, str]]] = {
    "RUN_STARTED": {"threadId": "thread_id", "runId": "run_id"},
    **{
        wire_type(event): {to_camel(life.id_field): life.id_field}
        for life in STREAMS
        for event in (life.start, life.end)
    },
}


class BinaryFile(Protocol):
    """A file opened in binary."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes, none at the end."""
        ...


class EventReader:
    """The events of a stream, in order. Iterate over it once; its counts grow as it goes."""

    def __init__(self, chunks: Iterable[bytes], splitter: Splitter, upgrader: Upgrader | None) -> None:
        self.records = 0  # events read
        self.unknown: dict[str, int] = {}  # counts of unknown types; "" counts those beyond 100 types
        self.dropped: dict[str, int] = {}  # counts of dropped parts, by type and place: `STATE_DELTA.delta.*`
        self._chunks = chunks
        self._splitter = splitter
        self._upgrader = upgrader

    def __iter__(self) -> Iterator[AnyEvent]:
        for offset, record in self._records():
            try:
                event = self._read(record)
            except WireError as error:
                raise error.within(self.records, offset) from None
            self.records += 1
            yield event

    def _records(self) -> Iterator[tuple[int, bytes]]:
        try:
            for chunk in self._chunks:
                yield from self._splitter.feed(chunk)
            yield from self._splitter.finish()
        except WireError as error:
            raise error.within(self.records, 0) from None

    def _read(self, record: bytes) -> AnyEvent:
        event = plainly(record)
        if event is None:
            dropped: list[str] = []
            event = thoroughly(record, None if self._upgrader is None else self._upgrader.upgrade, dropped)
            if isinstance(event, UnknownEvent):
                _count(self.unknown, event.type)
            for place in dropped:
                _count(self.dropped, _NUMBER.sub("*", f"{getattr(event.type, 'value', event.type)}.{place}"))
        elif self._upgrader is not None and event.type in _NOTED:
            names = _NOTED[event.type]
            fields = {wire: getattr(event, name) for wire, name in names.items()}
            self._upgrader.note({"type": event.type, **fields})
        return event


def _count(counts: dict[str, int], name: str) -> None:
    name = name if name in counts or len(counts) < _MAX_NAMES else ""
    counts[name] = counts.get(name, 0) + 1


def decode_lines(
    source: BinaryFile | Iterable[bytes],
    *,
    legacy: bool = True,
    thread_id: str | None = None,
    max_bytes: int = _MAX_BYTES,
) -> EventReader:
    """Read JSON Lines. `thread_id` is for older streams that do not name theirs; no line may exceed `max_bytes`."""
    return EventReader(
        _chunks(source), LineSplitter(max_bytes), Upgrader(thread_id=thread_id) if legacy else None
    )


def decode_array(
    source: BinaryFile | Iterable[bytes],
    *,
    legacy: bool = True,
    thread_id: str | None = None,
    max_bytes: int = _MAX_BYTES,
) -> EventReader:
    """Read a JSON array of events, as `JSON.stringify(events)` writes it; no event may exceed `max_bytes`."""
    return EventReader(
        _chunks(source), ArraySplitter(max_bytes), Upgrader(thread_id=thread_id) if legacy else None
    )


def _chunks(source: BinaryFile | Iterable[bytes]) -> Iterable[bytes]:
    if isinstance(source, Iterable) and not hasattr(source, "read"):
        return source
    file = cast(BinaryFile, source)
    return iter(lambda: file.read(_CHUNK), b"")


def encode_lines(events: Iterable[AnyEvent]) -> Iterator[bytes]:
    """JSON Lines, a line an event: `file.writelines(encode_lines(events))`."""
    for event in events:
        yield encode(event) + b"\n"


def encode_array(events: Iterable[AnyEvent]) -> Iterator[bytes]:
    """A JSON array, in chunks: `file.writelines(encode_array(events))`."""
    opening = b"["
    for event in events:
        yield opening + encode(event)
        opening = b","
    yield b"[]" if opening == b"[" else b"]"
