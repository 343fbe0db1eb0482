"""One message, step or interrupt as a row of a snapshot.

Knows the fields of the schema, and how content is cut: redact secrets first, then keep whole characters and mark the
original length. An activity is drawn from the whole of it, so its row has all of it or is a reference. A row that was read
from a snapshot is written the same again. Does not know the number of messages or the size of the whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    Interrupt,
    Message,
    TextPart,
    ToolCall,
    ToolMessage,
)

from runcast.slim.folding.run_metadata import METADATA_KEY, metadata_of
from runcast.slim.folding.step_records import StepRecord
from runcast.slim.redaction.redactor import Redactor
from runcast.slim.snapshots.slim_config import SlimConfig
from runcast.slim.snapshots.snapshot_reader import OWN
from runcast.slim.values.json_budget import TooBig, copied, fitting
from runcast.slim.values.truncation import ELLIPSIS, boundary_before, clean, cut
from runcast.slim.values.type_guards import is_list

OMITTED = "[tool result omitted]"
LONGEST_ID = 100
LONGEST_NAME = 200
LONGEST_ENCRYPTED = 8_192  # a provider's value is useless unless it is whole
LONGEST_STRING_IN_ARGUMENTS = 120
MESSAGE_METADATA = 1_000  # bytes of the application's metadata on one message
MOST_PARTS = 16
MOST_CALLS = 64  # of a step


@dataclass(frozen=True, slots=True)
class Renderer:
    """Writes rows with one config and one redactor."""

    config: SlimConfig
    redactor: Redactor

    def message(self, message: Message, names: Mapping[str, str], limit: int | None = None) -> dict[str, Any]:
        """The row of a message. `names` has tool names by call id; `limit` can be shorter than the config's."""
        marks = metadata_of(message)
        content, length, parts = self._content(message, limit)
        metadata: dict[str, Any] = {"id": self.id(message.id)}
        if name := getattr(message, "name", None):
            metadata["name"] = self.name(name)
        if isinstance(message, AssistantMessage) and message.tool_calls:
            metadata["tool_calls"] = [self._call(call, limit) for call in message.tool_calls]
        if isinstance(message, ToolMessage):
            metadata["tool_call_id"] = self.id(message.tool_call_id)
            tool = marks.get("tool_name") or names.get(message.tool_call_id)
            metadata |= {"tool_name": self.name(tool)} if isinstance(tool, str) else {}
            metadata |= {"error": True} if marks.get("error") is True or message.error else {}
        for key in ("subagent_run_id", "encrypted_value"):
            value = getattr(message, key, None)
            if value and len(value) <= LONGEST_ENCRYPTED:
                metadata[key] = clean(value)
        if length is not None:
            metadata["original_length"] = length
        if parts:
            metadata["parts"] = parts
        return {"role": message.role, "content": content, "metadata": metadata | self._foreign(message)}

    def activity(self, message: ActivityMessage, room: int) -> dict[str, Any]:
        """The row of an activity: the whole of it, or a reference where that takes more than `room`."""
        metadata: dict[str, Any] = {
            "id": self.id(message.id),
            "activity_type": self.name(message.activity_type),
        }
        if message.subagent_run_id:
            metadata["subagent_run_id"] = self.id(message.subagent_run_id)
        content = (
            None if metadata_of(message).get("by_reference") is True else self._drawn(message.content, room)
        )
        if content is None:
            metadata["by_reference"] = True
        return {"role": "activity", "content": content or {}, "metadata": metadata | self._foreign(message)}

    def _drawn(self, content: Any, room: int) -> Any:
        """The content without secrets; None when it does not fit, or when JSON cannot hold all of it."""
        try:
            whole = copied(content, room)
            return copied(self.redactor.value(whole), room) if whole == content else None
        except TooBig:
            return None

    def step(self, step: StepRecord) -> dict[str, Any]:
        """The row of a step."""
        row: dict[str, Any] = {
            "step_number": step.number,
            "type": self.name(step.type),
            "has_tool_calls": step.has_tool_calls,
            "errors": step.errors,
        }
        if step.name is not None:
            row["name"] = self.name(step.name)
        if step.finish_reason is not None:
            row["finish_reason"] = self.name(step.finish_reason)
        if step.usage is not None:
            row["usage"] = step.usage.row()
        if step.duration_ms is not None:
            row["duration_ms"] = step.duration_ms
        row["tool_calls"] = [
            {"id": self.id(call_id), "name": self.name(name)}
            for call_id, name in step.tool_calls[-MOST_CALLS:]
        ]
        return row | fitting(step.extra, MESSAGE_METADATA, self.plain)

    def interrupt(self, interrupt: Interrupt, room: int) -> dict[str, Any] | None:
        """The interrupt with the explanations that fit; None if not even its id and reason fit."""
        full = self.redactor.model(interrupt).model_dump(by_alias=True)
        for less in ((), ("metadata",), ("metadata", "responseSchema"), tuple(set(full) - {"id", "reason"})):
            try:
                row: dict[str, Any] = copied({k: v for k, v in full.items() if k not in less}, room)
            except TooBig:
                continue
            return row
        return None

    def plain(self, text: str) -> str:
        """Redacted text that UTF-8 can encode."""
        return clean(self.redactor.text(text))

    def id(self, text: str) -> str:
        """An id; an overlong one is cut in the same way everywhere."""
        return cut(clean(text[: 2 * LONGEST_ID]), LONGEST_ID)

    def name(self, text: str) -> str:
        """A name or another short text."""
        return cut(self.plain(text[: 2 * LONGEST_NAME]), LONGEST_NAME)

    def _content(self, message: Message, limit: int | None) -> tuple[str, int | None, list[Any]]:
        """The text, its original length if it was cut, and a description of the parts that are no text."""
        length = _count(metadata_of(message).get("original_length"))
        parts = metadata_of(message).get("parts")
        known: list[Any] = parts if is_list(parts) else []
        content: object = message.content
        if is_list(content):
            known = []
            content = "\n".join(self._part(part, known) for part in content)
        text = content if isinstance(content, str) else ""
        if message.role == "tool" and not self.config.include_tool_results:
            return OMITTED, len(text) if text != OMITTED else length, known[:MOST_PARTS]
        most = self.config.max_content_length
        if message.role == "tool" and self.config.max_tool_result_length is not None:
            most = self.config.max_tool_result_length
        short, whole = self._short(text, most if limit is None else min(most, limit))
        return short, length if whole else max(len(text), length or 0), known[:MOST_PARTS]

    def _short(self, text: str, limit: int) -> tuple[str, bool]:
        """The beginning of the text, and whether that is all of it.

        The redactor reads a little beyond the cut, because half a secret is not recognised.
        """
        beginning = text[: limit + self.redactor.window]
        short = self.plain(beginning)
        if len(short) > limit:
            return cut(short, limit), False
        if len(beginning) == len(text):
            return short, True
        place = boundary_before(short, max(0, min(len(short), limit - len(ELLIPSIS))))
        return short[:place] + ELLIPSIS[:limit], False

    def _part(self, part: Any, known: list[Any]) -> str:
        """A part's text, or a description of another part."""
        if isinstance(part, TextPart):
            return part.text
        source = part.source
        row: dict[str, Any] = {"type": part.type}
        if getattr(source, "mime_type", None):
            row["mime_type"] = self.name(source.mime_type)
        if source.type == "data" or source.value.startswith("data:"):
            row["size"] = len(source.value) * 3 // 4 - source.value[-2:].count("=")
        else:
            row[source.type] = self.name(source.value)
        known.append(row)
        return (
            f"[{', '.join(f'{value} bytes' if key == 'size' else str(value) for key, value in row.items())}]"
        )

    def _call(self, call: ToolCall, limit: int | None) -> dict[str, Any]:
        row: dict[str, Any] = {"id": self.id(call.id), "name": self.name(call.function.name)}
        if self.config.redact_tool_args:
            return row
        marks = metadata_of(call)
        if marks.get("no_arguments") is True:
            length = _count(marks.get("arguments_length"))
            row |= {} if length is None else {"arguments_length": length}
        else:
            arguments = self._arguments(call.function.arguments, limit)
            if arguments is None:
                row["arguments_length"] = len(call.function.arguments)
            else:
                row["arguments"] = arguments
                if marks.get("arguments_changed") is True or arguments != call.function.arguments:
                    row["arguments_changed"] = True  # the call must not be run from this snapshot
        if call.encrypted_value and len(call.encrypted_value) <= LONGEST_ENCRYPTED:
            row["encrypted_value"] = clean(call.encrypted_value)
        return row

    def _arguments(self, arguments: str, limit: int | None) -> str | None:
        """The arguments; long strings in them are cut so that they stay JSON. None if that is not enough."""
        room = self.config.max_content_length if limit is None else min(limit, self.config.max_content_length)
        if len(arguments) > 64 * room + self.redactor.window:
            return None
        plain = self.plain(arguments)
        if len(plain) <= room:
            return plain
        try:
            value = copied(
                json.loads(plain), 8 * len(plain), lambda text: cut(text, LONGEST_STRING_IN_ARGUMENTS)
            )
        except (ValueError, RecursionError, TooBig):
            return None
        shorter = json.dumps(value, ensure_ascii=False)
        return shorter if len(shorter) <= room else None

    def _foreign(self, message: Message) -> dict[str, Any]:
        """The application's own metadata; keys that runcast uses too go under `extra`."""
        given = {key: value for key, value in (message.metadata or {}).items() if key != METADATA_KEY}
        if not given:  # as on nearly every message
            return {}
        ours = {key: value for key, value in given.items() if key in OWN}
        rest = {key: value for key, value in given.items() if key not in OWN}
        redacted = self.redactor.value({**rest, **({"extra": ours} if ours else {})})
        return fitting(redacted, MESSAGE_METADATA)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
