"""The conversation of a session: what a client that watched every run of it holds.

The same ids, texts, calls, results and order as the streams gave, because both read through `reading`. Rewound turns
are gone. A compaction changes what the model sees, not what people saw: it is applied on request (`compacted`).
Where agents speak in parallel, the session keeps the order in which they finished, the client the one in which they
began.

It does not know the way back, from messages to a session: that is `messages`.
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

from runcast.adapters.adk.options import AdkOptions
from runcast.adapters.adk.reading import (
    HIDDEN,
    Answer,
    Reader,
    Reading,
    message_note,
    parts_of,
    result_text,
    said_by_user,
)
from runcast.adapters.adk.subagents import Entries, done
from runcast.adapters.adk.values import cut, mapping

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.genai import types

MARK = "runcast"  # the key in an event's custom metadata under which the client's message ids are kept
MEDIA = {"image": ImagePart, "audio": AudioPart, "video": VideoPart}


def messages_from_events(
    events: Sequence[Event],
    *,
    root: str | None = None,
    options: AdkOptions = AdkOptions(),  # noqa: B008  # frozen
    compacted: bool = False,
) -> list[Message]:
    """The conversation of a session. `root` names the root agent; others are then attributed as subagents."""
    rebuilt = _Rebuilt(Entries(root), Reader(max_result_length=options.max_result_length), options)
    live = live_events(events)
    for event in compact_events(live) if compacted else live:
        rebuilt.add(event)
    return rebuilt.messages


def live_events(events: Sequence[Event]) -> list[Event]:
    """Without what was rewound. A rewind drops all from the first event of the named invocation up to itself."""
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
    """What the model sees: a summary stands for the events it covers, one inside another's span is dropped."""
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
                said = {"content": summary.compacted_content, "author": "model", "timestamp": span[1]}
                kept.append(event.model_copy(update=said))
        elif not any(start <= event.timestamp <= end for start, end in spans):
            kept.append(event)
    return sorted(kept, key=lambda it: it.timestamp)


def bounded(messages: list[Message], limit: int | None) -> list[Message]:
    """The latest messages, not beginning with results whose call was cut off."""
    if limit is None or len(messages) <= limit:
        return messages
    kept = messages[-limit:] if limit else []
    while kept and isinstance(kept[0], ToolMessage):
        kept = kept[1:]
    return kept


class _Rebuilt:
    """Builds the list of messages event by event, placing results as the client does."""

    def __init__(self, entries: Entries, reader: Reader, options: AdkOptions) -> None:
        self.messages: list[Message] = []
        self._entries = entries
        self._reader = reader
        self._options = options
        self._answered: set[str] = set()

    def add(self, event: Event) -> None:
        if said_by_user(event):
            self._entries.clear()
            self._user(event)
            return
        reading = self._reader.read(event)
        if reading.speaks:
            entry = self._entries.entry(event)
            self._model(event, reading, {} if entry is None else {"subagent_run_id": entry.id})
        if done(event):
            self._entries.close(event)

    def _model(self, event: Event, reading: Reading, owner: dict[str, Any]) -> None:
        said: list[Message] = []
        if reading.text or reading.calls:
            said.append(_spoken(event, reading, owner))
        if reading.thought:
            message = ReasoningMessage(id=reading.reasoning_id, content=reading.thought, **owner)
            if reading.thought_signature is not None:
                message.encrypted_value = reading.thought_signature
            said.insert(len(said) if reading.text_first else 0, message)
        self.messages += said
        for answer in reading.answers:
            if answer.call_id not in self._answered:
                self._answered.add(answer.call_id)
                self._place(_result(answer, owner))

    def _user(self, event: Event) -> None:
        mark = _mark(event)
        parts = [part for part in parts_of(event) if part.function_response is None]
        for message in mark.get("messages", ()) if event.content is not None else ():
            count = message["parts"]
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
        """After the message that made the call and the results it already has: the client's rule."""
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
    """The id of the tool message that an answer to an interrupt becomes."""
    return f"{call_id}:answer"


def _spoken(event: Event, reading: Reading, owner: dict[str, Any]) -> AssistantMessage:
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
    return mapping(mark)
