"""Tool calls and their results, kept together.

Knows what every provider demands of a history: a result stands behind the message with its call, and a call has a
result unless somebody is about to give it. Does not know snapshots or frameworks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ag_ui.core import AssistantMessage, Message, ToolCall, ToolMessage

__all__ = ["valid_for_model"]


def valid_for_model(history: Iterable[Message], waiting: Collection[str] = ()) -> list[Message]:
    """The history as a model takes it: no orphans, each result behind its call, no activities.

    Calls without a result go, except those in `waiting` when nobody has spoken since: their answer comes next.
    """
    messages = [message for message in history if message.role != "activity"]
    results: dict[str, ToolMessage] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            results.setdefault(message.tool_call_id, message)
    last = _last_word(messages)
    out: list[Message] = []
    for at, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            open_calls = waiting if at >= last else ()
            out.extend(_answered(message, results, open_calls))
        elif not isinstance(message, ToolMessage):
            out.append(message)
    return out


def _last_word(messages: Sequence[Message]) -> int:
    """Where the last assistant message stands, or the end when a user spoke after it."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role == "assistant":
            return at
        if messages[at].role == "user":
            break
    return len(messages)


def _answered(
    message: AssistantMessage, results: dict[str, ToolMessage], waiting: Collection[str]
) -> list[Message]:
    calls = message.tool_calls or []
    kept: list[ToolCall] = []
    answers: list[Message] = []
    for call in calls:
        result = results.pop(call.id, None)
        if result is not None:
            answers.append(result)
        if result is not None or call.id in waiting:
            kept.append(call)
    if len(kept) != len(calls):
        if not kept and not message.content:
            return []
        message = message.model_copy(update={"tool_calls": kept or None})
    return [message, *answers]
