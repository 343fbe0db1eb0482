"""Joins a client to a run that is active: first what it needs of the past, then the rest of the stream.

The prelude is a checkpoint of the history, then START events for whatever the run has open, so that the rest of its
stream continues something. From then on the tail goes through `feed`, which passes nearly everything on unchanged. It
differs where the late client's view would:

- A stream whose message a MESSAGES_SNAPSHOT removed is not opened again. Its deltas have no effect and are left out,
  unless the message comes back: then the stream is opened at that moment.
- A tag that contradicts an owner this client knows is left out (`ownership`).
- The run's successful end names the unanswered calls, since the late client did not see them start.

When the run has ended, events pass unchanged. Knows no store and no cursor: the caller decides where the history ends and
the tail begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ag_ui.core import (
    AssistantMessage,
    Message,
    MessagesSnapshotEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentStartedEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from pydantic import BaseModel

from runcast.slim.errors import InvalidStream
from runcast.slim.folding.checkpoint import Checkpoint, Duplicates
from runcast.slim.protocol.chunk_expander import ChunkExpander
from runcast.slim.protocol.ownership import Owners, agree
from runcast.slim.values.by_class import nearest
from runcast.slim.values.lifecycles import CALL, LIFECYCLES, PHASES, REASONING, STEP, TEXT, Lifecycle, Phase
from runcast.slim.values.model_construction import built

if TYPE_CHECKING:
    from runcast.slim.wire.codec import AnyEvent

E = TypeVar("E", bound=BaseModel)
Line: TypeAlias = tuple[Lifecycle | None, Any]  # a kind of stream and the id of one

_BORDERS = (RunStartedEvent, RunFinishedEvent, RunErrorEvent)
_SUBAGENTS = (SubagentStartedEvent, SubagentFinishedEvent, SubagentErrorEvent)


class Join:
    """One client that joins. Send it the prelude, then what `feed` returns for each event after the history."""

    def __init__(self, history: Iterable[AnyEvent] = (), *, duplicates: Duplicates = "refuse") -> None:
        """Read the history. Raises CheckpointRefused as a checkpoint does."""
        self._checkpoint = Checkpoint()
        self._chunks = ChunkExpander()
        self._open: dict[Line, AnyEvent] = {}  # what the run has open, by its START
        self._subagents: list[AnyEvent] = []  # all of the run's: later events may name ended ones
        self._hidden: set[Line] = set()  # open in the run, but not for this client: their message is gone
        self._answered: set[str] = set()  # calls this run answered
        self._owners = Owners()
        for event in history:
            for each in self._expand(event):
                self._note(each)
        self._unseen = set(self._answered)  # answered calls that the client does not count as answered
        self._joined = self._checkpoint.running  # whether the client is inside a run that it joined late
        if self._joined:
            self._prelude = self._introduce(self._checkpoint.snapshots(duplicates=duplicates))
        else:
            self._prelude = self._checkpoint.events(duplicates=duplicates)

    def prelude(self) -> list[AnyEvent]:
        """What an empty client needs to be where the history ends."""
        return list(self._prelude)

    def feed(self, event: AnyEvent) -> list[AnyEvent]:
        """What the client gets for the next event of the stream."""
        if not self._joined:
            return [event]
        return [out for each in self._expand(event) for out in self._forward(each)]

    def _expand(self, event: AnyEvent) -> list[AnyEvent]:
        try:
            return self._chunks.feed(event)
        except InvalidStream:
            return [event]  # the client reports it

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
        line, phase = _line(event)
        if phase == "start":
            self._open[line] = event
        elif phase == "end":
            self._open.pop(line, None)

    # the prelude

    def _introduce(self, snapshots: list[AnyEvent]) -> list[AnyEvent]:
        pending = self._checkpoint.conversation.pending_tool_call_ids
        self._hidden = {line for line in self._open if not self._exists(line)}
        shown = [
            line for life in LIFECYCLES for line in self._open if line[0] is life and line not in self._hidden
        ]
        answered = [key for life, key in shown if life is CALL and key in self._unseen]
        self._unseen.difference_update(answered)
        out: list[AnyEvent] = self._checkpoint.borders()
        out += self._counted(answered)
        out += snapshots
        out += [_bare(each) for each in self._subagents]
        out += [self._opener(line) for line in shown if line[0] is not CALL or line[1] not in answered]
        for key in pending:
            if (CALL, key) not in self._open and self._exists((CALL, key)):
                out += [self._opener((CALL, key)), built(ToolCallEndEvent, tool_call_id=key)]
        return [agree(self._owners, each) for each in out]

    def _counted(self, keys: list[str]) -> list[AnyEvent]:
        """Calls that were answered before their end: open, and not to be counted as unanswered.

        The client counts a call it sees start until it sees a result, and a result makes a message. So both come
        before the snapshot, in a conversation that the first of two snapshots empties.
        """
        out: list[AnyEvent] = []
        for key in keys:
            home = next(each.id for each in self._checkpoint.conversation.messages if _holds(each, key))
            out += [
                self._opener((CALL, key)),
                built(ToolCallResultEvent, message_id=home, tool_call_id=key, content=""),
            ]
        return [*out, MessagesSnapshotEvent(messages=[])] if out else []

    def _exists(self, line: Line) -> bool:
        """Whether there is something that the stream's next delta would change."""
        life, key = line
        if life in (TEXT, REASONING):
            return self._checkpoint.conversation.role_of(key) is not None
        return life is not CALL or self._checkpoint.conversation.holds_call(key)

    def _opener(self, line: Line) -> AnyEvent:
        """A START that changes nothing but lets the stream go on."""
        if line[0] is CALL:
            call = self._checkpoint.conversation.tool_call(line[1])
            assert call is not None
            return built(ToolCallStartEvent, tool_call_id=call.id, tool_call_name=call.function.name)
        return _bare(self._open[line])

    # the tail

    def _forward(self, event: AnyEvent) -> list[AnyEvent]:
        line, phase = _line(event)
        if line in self._hidden and not self._exists(line):
            return self._omit(line, event)
        out = self._reveal(line) if line in self._hidden else []
        new = phase == "start" and not self._exists(line)
        self._note(event)
        taken = agree(self._owners, event)
        out.append(self._checkpoint.named(taken) if isinstance(taken, RunFinishedEvent) else taken)
        if new and taken is not event:  # the message it makes has another owner now than it should
            out += self._restated()
        if phase == "start":
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
        return [agree(self._owners, self._opener(line)), *self._settled(line)]

    def _settled(self, line: Line) -> list[AnyEvent]:
        """The answer to a call that starts for this client but was answered before it joined."""
        life, key = line
        restated = self._restated() if life is CALL and key in self._unseen else []
        if not restated:
            return []
        self._unseen.discard(key)
        result = built(ToolCallResultEvent, message_id=f"{key}:answered", tool_call_id=key, content="")
        return [agree(self._owners, result), *restated]

    def _restated(self) -> list[AnyEvent]:
        """All messages as they should be; nothing where ids are doubled, since that would make things worse."""
        messages = self._checkpoint.conversation.messages
        if len({each.id for each in messages}) < len(messages):
            return []
        return [agree(self._owners, MessagesSnapshotEvent(messages=messages))]


def _line(event: AnyEvent) -> tuple[Line, Phase]:
    """Which stream an event belongs to and what it does to it; other events belong to none and continue."""
    life, phase = nearest(PHASES, type(event)) or (None, "content")
    if life is None or phase == "chunk":
        return (None, None), "content"
    key = life.key(event)
    return (life, (event.subagent_run_id, key) if life is STEP else key), phase  # type: ignore[union-attr]  # a step


def _holds(message: Message, call_id: str) -> bool:
    calls = message.tool_calls if isinstance(message, AssistantMessage) else None
    return any(call.id == call_id for call in calls or ())


def _bare(event: E) -> E:
    """The event without metadata, which is folded in already, and without the provider's raw event."""
    return event.model_copy(update={"metadata": None, "raw_event": None})
