"""The data of server-sent events to AG-UI events, older dialects included.

One decoder serves one response, because older dialects lean on the events before. Knows bytes; does not know HTTP.
"""

from __future__ import annotations

from collections.abc import Iterator

from ag_ui.core import Event

from runcast.adapters.remote.server_sent import ServerSentEvents
from runcast.slim.wire.streams import decode_lines


class EventDecoder:
    """One response. `feed` returns the events that a chunk of bytes completes; raises `WireError` or `TooLarge`."""

    def __init__(self, thread_id: str, *, max_bytes: int) -> None:
        self._sent = ServerSentEvents(max_bytes)
        self._lines: list[bytes] = []
        # The reader pulls one line for each event, so it stops just when `_lines` is empty.
        self._events = iter(decode_lines(self._line(), thread_id=thread_id, max_bytes=max_bytes + 1))

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that end in this chunk."""
        for data in self._sent.feed(chunk):
            if data.strip():
                self._lines.append(data.replace(b"\n", b" ") + b"\n")
                yield next(self._events)  # type: ignore[misc]  # an unknown type passes through as it is

    def _line(self) -> Iterator[bytes]:
        while True:
            yield self._lines.pop()
