"""Who owns what, in the eyes of a client that joined late; and events made to agree with that.

A client's verifier lets an event leave out its tag, but not contradict the owner it knows. Within a run the first
opener owns; a snapshot says who owns what it restates. A client that joined by a snapshot knows owners from earlier
runs, which the clients that were there from the start had forgotten: a tag that is fine for them can contradict for
it. Such a tag changes nothing for a message that exists, so it can be left out.

Knows the verifier's rules of ownership, not its rules of order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    AssistantMessage,
    Message,
    MessagesSnapshotEvent,
    ReasoningEncryptedValueEvent,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.slim.dispatch import nearest

if TYPE_CHECKING:
    from runcast.slim.wire import AnyEvent

__all__ = ["Owners"]

Book = dict[str, str | None]  # None: the parent agent


class _Tagged(Protocol):
    subagent_run_id: str | None

    def model_copy(self, *, update: dict[str, Any]) -> Self: ...


T = TypeVar("T", bound=_Tagged)


class Owners:
    """The books of one run. Feed it all that the client gets, in order."""

    def __init__(self) -> None:
        self._messages: Book = {}
        self._reasonings: Book = {}
        self._activities: Book = {}
        self._calls: Book = {}

    def agree(self, event: AnyEvent) -> AnyEvent:
        """The event as the client can take it: itself, or without the tag or parent that would contradict."""
        rule = nearest(self._RULES, type(event))
        return event if rule is None else rule(self, event)

    def _open(self, book: Book, key: str, event: T) -> T:
        event = self._go_on(book, key, event)
        book.setdefault(key, event.subagent_run_id)
        return event

    def _go_on(self, book: Book, key: str, event: T) -> T:
        tag = event.subagent_run_id
        contradicts = tag is not None and key in book and book[key] != tag
        return event.model_copy(update={"subagent_run_id": None}) if contradicts else event

    def _text_start(self, event: TextMessageStartEvent) -> AnyEvent:
        return self._open(self._messages, event.message_id, event)

    def _text(self, event: TextMessageContentEvent | TextMessageEndEvent) -> AnyEvent:
        return self._go_on(self._messages, event.message_id, event)

    def _reasoning_start(self, event: ReasoningStartEvent | ReasoningMessageStartEvent) -> AnyEvent:
        return self._open(self._reasonings, event.message_id, event)

    def _reasoning(
        self, event: ReasoningMessageContentEvent | ReasoningMessageEndEvent | ReasoningEndEvent
    ) -> AnyEvent:
        return self._go_on(self._reasonings, event.message_id, event)

    def _call_start(self, event: ToolCallStartEvent) -> AnyEvent:
        """A call belongs to whom its message belongs to: tag, parent and a former owner all have to agree."""
        for drop in (("subagent_run_id",), ("subagent_run_id", "parent_message_id")):
            if not self._call_contradicts(event):
                break
            event = event.model_copy(update=dict.fromkeys(drop))
        owner = event.subagent_run_id
        if owner is None and event.parent_message_id is not None:
            owner = self._messages.get(event.parent_message_id)
        self._calls.setdefault(event.tool_call_id, owner)
        return event

    def _call_contradicts(self, event: ToolCallStartEvent) -> bool:
        tag, parent, key = event.subagent_run_id, event.parent_message_id, event.tool_call_id
        claims: list[str | None] = [] if tag is None else [tag]
        if parent is not None and parent in self._messages:
            claims.append(self._messages[parent])
        if claims and key in self._calls:
            claims.append(self._calls[key])
        return len(set(claims)) > 1

    def _call(self, event: ToolCallArgsEvent | ToolCallEndEvent) -> AnyEvent:
        return self._go_on(self._calls, event.tool_call_id, event)

    def _result(self, event: ToolCallResultEvent) -> AnyEvent:
        self._messages[event.message_id] = event.subagent_run_id
        return event

    def _activity_snapshot(self, event: ActivitySnapshotEvent) -> AnyEvent:
        if event.replace is not False or event.message_id not in self._activities:
            self._activities[event.message_id] = event.subagent_run_id
        return event

    def _activity_delta(self, event: ActivityDeltaEvent) -> AnyEvent:
        return self._go_on(self._activities, event.message_id, event)

    def _encrypted(self, event: ReasoningEncryptedValueEvent) -> AnyEvent:
        if event.subtype == "tool-call":
            return self._go_on(self._calls, event.entity_id, event)
        book = self._messages if event.entity_id in self._messages else self._reasonings
        return self._go_on(book, event.entity_id, event)

    def _snapshot(self, event: MessagesSnapshotEvent) -> AnyEvent:
        """A snapshot rewrites what it restates."""
        for message in event.messages:
            self._book(message)[message.id] = message.subagent_run_id
            if isinstance(message, AssistantMessage):
                for call in message.tool_calls or ():
                    self._calls[call.id] = message.subagent_run_id
        return event

    def _book(self, message: Message) -> Book:
        match message.role:
            case "reasoning":
                return self._reasonings
            case "activity":
                return self._activities
            case _:
                return self._messages

    _RULES: ClassVar[dict[type, Callable[[Any, Any], AnyEvent]]] = {
        ActivityDeltaEvent: _activity_delta,
        ActivitySnapshotEvent: _activity_snapshot,
        MessagesSnapshotEvent: _snapshot,
        ReasoningEncryptedValueEvent: _encrypted,
        ReasoningEndEvent: _reasoning,
        ReasoningMessageContentEvent: _reasoning,
        ReasoningMessageEndEvent: _reasoning,
        ReasoningMessageStartEvent: _reasoning_start,
        ReasoningStartEvent: _reasoning_start,
        TextMessageContentEvent: _text,
        TextMessageEndEvent: _text,
        TextMessageStartEvent: _text_start,
        ToolCallArgsEvent: _call,
        ToolCallEndEvent: _call,
        ToolCallResultEvent: _result,
        ToolCallStartEvent: _call_start,
    }
