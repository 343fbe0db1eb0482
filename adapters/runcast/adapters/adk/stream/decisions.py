"""Why an ADK run goes on or stops, after a model's turn and at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runcast.adapters.adk.stream.complete_event import TRANSFER, Reading, finish_reason
from runcast.adapters.continuation import continuation

if TYPE_CHECKING:
    from google.adk.events.event import Event


def decision(event: Event, reading: Reading) -> dict[str, Any]:
    """The decision after one turn: calls are pending, a transfer, a question, or a limit of the model."""
    reason = finish_reason(event) or "stop"
    transfers, asked = _transfers(event), _asked(event)
    pending = [call.name for call in reading.calls if call.name not in asked]
    return continuation(
        bool(pending or transfers),
        "model",
        reason,
        calls_pending=pending,
        transfer=transfers,
        interrupt=asked,
        limit=[reason] if reason == "max_tokens" else [],
    )


def decides(event: Event) -> bool:
    """Whether this is a turn that hands over or asks: a step, though no client sees a message or call of it.

    ADK's own questions are no turns of a model: they have no reason to finish.
    """
    return bool(_transfers(event) or (event.finish_reason is not None and _asked(event)))


def _transfers(event: Event) -> list[str]:
    """The agents that a turn hands over to."""
    calls = event.get_function_calls()
    return [str((call.args or {}).get("agent_name", "")) for call in calls if call.name == TRANSFER]


def _asked(event: Event) -> list[str]:
    """The names of a turn's calls that may wait for an answer."""
    waiting = event.long_running_tool_ids or ()
    return [call.name or "" for call in event.get_function_calls() if call.id in waiting]


def ending(reason: str, *, waiting: list[str], code: str | None) -> dict[str, Any]:
    """The decision at the end of a run."""
    limit = [code] if code == "recursion_limit" else []
    return continuation(False, "adk", reason, interrupt=waiting, limit=limit)
