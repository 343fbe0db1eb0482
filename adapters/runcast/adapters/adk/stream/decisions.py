"""Why a run goes on or stops after a model's turn: the criteria that hold, in the words that all adapters use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runcast.adapters.adk.stream.complete_event import TRANSFER, Reading, finish_reason, parts_of

if TYPE_CHECKING:
    from google.adk.events.event import Event


def decision(event: Event, reading: Reading) -> dict[str, Any]:
    """The decision after one turn: calls are pending, a transfer, a question, or a limit of the model."""
    reason = finish_reason(event) or "stop"
    calls = [part.function_call for part in parts_of(event) if part.function_call is not None]
    waiting = event.long_running_tool_ids or ()
    asked = [call.name or "" for call in calls if call.id in waiting]
    running = [call.name for call in reading.calls if call.name not in asked]
    transfers = [str((call.args or {}).get("agent_name", "")) for call in calls if call.name == TRANSFER]
    evaluations = [
        *_criterion("calls_pending", "continue", running),
        *_criterion("transfer", "continue", transfers),
        *_criterion("interrupt", "stop", asked),
        *_criterion("limit", "stop", [reason] if reason == "max_tokens" else []),
    ]
    decided: dict[str, Any] = {
        "should_continue": bool(reading.calls or transfers),
        "stop_reason": reason,
        "resolved_by": "model",
    }
    return decided | ({"evaluations": evaluations} if evaluations else {})


def ending(reason: str, *, waiting: list[str], code: str | None) -> dict[str, Any]:
    """The decision at the end of a run."""
    evaluations = [
        *_criterion("interrupt", "stop", waiting),
        *_criterion("limit", "stop", [code] if code == "recursion_limit" else []),
    ]
    decided: dict[str, Any] = {"should_continue": False, "stop_reason": reason, "resolved_by": "adk"}
    return decided | ({"evaluations": evaluations} if evaluations else {})


def _criterion(name: str, decided: str, why: list[str]) -> list[dict[str, str]]:
    return [{"criterion": name, "decision": decided, "reason": ", ".join(why)}] if why else []
