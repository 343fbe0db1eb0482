"""The events of a lost session with open questions, rebuilt from a resume point.

A point holds messages and questions. They suffice where a model's own turn waits: its call is in the messages, and
ADK's confirmation request and placeholder result can be made again. They do not suffice where only the session knew
the place:

- a login (`adk_request_credential`): the request holds the application's secrets, which never leave the session;
- a workflow's request for input, and agents below a SequentialAgent, LoopAgent, ParallelAgent or a custom agent:
  their progress is in events without content;
- an approval of a call with incomplete arguments: it would run a call that was not approved.

An answer to one of these is refused; a new message abandons the questions. Does not know runners.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ag_ui.core import AssistantMessage, Interrupt, Message, RunAgentInput, ToolCall, ToolMessage, UserMessage

from runcast.adapters.adapter import ResumePoint
from runcast.adapters.adk.intake.messages import events_from_messages
from runcast.adapters.adk.interrupts import LONG_RUNNING, REASONS, approval, names
from runcast.adapters.adk.stream.complete_event import CONFIRMATION, CREDENTIAL, INPUT
from runcast.adapters.errors import InvalidInput
from runcast.slim.folding.run_metadata import metadata_of
from runcast.slim.values.type_guards import as_mapping

if TYPE_CHECKING:
    from google.adk.events.event import Event

APPROVAL = REASONS[CONFIRMATION]
INSTEAD = "send a new message instead of an answer"
CANNOT = {
    REASONS[
        CREDENTIAL
    ]: f"the session that asked for this login is lost, and its secrets with it: {INSTEAD}, "
    "and the agent asks again",
    REASONS[INPUT]: f"the progress of this workflow is lost with its session: {INSTEAD}, "
    "and the workflow starts anew",
}


def lost_events(
    point: ResumePoint, input: RunAgentInput, *, root: str, speakers: Collection[str]
) -> list[Event]:
    """The events of a lost session, with the point's questions open; empty if it has none.

    `speakers` are the agents that can continue from their messages alone. Raises `InvalidInput` when the input
    answers a question that cannot be asked again.
    """
    frontend = {tool.name for tool in input.tools or ()}
    try:
        return _waiting(point, root, speakers, frontend)
    except InvalidInput:
        if input.resume or (input.messages and input.messages[-1].role == "tool"):
            raise
        return []


def _waiting(
    point: ResumePoint, root: str, speakers: Collection[str], frontend: Collection[str]
) -> list[Event]:
    """Calls of the client's tools wait without an interrupt too."""
    messages = list(point.messages)
    unanswered = _unanswered(messages)
    questions = [(it, _concerned(it, unanswered, root, speakers)) for it in point.interrupts]
    waiting = {call.id for it, call in questions if it.reason == LONG_RUNNING}
    waiting |= {call.id for call in unanswered.values() if call.function.name in frontend}
    if not questions and not waiting:
        return []
    events = events_from_messages(messages, author=root)
    _attribute(events, messages, root, speakers)
    for event in events:
        event.long_running_tool_ids = waiting.intersection(names([event])) or None
    for interrupt, call in questions:
        if interrupt.reason == APPROVAL:
            owner = _owner(interrupt.subagent_run_id, root)
            events += approval(interrupt, call.id, call.function.name, _arguments(call), owner)
    _one_invocation(events, messages, point.framework.get("invocation_id"))
    return events


def past_events(messages: Iterable[Message], *, author: str) -> list[Event]:
    """Messages as events of past invocations."""
    events = events_from_messages(messages, author=author)
    _past(events)
    return events


def without_questions(messages: Iterable[Message]) -> list[Message]:
    """The messages for a model after their questions were abandoned: without calls that have no result."""
    held = list(messages)
    unanswered = _unanswered(held)
    kept: list[Message] = []
    for message in held:
        if isinstance(message, AssistantMessage) and message.tool_calls:
            calls = [call for call in message.tool_calls if call.id not in unanswered]
            if not calls and not message.content:
                continue
            message = message.model_copy(update={"tool_calls": calls or None})
        kept.append(message)
    return kept


def _unanswered(messages: Sequence[Message]) -> dict[str, ToolCall]:
    answered = {it.tool_call_id for it in messages if isinstance(it, ToolMessage)}
    assistant = (it for it in messages if isinstance(it, AssistantMessage))
    return {call.id: call for it in assistant for call in it.tool_calls or () if call.id not in answered}


def _concerned(
    interrupt: Interrupt, unanswered: dict[str, ToolCall], root: str, speakers: Collection[str]
) -> ToolCall:
    """The call of a question that can be asked again."""
    if interrupt.reason not in (LONG_RUNNING, APPROVAL):
        raise InvalidInput(
            CANNOT.get(interrupt.reason, f"the session of interrupt {interrupt.id!r} is lost: {INSTEAD}")
        )
    owner = _owner(interrupt.subagent_run_id, root)
    if owner not in speakers:
        raise InvalidInput(f"the progress of the agents around {owner!r} is lost with its session: {INSTEAD}")
    call = unanswered.get(interrupt.tool_call_id or "")
    if call is None:
        raise InvalidInput(
            f"the session is lost, and the snapshot no longer holds the call of interrupt {interrupt.id!r}: {INSTEAD}"
        )
    if interrupt.reason == APPROVAL and not _is_whole(call):
        raise InvalidInput(
            f"the session is lost, and the snapshot holds the arguments of {call.function.name!r} only in part, "
            f"so it cannot be run as it was approved: {INSTEAD}"
        )
    return call


def _is_whole(call: ToolCall) -> bool:
    """Whether the call has its original arguments: none were cut or redacted."""
    notes = metadata_of(call)
    return not (notes.get("no_arguments") or notes.get("arguments_changed")) and _arguments(call) is not None


def _arguments(call: ToolCall) -> dict[str, Any] | None:
    try:
        value = json.loads(call.function.arguments or "{}")
    except ValueError:
        return None
    return dict(as_mapping(value)) if isinstance(value, dict) else None


def _owner(subagent_run_id: str | None, root: str) -> str:
    """The agent of a subagent run: the run's id begins with its name."""
    return root if subagent_run_id is None else subagent_run_id.partition(":")[0]


def _attribute(
    events: Sequence[Event], messages: Sequence[Message], root: str, speakers: Collection[str]
) -> None:
    """Give every agent its own messages, so that a model does not read its own calls as another agent's."""
    owners = {it.id: _owner(it.subagent_run_id, root) for it in messages if isinstance(it, AssistantMessage)}
    for event in events:
        owner = owners.get(event.id, "")
        if owner in speakers:
            event.author = owner


def _one_invocation(events: Sequence[Event], messages: Sequence[Message], invocation: Any) -> None:
    """Make the last turn one invocation, which the answer continues; the events before it are history."""
    asked = next((it.id for it in reversed(messages) if isinstance(it, UserMessage)), None)
    at = next((n for n, event in enumerate(events) if event.id == asked), 0)
    _past(events[:at])
    for event in events[at:]:
        event.invocation_id = invocation if isinstance(invocation, str) else f"history-{events[at].id}"


def _past(events: Sequence[Event]) -> None:
    for event in events:
        event.invocation_id = f"history-{event.id}"
