"""Folds several events into one: text, an activity, a window of state.

Each object collects events that the compactor found foldable and then makes one event of them, without changing what a
client ends up with, and without growing. Does not know which events may be folded.

A folded event keeps the first timestamp and tag; metadata is merged as a client merges it. `rawEvent` and unknown
fields belong to one event each and are not carried over to an event that stands for several.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeAlias, cast

import orjson
from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    BaseEvent,
    ReasoningMessageContentEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    ToolCallArgsEvent,
)

from runcast.slim.errors import PatchTooLarge
from runcast.slim.values.json_patch import Document, disputed, idle, operations_of
from runcast.slim.values.model_construction import built
from runcast.slim.values.surrogates import join_text
from runcast.slim.wire.codec import decode

Delta: TypeAlias = TextMessageContentEvent | ReasoningMessageContentEvent | ToolCallArgsEvent
StateEvent: TypeAlias = StateSnapshotEvent | StateDeltaEvent


def merged(former: dict[str, Any] | None, latter: dict[str, Any] | None) -> dict[str, Any] | None:
    """Metadata of two events, key by key; the later one wins."""
    if former is None or latter is None:
        return latter if former is None else former
    return {**former, **latter}


def size(value: Any) -> int:
    """The approximate length of a JSON value on the wire."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def wire_size(events: Iterable[BaseEvent]) -> int:
    """The approximate length of events on the wire."""
    return sum(size(event.model_dump(mode="json", by_alias=True)) for event in events)


def patch_within(document: Document, operations: list[dict[str, Any]]) -> bool | None:
    """Patch the document if a client surely would, and if the result is no longer than document and patch together.

    True: patched. False: a client surely refuses this patch. None: not to be folded, the document is as before.
    """
    copies = any(operation["op"] == "copy" for operation in operations)
    former = document.value if copies else None
    failure = document.patch(operations)
    if failure is not None:
        unsure = isinstance(failure, PatchTooLarge) or disputed(operations, document.value)
        return None if unsure else False
    if copies and size(document.value) > size(former) + size(operations):
        document.value = former
        return None
    return True


class TextGroup:
    """Deltas of one stream: content of a message, or arguments of a call.

    Later deltas may come as stored bytes, each from the first letter of its text to the end of its line, into `stored`.
    They are read together.
    """

    __slots__ = ("first", "metadata", "parts", "stored")

    def __init__(self, first: Delta) -> None:
        self.first = first
        self.parts = [first.delta]
        self.metadata = first.metadata
        self.stored: list[bytes] = []

    def add(self, event: Delta) -> None:
        """The next delta."""
        self._read()
        self._join(event)

    def _join(self, event: Delta) -> None:
        self.parts.append(event.delta)
        self.metadata = merged(self.metadata, event.metadata)

    def _read(self) -> None:
        """Read the stored deltas: as a list of strings, or one by one where they hold more than text."""
        if not self.stored:
            return
        texts = _texts(self.stored)
        if texts is None:
            for rest in self.stored:
                self._join(cast("ToolCallArgsEvent", decode(_ANY_DELTA + rest, legacy=False)))
        else:
            self.parts += texts
        self.stored.clear()

    def event(self) -> BaseEvent:
        """All of them as one."""
        self._read()
        first = self.first
        if len(self.parts) == 1:
            return first
        common: dict[str, Any] = {
            "delta": join_text(self.parts),
            "metadata": self.metadata,
            "subagent_run_id": first.subagent_run_id,
            "timestamp": first.timestamp,
        }
        if isinstance(first, ToolCallArgsEvent):
            return built(ToolCallArgsEvent, tool_call_id=first.tool_call_id, **common)
        return built(type(first), message_id=first.message_id, **common)


_ANY_DELTA = b'{"type":"TOOL_CALL_ARGS","toolCallId":"","delta":"'


def _texts(stored: list[bytes]) -> list[str] | None:
    """The texts of deltas that end with their text; None when one does not, or when it has half a surrogate pair."""
    lines = b"\n".join([*stored, b""])
    # Without an escape, which may not reach into the next text, all of them are one string.
    comma = b'","' if b"\\" in lines else b""
    joined = lines.replace(b'"}\n', comma)
    try:
        texts = orjson.loads(b'["' + joined + b'"]')
    except orjson.JSONDecodeError:
        return None
    return texts if len(texts) == (len(stored) + 1 if comma else 1) else None


class ActivityGroup:
    """A replacing ACTIVITY_SNAPSHOT and the later events of the same activity."""

    __slots__ = ("_document", "_first", "_folded", "_metadata", "_tag", "_type")

    def __init__(self, first: ActivitySnapshotEvent) -> None:
        self._first = first
        self._folded = False
        self._metadata = first.metadata
        self._restart(first)

    def _restart(self, event: ActivitySnapshotEvent) -> None:
        self._document = Document(event.content)
        self._type = event.activity_type
        self._tag = event.subagent_run_id

    def snapshot(self, event: ActivitySnapshotEvent) -> None:
        """A later snapshot: a replacing one starts over, any other only adds metadata."""
        if event.replace is not False:
            self._restart(event)
        self._add(event.metadata)

    def delta(self, event: ActivityDeltaEvent) -> bool:
        """Fold a delta in. False if it has to stay an event of its own, and so do the deltas after it."""
        operations = operations_of(event.patch)
        # Only a patch of the root can make content other than an object, which a snapshot cannot hold.
        if any(operation["path"] == "" for operation in operations):
            return False
        patched = patch_within(self._document, operations)
        if patched is None:
            return False
        if patched:
            self._type = event.activity_type
        self._add(event.metadata)  # a client merges it even if the patch does not apply
        return True

    def _add(self, metadata: dict[str, Any] | None) -> None:
        self._metadata = merged(self._metadata, metadata)
        self._folded = True

    def event(self) -> BaseEvent:
        """All of it as one snapshot."""
        if not self._folded:
            return self._first
        return built(
            ActivitySnapshotEvent,
            message_id=self._first.message_id,
            activity_type=self._type,
            content=self._document.value,
            replace=self._first.replace,
            subagent_run_id=self._tag,
            metadata=self._metadata,
            timestamp=self._first.timestamp,
        )


class StateWindow:
    """The state events between two borders of runs, and where each stands in the output.

    With a `base`, the state before the first window, deltas alone can be folded too, and the state is carried from
    window to window. Without it every window stands on its own: runs compact alike alone and together.
    """

    __slots__ = ("_carried", "_document", "_entries")

    def __init__(self, base: Document | None) -> None:
        self._carried = base is not None
        self._document = base  # the state before the window; None: unknown
        self._entries: list[tuple[int, StateEvent]] = []

    def add(self, slot: int, event: StateEvent) -> None:
        """The next state event, which stands at this slot."""
        self._entries.append((slot, event))

    def settle(self, slots: list[Any]) -> None:
        """Fold the events that can be folded: their slots become None, the last one holds the snapshot."""
        entries, self._entries = self._entries, []
        start, document = None, self._document
        for at, (_, event) in enumerate(entries):
            if isinstance(event, StateSnapshotEvent):
                start, document = at, Document(event.snapshot)
        if document is None:
            return
        taken: list[tuple[int, StateEvent]] = entries[: 0 if start is None else start + 1]
        for slot, event in entries[len(taken) :]:
            assert isinstance(event, StateDeltaEvent)  # the last snapshot lies before it
            operations = operations_of(event.delta)
            if not idle(operations, document.value) and patch_within(document, operations) is None:
                break
            taken.append((slot, event))
        if len(taken) > 1:
            _place(slots, taken, start, document.value)
        self._document = document if self._carried and len(taken) == len(entries) else None


def _place(slots: list[Any], taken: list[tuple[int, StateEvent]], start: int | None, state: Any) -> None:
    """Put one snapshot in the place of the last event taken; but keep deltas that are shorter."""
    events = [event for _, event in taken]
    whole = _snapshot(events, start or 0, state)
    if start is None and wire_size([whole]) > wire_size(events):
        return
    for slot, _ in taken:
        slots[slot] = None
    slots[taken[-1][0]] = whole


def _snapshot(events: list[StateEvent], start: int, state: Any) -> StateSnapshotEvent:
    """The events from `start` on as one snapshot; of those before it only the metadata counts."""
    last = events[-1]
    metadata: dict[str, Any] | None = None
    for event in events:
        metadata = merged(metadata, event.metadata)
    if isinstance(last, StateSnapshotEvent) and metadata == last.metadata:
        return last
    tags = {event.subagent_run_id for event in events[start:]}
    return built(
        StateSnapshotEvent,
        snapshot=state,
        metadata=metadata,
        subagent_run_id=tags.pop() if len(tags) == 1 else None,
        timestamp=last.timestamp,
    )
