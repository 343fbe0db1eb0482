"""One complete ADK event, read in the protocol's terms.

The translator and the rebuild of a conversation from a session both use this reader, so their ids, texts and notes
agree. Every id is made of ADK's own:

    assistant message  event.id                reasoning  <event.id>-reasoning
    tool call          function_call.id        tool result  <event.id>:<call id>

Does not know what was streamed before, nor what is open. ADK's types are not imported: parts are read by the names
of their fields.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from runcast.adapters.adk.plain_values import cut, dumps
from runcast.adapters.adk.stream.extras import media
from runcast.slim.folding.run_metadata import run_metadata
from runcast.slim.values.type_guards import as_mapping

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.genai import types

CONFIRMATION = "adk_request_confirmation"
CREDENTIAL = "adk_request_credential"
INPUT = "adk_request_input"
TRANSFER = "transfer_to_agent"
EXIT = "exit_loop"
ABORTED = "INVOCATION_ABORTED"
CODE = "execute_code"
STEERED = "steered-"  # of the invocation of a message that came while an agent ran
# Calls that control the run, and calls that become interrupts: not tool calls of a conversation.
QUESTIONS = frozenset({CONFIRMATION, CREDENTIAL, INPUT})
HIDDEN = QUESTIONS | {TRANSFER, EXIT}


@dataclass(slots=True)
class Call:
    """A tool call, with its arguments as JSON text."""

    id: str
    name: str
    args: str
    signature: str | None = None


@dataclass(slots=True)
class Answer:
    """A tool's result."""

    id: str
    call_id: str
    name: str | None
    content: str
    error: bool

    @property
    def metadata(self) -> dict[str, Any] | None:
        """The note on the result."""
        return run_metadata(tool_name=self.name, error=True if self.error else None)


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
        """The id of the reasoning before this message."""
        return reasoning_id(self.id)

    @property
    def has_content(self) -> bool:
        """Whether the client sees a message, call or result of it."""
        return bool(self.thought or self.text or self.calls or self.answers)


def reasoning_id(event_id: str) -> str:
    """The id of an event's reasoning."""
    return f"{event_id}-reasoning"


class Reader:
    """Reads the complete events of one run or session in order; remembers only calls that have no id of their own."""

    def __init__(self, *, max_result_length: int | None = None) -> None:
        self._limit = max_result_length
        self._unnamed: dict[str, list[str]] = {}  # function name -> ids made for calls without one
        self._code: dict[
            str, tuple[str, list[str]]
        ] = {}  # agent -> its last event with code, code without a result

    def read(self, event: Event) -> Reading:
        """Read one event; it must not be partial."""
        reading = Reading(event.id)
        for index, part in enumerate(parts_of(event)):
            self._part(reading, event, index, part)
        if not reading.thought.strip():  # planners leave blank thoughts around their tags
            reading.thought = ""
        return reading

    def _part(self, reading: Reading, event: Event, index: int, part: types.Part) -> None:
        if part.function_call is not None:
            self._call(reading, index, part, part.function_call)
        elif part.function_response is not None:
            self._answer(reading, event, index, part.function_response)
        elif part.executable_code is not None:
            self._run(reading, event, index, part.executable_code)
        elif part.code_execution_result is not None:
            self._ran(reading, event, index, part.code_execution_result)
        elif part.inline_data is not None or part.file_data is not None:
            reading.extras.append(("adk.media", {"message_id": event.id, **media(index, part)}))
        else:
            _text(reading, part)

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

    def _run(self, reading: Reading, event: Event, index: int, code: types.ExecutableCode) -> None:
        call_id = code.id or f"{reading.id}:code:{index}"
        before = self._code.get(event.author)
        waiting = before[1] if before is not None and before[0] == event.id else []
        self._code[event.author] = event.id, [*waiting, call_id]  # code of an earlier event is never executed
        args = {"code": code.code or ""}
        if code.language is not None:
            args["language"] = code.language.value
        reading.calls.append(Call(call_id, CODE, dumps(args)))

    def _ran(self, reading: Reading, event: Event, index: int, result: types.CodeExecutionResult) -> None:
        outcome = None if result.outcome is None else result.outcome.value
        _, waiting = self._code.get(event.author, ("", []))
        call_id = result.id or (waiting[0] if waiting else None)
        if call_id is None:  # the code is not part of these events
            reading.extras.append(("adk.code_result", {"outcome": outcome, "output": result.output}))
            return
        if call_id in waiting:
            waiting.remove(call_id)
        failed = outcome not in (None, "OUTCOME_OK")
        content = cut(result.output or "", self._limit)
        reading.answers.append(Answer(f"{reading.id}:{call_id}", call_id, CODE, content, failed))


def parts_of(event: Event) -> list[types.Part]:
    """The parts of an event's content, none when it has no content."""
    content = event.content
    return [] if content is None or content.parts is None else content.parts


def is_from_user(event: Event) -> bool:
    """Whether the event is input from outside."""
    return event.author == "user"


def is_steered(event: Event) -> bool:
    """Whether a user's message was handed to an agent that was running."""
    return is_from_user(event) and event.invocation_id.startswith(STEERED)


def answers_in(event: Event) -> list[Answer]:
    """The answers of an event in the user's name, by call id."""
    found = (part.function_response for part in parts_of(event))
    return [
        Answer(
            it.id, it.id, it.name, result_text(it.response), bool(it.response and it.response.get("error"))
        )
        for it in found
        if it is not None and it.id and it.name not in HIDDEN
    ]


def result_text(response: Any) -> str:
    """A tool's response as text, without the `{"result": ...}` that ADK wraps around whatever is no dict."""
    if response is None:
        return ""
    fields = as_mapping(response)
    if len(fields) == 1 and "result" in fields:
        response = fields["result"]
        if response is None:
            return ""
    return response if isinstance(response, str) else dumps(response)


def message_note(event: Event) -> dict[str, Any] | None:
    """The note at the end of a model's message: finish reason, model and usage."""
    return run_metadata(finish_reason=finish_reason(event), model=event.model_version, usage=usage(event))


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
    sums = {
        "prompt": _sum(counts.prompt_token_count, counts.tool_use_prompt_token_count),
        "completion": _sum(counts.candidates_token_count, counts.thoughts_token_count),
        "total": counts.total_token_count,
    }
    return {name: count for name, count in sums.items() if count is not None} or None


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


def _text(reading: Reading, part: types.Part) -> None:
    signature = _signature(part)
    if part.text and part.thought:
        reading.thought += part.text
        reading.thought_signature = signature or reading.thought_signature
    elif part.text:
        reading.text_first = reading.text_first or not (reading.thought or reading.text)
        reading.text += part.text
        reading.text_signature = signature or reading.text_signature
    elif signature is not None:  # alone on a last empty part: it signs the part before
        if reading.text:
            reading.text_signature = signature
        else:
            reading.thought_signature = signature


def _signature(part: types.Part) -> str | None:
    return base64.b64encode(part.thought_signature).decode() if part.thought_signature else None


def _placeholders(event: Event) -> frozenset[str]:
    """Calls whose response is only a placeholder until a question is answered."""
    actions = event.actions
    if not actions.requested_tool_confirmations and not actions.requested_auth_configs:
        return frozenset()
    return frozenset(actions.requested_tool_confirmations) | frozenset(actions.requested_auth_configs)


def _sum(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
