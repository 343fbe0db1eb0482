"""A folded conversation and the official client's answer, in one shape, so that they can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ag_ui.core import Event, Message
from pydantic import BaseModel, TypeAdapter

from runcast.slim.folding.conversation import Conversation
from runcast.slim.folding.run_records import RunRecord

MESSAGES: TypeAdapter[list[Message]] = TypeAdapter(list[Message])
EVENTS: TypeAdapter[list[Event]] = TypeAdapter(list[Event])
BATCH = 400  # how many streams one question to the oracle holds


def plain(model: BaseModel) -> dict[str, Any]:
    """What the wire would say."""
    return model.model_dump(mode="json", by_alias=True)


def events(*wire: dict[str, Any]) -> list[Event]:
    """Events from their wire shapes."""
    return EVENTS.validate_python(list(wire))


def view(conversation: Conversation) -> dict[str, Any]:
    """What the oracle's `apply` answers, told by our fold."""
    return {
        "ok": True,
        "messages": conversation.wire_messages(),
        "state": conversation.state,
        "pendingInterrupts": [plain(each) for each in conversation.pending_interrupts],
        "runs": [run(record) for record in conversation.runs],
        "passed": [plain(each) for each in conversation.passed],
    }


def run(record: RunRecord) -> dict[str, Any]:
    said: dict[str, Any] = {"runId": record.run_id, "parentRunId": record.parent_run_id}
    if record.outcome is not None:
        said["outcome"] = record.outcome
    if record.result is not None:
        said["result"] = record.result
    if record.usage is not None:
        said["usage"] = [plain(each) for each in record.usage]
    if record.pending_tool_call_ids is not None:
        said["pendingToolCallIds"] = list(record.pending_tool_call_ids)
    if record.error is not None:
        error = plain(record.error)
        said["error"] = {name: error.get(name) for name in ("message", "code", "usage")}
    return said


def applied(stream: Sequence[Event], **start: Any) -> dict[str, Any]:
    """The request for what the client makes of a stream, chunks spelled out first."""
    return {"op": "apply", "events": stream, "expand": True, **start}


def judged(stream: Sequence[Event]) -> dict[str, Any]:
    """The request for whether the client lets a stream in."""
    return {"op": "pipeline", "events": stream}


def in_batches(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (items[at : at + BATCH] for at in range(0, len(items), BATCH))


def where_it_led(answer: dict[str, Any], runs: int = 1) -> Any:
    """Of a view, what a checkpoint keeps: messages, state, interrupts, and the latest runs."""
    if not answer["ok"]:
        return answer
    return answer["messages"], answer["state"], answer["pendingInterrupts"], answer["runs"][-runs:]
