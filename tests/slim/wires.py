"""Events as they stand on the wire, in few words, so that nulls and odd shapes are exactly what they say.

Each function makes one JSON-ready event; extra keywords are further wire fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runcast.slim.wire.codec import AnyEvent, decode

Wire = dict[str, Any]


def event(type: str, **fields: Any) -> Wire:
    return {"type": type, **fields}


def started(run: str = "r1", thread: str = "t1", **fields: Any) -> Wire:
    return event("RUN_STARTED", threadId=thread, runId=run, **fields)


def finished(run: str = "r1", thread: str = "t1", **fields: Any) -> Wire:
    return event("RUN_FINISHED", threadId=thread, runId=run, **fields)


def failed(**fields: Any) -> Wire:
    return event("RUN_ERROR", message="broke", **fields)


def text(key: str = "m1", **fields: Any) -> Wire:
    return event("TEXT_MESSAGE_START", messageId=key, role="assistant", **fields)


def says(key: str = "m1", **fields: Any) -> Wire:
    return event("TEXT_MESSAGE_CONTENT", messageId=key, delta="x", **fields)


def text_end(key: str = "m1", **fields: Any) -> Wire:
    return event("TEXT_MESSAGE_END", messageId=key, **fields)


def call(key: str = "c1", **fields: Any) -> Wire:
    return event("TOOL_CALL_START", toolCallId=key, toolCallName="f", **fields)


def args(key: str = "c1", **fields: Any) -> Wire:
    return event("TOOL_CALL_ARGS", toolCallId=key, delta="{}", **fields)


def call_end(key: str = "c1", **fields: Any) -> Wire:
    return event("TOOL_CALL_END", toolCallId=key, **fields)


def result(key: str = "m2", call: str = "c1", **fields: Any) -> Wire:
    return event("TOOL_CALL_RESULT", messageId=key, toolCallId=call, **{"content": "ok", **fields})


def span(key: str = "g1", **fields: Any) -> Wire:
    return event("REASONING_START", messageId=key, **fields)


def span_end(key: str = "g1", **fields: Any) -> Wire:
    return event("REASONING_END", messageId=key, **fields)


def thought(key: str = "g1", **fields: Any) -> Wire:
    return event("REASONING_MESSAGE_START", messageId=key, role="reasoning", **fields)


def thinks(key: str = "g1", **fields: Any) -> Wire:
    return event("REASONING_MESSAGE_CONTENT", messageId=key, delta="x", **fields)


def thought_end(key: str = "g1", **fields: Any) -> Wire:
    return event("REASONING_MESSAGE_END", messageId=key, **fields)


def text_chunk(key: str | None = None, **fields: Any) -> Wire:
    """Without a key it continues the chunk before."""
    return event(
        "TEXT_MESSAGE_CHUNK", **({} if key is None else {"messageId": key}), **{"delta": "x", **fields}
    )


def call_chunk(key: str | None = None, **fields: Any) -> Wire:
    return event(
        "TOOL_CALL_CHUNK", **({} if key is None else {"toolCallId": key}), **{"delta": "{}", **fields}
    )


def thought_chunk(key: str | None = None, **fields: Any) -> Wire:
    named = {} if key is None else {"messageId": key}
    return event("REASONING_MESSAGE_CHUNK", **named, **{"delta": "x", **fields})


def signed(key: str, subtype: str = "message", **fields: Any) -> Wire:
    return event("REASONING_ENCRYPTED_VALUE", subtype=subtype, entityId=key, encryptedValue="e", **fields)


def custom(**fields: Any) -> Wire:
    return event("CUSTOM", **{"name": "n", "value": None, **fields})


def step(name: str = "think", **fields: Any) -> Wire:
    return event("STEP_STARTED", stepName=name, **fields)


def step_end(name: str = "think", **fields: Any) -> Wire:
    return event("STEP_FINISHED", stepName=name, **fields)


def subagent(key: str = "s1", **fields: Any) -> Wire:
    return event("SUBAGENT_STARTED", subagentRunId=key, name="helper", **fields)


def subagent_end(key: str = "s1", **fields: Any) -> Wire:
    return event("SUBAGENT_FINISHED", subagentRunId=key, **fields)


def subagent_error(key: str = "s1", **fields: Any) -> Wire:
    return event("SUBAGENT_ERROR", subagentRunId=key, message="broke", **fields)


def activity(key: str = "x1", **fields: Any) -> Wire:
    return event("ACTIVITY_SNAPSHOT", messageId=key, activityType="PLAN", content={}, **fields)


def activity_delta(key: str = "x1", **fields: Any) -> Wire:
    return event("ACTIVITY_DELTA", messageId=key, activityType="PLAN", patch=[], **fields)


def snapshot(*messages: Wire) -> Wire:
    return event("MESSAGES_SNAPSHOT", messages=list(messages))


def message(key: str = "m1", role: str = "assistant", **fields: Any) -> Wire:
    content: Any = {} if role == "activity" else "hello"
    more = {"activity": {"activityType": "PLAN"}, "tool": {"toolCallId": "c1"}}.get(role, {})
    return {"id": key, "role": role, "content": content, **more, **fields}


def holding(*calls: str) -> Wire:
    """The field of an assistant message that holds these calls."""
    made = [{"id": each, "type": "function", "function": {"name": "f", "arguments": "{}"}} for each in calls]
    return {"toolCalls": made}


def echo(*messages: Wire, run: str = "r1", thread: str = "t1") -> Wire:
    """The field of RUN_STARTED that echoes an input with these messages."""
    return {"input": {"threadId": thread, "runId": run, "messages": list(messages)}}


def asks(*interrupts: Wire) -> Wire:
    """The field of RUN_FINISHED that ends a run with these interrupts."""
    return {
        "outcome": {"type": "interrupt", "interrupts": [{"reason": "ask", **each} for each in interrupts]}
    }


def read(events: Sequence[Wire]) -> list[AnyEvent]:
    """The events as models, as they would be read from the wire."""
    return [decode(each, legacy=False) for each in events]
