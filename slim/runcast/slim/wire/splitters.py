"""Splits a stream of bytes into records.

Two forms: JSON Lines, one record a line, and a JSON array, one record an element. A splitter is fed chunks as they
arrive, cut anywhere, and yields every complete record with the number of bytes before it. It keeps at most one record,
and never more bytes of it than allowed. It reads structure alone: whether a record is an event is for its reader to find
out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Protocol

from runcast.slim.errors import WireError

Records = Iterator[tuple[int, bytes]]

_BLANK: Final = b" \t\r\n"
_BOM: Final = b"\xef\xbb\xbf"


class Splitter(Protocol):
    """Turns chunks into records: pairs of an offset in the stream and the record's bytes."""

    def feed(self, chunk: bytes) -> Records:
        """The records that this chunk completes."""
        ...

    def finish(self) -> Records:
        """The record that only the end of the stream completes; WireError when the stream stops too early."""
        ...


class LineSplitter:
    """Records of JSON Lines. Blank lines are no records; the last one need not be ended."""

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._parts: list[bytes] = []  # of the line that is not complete
        self._size = 0  # bytes in them
        self._offset = 0  # bytes before them

    def feed(self, chunk: bytes) -> Records:
        """The records that this chunk completes."""
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            self._take(part)
            yield from self._line()
            self._offset += 1
        self._take(rest)

    def finish(self) -> Records:
        """The last record, when no line break ended it."""
        return self._line()

    def _take(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        if self._size > self._max:
            raise _too_long(self._max, self._offset)

    def _line(self) -> Records:
        line = b"".join(self._parts)
        offset = self._offset
        self._offset += self._size
        self._parts, self._size = [], 0
        if line.strip(_BLANK):
            yield offset, line


class ArraySplitter:
    """Records of one JSON array: its elements."""

    _STRUCTURE = re.compile(rb'["\[\]{},]')
    _IN_STRING = re.compile(rb'["\\]')

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._held = bytearray()  # from the start of the element that is not complete
        self._offset = 0  # bytes before the held ones
        self._scanned = 0  # of the held bytes
        self._depth = 0  # brackets open: 0 before and after the array, 1 between its elements
        self._in_string = False
        self._count = 0  # elements found
        self._ended = False

    def feed(self, chunk: bytes) -> Records:
        """The elements that this chunk completes."""
        self._held += chunk
        if self._depth == 0 and not self._ended:
            self._open()
        if self._depth > 0:
            yield from self._elements()
        if self._ended:
            self._close()
        if len(self._held) > self._max:
            raise _too_long(self._max, self._offset)

    def finish(self) -> Records:
        """No more records, since an array has its own end; WireError when that is missing."""
        if not self._ended:
            raise WireError(
                "an array that does not end", expected="`]`", position=self._offset + len(self._held)
            )
        return iter(())

    def _open(self) -> None:
        if self._offset == 0 and _BOM.startswith(self._held[:3]) and len(self._held) < len(_BOM):
            return  # perhaps the beginning of a mark
        mark = _BOM if self._offset == 0 else b""
        self._drop(len(self._held) - len(self._held.removeprefix(mark).lstrip(_BLANK)))
        if self._held.startswith(b"["):
            self._drop(1)
            self._depth = 1
        elif self._held:
            raise WireError("no array", expected="`[`", position=self._offset)

    def _close(self) -> None:
        self._drop(len(self._held) - len(self._held.lstrip(_BLANK)))
        if self._held:
            raise WireError("something after the array", expected="the end", position=self._offset)

    def _elements(self) -> Records:
        start = 0
        while self._depth > 0:
            at = self._next()
            if at is None:
                break
            char = bytes(self._held[at : at + 1])
            if char in b"[{":
                self._depth += 1
            elif char in b"]}":
                self._depth -= 1
            if self._depth == 0 and char != b"]":
                raise WireError("a bracket that was not opened", expected="`]`", position=self._offset + at)
            if self._depth == 0 or (self._depth == 1 and char == b","):
                yield from self._element(start, at, last=self._depth == 0)
                start = at + 1
        self._ended = self._depth == 0
        self._drop(start)

    def _next(self) -> int | None:
        """The position of the next bracket or comma outside of strings; None when it is in a later chunk."""
        while True:
            seen = (self._IN_STRING if self._in_string else self._STRUCTURE).search(self._held, self._scanned)
            if seen is None:
                self._scanned = len(self._held)
                return None
            at = seen.start()
            if self._held[at] == ord("\\"):
                if at + 1 == len(self._held):  # the escaped character is in the next chunk
                    self._scanned = at
                    return None
                self._scanned = at + 2
                continue
            self._scanned = at + 1
            if self._held[at] != ord('"'):
                return at
            self._in_string = not self._in_string

    def _element(self, start: int, end: int, *, last: bool) -> Records:
        raw = bytes(self._held[start:end])
        element = raw.strip(_BLANK)
        if len(element) > self._max:
            raise _too_long(self._max, self._offset + start)
        if element:
            self._count += 1
            yield self._offset + start + raw.index(element), element
        elif not last or self._count > 0:
            raise WireError("no element between commas", expected="an event", position=self._offset + end)

    def _drop(self, size: int) -> None:
        del self._held[:size]
        self._offset += size
        self._scanned = max(self._scanned - size, 0)


def _too_long(limit: int, offset: int) -> WireError:
    return WireError(f"a record of more than {limit} bytes", expected="a shorter one", position=offset)
