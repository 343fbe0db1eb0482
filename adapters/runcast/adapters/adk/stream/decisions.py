"""Why an ADK run goes on or stops, after a model's turn and at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runcast.adapters.adk.stream.complete_event import TRANSFER, Reading, finish_reason, parts_of
from runcast.adapters.continuation import continuation

if TYPE_CHECKING:
    from google.adk.events.event import Event


def decision(event: Event, reading: Reading) -> dict[str, Any]:
    """The decision after one turn: calls are pending, a transfer, a question, or a limit of the model."""
    reason = finish_reason(event) or "stop"
    calls = [part.function_call for part in parts_of(event) if part.function_call is not None]
    waiting = event.long_running_tool_ids or ()
    asked = [call.name or "" for call in calls if call.id in waiting]
    transfers = [str((call.args or {}).get("agent_name", "")) for call in calls if call.name == TRANSFER]
    return continuation(
        bool(reading.calls or transfers),
        "model",
        reason,
        calls_pending=[call.name for call in reading.calls if call.name not in asked],
        transfer=transfers,
        interrupt=asked,
        limit=[reason] if reason == "max_tokens" else [],
    )


def ending(reason: str, *, waiting: list[str], code: str | None) -> dict[str, Any]:
    """The decision at the end of a run."""
    limit = [code] if code == "recursion_limit" else []
    return continuation(False, "adk", reason, interrupt=waiting, limit=limit)
