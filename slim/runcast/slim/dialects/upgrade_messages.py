"""Upgrades messages, their parts and calls, and a run's input, as older producers and tutorials wrote them.

Knows the shapes one by one; does not know their stream. A shape that no rule understands stays unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from runcast.slim.values.type_guards import is_list, is_object

Json = dict[str, Any]

_NAMES = ("name", "toolCallName", "tool_call_name", "toolName", "tool_name")
_IDS = ("id", "toolCallId", "tool_call_id")
_ARGUMENTS = ("arguments", "args", "input")
_MEDIA = ("image", "audio", "video")


def compact_json(value: Any) -> str:
    """A value as JSON text, where 1.0 has text and older producers put the value itself."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def upgraded_input(given: Mapping[str, Any], thread_id: Any, run_id: Any) -> Json:
    """A run's input: missing ids are the run's, and messages without an id get one from their position."""
    found = dict(given)
    for key, value in (("threadId", thread_id), ("runId", run_id)):
        if value is not None:
            found.setdefault(key, value)
    messages = found.setdefault("messages", [])
    if is_list(messages):
        found["messages"] = [
            _input_message(message, f"{run_id}:input:{at}") for at, message in enumerate(messages)
        ]
    resume = found.get("resume")
    if is_object(resume):  # the answer to the only interrupt of that time
        found["resume"] = [resume]
    if is_list(found.get("resume")):
        found["resume"] = [_answer(entry) for entry in found["resume"]]
    return found


def _answer(entry: Any) -> Any:
    return {"status": "resolved", **entry} if is_object(entry) else entry


def _input_message(message: Any, id: str) -> Any:
    """A user's message may be the bare text."""
    if isinstance(message, str):
        return {"id": id, "role": "user", "content": message}
    if not is_object(message):
        return message
    fields = {key: value for key, value in message.items() if value is not None or key not in ("id", "role")}
    return upgraded_message({"id": id, "role": "user", **fields})


def upgraded_message(message: Any) -> Any:
    """A message with the parts and the calls of 1.0."""
    if not is_object(message):
        return message
    upgraded = dict(message)
    if is_list(message.get("content")) and message.get("role") != "activity":
        upgraded["content"] = upgraded_parts(message["content"])
    for key in ("toolCalls", "tool_calls"):
        if is_list(message.get(key)):
            upgraded[key] = [_tool_call(call) for call in message[key]]
    return upgraded


def _tool_call(call: Any) -> Any:
    """A call with flat name and arguments, or with arguments that are not text."""
    if not is_object(call):
        return call
    function = call.get("function")
    if is_object(function):
        arguments = function.get("arguments")
        if arguments is None or isinstance(arguments, str):
            return call
        return {**call, "function": {**function, "arguments": compact_json(arguments)}}
    name, id, arguments = (_first(call, keys) for keys in (_NAMES, _IDS, _ARGUMENTS))
    if name is None:
        return call
    rest = {key: value for key, value in call.items() if key not in (*_NAMES, *_IDS, *_ARGUMENTS, "type")}
    text = arguments if isinstance(arguments, str) else compact_json({} if arguments is None else arguments)
    return {"id": id, "type": "function", "function": {"name": name, "arguments": text}, **rest}


def _first(found: Json, keys: tuple[str, ...]) -> Any:
    return next((found[key] for key in keys if found.get(key) is not None), None)


def upgraded_parts(parts: list[Any]) -> list[Any]:
    """Parts of a message, with `binary` ones as media.

    Producers for both versions put the modern part beside the old one: the two are one part.
    """
    upgraded: list[Any] = []
    for part in parts:
        media = _media(part)
        if media is None:
            upgraded.append(part)
        elif not any(_mirrors(other, media) for other in parts):
            upgraded.append(media)
    return upgraded


def _media(part: Any) -> Json | None:
    """The media part of a `binary` one; None for other parts, or without a source."""
    if not is_object(part) or part.get("type") != "binary":
        return None
    mime_type = part.get("mimeType", part.get("mime_type"))
    source = _source(part, mime_type)
    if not isinstance(mime_type, str) or source is None:
        return None
    family = mime_type.partition("/")[0]
    media: Json = {"type": family if family in _MEDIA and "/" in mime_type else "document", "source": source}
    if part.get("filename"):
        media["metadata"] = {"filename": part["filename"]}
    return media


def _source(part: Json, mime_type: Any) -> Json | None:
    for key, kind in (("data", "data"), ("url", "url"), ("id", "file")):
        if part.get(key):  # an empty one counts as none, as in the client
            return {"type": kind, "value": part[key], "mimeType": mime_type}
    return None


def _mirrors(other: Any, media: Json) -> bool:
    if not is_object(other) or other.get("type") != media["type"] or not is_object(other.get("source")):
        return False
    if any(other["source"].get(key) != value for key, value in media["source"].items()):
        return False
    filename = media.get("metadata", {}).get("filename")
    metadata = other.get("metadata")
    return filename is None or (is_object(metadata) and metadata.get("filename") == filename)
