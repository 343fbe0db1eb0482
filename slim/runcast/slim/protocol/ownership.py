"""Which agent owns what in a run, and events made to agree with it for a client that joined late.

A client's verifier lets an event leave out its tag, but not contradict the owner it knows. Within a run the first
opener owns; a snapshot names the owners of what it restates. A client that joined by a snapshot knows owners from
earlier runs, which clients that were there from the start have forgotten: a tag that is fine for them can contradict for
it. Such a tag changes nothing for a message that exists, so it can be left out.

Knows the verifier's rules of ownership, not its rules of order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    AssistantMessage,
    Message,
    MessagesSnapshotEvent,
    ReasoningEncryptedValueEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.slim.values.by_class import nearest
from runcast.slim.values.lifecycles import CALL, REASONING, SPAN, TEXT, Lifecycle

if TYPE_CHECKING:
    from runcast.slim.wire.codec import AnyEvent

Book = dict[str, str | None]  # id -> subagentRunId of the owner; None is the parent agent


class Owners:
    """The owners of one run: a book for each kind of id."""

    __slots__ = ("activities", "calls", "messages", "reasonings")

    def __init__(self) -> None:
        self.messages: Book = {}
        self.calls: Book = {}
        self.reasonings: Book = {}  # spans and reasoning messages share their ids
        self.activities: Book = {}

    def book(self, life: Lifecycle) -> Book:
        """The book for the ids of one lifecycle."""
        if life is TEXT:
            return self.messages
        return self.calls if life is CALL else self.reasonings

    def enter(self, messages: Iterable[Message], *, rewrite: bool) -> None:
        """Enter the owners that these messages name; with `rewrite` also those that are known already."""
        for message in messages:
            role, tag = message.role, message.subagent_run_id
            book = {"reasoning": self.reasonings, "activity": self.activities}.get(role, self.messages)
            entries = [(book, message.id)]
            if isinstance(message, AssistantMessage):
                entries += [(self.calls, call.id) for call in message.tool_calls or ()]
            for entered, ident in entries:
                if rewrite or ident not in entered:
                    entered[ident] = tag

    def result(self, event: ToolCallResultEvent) -> None:
        """A result is a message of its own. Its owner may differ from the call's; the newest holds."""
        self.messages[event.message_id] = event.subagent_run_id

    def activity(self, event: ActivitySnapshotEvent) -> None:
        """Only a replacing snapshot makes the activity anew; otherwise a known one keeps its owner."""
        if event.replace is not False or event.message_id not in self.activities:
            self.activities[event.message_id] = event.subagent_run_id

    def entity_book(self, event: ReasoningEncryptedValueEvent) -> Book:
        """The book of what `entityId` names: "message" may be a text or a reasoning message."""
        if event.subtype == "tool-call":
            return self.calls
        return self.messages if event.entity_id in self.messages else self.reasonings


class _Tagged(Protocol):
    subagent_run_id: str | None

    def model_copy(self, *, update: dict[str, Any]) -> Self: ...


T = TypeVar("T", bound=_Tagged)


def agree(owners: Owners, event: AnyEvent) -> AnyEvent:
    """The event as the client accepts it: itself, or without the tag or parent that would contradict.

    Give it everything that the client receives, in order: it enters the owners of what the event makes.
    """
    rule = nearest(_RULES, type(event))
    return event if rule is None else rule(owners, event)


def _untagged(book: Book, key: str, event: T) -> T:
    """The event, without its tag if that contradicts the book."""
    tag = event.subagent_run_id
    contradicts = tag is not None and key in book and book[key] != tag
    return event.model_copy(update={"subagent_run_id": None}) if contradicts else event


def _opens(life: Lifecycle) -> Callable[[Owners, Any], AnyEvent]:
    def rule(owners: Owners, event: Any) -> AnyEvent:
        book, key = owners.book(life), life.key(event)
        event = _untagged(book, key, event)
        book.setdefault(key, event.subagent_run_id)
        return event  # type: ignore[no-any-return]  # one of the lifecycle's events

    return rule


def _continues(life: Lifecycle) -> Callable[[Owners, Any], AnyEvent]:
    return lambda owners, event: _untagged(owners.book(life), life.key(event), event)


def _opens_call(owners: Owners, event: ToolCallStartEvent) -> AnyEvent:
    """A call has the owner of its message: tag, parent and a former owner all have to agree."""
    for drop in (("subagent_run_id",), ("subagent_run_id", "parent_message_id")):
        if not _call_contradicts(owners, event):
            break
        event = event.model_copy(update=dict.fromkeys(drop))
    owner = event.subagent_run_id
    if owner is None and event.parent_message_id is not None:
        owner = owners.messages.get(event.parent_message_id)
    owners.calls.setdefault(event.tool_call_id, owner)
    return event


def _call_contradicts(owners: Owners, event: ToolCallStartEvent) -> bool:
    tag, parent, key = event.subagent_run_id, event.parent_message_id, event.tool_call_id
    claims: list[str | None] = [] if tag is None else [tag]
    if parent is not None and parent in owners.messages:
        claims.append(owners.messages[parent])
    if claims and key in owners.calls:
        claims.append(owners.calls[key])
    return len(set(claims)) > 1


def _result(owners: Owners, event: ToolCallResultEvent) -> AnyEvent:
    owners.result(event)
    return event


def _activity_snapshot(owners: Owners, event: ActivitySnapshotEvent) -> AnyEvent:
    owners.activity(event)
    return event


def _messages_snapshot(owners: Owners, event: MessagesSnapshotEvent) -> AnyEvent:
    owners.enter(event.messages, rewrite=True)
    return event


_RULES: Mapping[type, Callable[[Owners, Any], AnyEvent]] = {
    **{life.start: _opens(life) for life in (TEXT, REASONING, SPAN)},
    **{life.content: _continues(life) for life in (TEXT, REASONING, CALL) if life.content is not None},
    **{life.end: _continues(life) for life in (TEXT, REASONING, SPAN, CALL)},
    ToolCallStartEvent: _opens_call,
    ToolCallResultEvent: _result,
    MessagesSnapshotEvent: _messages_snapshot,
    ActivitySnapshotEvent: _activity_snapshot,
    ActivityDeltaEvent: lambda owners, event: _untagged(owners.activities, event.message_id, event),
    ReasoningEncryptedValueEvent: lambda owners, event: _untagged(
        owners.entity_book(event), event.entity_id, event
    ),
}
