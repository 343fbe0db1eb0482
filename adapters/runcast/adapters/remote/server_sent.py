"""Bytes of a `text/event-stream` response to the data of its events, by the rules of the HTML standard.

Chunks may be cut anywhere, also inside a line ending or a character. Three endings end a line (CR LF, LF, CR); a blank
line dispatches the event; a line that begins with a colon is a comment; the lines of `data` are joined by a line feed;
an event without data is none; a byte order mark at the start is skipped; an event that the end of the stream cuts off
is discarded. Knows lines and fields; does not know JSON or AG-UI.
"""

from __future__ import annotations

_BOM = b"\xef\xbb\xbf"


class TooLarge(ValueError):
    """One event exceeds the bound."""


class ServerSentEvents:
    """One response. `feed` returns the data of every event that a chunk completes."""

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._tail = b""  # of the line that has not ended
        self._data: list[bytes] = []  # of the event that has not ended
        self._size = 0  # bytes in `_data`
        self._at_start = True  # a byte order mark may still come
        self._after_cr = False  # the last chunk ended with CR: an LF now belongs to it

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that end in this chunk; raises `TooLarge` for one beyond the bound."""
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        *lines, self._tail = self._lines(self._tail + chunk)
        found = [data for line in lines if (data := self._line(line)) is not None]
        if self._size + len(self._tail) > self._max:
            raise TooLarge(f"one event has more than {self._max:,} bytes")
        return found

    def _lines(self, text: bytes) -> list[bytes]:
        """The lines, the unfinished one last."""
        if self._at_start:
            if len(text) < len(_BOM) and _BOM.startswith(text):
                return [text]
            self._at_start = False
            text = text.removeprefix(_BOM)
        self._after_cr = text.endswith(b"\r")
        return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")

    def _line(self, line: bytes) -> bytes | None:
        if not line:
            data, self._data, self._size = self._data, [], 0
            return b"\n".join(data) if data else None
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
            self._size += len(value)
            if self._size > self._max:
                raise TooLarge(f"one event has more than {self._max:,} bytes")
        return None
