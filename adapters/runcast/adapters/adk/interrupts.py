"""Interrupts of a paused agent, and their answers as ADK needs them.

ADK pauses on long-running calls: a user's tool, a confirmation, a credential, a workflow's request for input. Each
is an interrupt. The session alone decides which are open, so that they survive restarts, partial answers and rewinds.
Does not know the stream.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from ag_ui.core import Interrupt
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from runcast.adapters.adk.plain_values import plain
from runcast.adapters.adk.requested_input import refusal, requested
from runcast.adapters.adk.stream.complete_event import CONFIRMATION, CREDENTIAL, INPUT, is_from_user, parts_of
from runcast.adapters.adk.stream.distinct_calls import DistinctCalls
from runcast.slim.folding.run_metadata import metadata_of, run_metadata
from runcast.slim.values.type_guards import as_mapping

REASONS = {CONFIRMATION: "tool_approval", CREDENTIAL: "credential", INPUT: "input"}
LONG_RUNNING = "tool"
# A login request holds the application's secrets beside the address to visit. ADK keeps its own copy of the request,
# so the client needs none of these.
SECRETS = frozenset(
    {
        "rawAuthCredential",
        "clientSecret",
        "accessToken",
        "refreshToken",
        "idToken",
        "apiKey",
        "token",
        "password",
    }
)
MACHINE_HINT = "by responding with a FunctionResponse"  # in ADK's default hint, which addresses a program
CONFIRMED = {
    "type": "object",
    "properties": {"confirmed": {"type": "boolean"}, "payload": {}},
    "required": ["confirmed"],
}


def asked(
    event: Event, *, ttl: float | None = None, owner: str | None = None, skip: Collection[str] = ()
) -> list[Interrupt]:
    """The interrupts that a complete event opens; calls of the functions in `skip` open none."""
    waiting = event.long_running_tool_ids
    if not waiting or event.partial or is_from_user(event):
        return []
    calls = [part.function_call for part in parts_of(event) if part.function_call is not None]
    return [
        _interrupt(call, event, ttl, owner) for call in calls if call.id in waiting and call.name not in skip
    ]


def answered(event: Event) -> list[str]:
    """The calls that an event answers."""
    responses = (part.function_response for part in parts_of(event))
    return [it.id for it in responses if it is not None and it.id]


def open_interrupts(
    events: Iterable[Event],
    *,
    ttl: float | None = None,
    owners: Mapping[str, str] | None = None,
    skip: Collection[str] = (),
) -> list[Interrupt]:
    """The unanswered questions of a session, in order; rewound events must be gone already.

    A new user message instead of an answer abandons the questions before it.
    """
    held: dict[str, Interrupt] = {}
    calls = DistinctCalls()
    for event in map(calls.read, events):
        if event.partial:
            continue
        replies = answered(event)
        if is_from_user(event) and not replies and parts_of(event):
            held.clear()
        for call_id in replies:
            held.pop(call_id, None)
        for interrupt in asked(event, ttl=ttl, skip=skip):
            held[interrupt.id] = interrupt
    for interrupt in held.values():
        if owners and interrupt.id in owners:
            interrupt.subagent_run_id = owners[interrupt.id]
    return list(held.values())


def names(events: Sequence[Event]) -> dict[str, str]:
    """The function name of every call by call id; a response must repeat it."""
    calls = (part.function_call for event in events for part in parts_of(event))
    return {call.id: call.name or "" for call in calls if call is not None and call.id}


def expired(interrupt: Interrupt, now: datetime) -> bool:
    """Whether the interrupt can no longer be answered."""
    return interrupt.expires_at is not None and datetime.fromisoformat(interrupt.expires_at) <= now


def response(
    call_id: str, name: str, payload: Any, *, cancelled: bool = False, schema: Mapping[str, Any] | None = None
) -> types.Part | None:
    """An answer as ADK needs it. A cancelled one is a refusal that the agent reads; None if the schema has no form for it.

    Raises `ValueError` where the payload does not fit the schema.
    """
    body = _refusal(name, schema) if cancelled else _body(name, payload, schema)
    if body is None:
        return None
    return types.Part(function_response=types.FunctionResponse(id=call_id, name=name, response=body))


def _refusal(name: str, schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if name == CONFIRMATION:
        return {"confirmed": False}
    return refusal(schema if name == INPUT else None)


def _body(name: str, payload: Any, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    if name == CONFIRMATION:
        return _confirmation(payload)
    return requested(payload, schema if name == INPUT else None)


def _confirmation(payload: Any) -> dict[str, Any]:
    """A confirmation from a boolean, from nothing (yes), from ADK's own fields, or from the requested data (yes)."""
    if payload is None or isinstance(payload, bool):
        return {"confirmed": payload is not False}
    if isinstance(payload, Mapping) and "confirmed" in payload:
        given = as_mapping(payload)
        return {key: given[key] for key in ("confirmed", "payload", "hint") if key in given}
    return {"confirmed": True, "payload": payload}


def approval(
    interrupt: Interrupt, call_id: str, name: str, args: Mapping[str, Any] | None, author: str
) -> list[Event]:
    """ADK's events for a call that needs approval: a placeholder result, and the open request."""
    value = metadata_of(interrupt).get("value")
    wanted = ToolConfirmation(hint=interrupt.message or "", payload=value)
    placeholder = types.FunctionResponse(
        id=call_id, name=name, response={"error": "This tool call requires confirmation."}
    )
    request = _request(interrupt.id, {"id": call_id, "name": name, "args": args}, wanted)
    return [
        Event(
            id=f"{interrupt.id}:placeholder",
            author=author,
            content=types.Content(role="user", parts=[types.Part(function_response=placeholder)]),
            actions=EventActions(requested_tool_confirmations={call_id: wanted}),
        ),
        Event(
            id=f"{interrupt.id}:request",
            author=author,
            content=types.Content(role="model", parts=[request]),
            long_running_tool_ids={interrupt.id},
        ),
    ]


def unasked(events: Sequence[Event], invocation: str) -> list[Event]:
    """The questions of an invocation whose process stopped before ADK stored them: it stores results first."""
    own = [event for event in events if event.invocation_id == invocation and parts_of(event)]
    calls = {it.id: it for event in own for it in event.get_function_calls()}
    asked = {_concerns(CONFIRMATION, it.args or {}, "") for it in calls.values() if it.name == CONFIRMATION}
    last = {(event.author, event.branch): event for event in own}
    wanted = (
        (
            event,
            {
                key: it
                for key, it in event.actions.requested_tool_confirmations.items()
                if key in calls.keys() - asked
            },
        )
        for event in last.values()
    )
    return [_question(event, questions, calls) for event, questions in wanted if questions]


def _question(
    results: Event, wanted: Mapping[str, ToolConfirmation], calls: Mapping[str | None, types.FunctionCall]
) -> Event:
    """ADK's question for these calls, which the event with their placeholder results announced."""
    parts = [
        _request(f"{key}:confirmation", calls[key].model_dump(exclude_none=True, by_alias=True), it)
        for key, it in wanted.items()
    ]
    return Event(
        invocation_id=results.invocation_id,
        author=results.author,
        branch=results.branch,
        node_info=results.node_info,
        isolation_scope=results.isolation_scope,
        content=types.Content(role="model", parts=parts),
        long_running_tool_ids={f"{key}:confirmation" for key in wanted},
    )


def _request(request_id: str, call: Mapping[str, Any], wanted: ToolConfirmation) -> types.Part:
    confirmation = wanted.model_dump(by_alias=True, exclude_none=True)
    args = {"originalFunctionCall": call, "toolConfirmation": confirmation}
    return types.Part(function_call=types.FunctionCall(id=request_id, name=CONFIRMATION, args=args))


def _interrupt(call: types.FunctionCall, event: Event, ttl: float | None, owner: str | None) -> Interrupt:
    call_id = call.id or ""
    args = call.args or {}
    name = call.name or ""
    fields: dict[str, Any] = {
        "id": call_id,
        "reason": REASONS.get(name, LONG_RUNNING),
        "message": _message(name, args),
        "tool_call_id": _concerns(name, args, call_id),
        "response_schema": _schema(name, args),
        "expires_at": _expiry(event.timestamp, ttl),
        "metadata": _value(name, args),
        "subagent_run_id": owner,
    }
    return Interrupt(**{key: value for key, value in fields.items() if value is not None})


def _message(name: str, args: Mapping[str, Any]) -> str | None:
    if name == CONFIRMATION:
        hint = as_mapping(args.get("toolConfirmation")).get("hint") or None
        tool = as_mapping(args.get("originalFunctionCall")).get("name")
        return f"Run {tool}?" if hint and MACHINE_HINT in hint else hint
    if name in (INPUT, CREDENTIAL):
        return args.get("message") or None
    return None


def _concerns(name: str, args: Mapping[str, Any], call_id: str) -> str | None:
    """The call that the client shows: the one to be confirmed or authorised, or the long-running one itself."""
    if name == CONFIRMATION:
        return as_mapping(args.get("originalFunctionCall")).get("id")
    if name == CREDENTIAL:
        wanted = args.get("functionCallId")
        # A toolset that logs in before its tools are known has no call.
        return None if wanted is None or wanted.startswith("_adk_toolset_auth_") else wanted
    return None if name == INPUT else call_id


def _schema(name: str, args: Mapping[str, Any]) -> dict[str, Any] | None:
    if name == CONFIRMATION:
        return CONFIRMED
    schema = args.get("response_schema") if name == INPUT else None
    return dict(as_mapping(schema)) or None


def _value(name: str, args: Mapping[str, Any]) -> dict[str, Any] | None:
    """The structured part of a question: the payload, or a login request, which the client must send back."""
    if name == CONFIRMATION:
        return run_metadata(value=plain(as_mapping(args.get("toolConfirmation")).get("payload")))
    if name == CREDENTIAL:
        return run_metadata(value=_harmless(plain(args.get("authConfig"))))
    return run_metadata(value=plain(args.get("payload"))) if name == INPUT else None


def _harmless(value: Any) -> Any:
    if isinstance(value, list):
        return [_harmless(it) for it in cast("Sequence[Any]", value)]
    if isinstance(value, dict):
        return {key: _harmless(it) for key, it in as_mapping(value).items() if key not in SECRETS}
    return value


def _expiry(timestamp: float, ttl: float | None) -> str | None:
    if ttl is None:
        return None
    return (datetime.fromtimestamp(timestamp, UTC) + timedelta(seconds=ttl)).isoformat()
