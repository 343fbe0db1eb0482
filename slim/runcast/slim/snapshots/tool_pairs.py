"""Tool calls and their results, kept together.

Every provider requires of a history that a result follows the message with its call, and that each call has a result
unless the answer comes next. Does not know snapshots or frameworks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ag_ui.core import AssistantMessage, Message, ToolCall, ToolMessage


def valid_for_model(history: Iterable[Message], waiting: Collection[str] = ()) -> list[Message]:
    """The history for a model: no orphaned results, each result behind its call, no activities.

    Calls without a result are removed, except those in `waiting` if no message follows: their answer comes next.
    """
    messages = [message for message in history if message.role != "activity"]
    results: dict[str, ToolMessage] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            results.setdefault(message.tool_call_id, message)
    last = _last_assistant(messages)
    out: list[Message] = []
    for at, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            open_calls = waiting if at >= last else ()
            out.extend(_answered(message, results, open_calls))
        elif not isinstance(message, ToolMessage):
            out.append(message)
    return out


def _last_assistant(messages: Sequence[Message]) -> int:
    """The index of the last assistant message, or the end if a user message follows it."""
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
