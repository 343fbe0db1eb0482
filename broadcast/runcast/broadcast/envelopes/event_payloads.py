"""Payloads of envelopes for runs, steps, subagents, tools and the rest, one function for each kind of event.

A function takes the settings, the run's view, one event and its time, and returns drafts: type and payload, not yet
placed. Knows the meaning of AG-UI's events to a screen; does not know entries, positions, budgets or streamed text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    CustomEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentStartedEvent,
    TokenUsage,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.broadcast.config import BroadcastConfig
from runcast.broadcast.envelopes.run_view import CallView, Draft, RunView, StepView, owned
from runcast.broadcast.envelopes.summary import summarize_args, summarize_result
from runcast.slim.folding.run_metadata import RunMetadata, metadata_of
from runcast.slim.folding.run_records import end_status
from runcast.slim.folding.step_records import Usage
from runcast.slim.values.truncation import clean, cut
from runcast.slim.values.type_guards import is_object
from runcast.slim.wire.encoders import in_json_types

# CUSTOM events that the host adds to a run, and their envelopes.
HOSTS = {
    "runcast.annotation": "agent.annotation",
    "runcast.queued": "agent.queued",
    "runcast.steered": "agent.steered",
}

EventHandler = Callable[[BroadcastConfig, RunView, Any, int], list[Draft]]


def event_handlers(config: BroadcastConfig) -> dict[type, EventHandler]:
    """The handler of each event type; disabled types have none."""
    table: dict[type, EventHandler] = {
        RunStartedEvent: _run_started,
        RunFinishedEvent: _run_finished,
        RunErrorEvent: _run_error,
        StepStartedEvent: _step_started,
        StepFinishedEvent: _step_finished,
        SubagentStartedEvent: _subagent_started,
        SubagentFinishedEvent: _subagent_ended,
        SubagentErrorEvent: _subagent_ended,
        ToolCallStartEvent: _call_started,
        ToolCallArgsEvent: _call_args,
        ToolCallEndEvent: _call_ended,
        ToolCallResultEvent: _call_result,
        CustomEvent: _custom,
    }
    if config.state:
        table[StateSnapshotEvent] = _state_snapshot
        table[StateDeltaEvent] = _state_delta
    if config.activity:
        table[ActivitySnapshotEvent] = _activity
        table[ActivityDeltaEvent] = _activity
    return table


# ----------------------------------------------------------------------- run


def _run_started(config: BroadcastConfig, view: RunView, event: RunStartedEvent, at: int) -> list[Draft]:
    if metadata_of(event).get("aside") is True:
        return []
    return _status(config, view, "in_progress", attempt=metadata_of(event).get("attempt"))


def _run_finished(config: BroadcastConfig, view: RunView, event: RunFinishedEvent, at: int) -> list[Draft]:
    if metadata_of(event).get("aside") is True:
        return []
    outcome = event.outcome
    drafts = _status(config, view, end_status(event), usage=_usage_sum(event.usage))
    if drafts and isinstance(outcome, RunFinishedInterruptOutcome):
        drafts.insert(
            0, ("agent.interrupt", {"interrupts": [_interrupt(each) for each in outcome.interrupts]})
        )
    view.ended()
    return _continuation(config, metadata_of(event), view.step_count) + drafts


def _run_error(config: BroadcastConfig, view: RunView, event: RunErrorEvent, at: int) -> list[Draft]:
    drafts = _status(
        config,
        view,
        end_status(event),
        error=cut(event.message, config.max_error_chars),
        error_code=event.code,
        usage=_usage_sum(event.usage),
    )
    view.ended()
    return drafts


def _status(
    config: BroadcastConfig, view: RunView, status: Any, *, error: str | None = None, **more: Any
) -> list[Draft]:
    previous = view.status
    if not view.move(status):
        return []
    payload = {
        "status": status,
        "previous_status": previous,
        "step_count": view.step_count,
        "error_message": error,
        "last_response": cut(view.response, config.max_response_chars) if view.response else None,
    }
    payload.update({key: value for key, value in more.items() if value is not None})
    return [("agent.status", payload)]


def _continuation(config: BroadcastConfig, noted: RunMetadata, step_number: int) -> list[Draft]:
    decision = noted.get("continuation")
    if not config.continuation or not isinstance(decision, dict):
        return []
    return [("agent.continuation", {"step_number": step_number, "evaluations": [], **decision})]


def _usage_sum(rows: list[TokenUsage] | None) -> dict[str, int] | None:
    return Usage.of_rows(rows).row() if rows else None


def _interrupt(asked: Any) -> dict[str, Any]:
    payload = {
        "id": asked.id,
        "reason": asked.reason,
        "message": asked.message,
        "tool_call_id": asked.tool_call_id,
        "response_schema": asked.response_schema,
    }
    value = metadata_of(asked).get("value")
    return payload if value is None else {**payload, "value": value}


# --------------------------------------------------------------------- steps


def _step_started(config: BroadcastConfig, view: RunView, event: StepStartedEvent, at: int) -> list[Draft]:
    noted = metadata_of(event)
    view.started_steps += 1
    number = noted.get("step_number", view.started_steps)
    attempt = noted.get("attempt", 1)
    view.steps[event.subagent_run_id, event.step_name] = StepView(number, attempt, at)
    payload = {"step_number": number, "step_name": event.step_name, "attempt": attempt}
    payload.update({key: noted[key] for key in ("message_count", "available_tools") if key in noted})
    return [("agent.step.started", owned(payload, event.subagent_run_id))]


def _step_finished(config: BroadcastConfig, view: RunView, event: StepFinishedEvent, at: int) -> list[Draft]:
    noted = metadata_of(event)
    step = view.steps.pop((event.subagent_run_id, event.step_name), None)
    view.step_count += 1
    number = noted.get("step_number", step.number if step else view.step_count)
    payload: dict[str, Any] = {
        "step_number": number,
        "step_name": event.step_name,
        "has_tool_calls": noted.get("has_tool_calls", bool(step and step.calls)),
        "errors": noted.get("errors", step.errors if step else 0),
        "finish_reason": noted.get("finish_reason"),
        "duration_ms": _since(step.started, at) if step else None,
    }
    if "usage" in noted:
        payload["usage"] = noted["usage"]
    if config.continuation and "continuation" in noted:
        payload["continuation"] = noted["continuation"]
    drafts: list[Draft] = [("agent.step.completed", owned(payload, event.subagent_run_id))]
    return drafts + _continuation(config, noted, number)


def _since(started: int, at: int) -> int:
    """Milliseconds; 0 when the clock was set back meanwhile."""
    return max(0, at - started)


# ----------------------------------------------------------------- subagents


def _subagent_started(
    config: BroadcastConfig, view: RunView, event: SubagentStartedEvent, at: int
) -> list[Draft]:
    view.subagents[event.subagent_run_id] = (event.name, at)
    payload: dict[str, Any] = {"subagent_run_id": event.subagent_run_id, "name": event.name}
    for key in ("description", "parent_subagent_run_id", "parent_tool_call_id"):
        value = getattr(event, key)
        if value is not None:
            payload[key] = value
    return [("agent.subagent.started", payload)]


def _subagent_ended(
    config: BroadcastConfig, view: RunView, event: SubagentFinishedEvent | SubagentErrorEvent, at: int
) -> list[Draft]:
    name, started = view.subagents.pop(event.subagent_run_id, (None, at))
    payload: dict[str, Any] = {
        "subagent_run_id": event.subagent_run_id,
        "name": name,
        "success": True,
        "error": None,
        "suspended": False,
        "duration_ms": _since(started, at),
    }
    if isinstance(event, SubagentErrorEvent):
        payload["success"] = False
        payload["error"] = cut(event.message, config.max_error_chars)
    elif event.outcome is not None:
        payload["suspended"] = event.outcome.type == "suspended"
    return [("agent.subagent.completed", payload)]


# --------------------------------------------------------------------- tools


def _call_started(config: BroadcastConfig, view: RunView, event: ToolCallStartEvent, at: int) -> list[Draft]:
    view.calls[event.tool_call_id] = CallView(event.tool_call_name, event.subagent_run_id, at)
    for (owner, _), step in view.steps.items():
        if owner == event.subagent_run_id:
            step.calls += 1
    return []


def _call_args(config: BroadcastConfig, view: RunView, event: ToolCallArgsEvent, at: int) -> list[Draft]:
    call = view.calls.get(event.tool_call_id)
    if call is not None:
        call.add(event.delta)
    return []


def _call_ended(config: BroadcastConfig, view: RunView, event: ToolCallEndEvent, at: int) -> list[Draft]:
    call = view.calls.get(event.tool_call_id)
    if call is None or call.reported:
        return []
    call.reported = True
    call.started = at
    arguments = "".join(call.args)
    call.args.clear()
    payload: dict[str, Any] = {
        "tool_name": call.name,
        "tool_call_id": event.tool_call_id,
        "args_summary": summarize_args(arguments, names=config.max_args, chars=config.max_value_chars),
    }
    if config.include_args:
        payload["args"] = clean(arguments)
    return [("agent.tool.started", owned(payload, call.owner))]


def _call_result(config: BroadcastConfig, view: RunView, event: ToolCallResultEvent, at: int) -> list[Draft]:
    noted = metadata_of(event)
    call = view.calls.pop(event.tool_call_id, None)
    failed = noted.get("error") is True
    summary = summarize_result(event.content, chars=config.max_result_chars)
    if failed:
        for (owner, _), step in view.steps.items():
            if owner == event.subagent_run_id:
                step.errors += 1
    payload = {
        "tool_name": call.name if call else noted.get("tool_name"),
        "tool_call_id": event.tool_call_id,
        "success": not failed,
        "error": summary if failed else None,
        "duration_ms": _since(call.started, at) if call else None,
        "result_summary": None if failed else summary,
    }
    return [("agent.tool.completed", owned(payload, call.owner if call else event.subagent_run_id))]


# --------------------------------------------------------------------- other


def _state_snapshot(
    config: BroadcastConfig, view: RunView, event: StateSnapshotEvent, at: int
) -> list[Draft]:
    return [("agent.state", {"snapshot": event.snapshot})]


def _state_delta(config: BroadcastConfig, view: RunView, event: StateDeltaEvent, at: int) -> list[Draft]:
    delta = [in_json_types(operation) for operation in event.delta]
    return [("agent.state", {"delta": delta})]


def _activity(
    config: BroadcastConfig, view: RunView, event: ActivitySnapshotEvent | ActivityDeltaEvent, at: int
) -> list[Draft]:
    payload: dict[str, Any] = {"message_id": event.message_id, "activity_type": event.activity_type}
    if isinstance(event, ActivitySnapshotEvent):
        payload["content"] = event.content
        if event.replace is not None:
            payload["replace"] = event.replace
    else:
        payload["patch"] = [in_json_types(each) for each in event.patch]
    return [("agent.activity", owned(payload, event.subagent_run_id))]


def _custom(config: BroadcastConfig, view: RunView, event: CustomEvent, at: int) -> list[Draft]:
    own = HOSTS.get(event.name)
    if own is not None and is_object(event.value):
        return [(own, event.value)]
    if not config.custom:
        return []
    return [("agent.custom", owned({"name": event.name, "value": event.value}, event.subagent_run_id))]
