"""Fewer events that amount to the same: `compact` folds a history in place, `checkpoint` says only where it led.

**What it holds to.** A client that reads the compacted events ends with the same messages, state, interrupts and
run records, whatever it held before, and meets the same other events in the same order; a valid stream stays valid;
compacting twice is compacting once; runs compact alike alone and together; and the result is never longer.

**How.** No kept event moves. A delta joins the delta its stream has open, unless something came between that might
make a difference: START or END of that id, a delta of the other kind for the same id (text and reasoning share
messages), a MESSAGES_SNAPSHOT, a tool result or an activity snapshot with that id, the border of a run. Only streams
that a START of this run opened are folded, since only then is there surely something to add to; behind a
MESSAGES_SNAPSHOT only those that it restates. State becomes the last STATE_SNAPSHOT with its later deltas applied,
at the last state event's place; deltas alone stay as they are unless the state before them is known. An activity's
deltas go into its replacing snapshot. Chunks are spelled out first. RUN_STARTED, its input, MESSAGES_SNAPSHOT and
everything that is for the application stay as they came.

Knows no store and no lineage, and does not verify: what an invalid stream means stays its reader's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    AssistantMessage,
    CustomEvent,
    MessagesSnapshotEvent,
    RawEvent,
    ReasoningEncryptedValueEvent,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.slim.checkpoint import checkpoint
from runcast.slim.chunks import CHUNKS, ChunkExpander
from runcast.slim.dispatch import nearest
from runcast.slim.errors import InvalidStream
from runcast.slim.groups import ActivityGroup, Delta, StateWindow, TextGroup, merged
from runcast.slim.patch import Document

if TYPE_CHECKING:
    from runcast.slim.wire import AnyEvent

__all__ = ["Compactor", "checkpoint", "compact"]

_UNKNOWN: Any = object()
_CHUNKS = frozenset(CHUNKS)
_GROUPS = frozenset({ActivityGroup, TextGroup})


def compact(events: Iterable[AnyEvent], *, base_state: Any = _UNKNOWN) -> list[AnyEvent]:
    """Fold a history in place. `base_state` says what the state was before it, `{}` for a stream from nothing."""
    compactor = Compactor(base_state=base_state)
    out = compactor.extend(events)
    out += compactor.close()
    return out


def _nowhere(delta: str) -> None:
    """No group is open for this delta."""


class _Streams:
    """The streams of one kind that may be folded, and the deltas each has open."""

    __slots__ = ("add", "groups", "opened")

    def __init__(self) -> None:
        self.opened: set[str] = set()  # a START of this run opened them, so there is something to add to
        self.groups: dict[str, TextGroup] = {}  # where the next delta may go
        self.add: dict[str, Callable[[str], None]] = {}  # the same, as what to call with the next delta

    def bar(self, key: str) -> None:
        """Something came between: the next delta starts anew."""
        if self.groups.pop(key, None) is not None:
            del self.add[key]

    def begin(self, key: str, group: TextGroup) -> None:
        self.groups[key] = group
        self.add[key] = group.parts.append

    def restate(self, keys: set[str]) -> None:
        """A MESSAGES_SNAPSHOT came: only what it restates is surely still there."""
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
        self._slots: list[
            Any
        ] = []  # events and groups of the run so far; None where something was folded away
        self._out: list[AnyEvent] = []  # what is finished and not given out yet
        self._texts, self._reasonings, self._calls = _Streams(), _Streams(), _Streams()
        self._activities: dict[
            str, ActivityGroup | None
        ] = {}  # surely activities; with what may be folded into

    def feed(self, event: AnyEvent) -> list[AnyEvent]:
        """Take the next event; gives a run's compacted events when the run ends, else nothing."""
        return self.extend((event,))

    def extend(self, events: Iterable[AnyEvent]) -> list[AnyEvent]:
        """Take many events; gives what `feed` would have given."""
        rest = iter(events)
        if self._chunks.lanes:
            self._spell_out(rest)
        self._take(rest)
        out, self._out = self._out, []
        return out

    def close(self) -> list[AnyEvent]:
        """The stream is over: gives what was held back. A run that was cut short stays cut short."""
        self._flush()
        out, self._out = self._out, []
        return out

    def _take(self, events: Iterator[AnyEvent]) -> None:
        """The hot loop: a delta joins the group that is open for it, everything else goes to its handler."""
        handlers = self._HANDLERS
        texts, calls = self._texts.add, self._calls.add
        text = call = None  # the ids of the last deltas; where they went:
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
            text = call = None  # what comes now may bar any group
            if kind in _CHUNKS:
                self._spell_out(chain((event,), events))
            else:
                (handlers.get(kind) or self._other(kind))(self, event)

    def _spell_out(self, events: Iterator[AnyEvent]) -> None:
        """Take events one by one until no lane assembles chunks any more."""
        for event in events:
            try:
                expanded = self._chunks.feed(event)
            except InvalidStream:
                self._slots.append(event)  # it continues nothing; whoever reads the stream has to know
                continue
            for each in expanded:
                self._other(type(each))(self, each)
            if not self._chunks.lanes:
                return

    def _flush(self) -> None:
        """A run is over: what was held back is finished."""
        self._window.settle(self._slots)
        self._out += [
            slot.event() if type(slot) in _GROUPS else slot for slot in self._slots if slot is not None
        ]
        self._slots.clear()
        for streams in (self._texts, self._reasonings, self._calls):
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

    def _start_text(self, event: TextMessageStartEvent) -> None:
        self._bar_message(event.message_id)
        self._texts.opened.add(event.message_id)
        self._slots.append(event)

    def _start_reasoning(self, event: ReasoningMessageStartEvent) -> None:
        self._bar_message(event.message_id)
        self._reasonings.opened.add(event.message_id)
        self._slots.append(event)

    def _start_call(self, event: ToolCallStartEvent) -> None:
        self._calls.bar(event.tool_call_id)
        self._calls.opened.add(event.tool_call_id)
        self._slots.append(event)

    def _end_text(self, event: TextMessageEndEvent) -> None:
        self._bar_message(event.message_id)
        self._texts.opened.discard(event.message_id)
        self._slots.append(event)

    def _end_reasoning(self, event: ReasoningMessageEndEvent) -> None:
        self._bar_message(event.message_id)
        self._reasonings.opened.discard(event.message_id)
        self._slots.append(event)

    def _end_call(self, event: ToolCallEndEvent) -> None:
        self._calls.bar(event.tool_call_id)
        self._calls.opened.discard(event.tool_call_id)
        self._slots.append(event)

    def _text(self, event: TextMessageContentEvent) -> None:
        self._reasonings.bar(event.message_id)
        self._delta(self._texts, event.message_id, event)

    def _reasoning(self, event: ReasoningMessageContentEvent) -> None:
        self._texts.bar(event.message_id)
        self._delta(self._reasonings, event.message_id, event)

    def _args(self, event: ToolCallArgsEvent) -> None:
        self._delta(self._calls, event.tool_call_id, event)

    def _delta(self, streams: _Streams, key: str, event: Delta) -> None:
        group = streams.groups.get(key)
        if group is not None:
            group.parts.append(event.delta)
            group.metadata = merged(group.metadata, event.metadata)
        elif key in streams.opened:
            streams.begin(key, group := TextGroup(event))
            self._slots.append(group)
        else:
            self._slots.append(event)

    def _bar_message(self, key: str) -> None:
        self._texts.bar(key)
        self._reasonings.bar(key)

    def _result(self, event: ToolCallResultEvent) -> None:
        """Makes another message with this id, perhaps before the one that had it."""
        self._bar_message(event.message_id)
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
        self._texts.restate(restated)
        self._reasonings.restate(restated)
        self._calls.restate(calls)
        self._activities.clear()
        self._slots.append(event)

    def _activity_snapshot(self, event: ActivitySnapshotEvent) -> None:
        key = event.message_id
        if (
            key not in self._activities
        ):  # it may put an activity in the place of a message with text and calls
            self._bar_message(key)
            self._calls.bar_all()
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

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        ActivityDeltaEvent: _activity_delta,
        ActivitySnapshotEvent: _activity_snapshot,
        CustomEvent: _keep,
        MessagesSnapshotEvent: _messages_snapshot,
        RawEvent: _keep,
        ReasoningEncryptedValueEvent: _keep,
        ReasoningEndEvent: _keep,
        ReasoningMessageContentEvent: _reasoning,
        ReasoningMessageEndEvent: _end_reasoning,
        ReasoningMessageStartEvent: _start_reasoning,
        ReasoningStartEvent: _keep,
        RunErrorEvent: _end,
        RunFinishedEvent: _end,
        RunStartedEvent: _begin,
        StateDeltaEvent: _state,
        StateSnapshotEvent: _state,
        StepFinishedEvent: _keep,
        StepStartedEvent: _keep,
        SubagentErrorEvent: _keep,
        SubagentFinishedEvent: _keep,
        SubagentStartedEvent: _keep,
        TextMessageContentEvent: _text,
        TextMessageEndEvent: _end_text,
        TextMessageStartEvent: _start_text,
        ToolCallArgsEvent: _args,
        ToolCallEndEvent: _end_call,
        ToolCallResultEvent: _result,
        ToolCallStartEvent: _start_call,
    }
