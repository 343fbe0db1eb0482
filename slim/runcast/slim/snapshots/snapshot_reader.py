"""Reads a snapshot of this schema, of the one before it had a name, or of a newer one.

Knows the schema's fields and their types; an error names the path of the wrong value. Unknown fields are kept. Does
not know how a snapshot is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from ag_ui.core import Interrupt, Message
from pydantic import TypeAdapter, ValidationError

from runcast.slim.errors import SnapshotError
from runcast.slim.folding.run_metadata import run_metadata
from runcast.slim.folding.step_records import MOST, StepRecord, Usage
from runcast.slim.snapshots.agent_state import AgentState
from runcast.slim.snapshots.message_weight import weight
from runcast.slim.values.type_guards import is_list, is_mapping

SCHEMA = "runcast.snapshot.v1"
FAMILY = "runcast.snapshot."

_MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)
_ROLES = ("user", "assistant", "tool", "system", "developer", "reasoning", "activity")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KNOWN = frozenset(
    (
        *("schema", "agent_id", "parent_agent_id", "status", "step_count", "usage", "execution", "messages"),
        *("steps", "last_continuation", "state", "interrupts", "resume", "metadata", "dropped"),
    )
)
_STEP = frozenset(
    (
        "step_number",
        "type",
        "name",
        "has_tool_calls",
        "finish_reason",
        "errors",
        "usage",
        "duration_ms",
        "tool_calls",
    )
)
_MARKS = ("tool_name", "error", "original_length", "parts", "by_reference")
OWN = frozenset(_MARKS) | {
    *("id", "name", "tool_calls", "tool_call_id", "subagent_run_id"),
    *("encrypted_value", "activity_type", "extra"),
}
"""Runcast's own keys in a message's metadata, beside the application's."""
_MISSING: Any = object()


class _Place:
    """A value and its path; each check raises one sentence with the expected type."""

    def __init__(self, value: Any, path: str) -> None:
        self.value = value
        self.path = path

    def at(self, key: str) -> _Place:
        value = self.value.get(key, _MISSING) if is_mapping(self.value) else _MISSING
        return _Place(value, f"{self.path}.{key}" if self.path else key)

    @property
    def given(self) -> bool:
        return self.value is not _MISSING and self.value is not None

    def wrong(self, wanted: str) -> SnapshotError:
        found = "missing" if self.value is _MISSING else f"{type(self.value).__name__} {self.value!r:.60}"
        return SnapshotError(self.path or "the snapshot", f"expected {wanted}, found {found}")

    def text(self, default: str | None = None) -> str:
        if not self.given and default is not None:
            return default
        if not isinstance(self.value, str):
            raise self.wrong("a string")
        return self.value

    def maybe_text(self) -> str | None:
        return self.text() if self.given else None

    def whole(self) -> int:
        if not self.given:
            return 0
        if isinstance(self.value, bool) or not isinstance(self.value, int) or not 0 <= self.value <= MOST:
            raise self.wrong("a whole number of 0 or more")
        return self.value

    def number(self) -> float | None:
        if not self.given:
            return None
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.wrong("a number")
        if not -MOST <= self.value <= MOST:  # NaN fails this too
            raise self.wrong("a number that a clock could show")
        return self.value

    def flag(self) -> bool:
        if self.given and not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value is True

    def mapping(self) -> dict[str, Any]:
        if not self.given or self.value == []:  # an empty PHP array is written as a list
            return {}
        if not is_mapping(self.value):
            raise self.wrong("an object")
        return dict(self.value)

    def items(self) -> list[_Place]:
        if not self.given:
            return []
        if not is_list(self.value):
            raise self.wrong("a list")
        return [_Place(item, f"{self.path}[{at}]") for at, item in enumerate(self.value)]


def read_snapshot(data: Mapping[str, Any]) -> AgentState:
    """The state of a snapshot."""
    top = _Place(data, "")
    if not is_mapping(top.value):
        raise top.wrong("an object")
    schema = top.at("schema").text(SCHEMA)
    if not schema.startswith(FAMILY):
        raise top.at("schema").wrong(f"{SCHEMA!r} or another version of it")
    execution, resume = top.at("execution"), top.at("resume")
    execution.mapping()
    resume.mapping()
    history = [_message(place, at) for at, place in enumerate(top.at("messages").items(), start=1)]
    return AgentState(
        agent_id=top.at("agent_id").text(),
        parent_agent_id=top.at("parent_agent_id").maybe_text(),
        thread_id=resume.at("thread_id").maybe_text(),
        run_id=resume.at("run_id").maybe_text(),
        status=top.at("status").text(),
        step_count=top.at("step_count").whole(),
        usage=_usage(top.at("usage")),
        run_usage=_usage(resume.at("run_usage")),
        started_at=_moment(execution.at("started_at")),
        updated_at=_moment(execution.at("updated_at")),
        cumulative_seconds=execution.at("cumulative_seconds").number() or 0.0,
        history=history,
        half_said=tuple(place.text() for place in resume.at("half_said").items()),
        content_bytes=sum(map(weight, history)),
        steps=tuple(_step(place, at) for at, place in enumerate(top.at("steps").items(), start=1)),
        last_continuation=top.at("last_continuation").mapping() or None,
        interrupts=tuple(map(_interrupt, top.at("interrupts").items())),
        pending_tool_call_ids=tuple(place.text() for place in resume.at("pending_tool_call_ids").items()),
        state=data.get("state", {}),
        state_known="state" in data,
        metadata=top.at("metadata").mapping(),
        framework=resume.at("framework").mapping(),
        seq=resume.at("seq").whole() if resume.at("seq").given else None,
        dropped={key: top.at("dropped").at(key).whole() for key in top.at("dropped").mapping()},
        extra={key: value for key, value in data.items() if key not in _KNOWN},
    )


def _message(place: _Place, number: int) -> Message:
    role = place.at("role").text()
    if role not in _ROLES:
        raise place.at("role").wrong(f"one of {', '.join(_ROLES)}")
    drawn = role == "activity"
    content = place.at("content").mapping() if drawn else place.at("content").text("")
    own = place.at("metadata")
    given = own.mapping()
    wire: dict[str, Any] = {"id": own.at("id").text(f"message-{number}"), "role": role, "content": content}
    for key, name in (
        ("name", "name"),
        ("subagent_run_id", "subagentRunId"),
        ("encrypted_value", "encryptedValue"),
    ):
        if (value := own.at(key).maybe_text()) is not None:
            wire[name] = value
    if drawn:
        wire["activityType"] = own.at("activity_type").text()
    if role == "tool":
        wire["toolCallId"] = own.at("tool_call_id").text()
    calls = [_call(each) for each in own.at("tool_calls").items()]
    if calls and role == "assistant":
        wire["toolCalls"] = calls
        if not content:
            del wire["content"]
    metadata = _metadata(given, own)
    return _MESSAGE.validate_python(wire | ({"metadata": metadata} if metadata else {}))


def _metadata(given: dict[str, Any], own: _Place) -> dict[str, Any]:
    """The application's metadata, and runcast's marks under their own key."""
    own.at("original_length").whole()
    marks = {key: given[key] for key in _MARKS if given.get(key) is not None}
    foreign = {key: value for key, value in given.items() if key not in OWN} | own.at("extra").mapping()
    return foreign | (run_metadata(**marks) or {})


def _call(place: _Place) -> dict[str, Any]:
    arguments = place.at("arguments").maybe_text()
    call: dict[str, Any] = {
        "id": place.at("id").text(),
        "type": "function",
        "function": {
            "name": place.at("name").text("unknown"),
            "arguments": "{}" if arguments is None else arguments,
        },
    }
    if arguments is None:
        length = place.at("arguments_length")
        known = length.whole() if length.given else None
        call["metadata"] = run_metadata(no_arguments=True, arguments_length=known)
    elif place.at("arguments_changed").flag():
        call["metadata"] = run_metadata(arguments_changed=True)
    if (value := place.at("encrypted_value").maybe_text()) is not None:
        call["encryptedValue"] = value
    return call


def _step(place: _Place, position: int) -> StepRecord:
    calls = place.at("tool_calls").items()
    given = place.mapping()
    return StepRecord(
        number=place.at("step_number").whole() or position,
        type=place.at("type").text("final"),
        name=place.at("name").maybe_text(),
        has_tool_calls=place.at("has_tool_calls").flag(),
        finish_reason=place.at("finish_reason").maybe_text(),
        errors=place.at("errors").whole(),
        usage=_usage(place.at("usage")) if place.at("usage").given else None,
        duration_ms=place.at("duration_ms").number(),
        tool_calls=tuple((call.at("id").text(), call.at("name").text()) for call in calls),
        extra={key: value for key, value in given.items() if key not in _STEP},
    )


def _usage(place: _Place) -> Usage:
    place.mapping()
    prompt, completion = place.at("prompt").whole(), place.at("completion").whole()
    total = place.at("total")
    return Usage(prompt, completion, total.whole() if total.given else prompt + completion)


def _interrupt(place: _Place) -> Interrupt:
    try:
        return Interrupt.model_validate(place.mapping())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise SnapshotError(f"{place.path}.{where}", f"not an interrupt: {first['msg']}") from error


def _moment(place: _Place) -> int | None:
    """Milliseconds since the Unix epoch; a time that names no zone is UTC."""
    text = place.maybe_text()
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise place.wrong("a time such as 2026-01-16T10:00:00Z") from None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(milliseconds=1)
