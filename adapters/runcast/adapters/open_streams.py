"""The open text messages, reasoning and tool calls of a run: the code that starts and ends them.

A translator reports what came (`text`, `args`, `result`, ...). This state machine knows what has to be opened first and
closed before, and returns the events. Its rules:

1. Several messages may be open at once. Each id has at most one open text and any number of open calls and reasoning
   blocks. Text or a call of a message closes that message's reasoning: reasoning precedes the answer.
2. An event carries the owner (`subagentRunId`) that its block was opened with.
3. Closing is always legal and idempotent: closing what is not open returns no event. What cannot be an event opens nothing.
4. A closed text may be opened again under its id; the client appends to it.

Keeps only what is open, the ids of calls without a result, and the latest events that changed any of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Literal

from ag_ui.core import (
    Event,
    ReasoningEncryptedValueEvent,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from pydantic import BaseModel

TextMessageRole = Literal["developer", "system", "assistant", "user"]
Clock = Callable[[], int]  # milliseconds since the Unix epoch
Meta = dict[str, Any]
MAX_LATEST = 1_000


class OpenStreams:
    """One run's open texts, reasoning and calls. Every method returns the events to send."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock  # absent: events carry no timestamp
        self._texts: dict[str, Meta] = {}  # message id -> owner tag of the open text
        self._reasoning: dict[str, tuple[str, Meta]] = {}  # reasoning id -> (message it precedes, owner tag)
        self._calls: dict[str, tuple[str | None, Meta]] = {}  # call id -> (parent message, owner tag)
        self._unanswered: dict[str, None] = {}  # calls without a result, in order of their start
        # events that changed what is open; a translator clears it before each native part
        self.latest: deque[Event] = deque(maxlen=MAX_LATEST)

    def save(self) -> Mapping[str, Any]:
        """What is open now, for `restore`."""
        return {name: held.copy() for name, held in vars(self).items() if isinstance(held, dict | set)}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Undo what was opened and closed since `save`: its events were lost."""
        vars(self).update(saved)

    def _changed(self, *events: Event) -> list[Event]:
        self.latest += events
        return list(events)

    # ------------------------------------------------------------------ text

    def text(
        self,
        message_id: str,
        delta: str,
        *,
        role: TextMessageRole | None = None,
        name: str | None = None,
        owner: str | None = None,
        metadata: Meta | None = None,
    ) -> list[Event]:
        """Text of a message. Opens the message if it is not open; `delta` may be empty, which only opens it."""
        tag = self._texts.get(message_id)
        if tag is not None:
            if not delta:
                return []
            return [TextMessageContentEvent(message_id=message_id, delta=delta, **tag, **self._now())]
        events, tag = self.close_reasoning_of(message_id), owned(owner)
        start = given(role=role, name=name, metadata=metadata)
        opened: list[Event] = [TextMessageStartEvent(message_id=message_id, **start, **tag, **self._now())]
        if delta:
            opened.append(TextMessageContentEvent(message_id=message_id, delta=delta, **tag, **self._now()))
        self._texts[message_id] = tag
        return events + self._changed(*opened)

    def growth(self, message_id: str, delta: str) -> TextMessageContentEvent | None:
        """The event of text that grows an open message, as `text` makes it; None if the message is not open.

        The path of nearly every token: the values are known to be valid, and the constructor takes twice as long.
        """
        tag = self._texts.get(message_id)
        if tag is None:
            return None
        event, fields, given = _blank(TextMessageContentEvent), _DEFAULTS.copy(), {"message_id", "delta"}
        fields["message_id"], fields["delta"] = message_id, delta
        if self._clock is not None:
            fields["timestamp"] = self._clock()
            given.add("timestamp")
        if tag:
            fields.update(tag)
            given.update(tag)
        _put_fields(event, fields)
        _put_set(event, given)
        _put_extra(event, {})
        _put_private(event, None)
        return event

    def close_text(self, message_id: str, *, metadata: Meta | None = None) -> list[Event]:
        """The text is complete."""
        tag = self._texts.pop(message_id, None)
        if tag is None:
            return []
        end = TextMessageEndEvent(message_id=message_id, **given(metadata=metadata), **tag, **self._now())
        return self._changed(end)

    # ------------------------------------------------------------- reasoning

    def reasoning(
        self,
        reasoning_id: str,
        delta: str,
        *,
        message_id: str,
        owner: str | None = None,
        metadata: Meta | None = None,
    ) -> list[Event]:
        """Reasoning that precedes `message_id`. Span and message share the reasoning id."""
        held = self._reasoning.get(reasoning_id)
        events: list[Event] = []
        if held is None:
            tag = owned(owner)
            start = given(metadata=metadata)
            events = self._changed(
                ReasoningStartEvent(message_id=reasoning_id, **tag, **self._now()),
                ReasoningMessageStartEvent(message_id=reasoning_id, **start, **tag, **self._now()),
            )
            self._reasoning[reasoning_id] = (message_id, tag)
        else:
            tag = held[1]
        if delta:
            content = ReasoningMessageContentEvent(message_id=reasoning_id, delta=delta, **tag, **self._now())
            events += self._changed(content)
        return events

    def encrypted(
        self,
        entity_id: str,
        value: str,
        *,
        subtype: Literal["message", "tool-call"] = "message",
        owner: str | None = None,
    ) -> list[Event]:
        """A provider's signature on a message or call that was opened before: the client needs it to exist."""
        return [
            ReasoningEncryptedValueEvent(
                subtype=subtype, entity_id=entity_id, encrypted_value=value, **owned(owner), **self._now()
            )
        ]

    def close_reasoning(self, reasoning_id: str) -> list[Event]:
        """The reasoning is complete."""
        held = self._reasoning.pop(reasoning_id, None)
        if held is None:
            return []
        tag = held[1]
        return self._changed(
            ReasoningMessageEndEvent(message_id=reasoning_id, **tag, **self._now()),
            ReasoningEndEvent(message_id=reasoning_id, **tag, **self._now()),
        )

    def close_reasoning_of(self, message_id: str) -> list[Event]:
        """Close all reasoning that precedes this message."""
        if not self._reasoning:
            return []
        ids = [rid for rid, (parent, _) in self._reasoning.items() if parent == message_id]
        return [event for rid in ids for event in self.close_reasoning(rid)]

    # ------------------------------------------------------------ tool calls

    def call(
        self,
        call_id: str,
        name: str,
        *,
        message_id: str | None = None,
        owner: str | None = None,
        metadata: Meta | None = None,
    ) -> list[Event]:
        """A tool call starts, under `message_id` if it belongs to a message. An open one is left as it is."""
        if call_id in self._calls:
            return []
        events = [] if message_id is None else self.close_reasoning_of(message_id)
        tag = owned(owner)
        start = given(parent_message_id=message_id, metadata=metadata)
        opened = ToolCallStartEvent(tool_call_id=call_id, tool_call_name=name, **start, **tag, **self._now())
        self._calls[call_id] = (message_id, tag)
        self._unanswered[call_id] = None
        return events + self._changed(opened)

    def args(self, call_id: str, delta: str) -> list[Event]:
        """A piece of an open call's argument text."""
        held = self._calls.get(call_id)
        if held is None or not delta:
            return []
        return self._changed(ToolCallArgsEvent(tool_call_id=call_id, delta=delta, **held[1], **self._now()))

    def close_call(self, call_id: str, *, metadata: Meta | None = None) -> list[Event]:
        """The call's arguments are complete."""
        held = self._calls.pop(call_id, None)
        if held is None:
            return []
        end = ToolCallEndEvent(tool_call_id=call_id, **given(metadata=metadata), **held[1], **self._now())
        return self._changed(end)

    def result(
        self,
        message_id: str,
        call_id: str,
        content: str | list[Any],
        *,
        owner: str | None = None,
        metadata: Meta | None = None,
    ) -> list[Event]:
        """The result of a tool; an open call is closed first."""
        events = self.close_call(call_id)
        self._unanswered.pop(call_id, None)
        result = ToolCallResultEvent(
            message_id=message_id,
            tool_call_id=call_id,
            content=content,
            role="tool",
            **given(metadata=metadata),
            **owned(owner),
            **self._now(),
        )
        return events + self._changed(result)

    @property
    def unanswered(self) -> list[str]:
        """Calls of this run without a result, in order: a success outcome lists them as pending."""
        return list(self._unanswered)

    def forget_call(self, call_id: str) -> None:
        """This call needs no answer from the client (answered elsewhere, or hidden)."""
        self._unanswered.pop(call_id, None)

    def close_message(self, message_id: str, *, metadata: Meta | None = None) -> list[Event]:
        """The model completed this message: its reasoning, text and calls end, in that order.

        `metadata` goes on the text's end, or on the last call's if the message has only calls.
        """
        events = self.close_reasoning_of(message_id)
        calls = [call_id for call_id, (parent, _) in self._calls.items() if parent == message_id]
        last = None if message_id in self._texts or not calls else calls[-1]
        events += self.close_text(message_id, metadata=metadata)
        for call_id in calls:
            events += self.close_call(call_id, metadata=metadata if call_id == last else None)
        return events

    def is_open(self, message_id: str) -> bool:
        """Whether this message's text is open."""
        return message_id in self._texts

    def is_open_reasoning(self, reasoning_id: str) -> bool:
        """Whether this reasoning is open."""
        return reasoning_id in self._reasoning

    def is_open_call(self, call_id: str) -> bool:
        """Whether this call still takes arguments."""
        return call_id in self._calls

    def close_streams(self, *, owner: str | None = None, metadata: Meta | None = None) -> list[Event]:
        """End reasoning, text and calls: of one owner, or of all."""

        def of(tag: Meta) -> bool:
            return owner is None or tag.get("subagent_run_id") == owner

        events: list[Event] = []
        for rid in [rid for rid, (_, tag) in self._reasoning.items() if of(tag)]:
            events += self.close_reasoning(rid)
        for mid in [mid for mid, tag in self._texts.items() if of(tag)]:
            events += self.close_text(mid, metadata=metadata)
        for cid in [cid for cid, (_, tag) in self._calls.items() if of(tag)]:
            events += self.close_call(cid, metadata=metadata)
        return events

    def _now(self) -> Meta:
        return {} if self._clock is None else {"timestamp": self._clock()}


_blank: Callable[[type[TextMessageContentEvent]], TextMessageContentEvent] = TextMessageContentEvent.__new__
_DEFAULTS = dict(vars(TextMessageContentEvent(message_id="", delta="")))
_put_fields, _put_set, _put_extra, _put_private = (
    vars(BaseModel)[slot].__set__
    for slot in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def owned(owner: str | None) -> Meta:
    """The field that names an event's subagent, if it has one."""
    return {} if owner is None else {"subagent_run_id": owner}


def given(**fields: Any) -> Meta:
    """Only the fields that are set: an absent optional is left out, never sent as null."""
    return {name: value for name, value in fields.items() if value is not None}
