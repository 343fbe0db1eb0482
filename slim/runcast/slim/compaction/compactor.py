"""Compacts a history: fewer events with the same effect. `compact` works in place, `checkpoint` keeps only the result.

**Promises.** A client that reads the compacted events ends with the same messages, state, interrupts and run records,
whatever it held before, and gets the same other events in the same order; a valid stream stays valid; compacting twice
is compacting once; runs compact alike alone and together; and the result is never longer.

**How.** No kept event moves. A delta joins the open delta of its stream, unless something between them might make a
difference: START or END of that id, a delta of the other kind for the same id (text and reasoning share messages), a
MESSAGES_SNAPSHOT, a tool result or an activity snapshot with that id, the border of a run. Only streams that a START of
this run opened are folded, since only then there surely is a message to add to; after a MESSAGES_SNAPSHOT only those
that it restates. State becomes the last STATE_SNAPSHOT with its later deltas applied, at the last state event's place;
deltas alone stay unless the state before them is known. An activity's deltas go into its replacing snapshot. Chunks are
expanded first. RUN_STARTED, its input, MESSAGES_SNAPSHOT and all events for the application stay unchanged.

Knows no store and no lineage, and does not verify: an invalid stream keeps its meaning for whatever reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    AssistantMessage,
    MessagesSnapshotEvent,
    ReasoningMessageContentEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    ToolCallArgsEvent,
    ToolCallResultEvent,
)

from runcast.slim.compaction.groups import ActivityGroup, Delta, StateWindow, TextGroup
from runcast.slim.errors import InvalidStream
from runcast.slim.folding.checkpoint import checkpoint
from runcast.slim.protocol.chunk_expander import CHUNKS, ChunkExpander
from runcast.slim.values.by_class import nearest
from runcast.slim.values.json_patch import Document
from runcast.slim.values.lifecycles import CALL, PHASES, REASONING, STREAMS, TEXT, Lifecycle
from runcast.slim.values.protocol_shapes import EVENT_SHAPES

if TYPE_CHECKING:
    from runcast.slim.wire.codec import AnyEvent

__all__ = ["Compactor", "checkpoint", "compact"]

_UNKNOWN: Any = object()
_CHUNKS = frozenset(CHUNKS)
_DELTAS: dict[Any, Lifecycle] = {life.content: life for life in STREAMS}
_GROUPS = frozenset({ActivityGroup, TextGroup})


def compact(events: Iterable[AnyEvent], *, base_state: Any = _UNKNOWN) -> list[AnyEvent]:
    """Compact a history in place. `base_state` is the state before it, `{}` for a stream that begins with nothing."""
    compactor = Compactor(base_state=base_state)
    out = compactor.extend(events)
    out += compactor.close()
    return out


def _nowhere(delta: str) -> None:
    """No group is open for this delta."""


class _Streams:
    """The streams of one lifecycle that may be folded, and the open delta of each."""

    __slots__ = ("add", "groups", "opened")

    def __init__(self) -> None:
        self.opened: set[str] = set()  # a START of this run opened them, so there is a message to add to
        self.groups: dict[str, TextGroup] = {}  # where the next delta may go
        self.add: dict[str, Callable[[str], None]] = {}  # the same, as the function that takes the next delta

    def bar(self, key: str) -> None:
        """Another event came between: the next delta starts a group of its own."""
        if self.groups.pop(key, None) is not None:
            del self.add[key]

    def begin(self, key: str, group: TextGroup) -> None:
        self.groups[key] = group
        self.add[key] = group.parts.append

    def restate(self, keys: set[str]) -> None:
        """A MESSAGES_SNAPSHOT came: only what it restates surely still exists."""
        self.opened &= keys
        self.bar_all()

    def bar_all(self) -> None:
        self.groups.clear()
        self.add.clear()

    def forget(self) -> None:
        self.opened.clear()
        self.bar_all()


class Compactor:
    """Compacts while events come in; holds back one run at most, in its compacted form."""

    def __init__(self, *, base_state: Any = _UNKNOWN) -> None:
        self._chunks = ChunkExpander()
        self._window = StateWindow(None if base_state is _UNKNOWN else Document(base_state))
        self._slots: list[Any] = []  # events and groups of the run so far; None for what was folded away
        self._out: list[AnyEvent] = []  # finished, not yet returned
        self._streams = {life: _Streams() for life in STREAMS}
        self._activities: dict[str, ActivityGroup | None] = {}  # known activities, and the group to fold into

    def feed(self, event: AnyEvent) -> list[AnyEvent]:
        """Take the next event; returns a run's compacted events when the run ends, else nothing."""
        kind = type(event)
        if self._chunks.lanes or kind in _CHUNKS:
            return self.extend((event,))
        (self._HANDLERS.get(kind) or self._other(kind))(self, event)
        return self._taken() if self._out else []

    def extend(self, events: Iterable[AnyEvent]) -> list[AnyEvent]:
        """Take many events; returns what `feed` would have returned."""
        rest = iter(events)
        if self._chunks.lanes:
            self._expand(rest)
        self._take(rest)
        return self._taken()

    def group_of(self, event: AnyEvent) -> TextGroup | None:
        """The open group that this delta joins; None for any other event."""
        life = _DELTAS.get(type(event))
        return None if life is None or self._chunks.lanes else self._streams[life].groups.get(life.key(event))

    def keep(self, item: Any) -> bool:
        """Return `item` in this place, whatever it is, as an event that no rule looks into; False where one does."""
        if not self._chunks.lanes:
            self._slots.append(item)
        return not self._chunks.lanes

    def close(self) -> list[AnyEvent]:
        """The stream is over: returns what was held back. An unfinished run stays unfinished."""
        self._flush()
        return self._taken()

    def _taken(self) -> list[AnyEvent]:
        out, self._out = self._out, []
        return out

    def _take(self, events: Iterator[AnyEvent]) -> None:
        """The hot loop: a delta joins the group that is open for it, everything else goes to its handler."""
        handlers = self._HANDLERS
        texts, calls = self._streams[TEXT].add, self._streams[CALL].add
        text = call = None  # the ids of the last deltas, and the functions that took them:
        add_text: Callable[[str], None] = _nowhere
        add_args: Callable[[str], None] = _nowhere
        for event in events:
            kind = type(event)
            if kind is TextMessageContentEvent:
                fields = event.__dict__
                if fields["metadata"] is None:
                    if fields["message_id"] == text:
                        add_text(fields["delta"])
                        continue
                    add_text = texts.get(fields["message_id"], _nowhere)
                    if add_text is not _nowhere:
                        text = fields["message_id"]
                        add_text(fields["delta"])
                        continue
            elif kind is ToolCallArgsEvent:
                fields = event.__dict__
                if fields["metadata"] is None:
                    if fields["tool_call_id"] == call:
                        add_args(fields["delta"])
                        continue
                    add_args = calls.get(fields["tool_call_id"], _nowhere)
                    if add_args is not _nowhere:
                        call = fields["tool_call_id"]
                        add_args(fields["delta"])
                        continue
            text = call = None  # this event may bar any group
            if kind in _CHUNKS:
                self._expand(chain((event,), events))
            else:
                (handlers.get(kind) or self._other(kind))(self, event)

    def _expand(self, events: Iterator[AnyEvent]) -> None:
        """Take events one by one until no lane has a chunked stream."""
        for event in events:
            try:
                expanded = self._chunks.feed(event)
            except InvalidStream:
                self._slots.append(event)  # it continues nothing; the reader has to see that
                continue
            for each in expanded:
                self._other(type(each))(self, each)
            if not self._chunks.lanes:
                return

    def _flush(self) -> None:
        """A run is over: finish what was held back."""
        self._window.settle(self._slots)
        self._out += [
            slot.event() if type(slot) in _GROUPS else slot for slot in self._slots if slot is not None
        ]
        self._slots.clear()
        for streams in self._streams.values():
            streams.forget()
        self._activities.clear()

    def _other(self, kind: type) -> Callable[[Any, Any], None]:
        return nearest(self._HANDLERS, kind) or Compactor._keep

    def _keep(self, event: AnyEvent) -> None:
        self._slots.append(event)

    def _begin(self, event: RunStartedEvent) -> None:
        self._flush()
        self._slots.append(event)

    def _end(self, event: RunFinishedEvent | RunErrorEvent) -> None:
        self._slots.append(event)
        self._flush()

    # streams

    def _start(self, event: AnyEvent) -> None:
        life, key = _named(event)
        self._bar(life, key)
        self._streams[life].opened.add(key)
        self._slots.append(event)

    def _end_stream(self, event: AnyEvent) -> None:
        life, key = _named(event)
        self._bar(life, key)
        self._streams[life].opened.discard(key)
        self._slots.append(event)

    def _text(self, event: TextMessageContentEvent) -> None:
        self._streams[REASONING].bar(event.message_id)
        self._delta(self._streams[TEXT], event.message_id, event)

    def _reasoning(self, event: ReasoningMessageContentEvent) -> None:
        self._streams[TEXT].bar(event.message_id)
        self._delta(self._streams[REASONING], event.message_id, event)

    def _args(self, event: ToolCallArgsEvent) -> None:
        self._delta(self._streams[CALL], event.tool_call_id, event)

    def _delta(self, streams: _Streams, key: str, event: Delta) -> None:
        group = streams.groups.get(key)
        if group is not None:
            group.add(event)
        elif key in streams.opened:
            streams.begin(key, group := TextGroup(event))
            self._slots.append(group)
        else:
            self._slots.append(event)

    def _bar(self, life: Lifecycle, key: str) -> None:
        """Close the groups of this id; text and reasoning share their messages."""
        for each in (CALL,) if life is CALL else (TEXT, REASONING):
            self._streams[each].bar(key)

    def _result(self, event: ToolCallResultEvent) -> None:
        """It makes another message with this id, perhaps before the one that had it."""
        self._bar(TEXT, event.message_id)
        self._activities.pop(event.message_id, None)
        self._slots.append(event)

    # snapshots and patches

    def _messages_snapshot(self, event: MessagesSnapshotEvent) -> None:
        restated = {message.id for message in event.messages}
        calls = {
            call.id
            for message in event.messages
            if isinstance(message, AssistantMessage)
            for call in message.tool_calls or ()
        }
        for life, streams in self._streams.items():
            streams.restate(calls if life is CALL else restated)
        self._activities.clear()
        self._slots.append(event)

    def _activity_snapshot(self, event: ActivitySnapshotEvent) -> None:
        key = event.message_id
        if key not in self._activities:  # it may replace a message that has text and calls
            self._bar(TEXT, key)
            self._streams[CALL].bar_all()
        group = self._activities.get(key)
        if group is not None:
            group.snapshot(event)
        elif event.replace is False:
            self._slots.append(event)
        else:
            group = self._activities[key] = ActivityGroup(event)
            self._slots.append(group)

    def _activity_delta(self, event: ActivityDeltaEvent) -> None:
        group = self._activities.get(event.message_id)
        if group is None:
            self._slots.append(event)
        elif not group.delta(event):
            self._activities[event.message_id] = None
            self._slots.append(event)

    def _state(self, event: StateSnapshotEvent | StateDeltaEvent) -> None:
        self._window.add(len(self._slots), event)
        self._slots.append(event)

    # The handler of each event. Text, reasoning and calls start and end alike.
    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        **dict.fromkeys((shape.model for shape in EVENT_SHAPES.values()), _keep),
        **dict.fromkeys((life.start for life in STREAMS), _start),
        **dict.fromkeys((life.end for life in STREAMS), _end_stream),
        ActivityDeltaEvent: _activity_delta,
        ActivitySnapshotEvent: _activity_snapshot,
        MessagesSnapshotEvent: _messages_snapshot,
        ReasoningMessageContentEvent: _reasoning,
        RunErrorEvent: _end,
        RunFinishedEvent: _end,
        RunStartedEvent: _begin,
        StateDeltaEvent: _state,
        StateSnapshotEvent: _state,
        TextMessageContentEvent: _text,
        ToolCallArgsEvent: _args,
        ToolCallResultEvent: _result,
    }


KEPT = frozenset(
    tag
    for tag, shape in EVENT_SHAPES.items()
    if Compactor._HANDLERS[shape.model] is Compactor._keep and shape.model not in _CHUNKS  # pyright: ignore[reportPrivateUsage]  # its own file
)
"""The types of events that no rule looks into."""


def _named(event: AnyEvent) -> tuple[Lifecycle, str]:
    """The lifecycle and the id of a stream's border."""
    found = nearest(PHASES, type(event))
    assert found is not None
    return found[0], found[0].key(event)
