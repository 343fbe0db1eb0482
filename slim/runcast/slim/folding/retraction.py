"""Takes displayed messages back, replaces them, or puts them into another order.

A MESSAGES_SNAPSHOT is the only event that removes a message: it restates what stays, and a client drops the rest.
Activities are never restated, because a snapshot without any leaves them alone. Reasoning is dropped only by a snapshot
that holds some, so the last reasoning message is emptied instead of removed. Does not decide what is taken back.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from ag_ui.core import (
    AssistantMessage,
    Event,
    Message,
    MessagesSnapshotEvent,
    ReasoningMessage,
    ToolCall,
    ToolCallResultEvent,
)

from runcast.slim.folding.conversation import Conversation
from runcast.slim.folding.run_metadata import run_metadata
from runcast.slim.folding.transcript import Body, Transcript

TAKEN_BACK = "taken back: its attempt broke off"  # the result of a call that is taken back


def retract(
    conversation: Conversation, gone: Collection[str], instead: Sequence[Message] = ()
) -> list[Event]:
    """The events that remove the messages `gone` from a client's view and show `instead` in place or at the end.

    Calls that go are answered first: a client counts the calls that started until it gets a result. The conversation
    is left as it is; feed it the events.
    """
    shown = {message.id: message for message in conversation.messages if message.role != "activity"}
    lost = [shown[key] for key in gone if key in shown]
    calls = [call for message in lost for call in _calls(message)]
    # a retraction that broke off before its snapshot has answered them already
    answers = {f"{call.id}:taken-back" for call in calls}.intersection(shown)
    new = {message.id: message for message in instead}
    reasoning = [message.id for message in lost if message.role == "reasoning"]
    stays = [
        new.pop(key, message) for key, message in shown.items() if key not in gone and key not in answers
    ]
    transcript = Transcript(Body.of(message) for message in stays)
    if reasoning and not any(message.role == "reasoning" for message in (*stays, *new.values())):
        transcript.append(Body.of(ReasoningMessage(id=reasoning[0], content="")))
    for message in new.values():
        if message.role == "tool":
            transcript.insert_result(message.tool_call_id, Body.of(message))
        else:
            transcript.append(Body.of(message))
    changed = {
        "messages": [each.id for each in lost if each.role not in ("reasoning", "tool") and each.content]
        + [each.id for each in instead if each.role != "tool"],
        "reasoning": reasoning,
    }
    snapshot = MessagesSnapshotEvent(
        messages=[body.model() for body in transcript],
        metadata=run_metadata(corrects={key: ids for key, ids in changed.items() if ids}),
    )
    return [*(answer for call in calls if (answer := _answer(call)).message_id not in answers), snapshot]


def _calls(message: Message) -> Sequence[ToolCall]:
    return (message.tool_calls or ()) if isinstance(message, AssistantMessage) else ()


def _answer(call: ToolCall) -> ToolCallResultEvent:
    return ToolCallResultEvent(
        message_id=f"{call.id}:taken-back",
        tool_call_id=call.id,
        content=TAKEN_BACK,
        role="tool",
        metadata=run_metadata(tool_name=call.function.name or None, error=True),
    )


def reorder(conversation: Conversation, order: Sequence[str]) -> list[Event]:
    """The events after which a client shows these messages, of those it shows, in this order; none if it does.

    A snapshot leaves known messages in their places. So a first one keeps only what stands before the first message that
    moves, and a second one restates all. Reasoning moves with the message it precedes.
    """
    tail = _since(conversation, order)
    found = {message.id for message in tail}
    wanted = [key for key in dict.fromkeys(order) if key in found]
    moving = set(wanted)
    if [message.id for message in tail if message.id in moving] == wanted:
        return []
    groups = _groups(tail, moving)
    slots = iter(wanted)
    placed = [groups[next(slots) if key in moving else key] for key in groups]
    moved = [message for group in placed for message in group]
    shown: list[Message] = [message for message in conversation.messages if message.role != "activity"]
    stays = shown[: len(shown) - len(tail)]
    if not any(message.role == "reasoning" for message in stays) and any(
        message.role == "reasoning" for message in moved
    ):
        cleared: list[Message] = [*stays, ReasoningMessage(id="cleared", content="")]
    else:
        cleared = stays
    return [MessagesSnapshotEvent(messages=cleared), MessagesSnapshotEvent(messages=[*stays, *moved])]


def _since(conversation: Conversation, order: Sequence[str]) -> list[Message]:
    """The messages from the first of these on, with the reasoning before it; costs what they are long."""
    left, tail = set(order), list[Message]()
    for message in reversed(conversation.history):
        if message.role == "activity":
            continue
        if not left and message.role != "reasoning":
            break
        left.discard(message.id)
        tail.append(message)
    return tail[::-1]


def _groups(messages: Sequence[Message], moving: Collection[str]) -> dict[str, list[Message]]:
    """Each message by its id, with the reasoning before it and the results behind it that do not move themselves."""
    groups: dict[str, list[Message]] = {}
    reasoning: list[Message] = []
    for message in messages:
        if message.role == "reasoning":
            reasoning.append(message)
        elif message.role == "tool" and message.id not in moving and groups:
            next(reversed(groups.values())).append(message)
        else:
            groups[message.id] = [*reasoning, message]
            reasoning = []
    if reasoning:
        groups[reasoning[0].id] = reasoning
    return groups


def is_partial(shown: Message, truth: Message) -> bool:
    """Whether `shown` is only the beginning of `truth`: text, arguments or calls are missing."""
    one, other = shown.content or "", truth.content or ""
    if not (isinstance(one, str) and isinstance(other, str) and other.startswith(one)):
        return False
    arguments = {call.id: call.function.arguments for call in _calls(shown)}
    if isinstance(shown, AssistantMessage) and not all(
        _is_json(arguments.get(call.id)) for call in _calls(truth)
    ):
        return True
    return len(one) < len(other)


def _is_json(arguments: str | None) -> bool:
    try:
        json.loads(arguments or "")
    except ValueError:
        return False
    return True
