"""What a client shows of a conversation while a run is told, and how some of it is taken back.

Only a MESSAGES_SNAPSHOT takes anything back: it restates all that stays, and absence deletes. So whoever wants to
take back keeps what was told, message by message. Activities are never restated, for a snapshot without any leaves
them alone; of reasoning the client lets go only where the snapshot has some, so one that is left without words is.
Knows the client's rules; does not know frameworks, nor what is to be taken back.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ag_ui.core import (
    AssistantMessage,
    Event,
    FunctionCall,
    Message,
    MessagesSnapshotEvent,
    ReasoningEncryptedValueEvent,
    ReasoningMessage,
    ReasoningMessageContentEvent,
    ReasoningMessageStartEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCall,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    ToolMessage,
)
from pydantic import TypeAdapter

from runcast.adapters.frame import note

TAKEN_BACK = "taken back: its attempt broke off"
_MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)


class Shown:
    """The messages a client holds, in order of appearance: its history, then what it is fed."""

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        self._rows: dict[str, _Row] = {}
        self._homes: dict[str, _Row] = {}  # tool call -> the message that holds it
        self._arguments: dict[str, list[str]] = {}  # argument text that is not joined yet
        self._growing: dict[str, list[str]] = {}  # text of messages that are being said
        for message in messages:
            if message.role != "activity":
                self._put(message)

    def _put(self, message: Message) -> None:
        self._growing.pop(message.id, None)
        row = self._rows[message.id] = _Row(message.id, message.role, message)
        for call in getattr(message, "tool_calls", None) or ():
            self._homes[call.id] = row

    # ------------------------------------------------------------------ told

    def feed(self, events: Iterable[Event]) -> None:
        """The next events of the run, as the client applies them. Nearly all are text, and cost next to nothing."""
        for event in events:
            if type(event) is TextMessageContentEvent:
                said = event.__dict__
                text = self._growing.get(said["message_id"])
                if text is not None:
                    text.append(said["delta"])
                    continue
            self._take(event)

    def _take(self, event: Event) -> None:
        match event:
            case TextMessageContentEvent() | ReasoningMessageContentEvent():
                row = self._rows.get(event.message_id)
                if row is not None:
                    self._growing[event.message_id] = row.say(event.delta)
            case TextMessageStartEvent():
                self._opened(event, event.role or "assistant", event.name)
            case ReasoningMessageStartEvent():
                self._opened(event, "reasoning", None)
            case TextMessageEndEvent() if event.message_id in self._rows:
                self._growing.pop(event.message_id, None)
                self._rows[event.message_id].merge(event.metadata)
            case ReasoningEncryptedValueEvent():
                self._sealed(event)
            case MessagesSnapshotEvent():
                self._restated(event.messages)
            case _:
                self._feed_call(event)

    def _feed_call(self, event: Event) -> None:
        match event:
            case ToolCallStartEvent():
                self._called(event)
            case ToolCallArgsEvent() if event.tool_call_id in self._homes:
                self._arguments.setdefault(event.tool_call_id, []).append(event.delta)
            case ToolCallEndEvent() if event.metadata:
                self._call_noted(event.tool_call_id, event.metadata)
            case ToolCallResultEvent():
                self._answered(event)
            case _:
                pass

    def _sealed(self, event: ReasoningEncryptedValueEvent) -> None:
        call = self._call(event.entity_id) if event.subtype == "tool-call" else None
        held = call or self._rows.get(event.entity_id)
        if held is not None:
            held.encrypted_value = event.encrypted_value

    def _opened(
        self, event: TextMessageStartEvent | ReasoningMessageStartEvent, role: str, name: str | None
    ) -> None:
        """A text or a thought begins; one that is there already goes on."""
        row = self._rows.get(event.message_id)
        if row is None:
            row = _Row(event.message_id, role, owner=event.subagent_run_id, name=name)
            row.text = []
            self._rows[event.message_id] = row
        row.merge(event.metadata)

    def _called(self, event: ToolCallStartEvent) -> None:
        if event.tool_call_id in self._homes:
            return
        key = event.parent_message_id or event.tool_call_id
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = _Row(key, "assistant", owner=event.subagent_run_id)
        call = ToolCall(id=event.tool_call_id, function=FunctionCall(name=event.tool_call_name, arguments=""))
        row.thawed().calls[call.id] = call
        self._homes[call.id] = row
        self._call_noted(call.id, event.metadata)

    def _call_noted(self, call_id: str, metadata: Mapping[str, Any] | None) -> None:
        call = self._call(call_id)
        if call is not None and metadata:
            call.metadata = {**(call.metadata or {}), **metadata}

    def _answered(self, result: ToolCallResultEvent) -> None:
        given = {key: getattr(result, key) for key in ("metadata", "subagent_run_id")}
        fields = {key: value for key, value in given.items() if value is not None}
        self._put(
            ToolMessage(
                id=result.message_id, tool_call_id=result.tool_call_id, content=result.content, **fields
            )
        )

    def _restated(self, messages: Sequence[Message]) -> None:
        """Known ones in place, new ones behind them; absence deletes, but reasoning only where some is restated."""
        said = {message.id for message in messages}
        thoughts = any(message.role == "reasoning" for message in messages)
        kept = {
            key: row
            for key, row in self._rows.items()
            if key in said or (row.role == "reasoning" and not thoughts)
        }
        self._rows, self._homes = kept, {}
        self._arguments.clear()
        self._growing.clear()
        for message in messages:
            if message.role != "activity":
                self._put(message)

    def _settle(self) -> None:
        for call_id, pieces in self._arguments.items():
            call = self._call(call_id)
            if call is not None:
                call.function.arguments = "".join((call.function.arguments, *pieces))
        self._arguments.clear()

    def _call(self, call_id: str) -> ToolCall | None:
        row = self._homes.get(call_id)
        return None if row is None else row.thawed().calls.get(call_id)

    # ------------------------------------------------------------- taken back

    @property
    def messages(self) -> list[Message]:
        """The messages as they stand, each result behind its call."""
        self._settle()
        found = {row.id: row.message() for row in self._rows.values()}
        results: dict[str, list[Message]] = {}
        for message in found.values():
            if isinstance(message, ToolMessage) and message.tool_call_id in self._homes:
                results.setdefault(self._homes[message.tool_call_id].id, []).append(message)
        placed = {each.id for some in results.values() for each in some}
        told: list[Message] = []
        for message in found.values():
            if message.id not in placed:
                told += [message, *results.get(message.id, ())]
        return told

    def restate(self, gone: Collection[str], instead: Sequence[Message] = ()) -> list[Event]:
        """The events that take these messages back and put others in the place of what was half said, or beside it.

        Calls that go are answered first: a client counts the calls it saw begin until it sees an answer.
        """
        events: list[Event] = [
            ToolCallResultEvent(
                message_id=f"{call_id}:taken-back",
                tool_call_id=call_id,
                content=TAKEN_BACK,
                role="tool",
                metadata=note(tool_name=call.function.name or None, error=True),
            )
            for key in gone
            if key in self._rows
            for call_id, call in self._rows[key].thawed().calls.items()
        ]
        lost = [self._rows.pop(key) for key in gone if key in self._rows]
        self._growing.clear()
        self._homes = {call: row for call, row in self._homes.items() if row.id in self._rows}
        thoughts = [row.id for row in lost if row.role == "reasoning"]
        for message in instead:
            self._put(message)
        if thoughts and not any(row.role == "reasoning" for row in self._rows.values()):
            self._put(ReasoningMessage(id=thoughts[0], content=""))
        changed = {
            "messages": [row.id for row in lost if row.role not in ("reasoning", "tool") and row.words]
            + [each.id for each in instead if each.role != "tool"],
            "reasoning": thoughts,
        }
        said = {key: ids for key, ids in changed.items() if ids}
        return [*events, MessagesSnapshotEvent(messages=self.messages, metadata=note(corrects=said))]


class _Row:
    """One message: as it came, or in the making."""

    __slots__ = ("calls", "encrypted_value", "id", "metadata", "name", "owner", "role", "text", "whole")

    def __init__(
        self,
        message_id: str,
        role: str,
        whole: Message | None = None,
        *,
        owner: str | None = None,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.id = message_id
        self.role = role
        self.whole = whole  # set while nothing was added to it
        self.owner = owner
        self.name = name
        self.metadata: dict[str, Any] = dict(metadata or {})
        self.text: list[str] | None = None
        self.calls: dict[str, ToolCall] = {}
        self.encrypted_value: str | None = None

    def thawed(self) -> _Row:
        """The row with its parts apart."""
        whole, self.whole = self.whole, None
        if whole is None:
            return self
        content: object = whole.content
        if self.role not in ("assistant", "reasoning") or not (content is None or isinstance(content, str)):
            self.whole = whole  # a user's, a tool's: nobody goes on with it
            return self
        self.text = None if content is None else [content]
        self.metadata = dict(whole.metadata or {})
        self.owner = getattr(whole, "subagent_run_id", None)
        self.name = getattr(whole, "name", None)
        self.encrypted_value = getattr(whole, "encrypted_value", None)
        calls: Sequence[ToolCall] = getattr(whole, "tool_calls", None) or ()
        self.calls = {call.id: call.model_copy(deep=True) for call in calls}
        return self

    @property
    def words(self) -> bool:
        """Whether it says anything: else nobody was shown more than its calls."""
        return bool(self.message().content)

    def say(self, delta: str) -> list[str]:
        """Its text, which grows in place."""
        text = self.text
        if text is None or self.whole is not None:
            text = self.thawed().text
            if text is None:
                text = self.text = []
        text.append(delta)
        return text

    def merge(self, metadata: Mapping[str, Any] | None) -> None:
        if metadata:
            self.thawed().metadata.update(metadata)

    def message(self) -> Message:
        if self.whole is not None:
            return self.whole
        given: dict[str, Any] = {
            "name": self.name,
            "subagent_run_id": self.owner,
            "metadata": self.metadata or None,
            "encrypted_value": self.encrypted_value,
        }
        fields = {key: value for key, value in given.items() if value is not None}
        if self.text is not None:
            fields["content"] = "".join(self.text)
        if self.calls:
            fields["tool_calls"] = [call.model_copy(deep=True) for call in self.calls.values()]
        if self.role == "assistant":
            return AssistantMessage(id=self.id, **fields)
        return _MESSAGE.validate_python({"id": self.id, "role": self.role, **fields})


def half_of(shown: Message, truth: Message) -> bool:
    """Whether what is shown is the beginning of what was said: words, arguments or calls are missing."""
    one, other = shown.content or "", truth.content or ""
    if not (isinstance(one, str) and isinstance(other, str) and other.startswith(one)):
        return False
    if isinstance(shown, AssistantMessage) and isinstance(truth, AssistantMessage):
        told = {call.id: call.function.arguments for call in shown.tool_calls or ()}
        if not all(_is_whole(told.get(call.id)) for call in truth.tool_calls or ()):
            return True
    return len(one) < len(other)


def _is_whole(arguments: str | None) -> bool:
    try:
        json.loads(arguments or "")
    except ValueError:
        return False
    return True
