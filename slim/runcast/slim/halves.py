"""Which messages were begun and never said to their end.

A stream has its own end; where the run broke off first, or its end is marked as discarded, the message was half said.
That is known until somebody settles it: a snapshot restates what is true, and a run that ends well stands by what is
shown. Knows ids alone; does not know what was said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from runcast.slim.jsonlike import is_list
from runcast.slim.steps import Annotated, notes

__all__ = ["Halves"]

HALF_SAID = "half_said"  # in the notes of a checkpoint's snapshot


class Halves:
    """The streams that are open, and the messages of those that were torn."""

    def __init__(self, half_said: Iterable[str] = ()) -> None:
        self._open: dict[tuple[str, str], str] = {}  # kind and id of a stream -> its message
        self._torn: dict[str, None] = dict.fromkeys(half_said)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._torn, *self._open.values())))

    def began(self, kind: str, key: str, message_id: str) -> None:
        """A stream of this message began, or goes on."""
        self._open[kind, key] = message_id
        self._torn.pop(message_id, None)

    def ended(self, kind: str, key: str, message_id: str, end: Annotated) -> None:
        """It came to an end: its own, or one that says what broke it."""
        self._open.pop((kind, key), None)
        if notes(end).get("discarded"):
            self._torn[message_id] = None
        else:
            self._torn.pop(message_id, None)

    def broke(self) -> None:
        """The run is over, whatever is open."""
        self._torn |= dict.fromkeys(self._open.values())
        self._open.clear()

    def restated(self, snapshot: Annotated) -> None:
        """Somebody told what is true; a checkpoint says which of it was half said."""
        half = notes(snapshot).get(HALF_SAID)
        self._torn = dict.fromkeys(str(key) for key in half) if is_list(half) else {}

    def settled(self) -> None:
        """The run ended well."""
        self._torn.clear()
        self._open.clear()
