"""Events that wait for a slow reader, within a bound.

When the box is full, a delta is merged into the waiting one of the same message, reasoning or call, if only deltas came
in between: the order is kept, and the reader's result is the same. An event that cannot be merged is refused, and the
writer waits for room. The box itself never waits.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from ag_ui.core import Event, ReasoningMessageContentEvent, TextMessageContentEvent, ToolCallArgsEvent

Delta = TextMessageContentEvent | ReasoningMessageContentEvent | ToolCallArgsEvent
_DELTAS = (TextMessageContentEvent, ReasoningMessageContentEvent, ToolCallArgsEvent)


class _Entry:
    __slots__ = ("event", "key", "metadata", "more")

    def __init__(self, event: Event, key: tuple[type, str] | None) -> None:
        self.event = event
        self.key = key
        self.metadata: dict[str, Any] | None = event.metadata
        self.more: list[str] | None = None  # deltas merged into it


class EventBox:
    """A bounded queue of events. `limit` entries at most; counters say what happened."""

    def __init__(self, limit: int = 1_000) -> None:
        if limit < 1:
            raise ValueError("the limit of an event box is at least 1")
        self._limit = limit
        self._entries: deque[_Entry] = deque()
        self._mergeable: dict[tuple[type, str], _Entry] = {}  # deltas since the last other event
        self.merged = 0  # deltas that were added to a waiting one
        self.refused = 0  # puts that found no room
        self.highest = 0  # most entries that ever waited

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, event: Event) -> bool:
        """Take an event in; False when there is no room for it now."""
        key = _key(event)
        if len(self._entries) >= self._limit:
            return self._merge(event, key)
        entry = _Entry(event, key)
        self._entries.append(entry)
        self.highest = max(self.highest, len(self._entries))
        if key is None:
            self._mergeable.clear()
        else:
            self._mergeable[key] = entry
        return True

    def _merge(self, event: Event, key: tuple[type, str] | None) -> bool:
        entry = None if key is None else self._mergeable.get(key)
        if entry is None or not isinstance(event, _DELTAS):
            self.refused += 1
            return False
        if entry.more is None:
            entry.more = []
        entry.more.append(event.delta)
        if event.metadata is not None:  # as a client merges them
            entry.metadata = {**(entry.metadata or {}), **event.metadata}
        self.merged += 1
        return True

    def take(self) -> Event | None:
        """The next event; None when nothing waits."""
        if not self._entries:
            return None
        entry = self._entries.popleft()
        if entry.key is not None and self._mergeable.get(entry.key) is entry:
            del self._mergeable[entry.key]
        if entry.more is None or not isinstance(entry.event, _DELTAS):
            return entry.event
        return entry.event.model_copy(
            update={"delta": entry.event.delta + "".join(entry.more), "metadata": entry.metadata}
        )

    def stats(self) -> dict[str, int]:
        """How the box fared."""
        return {
            "waiting": len(self._entries),
            "highest": self.highest,
            "merged": self.merged,
            "refused": self.refused,
        }


def _key(event: Event) -> tuple[type, str] | None:
    """What a delta may be merged with; None for every other event, and for deltas that carry a native part."""
    if not isinstance(event, _DELTAS) or event.raw_event is not None:
        return None
    return type(event), event.tool_call_id if isinstance(event, ToolCallArgsEvent) else event.message_id
