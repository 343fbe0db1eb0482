"""A part that cannot be translated: one CUSTOM event instead of it, and the run continues.

A translator's `Guard` returns a `runcast.untranslated` event for a piece of work that raises. It undoes what the piece
opened and closed (`run`), or emits those events after all (`kept`, for a piece that is too frequent to prepare for
that). The translator itself cannot log: the shell passes `report`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ag_ui.core import CustomEvent, Event

from runcast.adapters.errors import describe
from runcast.adapters.open_blocks import Clock, OpenBlocks
from runcast.slim.values.type_guards import as_mapping

UNTRANSLATED = "runcast.untranslated"
Report = Callable[[object, Exception], None]  # the part and the error


class Guard:
    """Guards the translation of one run."""

    def __init__(
        self, blocks: OpenBlocks, *, clock: Clock | None = None, report: Report | None = None
    ) -> None:
        self._blocks = blocks
        self._clock = clock
        self.report = report

    def run(self, part: object, piece: Callable[[], list[Event]]) -> list[Event]:
        """The events of this piece of work on a part, or the one event that replaces them."""
        saved = self._blocks.save()
        try:
            return piece()
        except Exception as error:  # noqa: BLE001  reported
            self._blocks.restore(saved)
            return self.failed(part, error)

    def kept(self, part: object, error: Exception) -> list[Event]:
        """After a fault of an unguarded piece: the events that opened or closed something since the part began."""
        return [*self._blocks.latest, *self.failed(part, error)]

    def failed(self, part: object, error: Exception) -> list[Event]:
        """Report an error and return its event."""
        if self.report is not None:
            self.report(part, error)
        value = {"part": kind_of(part), "error": describe(error)}
        if self._clock is None:
            return [CustomEvent(name=UNTRANSLATED, value=value)]
        return [CustomEvent(name=UNTRANSLATED, value=value, timestamp=self._clock())]


def kind_of(part: Any) -> str:
    """The type of a part: the one it names, else its class."""
    kind = as_mapping(part).get("type")
    return kind if isinstance(kind, str) else type(part).__name__
