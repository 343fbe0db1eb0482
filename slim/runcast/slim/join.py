"""Joining a run that is under way: what a client that was not there needs first, and then what it gets.

The prelude is a checkpoint of all that happened, then START events for whatever the run has open, so that the rest
of its stream continues something. From then on the tail goes through `feed`, which passes nearly everything on as it
is. It differs where the late client's view would:

- A stream whose message a MESSAGES_SNAPSHOT removed is not opened again. Its deltas come to nothing and are left
  out, unless the message comes back: then the stream is opened at that moment.
- A tag that contradicts what this client was told about an owner is left out (`owners`).
- The run's successful end names the calls that are unanswered, since the late client did not see them start.

When the run has ended, events pass untouched. Knows no store and no cursor: whoever holds the log decides where the
history ends and the tail begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from ag_ui.core import (
    AssistantMessage,
    Message,
    MessagesSnapshotEvent,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
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
from pydantic import BaseModel

from runcast.slim.built import built
from runcast.slim.checkpoint import Checkpoint, Duplicates
from runcast.slim.chunks import ChunkExpander
from runcast.slim.dispatch import nearest
from runcast.slim.errors import InvalidStream
from runcast.slim.owners import Owners

if TYPE_CHECKING:
    from runcast.slim.wire import AnyEvent

__all__ = ["Join"]

E = TypeVar("E", bound=BaseModel)
Kind: TypeAlias = Literal["step", "span", "text", "reasoning", "call"]
Move: TypeAlias = Literal["start", "on", "end"]
Line: TypeAlias = tuple[Kind, Any]  # a kind and what tells one of it from another

_KINDS: tuple[Kind, ...] = ("step", "span", "text", "reasoning", "call")  # in the order they are opened again
_MOVES: dict[type, tuple[Kind, Move]] = {
    ReasoningEndEvent: ("span", "end"),
    ReasoningMessageContentEvent: ("reasoning", "on"),
    ReasoningMessageEndEvent: ("reasoning", "end"),
    ReasoningMessageStartEvent: ("reasoning", "start"),
    ReasoningStartEvent: ("span", "start"),
    StepFinishedEvent: ("step", "end"),
    StepStartedEvent: ("step", "start"),
    TextMessageContentEvent: ("text", "on"),
    TextMessageEndEvent: ("text", "end"),
    TextMessageStartEvent: ("text", "start"),
    ToolCallArgsEvent: ("call", "on"),
    ToolCallEndEvent: ("call", "end"),
    ToolCallStartEvent: ("call", "start"),
}
_NOTHING: Line = ("step", None)  # the line of events that belong to no stream
_BORDERS = (RunStartedEvent, RunFinishedEvent, RunErrorEvent)
_SUBAGENTS = (SubagentStartedEvent, SubagentFinishedEvent, SubagentErrorEvent)


class Join:
    """One client that joins. Send it the prelude, then what `feed` gives for each event after the history."""

    def __init__(self, history: Iterable[AnyEvent] = (), *, duplicates: Duplicates = "refuse") -> None:
        """Read what happened. Raises CheckpointRefused as a checkpoint does."""
        self._checkpoint = Checkpoint()
        self._chunks = ChunkExpander()
        self._open: dict[Line, AnyEvent] = {}  # what the run has open, by its START
        self._subagents: list[
            AnyEvent
        ] = []  # the lives of the run's subagents: later events may name the dead
        self._hidden: set[Line] = set()  # open in the run, but not for this client: their message is gone
        self._answered: set[str] = set()  # calls this run answered
        self._owners = Owners()
        for event in history:
            for each in self._spell_out(event):
                self._note(each)
        self._unseen = set(self._answered)  # of these, the ones whose result the client does not count
        self._joined = self._checkpoint.running  # whether the client is inside a run that it joined late
        if self._joined:
            self._prelude = self._introduce(self._checkpoint.snapshots(duplicates=duplicates))
        else:
            self._prelude = self._checkpoint.events(duplicates=duplicates)

    def prelude(self) -> list[AnyEvent]:
        """What an empty client needs to stand where the history ends."""
        return list(self._prelude)

    def feed(self, event: AnyEvent) -> list[AnyEvent]:
        """What the client gets for the next event of the stream."""
        if not self._joined:
            return [event]
        return [out for each in self._spell_out(event) for out in self._forward(each)]

    def _spell_out(self, event: AnyEvent) -> list[AnyEvent]:
        try:
            return self._chunks.feed(event)
        except InvalidStream:
            return [event]  # the client may say so itself

    def _note(self, event: AnyEvent) -> None:
        self._checkpoint.feed(event)
        if isinstance(event, RunStartedEvent):
            self._open.clear()
            self._subagents.clear()
            self._answered.clear()
        elif isinstance(event, ToolCallResultEvent):
            self._answered.add(event.tool_call_id)
        elif isinstance(event, _SUBAGENTS):
            self._subagents.append(event)
        line, move = _line(event)
        if move == "start":
            self._open[line] = event
        elif move == "end":
            self._open.pop(line, None)

    # the prelude

    def _introduce(self, snapshots: list[AnyEvent]) -> list[AnyEvent]:
        conversation = self._checkpoint.conversation
        pending = conversation.pending_tool_call_ids
        self._hidden = {line for line in self._open if not self._stands(line)}
        shown = [
            line for kind in _KINDS for line in self._open if line[0] == kind and line not in self._hidden
        ]
        answered = [key for kind, key in shown if kind == "call" and key in self._unseen]
        self._unseen.difference_update(answered)
        out: list[AnyEvent] = self._checkpoint.borders()
        out += self._counted(answered)
        out += snapshots
        out += [_bare(each) for each in self._subagents]
        for line in shown:
            if line[0] != "call" or line[1] not in answered:
                out.append(self._opener(line))
        for key in pending:
            if ("call", key) not in self._open and self._stands(("call", key)):
                out += [self._opener(("call", key)), built(ToolCallEndEvent, tool_call_id=key)]
        return [self._owners.agree(each) for each in out]

    def _counted(self, keys: list[str]) -> list[AnyEvent]:
        """Calls that were answered before their end: open, and not to be counted as unanswered.

        The client counts a call it sees start until it sees a result, and a result makes a message. So both are
        shown before the snapshot, in a conversation that the first of two snapshots wipes out.
        """
        out: list[AnyEvent] = []
        for key in keys:
            home = next(each.id for each in self._checkpoint.conversation.messages if _holds(each, key))
            out += [
                self._opener(("call", key)),
                built(ToolCallResultEvent, message_id=home, tool_call_id=key, content=""),
            ]
        return [*out, MessagesSnapshotEvent(messages=[])] if out else []

    def _stands(self, line: Line) -> bool:
        """Whether there is something that the stream's next delta would change."""
        kind, key = line
        match kind:
            case "text" | "reasoning":
                return self._checkpoint.conversation.role_of(key) is not None
            case "call":
                return self._checkpoint.conversation.holds_call(key)
            case _:
                return True

    def _opener(self, line: Line) -> AnyEvent:
        """A START that changes nothing but lets the stream go on."""
        if line[0] == "call":
            call = self._checkpoint.conversation.tool_call(line[1])
            assert call is not None
            return built(ToolCallStartEvent, tool_call_id=call.id, tool_call_name=call.function.name)
        return _bare(self._open[line])

    # the tail

    def _forward(self, event: AnyEvent) -> list[AnyEvent]:
        line, move = _line(event)
        if line in self._hidden and not self._stands(line):
            return self._omit(line, event)
        out = self._reveal(line) if line in self._hidden else []
        new = move == "start" and not self._stands(line)
        self._note(event)
        taken = self._owners.agree(event)
        out.append(self._checkpoint.named(taken) if isinstance(taken, RunFinishedEvent) else taken)
        if new and taken is not event:  # what it makes has another owner now than it should
            out += self._restated()
        if move == "start":
            out += self._settled(line)
        elif isinstance(event, ToolCallResultEvent):
            self._unseen.discard(event.tool_call_id)
        elif isinstance(event, _BORDERS):
            self._joined = False
        return out

    def _omit(self, line: Line, event: AnyEvent) -> list[AnyEvent]:
        self._note(event)
        if line not in self._open:
            self._hidden.discard(line)
        return []

    def _reveal(self, line: Line) -> list[AnyEvent]:
        """The message of a stream came back: the client has to see the stream open."""
        self._hidden.discard(line)
        return [self._owners.agree(self._opener(line)), *self._settled(line)]

    def _settled(self, line: Line) -> list[AnyEvent]:
        """A call the client just saw start may have been answered before it joined: then it has to know."""
        kind, key = line
        restated = self._restated() if kind == "call" and key in self._unseen else []
        if not restated:
            return []
        self._unseen.discard(key)
        result = built(ToolCallResultEvent, message_id=f"{key}:answered", tool_call_id=key, content="")
        return [self._owners.agree(result), *restated]

    def _restated(self) -> list[AnyEvent]:
        """All messages as they should be; nothing where ids are doubled, since that would make things worse."""
        messages = self._checkpoint.conversation.messages
        if len({each.id for each in messages}) < len(messages):
            return []
        return [self._owners.agree(MessagesSnapshotEvent(messages=messages))]


def _line(event: AnyEvent) -> tuple[Line, Move]:
    """Which stream an event belongs to and what it does to it; other events belong to none and go on."""
    kind, move = nearest(_MOVES, type(event)) or (None, "on")
    fields: Any = event
    match kind:
        case None:
            return _NOTHING, move
        case "step":
            return (kind, (fields.subagent_run_id, fields.step_name)), move
        case "call":
            return (kind, fields.tool_call_id), move
        case _:
            return (kind, fields.message_id), move


def _holds(message: Message, call_id: str) -> bool:
    calls = message.tool_calls if isinstance(message, AssistantMessage) else None
    return any(call.id == call_id for call in calls or ())


def _bare(event: E) -> E:
    """The event without what it carried besides: that has been folded in, or was the provider's own."""
    return event.model_copy(update={"metadata": None, "raw_event": None})
