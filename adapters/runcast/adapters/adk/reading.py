"""What one complete ADK event says, in the words of the protocol.

The translator and the rebuild of a conversation from a session both read through here, which is why their ids,
texts and notes agree. Every id is made of ADK's own:

    assistant message  event.id                reasoning  <event.id>-reasoning
    tool call          function_call.id        tool result  <event.id>:<call id>

It does not know what was streamed before, nor who is open. ADK's types are not imported: parts are read by the
names of their fields.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from runcast.adapters.adk.values import cut, dumps, mapping, plain
from runcast.adapters.frame import note

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.genai import types

CONFIRMATION = "adk_request_confirmation"
CREDENTIAL = "adk_request_credential"
INPUT = "adk_request_input"
TRANSFER = "transfer_to_agent"
ABORTED = "INVOCATION_ABORTED"
CODE = "execute_code"
# Calls that are ADK talking to itself or asking somebody outside: told as subagents and interrupts, not as tools.
HIDDEN = frozenset({CONFIRMATION, CREDENTIAL, INPUT, TRANSFER})


@dataclass(slots=True)
class Call:
    """A tool call, with its arguments as JSON text."""

    id: str
    name: str
    args: str
    signature: str | None = None


@dataclass(slots=True)
class Answer:
    """What a tool gave back. `call_id` is None when nothing says which call it answers."""

    id: str
    call_id: str
    name: str | None
    content: str
    error: bool

    @property
    def metadata(self) -> dict[str, Any] | None:
        """The note that travels with the result."""
        return note(tool_name=self.name, error=True if self.error else None)


@dataclass(slots=True)
class Reading:
    """One event, read."""

    id: str
    thought: str = ""
    text: str = ""
    text_first: bool = False
    thought_signature: str | None = None
    text_signature: str | None = None
    calls: list[Call] = field(default_factory=list[Call])
    answers: list[Answer] = field(default_factory=list[Answer])
    extras: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])

    @property
    def reasoning_id(self) -> str:
        """The id of the thought that precedes this message."""
        return reasoning_id(self.id)

    @property
    def speaks(self) -> bool:
        """Whether it shows the client a message, call or result."""
        return bool(self.thought or self.text or self.calls or self.answers)


def reasoning_id(event_id: str) -> str:
    """The id of an event's thought."""
    return f"{event_id}-reasoning"


class Reader:
    """Reads the complete events of one run or session in their order; remembers only calls that came without an id."""

    def __init__(self, *, max_result_length: int | None = None) -> None:
        self._limit = max_result_length
        self._unnamed: dict[str, list[str]] = {}  # function name -> ids made for calls that had none
        self._code: list[str] = []  # code that runs, its result not seen

    def read(self, event: Event) -> Reading:
        """What this event says; it must not be partial."""
        reading = Reading(event.id)
        for index, part in enumerate(parts_of(event)):
            self._part(reading, event, index, part)
        return reading

    def _part(self, reading: Reading, event: Event, index: int, part: types.Part) -> None:
        if part.function_call is not None:
            self._call(reading, index, part, part.function_call)
        elif part.function_response is not None:
            self._answer(reading, event, index, part.function_response)
        elif part.executable_code is not None:
            self._run(reading, index, part.executable_code)
        elif part.code_execution_result is not None:
            self._ran(reading, index, part.code_execution_result)
        elif part.inline_data is not None or part.file_data is not None:
            reading.extras.append(("adk.media", _media(index, part)))
        else:
            _speak(reading, part)

    def _call(self, reading: Reading, index: int, part: types.Part, call: types.FunctionCall) -> None:
        name = call.name or ""
        if name in HIDDEN:
            return
        call_id = call.id
        if not call_id:
            call_id = f"{reading.id}:call:{index}"
            self._unnamed.setdefault(name, []).append(call_id)
        reading.calls.append(Call(call_id, name, dumps(call.args or {}), _signature(part)))

    def _answer(self, reading: Reading, event: Event, index: int, answer: types.FunctionResponse) -> None:
        name = answer.name
        if name in HIDDEN or answer.id in _placeholders(event):
            return
        unnamed = self._unnamed.get(name or "")
        call_id = answer.id or (unnamed.pop(0) if unnamed else f"{reading.id}:call:{index}")
        response = answer.response
        reading.answers.append(
            Answer(
                f"{reading.id}:{call_id}",
                call_id,
                name,
                cut(result_text(response), self._limit),
                bool(response and response.get("error")),
            )
        )

    def _run(self, reading: Reading, index: int, code: types.ExecutableCode) -> None:
        call_id = code.id or f"{reading.id}:code:{index}"
        self._code.append(call_id)
        said = {"code": code.code or ""}
        if code.language is not None:
            said["language"] = code.language.value
        reading.calls.append(Call(call_id, CODE, dumps(said)))

    def _ran(self, reading: Reading, index: int, result: types.CodeExecutionResult) -> None:
        outcome = None if result.outcome is None else result.outcome.value
        call_id = result.id or (self._code[0] if self._code else None)
        if call_id is None:  # code that ran before this session began
            reading.extras.append(("adk.code_result", {"outcome": outcome, "output": result.output}))
            return
        if call_id in self._code:
            self._code.remove(call_id)
        failed = outcome not in (None, "OUTCOME_OK")
        content = cut(result.output or "", self._limit)
        reading.answers.append(Answer(f"{reading.id}:{call_id}", call_id, CODE, content, failed))


def parts_of(event: Event) -> list[types.Part]:
    """The parts of an event's content, none when it has no content."""
    content = event.content
    return [] if content is None or content.parts is None else content.parts


def said_by_user(event: Event) -> bool:
    """Whether the event is what somebody outside sent."""
    return event.author == "user"


def result_text(response: Any) -> str:
    """A tool's answer as text. ADK wraps what is not a dict as `{"result": ...}`; that wrapper is taken off."""
    if response is None:
        return ""
    said = mapping(response)
    if len(said) == 1 and "result" in said:
        response = said["result"]
        if response is None:
            return ""
    return response if isinstance(response, str) else dumps(response)


def extras(event: Event) -> Iterator[tuple[str, Any]]:
    """What has no word of its own in the protocol, as the name and value of a CUSTOM event."""
    actions = event.actions
    if event.grounding_metadata is not None:
        yield "adk.grounding", _dump(event.grounding_metadata)
    if event.citation_metadata is not None:
        yield "adk.citations", _dump(event.citation_metadata)
    said = {key: value for key, value in (event.custom_metadata or {}).items() if key != "runcast"}
    if said:
        yield "adk.custom_metadata", plain(said)
    if actions.artifact_delta:
        yield "adk.artifacts", dict(actions.artifact_delta)
    if actions.render_ui_widgets:
        yield "adk.ui_widgets", [_dump(widget) for widget in actions.render_ui_widgets]
    if actions.compaction is not None:
        bounds = actions.compaction
        yield "adk.compaction", {"from": bounds.start_timestamp, "to": bounds.end_timestamp}
    if actions.rewind_before_invocation_id:
        yield "adk.rewind", {"before_invocation_id": actions.rewind_before_invocation_id}


def message_note(event: Event) -> dict[str, Any] | None:
    """The note at the end of a model's message: why it ended, which model, what it cost."""
    return note(finish_reason=finish_reason(event), model=event.model_version, usage=usage(event))


def finish_reason(event: Event) -> str | None:
    """Why the model stopped, in lower case; `tool_calls` when it stopped for them."""
    if event.finish_reason is None:
        return None
    reason: str = event.finish_reason.value.lower()
    calls = any(part.function_call is not None for part in parts_of(event))
    return "tool_calls" if calls and reason == "stop" else reason


def usage(event: Event) -> dict[str, int] | None:
    """The tokens of one model call, for a note."""
    counts = event.usage_metadata
    if counts is None:
        return None
    said = {
        "prompt": _sum(counts.prompt_token_count, counts.tool_use_prompt_token_count),
        "completion": _sum(counts.candidates_token_count, counts.thoughts_token_count),
        "total": counts.total_token_count,
    }
    return {name: count for name, count in said.items() if count is not None} or None


def tally(event: Event) -> dict[str, Any]:
    """The tokens of one model call as the protocol counts them: tool prompts are input, thoughts are output."""
    counts = event.usage_metadata
    if counts is None:
        return {}
    return {
        "input_tokens": _sum(counts.prompt_token_count, counts.tool_use_prompt_token_count),
        "output_tokens": _sum(counts.candidates_token_count, counts.thoughts_token_count),
        "total_tokens": counts.total_token_count,
        "reasoning_tokens": counts.thoughts_token_count,
        "cached_input_tokens": counts.cached_content_token_count,
        "model": event.model_version,
    }


def _speak(reading: Reading, part: types.Part) -> None:
    signature = _signature(part)
    if part.text and part.thought:
        reading.thought += part.text
        reading.thought_signature = signature or reading.thought_signature
    elif part.text:
        reading.text_first = reading.text_first or not (reading.thought or reading.text)
        reading.text += part.text
        reading.text_signature = signature or reading.text_signature
    elif (
        signature is not None
    ):  # a signature may come alone, on a last empty part: it signs what was said before
        if reading.text:
            reading.text_signature = signature
        else:
            reading.thought_signature = signature


def _signature(part: types.Part) -> str | None:
    return base64.b64encode(part.thought_signature).decode() if part.thought_signature else None


def _media(index: int, part: types.Part) -> dict[str, Any]:
    """Where a picture or a file is, and how big; never its bytes."""
    if part.inline_data is not None:
        data = part.inline_data
        said = {"mime_type": data.mime_type, "size": len(data.data or b""), "name": data.display_name}
    else:
        link = part.file_data
        assert link is not None
        said = {"mime_type": link.mime_type, "uri": link.file_uri, "name": link.display_name}
    return {"index": index} | {name: value for name, value in said.items() if value is not None}


def _placeholders(event: Event) -> frozenset[str]:
    """Calls whose response only says that somebody has to be asked first."""
    actions = event.actions
    if not actions.requested_tool_confirmations and not actions.requested_auth_configs:
        return frozenset()
    return frozenset(actions.requested_tool_confirmations) | frozenset(actions.requested_auth_configs)


def _dump(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _sum(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
