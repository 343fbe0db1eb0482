"""One message, step or interrupt as a snapshot says it.

Knows the words of the snapshot's schema and how content is cut: first the secrets out, then whole characters kept,
then a mark of what it was. Writing what was read from a snapshot gives the same again. Does not know how many
messages there are, or what the whole may weigh.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ag_ui.core import AssistantMessage, Interrupt, Message, TextPart, ToolCall, ToolMessage

from runcast.slim.bounded import TooBig, copied, fitting
from runcast.slim.config import SlimConfig
from runcast.slim.jsonlike import is_list
from runcast.slim.redact import Redactor
from runcast.slim.steps import NOTES, StepRecord, Usage, notes
from runcast.slim.truncate import ELLIPSIS, boundary_before, clean, cut

__all__ = ["MARKS", "OMITTED", "Renderer", "usage_of"]

OMITTED = "[tool result omitted]"
LONGEST_ID = 100
LONGEST_NAME = 200
LONGEST_ENCRYPTED = 8_192  # a provider's value of use only when it is whole
LONGEST_STRING_IN_ARGUMENTS = 120
MESSAGE_METADATA = 1_000  # bytes of the application's metadata on one message
MOST_PARTS = 16
MOST_CALLS = 64  # of a step

# Runcast's own words in a message's metadata; the application's metadata stands beside them.
MARKS = frozenset(
    (
        *("id", "name", "tool_calls", "tool_call_id", "tool_name", "error", "subagent_run_id"),
        *("encrypted_value", "original_length", "parts", "extra"),
    )
)


@dataclass(frozen=True, slots=True)
class Renderer:
    """Writes by one config and one redactor."""

    config: SlimConfig
    redactor: Redactor

    def message(self, message: Message, names: Mapping[str, str], limit: int | None = None) -> dict[str, Any]:
        """The message; `names` tells which tool a call was for, `limit` cuts shorter than the config does."""
        said = notes(message)
        content, length, parts = self._content(message, limit)
        metadata: dict[str, Any] = {"id": self.id(message.id)}
        if name := getattr(message, "name", None):
            metadata["name"] = self.name(name)
        if isinstance(message, AssistantMessage) and message.tool_calls:
            metadata["tool_calls"] = [self._call(call, limit) for call in message.tool_calls]
        if isinstance(message, ToolMessage):
            metadata["tool_call_id"] = self.id(message.tool_call_id)
            tool = said.get("tool_name") or names.get(message.tool_call_id)
            metadata |= {"tool_name": self.name(tool)} if isinstance(tool, str) else {}
            metadata |= {"error": True} if said.get("error") is True or message.error else {}
        for key in ("subagent_run_id", "encrypted_value"):
            value = getattr(message, key, None)
            if value and len(value) <= LONGEST_ENCRYPTED:
                metadata[key] = clean(value)
        if length is not None:
            metadata["original_length"] = length
        if parts:
            metadata["parts"] = parts
        return {"role": message.role, "content": content, "metadata": metadata | self._foreign(message)}

    def step(self, step: StepRecord) -> dict[str, Any]:
        """The step."""
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
            row["usage"] = usage_of(step.usage)
        if step.duration_ms is not None:
            row["duration_ms"] = step.duration_ms
        row["tool_calls"] = [
            {"id": self.id(call_id), "name": self.name(name)}
            for call_id, name in step.tool_calls[-MOST_CALLS:]
        ]
        return row | fitting(step.extra, MESSAGE_METADATA, self.plain)

    def interrupt(self, interrupt: Interrupt, room: int) -> dict[str, Any] | None:
        """The interrupt with as much as fits of what explains it; None if not even its id and reason do."""
        full = self.redactor.model(interrupt).model_dump(by_alias=True)
        for less in ((), ("metadata",), ("metadata", "responseSchema"), tuple(set(full) - {"id", "reason"})):
            try:
                row: dict[str, Any] = copied({k: v for k, v in full.items() if k not in less}, room)
            except TooBig:
                continue
            return row
        return None

    def plain(self, text: str) -> str:
        """Any text without secrets, as UTF-8 can hold it."""
        return clean(self.redactor.text(text))

    def id(self, text: str) -> str:
        """An id; one that is longer than any should be is cut, everywhere alike."""
        return cut(clean(text[: 2 * LONGEST_ID]), LONGEST_ID)

    def name(self, text: str) -> str:
        """A name or another short word."""
        return cut(self.plain(text[: 2 * LONGEST_NAME]), LONGEST_NAME)

    def _content(self, message: Message, limit: int | None) -> tuple[str, int | None, list[Any]]:
        """The text, its original length where it is not whole, and what parts there were besides text."""
        length = _count(notes(message).get("original_length"))
        parts = notes(message).get("parts")
        known: list[Any] = parts if is_list(parts) else []
        content: object = message.content
        if is_list(content):
            known = []
            content = "\n".join(self._part(part, known) for part in content)
        text = content if isinstance(content, str) else ""
        if message.role == "tool" and not self.config.include_tool_results:
            return OMITTED, len(text) if text != OMITTED else length, known[:MOST_PARTS]
        shown = self.config.max_content_length
        if message.role == "tool" and self.config.max_tool_result_length is not None:
            shown = self.config.max_tool_result_length
        short, whole = self._short(text, shown if limit is None else min(shown, limit))
        return short, length if whole else max(len(text), length or 0), known[:MOST_PARTS]

    def _short(self, text: str, limit: int) -> tuple[str, bool]:
        """The beginning of the text, and whether it is all of it.

        Secrets are looked for a little beyond the cut, so that none is cut in two and then not known.
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
        """A part's text, or what stands for a part that is none."""
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
        said = notes(call)
        if said.get("no_arguments") is True:
            length = _count(said.get("arguments_length"))
            row |= {} if length is None else {"arguments_length": length}
        else:
            arguments = self._arguments(call.function.arguments, limit)
            if arguments is None:
                row["arguments_length"] = len(call.function.arguments)
            else:
                row["arguments"] = arguments
                if said.get("arguments_changed") is True or arguments != call.function.arguments:
                    row["arguments_changed"] = True  # nobody may run this call from here
        if call.encrypted_value and len(call.encrypted_value) <= LONGEST_ENCRYPTED:
            row["encrypted_value"] = clean(call.encrypted_value)
        return row

    def _arguments(self, arguments: str, limit: int | None) -> str | None:
        """The arguments, with long strings in them cut so that they stay JSON; None when that does not do."""
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
        """The application's own metadata; what uses one of our words stands under `extra`."""
        given = {key: value for key, value in (message.metadata or {}).items() if key != NOTES}
        ours = {key: value for key, value in given.items() if key in MARKS}
        rest = {key: value for key, value in given.items() if key not in MARKS}
        redacted = self.redactor.value({**rest, **({"extra": ours} if ours else {})})
        return fitting(redacted, MESSAGE_METADATA)


def usage_of(usage: Usage) -> dict[str, int]:
    """Token counts by the schema's names."""
    return {"prompt": usage.prompt, "completion": usage.completion, "total": usage.total}


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
