"""Which messages are unfinished: their stream is open, or was broken off.

A stream has its own end. Where the run ends first, or the end is marked as discarded, the message is unfinished. It stays
so until a snapshot restates the messages, or a run ends well and so confirms what is displayed. Knows ids alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from runcast.slim.folding.run_metadata import Annotated, metadata_of
from runcast.slim.values.type_guards import is_list


class UnfinishedMessages:
    """The streams that are open, and the messages of those that were broken off."""

    def __init__(self, half_said: Iterable[str] = ()) -> None:
        self._open: dict[tuple[str, str], str] = {}  # kind and id of a stream -> its message
        self._broken: dict[str, None] = dict.fromkeys(half_said)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._broken, *self._open.values())))

    def began(self, kind: str, key: str, message_id: str) -> None:
        """A stream of this message begins, or continues."""
        self._open[kind, key] = message_id
        self._broken.pop(message_id, None)

    def ended(self, kind: str, key: str, message_id: str, end: Annotated) -> None:
        """A stream ends: by itself, or broken off when its end is marked as discarded."""
        self._open.pop((kind, key), None)
        if metadata_of(end).get("discarded"):
            self._broken[message_id] = None
        else:
            self._broken.pop(message_id, None)

    def broke(self) -> None:
        """The run is over: open streams are broken off."""
        self._broken |= dict.fromkeys(self._open.values())
        self._open.clear()

    def restated(self, snapshot: Annotated) -> None:
        """A snapshot replaces the history; a checkpoint also lists unfinished messages."""
        half = metadata_of(snapshot).get("half_said")
        self._broken = dict.fromkeys(str(key) for key in half) if is_list(half) else {}

    def settled(self) -> None:
        """The run ended well: all messages are finished."""
        self._broken.clear()
        self._open.clear()
