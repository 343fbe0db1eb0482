"""AG-UI messages as ADK contents and session events.

The ids of the client's messages are kept with the event, under `custom_metadata["runcast"]`, so that
`session_conversation` returns them; session state holds none of it. Does not know runs.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from typing import Any

from ag_ui.core import (
    AssistantMessage,
    DataSource,
    FileSource,
    Message,
    ReasoningMessage,
    TextPart,
    ToolMessage,
    UrlSource,
    UserMessage,
)
from google.adk.events.event import Event
from google.genai import types

from runcast.adapters.adk.intake.session_conversation import MARK
from runcast.slim.values.type_guards import as_mapping


def contents(messages: Iterable[Message]) -> list[types.Content]:
    """AG-UI messages as a model's history, without activities and instructions."""
    return [event.content for event in events_from_messages(messages) if event.content is not None]


def events_from_messages(messages: Iterable[Message], *, author: str = "model") -> list[Event]:
    """Session events that rebuild to the same messages, ids included."""
    events: list[Event] = []
    thought: list[types.Part] = []
    called: dict[str, str] = {}
    for message in messages:
        match message:
            case ReasoningMessage():
                thought.append(_thought(message))
            case AssistantMessage():
                called |= {call.id: call.function.name for call in message.tool_calls or []}
                content = types.Content(role="model", parts=thought + _assistant(message))
                events.append(Event(id=message.id, author=author, content=content))
                thought = []
            case UserMessage():
                parts, mark = user_parts([message])
                content = types.Content(role="user", parts=parts)
                events.append(_marked(Event(id=message.id, author="user", content=content), mark))
            case ToolMessage():
                part = tool_part(message, called.get(message.tool_call_id, ""))
                content = types.Content(role="user", parts=[part])
                mark = {"results": {message.tool_call_id: message.id}}
                events.append(_marked(Event(id=message.id, author="user", content=content), mark))
            case _:
                pass
    return events


def user_parts(messages: Sequence[UserMessage]) -> tuple[list[types.Part], dict[str, Any]]:
    """New user messages as the parts of one content, and the mark that separates them again."""
    parts: list[types.Part] = []
    marks: list[dict[str, Any]] = []
    for message in messages:
        one = _user(message)
        parts += one
        mark: dict[str, Any] = {"id": message.id, "parts": len(one)}
        if not isinstance(message.content, str):
            mark["list"] = True
        marks.append(mark)
    return parts, {"messages": marks}


def tool_part(message: ToolMessage, name: str) -> types.Part:
    """A client's tool result. A JSON object is passed as it is; ADK's wrapper goes around any other text."""
    text = message.content if isinstance(message.content, str) else _texts(message.content)
    body: dict[str, Any] = _object(text) or {"result": text}
    if message.error is not None:
        body = {"error": message.error} | ({"result": text} if text else {})
    return types.Part(
        function_response=types.FunctionResponse(id=message.tool_call_id, name=name, response=body)
    )


def _user(message: UserMessage) -> list[types.Part]:
    if isinstance(message.content, str):
        return [types.Part(text=message.content)]
    return [_part(part) for part in message.content]


def _part(part: Any) -> types.Part:
    if isinstance(part, TextPart):
        return types.Part(text=part.text)
    source: DataSource | UrlSource | FileSource = part.source
    if isinstance(source, DataSource):
        return types.Part(
            inline_data=types.Blob(data=base64.b64decode(source.value), mime_type=source.mime_type)
        )
    return types.Part(file_data=types.FileData(file_uri=source.value, mime_type=source.mime_type))


def _assistant(message: AssistantMessage) -> list[types.Part]:
    parts = [types.Part(text=message.content)] if message.content else []
    for part in parts:
        part.thought_signature = _bytes(message.encrypted_value)
    for call in message.tool_calls or []:
        function = types.FunctionCall(
            id=call.id, name=call.function.name, args=_object(call.function.arguments) or {}
        )
        parts.append(types.Part(function_call=function, thought_signature=_bytes(call.encrypted_value)))
    return parts


def _thought(message: ReasoningMessage) -> types.Part:
    return types.Part(text=message.content, thought=True, thought_signature=_bytes(message.encrypted_value))


def _bytes(value: str | None) -> bytes | None:
    if value is None:
        return None
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:  # a signature of another provider
        return None


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return dict(as_mapping(value)) if isinstance(value, dict) else None


def _texts(content: Sequence[Any]) -> str:
    return "\n".join(part.text for part in content if isinstance(part, TextPart))


def _marked(event: Event, mark: dict[str, Any]) -> Event:
    event.custom_metadata = {MARK: mark}
    return event
