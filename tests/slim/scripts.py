"""Small pieces of streams in wire shape, and what a fold of them says in brief."""

from __future__ import annotations

from typing import Any

from runcast.slim.folding.conversation import Conversation, fold
from tests.slim.views import events

STARTED = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
FINISHED = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}


def text(id: str, *deltas: str, **opener: Any) -> list[dict[str, Any]]:
    return [
        {"type": "TEXT_MESSAGE_START", "messageId": id, **opener},
        *({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta} for delta in deltas),
        {"type": "TEXT_MESSAGE_END", "messageId": id},
    ]


def call(id: str, *deltas: str, **opener: Any) -> list[dict[str, Any]]:
    return [
        {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "f", **opener},
        *({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": delta} for delta in deltas),
        {"type": "TOOL_CALL_END", "toolCallId": id},
    ]


def result(id: str, call: str, content: Any = "ok") -> dict[str, Any]:
    return {"type": "TOOL_CALL_RESULT", "messageId": id, "toolCallId": call, "content": content}


def snapshot(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "MESSAGES_SNAPSHOT", "messages": list(messages), **more}


def user(id: str, content: Any = "hi") -> dict[str, Any]:
    return {"id": id, "role": "user", "content": content}


def activity(id: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "ACTIVITY_SNAPSHOT",
        "messageId": id,
        "activityType": "PLAN",
        "content": {"a": 1},
        **more,
    }


def folded(*wire: dict[str, Any], into: Conversation | None = None) -> Conversation:
    return fold(events(*wire), into)


def ids(conversation: Conversation) -> list[str]:
    return [message.id for message in conversation.messages]


def reasons(conversation: Conversation) -> list[str]:
    return [problem.reason for problem in conversation.problems]
