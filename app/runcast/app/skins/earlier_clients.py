"""A run in the forms that AG-UI's clients before 1.0 read, CopilotKit's among them. Pure: an event in, events out.

A client of 1.0 states its version with its input. Earlier ones refuse an outcome that is `cancelled` or names calls, and
a tool result of several parts. `success` is left out, which is the same by the protocol: assistant-ui takes it for a run
that left its page no call to answer, and does not go on with the page's own result. Clients that know LangGraph's questions
only as CUSTOM `on_interrupt` answer by `forwardedProps.command`, which they cannot once an outcome has named the questions.
Clients before 0.0.59 know no subagents: they refuse their events, and steps of theirs that have the names of open ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ag_ui.core import (
    CustomEvent,
    Message,
    MessagesSnapshotEvent,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    ToolCallResultEvent,
    ToolMessage,
)

from runcast.broadcast.json_bytes import dumps
from runcast.slim.folding.run_metadata import metadata_of
from runcast.slim.wire.codec import AnyEvent

Form = Callable[[AnyEvent], list[AnyEvent]]
ON_INTERRUPT = "on_interrupt"
SUBAGENT = ("SUBAGENT_STARTED", "SUBAGENT_FINISHED", "SUBAGENT_ERROR")
LEFT_OUT = ("success", "cancelled")  # outcomes
E = TypeVar("E", RunFinishedEvent, ToolCallResultEvent)


def form_of(input: RunAgentInput) -> Form | None:
    """The form for the client that sent this input; None if it reads events as they are."""
    return earlier if input.protocol_version is None else None


def earlier(event: AnyEvent) -> list[AnyEvent]:
    """An event as every client reads it."""
    match event:
        case ToolCallResultEvent() if not isinstance(event.content, str):
            return [_changed(event, content=_text(event.content))]
        case MessagesSnapshotEvent() if any(map(_has_parts, event.messages)):
            return [event.model_copy(update={"messages": _texts(event.messages)})]
        case RunStartedEvent() if event.input is not None and any(map(_has_parts, event.input.messages)):
            echo = event.input.model_copy(update={"messages": _texts(event.input.messages)})
            return [event.model_copy(update={"input": echo})]
        case RunFinishedEvent() if event.outcome is not None and event.outcome.type in LEFT_OUT:
            return [_changed(event)]
        case _:
            return [event]


def with_on_interrupt(event: AnyEvent) -> list[AnyEvent]:
    """An event as ag-ui-langgraph would send it: a question is a CUSTOM event before an end without outcome."""
    outcome = event.outcome if isinstance(event, RunFinishedEvent) else None
    if not isinstance(event, RunFinishedEvent) or not isinstance(outcome, RunFinishedInterruptOutcome):
        return earlier(event)
    asked: list[AnyEvent] = []
    for each in outcome.interrupts:
        value = metadata_of(each).get("value", each.message)
        value = {"id": each.id, "reason": each.reason} if value is None else value  # a breakpoint
        text = value if isinstance(value, str) else dumps(value).decode()
        owner: dict[str, Any] = {"subagent_run_id": each.subagent_run_id} if each.subagent_run_id else {}
        asked.append(CustomEvent(name=ON_INTERRUPT, value=text, **owner))
    return [*asked, _changed(event)]


def without_subagents(event: AnyEvent) -> list[AnyEvent]:
    """An event without what subagents do; what they ask stays."""
    if event.type in SUBAGENT or getattr(event, "subagent_run_id", None) is not None:
        return []
    if not isinstance(event, MessagesSnapshotEvent):
        return [event]
    own = [each for each in event.messages if each.subagent_run_id is None]
    return [event if len(own) == len(event.messages) else event.model_copy(update={"messages": own})]


def joined(first: Form | None, second: Form | None) -> Form | None:
    """One form after the other; None if there are none."""
    if first is None or second is None:
        return first or second
    return lambda event: [found for each in first(event) for found in second(each)]


def _has_parts(message: Message) -> bool:
    return isinstance(message, ToolMessage) and not isinstance(message.content, str)


def _texts(messages: Sequence[Message]) -> list[Message]:
    """Messages with the results of several parts as text."""
    return [
        each.model_copy(update={"content": _text(each.content)})
        if isinstance(each, ToolMessage) and not isinstance(each.content, str)
        else each
        for each in messages
    ]


def _text(parts: Sequence[Any]) -> str:
    return dumps([each.model_dump(mode="json", by_alias=True) for each in parts]).decode()


def _changed(event: E, **changes: Any) -> E:
    """The event without its outcome, or with another content; what else it carries stays as it is."""
    kept = {name: value for name, value in event if name in event.model_fields_set and name != "outcome"}
    return type(event)(**{**kept, **(event.model_extra or {}), **changes})
