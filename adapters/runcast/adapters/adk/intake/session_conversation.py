"""The conversation of a session, as a client holds it that received every run.

Ids, texts, calls, results and order are those of the streams, because both use `stream.complete_event`. Rewound turns
are left out. A compaction changes what the model reads, not what people saw: it is applied on request (`compacted`).
Messages of parallel agents stand in the order of their ends in a session, and of their beginnings at the client.

`messages` is the way back, from messages to a session.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ag_ui.core import (
    AssistantMessage,
    AudioPart,
    DataSource,
    DocumentPart,
    FunctionCall,
    ImagePart,
    Message,
    ReasoningMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UrlSource,
    UserMessage,
    VideoPart,
)

from runcast.adapters.adk.intake.late_events import counted
from runcast.adapters.adk.options import AdkOptions
from runcast.adapters.adk.plain_values import cut
from runcast.adapters.adk.stream.complete_event import (
    HIDDEN,
    Answer,
    Reader,
    Reading,
    is_from_user,
    is_steered,
    message_note,
    parts_of,
    result_text,
)
from runcast.adapters.adk.stream.distinct_calls import DistinctCalls
from runcast.adapters.adk.stream.subagents import Entries, Entry, done
from runcast.slim.values.type_guards import as_mapping

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.genai import types

MARK = "runcast"  # the key in an event's custom metadata that holds the client's message ids
MEDIA = {"image": ImagePart, "audio": AudioPart, "video": VideoPart}


def messages_from_events(
    events: Sequence[Event],
    *,
    root: str | None = None,
    options: AdkOptions = AdkOptions(),  # noqa: B008  # frozen
    compacted: bool = False,
    base: Entry | None = None,
) -> list[Message]:
    """The conversation of a session. With `root` (the root agent's name) the other agents become subagents.

    `base` is the subagent run of the root itself, for the events of an agent that runs as a tool.
    """
    rebuilt = _Rebuilt(Entries(root, base), Reader(max_result_length=options.max_result_length), options)
    live = DistinctCalls(None if base is None else base.id).all(live_events(events))
    for event in compact_events(live) if compacted else live:
        rebuilt.add(event)
    return rebuilt.messages


def live_events(events: Sequence[Event]) -> list[Event]:
    """The events that count, without rewound ones: a rewind drops all from the first event of its invocation up to itself."""
    events = counted(events)
    firsts: dict[str, int] = {}
    for index, event in enumerate(events):
        firsts.setdefault(event.invocation_id, index)
    kept: list[Event] = []
    index = len(events) - 1
    while index >= 0:
        target = events[index].actions.rewind_before_invocation_id
        if not target:
            kept.append(events[index])
        elif firsts.get(target, index) < index:
            index = firsts[target]
        index -= 1
    return kept[::-1]


def compact_events(events: Sequence[Event]) -> list[Event]:
    """The events as the model reads them: a summary replaces the events it covers, and summaries within its span."""
    spans = [
        (it.actions.compaction.start_timestamp, it.actions.compaction.end_timestamp)
        for it in events
        if it.actions.compaction is not None
    ]
    kept: list[Event] = []
    for event in events:
        summary = event.actions.compaction
        if summary is not None:
            span = (summary.start_timestamp, summary.end_timestamp)
            if not any(it != span and it[0] <= span[0] and span[1] <= it[1] for it in spans):
                fields = {"content": summary.compacted_content, "author": "model", "timestamp": span[1]}
                kept.append(event.model_copy(update=fields))
        elif not any(start <= event.timestamp <= end for start, end in spans):
            kept.append(event)
    return sorted(kept, key=lambda it: it.timestamp)


def user_invocations(events: Sequence[Event]) -> dict[str, str]:
    """The invocation of every user message, by message id."""
    return {
        message.id: event.invocation_id
        for event in events
        if is_from_user(event)
        for message in messages_from_events([event])
        if message.role == "user"
    }


def texts(message: Message) -> list[str]:
    """The texts of a message."""
    content: object = message.content
    if isinstance(content, str):
        return [content]
    return [part.text for part in content if isinstance(part, TextPart)] if isinstance(content, list) else []


def bounded(messages: list[Message], limit: int | None) -> list[Message]:
    """The latest messages, without leading results that lost their call."""
    if limit is None or len(messages) <= limit:
        return messages
    kept = messages[-limit:] if limit else []
    while kept and isinstance(kept[0], ToolMessage):
        kept = kept[1:]
    return kept


class _Rebuilt:
    """Builds the messages event by event, and places results as the client does."""

    def __init__(self, entries: Entries, reader: Reader, options: AdkOptions) -> None:
        self.messages: list[Message] = []
        self._entries = entries
        self._reader = reader
        self._options = options
        self._answered: set[str] = set()

    def add(self, event: Event) -> None:
        if is_from_user(event):
            if not is_steered(event):
                self._entries.clear()
            self._user(event)
            return
        reading = self._reader.read(event)
        if reading.has_content:
            entry = self._entries.entry(event)
            self._model(event, reading, {} if entry is None else {"subagent_run_id": entry.id})
        if done(event):
            self._entries.close(event)

    def _model(self, event: Event, reading: Reading, owner: dict[str, Any]) -> None:
        new: list[Message] = []
        if reading.text or reading.calls:
            new.append(_assistant(event, reading, owner))
        if reading.thought:
            message = ReasoningMessage(id=reading.reasoning_id, content=reading.thought, **owner)
            if reading.thought_signature is not None:
                message.encrypted_value = reading.thought_signature
            new.insert(len(new) if reading.text_first else 0, message)
        self.messages += new
        for answer in reading.answers:
            if answer.call_id not in self._answered:
                self._answered.add(answer.call_id)
                self._place(_result(answer, owner))

    def _user(self, event: Event) -> None:
        mark = _mark(event)
        parts = [part for part in parts_of(event) if part.function_response is None]
        # The mark of a run is on all its events: one that holds results alone is none of its messages.
        alone = not parts and bool(parts_of(event))
        marks: Sequence[Any] = () if alone or event.content is None else mark.get("messages", ())
        for number, message in enumerate(marks, 1):
            # A plugin may have added parts.
            count = message["parts"] if number < len(marks) else len(parts)
            self.messages.append(
                _user_message(message["id"], parts[:count], as_list=message.get("list", False))
            )
            parts = parts[count:]
        if parts:
            self.messages.append(_user_message(event.id, parts))
        for part in parts_of(event):
            if part.function_response is not None and part.function_response.name not in HIDDEN:
                self._user_result(event, part.function_response, mark.get("results", {}))

    def _user_result(self, event: Event, answer: types.FunctionResponse, ids: Mapping[str, str]) -> None:
        call_id = answer.id or ""
        content = cut(result_text(answer.response), self._options.max_result_length)
        own = ids.get(call_id)
        if own is not None:  # the client sent it as a message
            self._place(ToolMessage(id=own, content=content, tool_call_id=call_id))
        else:
            message_id = f"{event.id}:{call_id}" if call_id in self._answered else answer_id(call_id)
            error = bool(answer.response and answer.response.get("error"))
            self._place(_result(Answer(message_id, call_id, answer.name, content, error), {}))
        self._answered.add(call_id)

    def _place(self, result: ToolMessage) -> None:
        """The client's rule: after the message with the call and its earlier results."""
        at = len(self.messages)
        for index, message in enumerate(self.messages):
            calls = message.tool_calls if isinstance(message, AssistantMessage) else None
            if any(call.id == result.tool_call_id for call in calls or ()):
                at = index + 1
                while at < len(self.messages) and isinstance(self.messages[at], ToolMessage):
                    at += 1
                break
        self.messages.insert(at, result)


def answer_id(call_id: str) -> str:
    """The id of the tool message for an answer to an interrupt."""
    return f"{call_id}:answer"


def _assistant(event: Event, reading: Reading, owner: dict[str, Any]) -> AssistantMessage:
    note = message_note(event)
    fields: dict[str, Any] = dict(owner)
    if reading.text:
        fields["content"] = reading.text
        if reading.text_signature is not None:
            fields["encrypted_value"] = reading.text_signature
        if note is not None:
            fields["metadata"] = note
    if reading.calls:
        fields["tool_calls"] = [
            _tool_call(call.id, call.name, call.args, call.signature) for call in reading.calls
        ]
        if not reading.text and note is not None:
            fields["tool_calls"][-1].metadata = note
    return AssistantMessage(id=reading.id, **fields)


def _tool_call(call_id: str, name: str, args: str, signature: str | None) -> ToolCall:
    call = ToolCall(id=call_id, function=FunctionCall(name=name, arguments=args))
    if signature is not None:
        call.encrypted_value = signature
    return call


def _result(answer: Answer, owner: dict[str, Any]) -> ToolMessage:
    fields: dict[str, Any] = dict(owner)
    if answer.metadata is not None:
        fields["metadata"] = answer.metadata
    return ToolMessage(id=answer.id, content=answer.content, tool_call_id=answer.call_id, **fields)


def _user_message(message_id: str, parts: Sequence[types.Part], *, as_list: bool = False) -> UserMessage:
    texts = [part.text for part in parts if part.text is not None]
    if not as_list and len(texts) == len(parts) == 1:
        return UserMessage(id=message_id, content=texts[0])
    return UserMessage(id=message_id, content=[it for it in map(_content_part, parts) if it is not None])


def _content_part(part: types.Part) -> Any:
    if part.text is not None:
        return TextPart(text=part.text)
    if part.inline_data is not None:
        mime = part.inline_data.mime_type or "application/octet-stream"
        value = base64.b64encode(part.inline_data.data or b"").decode()
        return _media_part(mime)(source=DataSource(value=value, mime_type=mime))
    if part.file_data is not None:
        link = part.file_data
        given: dict[str, Any] = {} if link.mime_type is None else {"mime_type": link.mime_type}
        return _media_part(link.mime_type or "")(source=UrlSource(value=link.file_uri or "", **given))
    return None


def _media_part(mime: str) -> Any:
    return MEDIA.get(mime.partition("/")[0], DocumentPart)


def _mark(event: Event) -> Mapping[str, Any]:
    mark = (event.custom_metadata or {}).get(MARK)
    return as_mapping(mark)
