"""Streams of events as bytes: JSON Lines and JSON arrays, read and written one event at a time.

A reader holds one event and remembers what older dialects lean on: which thread and run this is, and what is open. It
reports what AG-UI 1.0 does not have instead of dropping it. Knows bytes that come and bytes that go; where from and
where to is the caller's: a file opened in binary, or whatever iterates over chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Protocol, cast

from runcast.slim.errors import WireError
from runcast.slim.legacy import Upgrader
from runcast.slim.shapes import UnknownEvent
from runcast.slim.splitters import ArraySplitter, LineSplitter, Splitter
from runcast.slim.wire import AnyEvent, encode, plainly, thoroughly

__all__ = ["EventReader", "decode_array", "decode_lines", "encode_array", "encode_lines"]

_CHUNK: Final = 65_536
_MAX_BYTES: Final = 64 * 1024 * 1024
_MAX_NAMES: Final = 100

# What an Upgrader wants to know of events that needed none.
_NOTED: Final[Mapping[str, Mapping[str, str]]] = {
    "RUN_STARTED": {"threadId": "thread_id", "runId": "run_id"},
    "TEXT_MESSAGE_START": {"messageId": "message_id"},
    "TEXT_MESSAGE_END": {"messageId": "message_id"},
    "REASONING_MESSAGE_START": {"messageId": "message_id"},
    "REASONING_MESSAGE_END": {"messageId": "message_id"},
    "TOOL_CALL_START": {"toolCallId": "tool_call_id"},
    "TOOL_CALL_END": {"toolCallId": "tool_call_id"},
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
        self.unknown: dict[
            str, int
        ] = {}  # how often each type came that 1.0 lacks; "" counts those beyond 100 types
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
            event = thoroughly(record, None if self._upgrader is None else self._upgrader.upgrade)
            if isinstance(event, UnknownEvent):
                self._count(event.type)
        elif self._upgrader is not None and event.type in _NOTED:
            names = _NOTED[event.type]
            told = {wire: getattr(event, name) for wire, name in names.items()}
            self._upgrader.note({"type": event.type, **told})
        return event

    def _count(self, tag: str) -> None:
        known = tag in self.unknown or len(self.unknown) < _MAX_NAMES
        name = tag if known else ""
        self.unknown[name] = self.unknown.get(name, 0) + 1


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
