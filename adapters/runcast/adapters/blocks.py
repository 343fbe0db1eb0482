"""What is open in a run, and the only code that opens and closes it.

The protocol streams five kinds of thing between a start and an end: text messages, reasoning, tool calls, steps
and subagents. A translator says what came (`text`, `args`, `step_finished`, …); this machine knows what must be
opened first and closed before, and answers with events. Its rules:

1. Several messages may be open at once; each id has at most one open text, one open reasoning and any number of
   open calls. Text or a call of a message closes that message's reasoning: thought comes before speech.
2. An event carries the owner (`subagentRunId`) its block was opened with, whoever adds to it later.
3. Closing is always legal and idempotent: what is not open answers with nothing.
4. A closed text may be opened again under its id (the client appends); a closed subagent may not.
5. `close_all` leaves nothing open that RUN_FINISHED would be refused for.

It does not know the frameworks, and keeps only what is open, plus the ids of calls that have no result yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from ag_ui.core import (
    Event,
    ReasoningEncryptedValueEvent,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentFinishedSuspendedOutcome,
    SubagentStartedEvent,
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


class OpenBlocks:
    """One run's open texts, reasoning, calls, steps and subagents. Every method answers with the events to send."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock  # absent: events carry no timestamp
        self._texts: dict[str, Meta] = {}  # message id -> owner tag of the open text
        self._reasoning: dict[str, tuple[str, Meta]] = {}  # reasoning id -> (message it precedes, owner tag)
        self._calls: dict[str, tuple[str | None, Meta]] = {}  # call id -> (parent message, owner tag)
        self._steps: dict[tuple[str | None, str], int] = {}  # (owner, name) -> how many times started
        self._subagents: dict[str, str | None] = {}  # subagent run id -> its parent's, in order of opening
        self._ended_subagents: set[str] = set()
        self._unanswered: dict[str, None] = {}  # calls without a result, in order of their start

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
        """Text of a message. The message is opened when it is not; `delta` may be empty, which only opens."""
        tag = self._texts.get(message_id)
        if tag is not None:
            if not delta:
                return []
            if tag or self._clock is None or type(delta) is not str:
                return [TextMessageContentEvent(message_id=message_id, delta=delta, **tag, **self._now())]
            return [_said(message_id, delta, self._clock())]
        events = self.close_reasoning_of(message_id)
        self._texts[message_id] = tag = _owned(owner)
        start = _given(role=role, name=name, metadata=metadata)
        events.append(TextMessageStartEvent(message_id=message_id, **start, **tag, **self._now()))
        if delta:
            events.append(TextMessageContentEvent(message_id=message_id, delta=delta, **tag, **self._now()))
        return events

    def close_text(self, message_id: str, *, metadata: Meta | None = None) -> list[Event]:
        """The message says no more."""
        tag = self._texts.pop(message_id, None)
        if tag is None:
            return []
        return [TextMessageEndEvent(message_id=message_id, **_given(metadata=metadata), **tag, **self._now())]

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
        """A thought that precedes `message_id`. Span and message share the reasoning id."""
        held = self._reasoning.get(reasoning_id)
        events: list[Event] = []
        if held is None:
            tag = _owned(owner)
            self._reasoning[reasoning_id] = (message_id, tag)
            events.append(ReasoningStartEvent(message_id=reasoning_id, **tag, **self._now()))
            start = _given(metadata=metadata)
            events.append(ReasoningMessageStartEvent(message_id=reasoning_id, **start, **tag, **self._now()))
        else:
            tag = held[1]
        if delta:
            events.append(
                ReasoningMessageContentEvent(message_id=reasoning_id, delta=delta, **tag, **self._now())
            )
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
                subtype=subtype, entity_id=entity_id, encrypted_value=value, **_owned(owner), **self._now()
            )
        ]

    def close_reasoning(self, reasoning_id: str) -> list[Event]:
        """The thought is complete."""
        held = self._reasoning.pop(reasoning_id, None)
        if held is None:
            return []
        tag = held[1]
        return [
            ReasoningMessageEndEvent(message_id=reasoning_id, **tag, **self._now()),
            ReasoningEndEvent(message_id=reasoning_id, **tag, **self._now()),
        ]

    def close_reasoning_of(self, message_id: str) -> list[Event]:
        """Close every thought that precedes this message."""
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
        """A tool call begins, under `message_id` when it belongs to a message. An open one is left as it is."""
        if call_id in self._calls:
            return []
        events = [] if message_id is None else self.close_reasoning_of(message_id)
        tag = _owned(owner)
        self._calls[call_id] = (message_id, tag)
        self._unanswered[call_id] = None
        start = _given(parent_message_id=message_id, metadata=metadata)
        events.append(
            ToolCallStartEvent(tool_call_id=call_id, tool_call_name=name, **start, **tag, **self._now())
        )
        return events

    def args(self, call_id: str, delta: str) -> list[Event]:
        """A piece of an open call's argument text."""
        held = self._calls.get(call_id)
        if held is None or not delta:
            return []
        return [ToolCallArgsEvent(tool_call_id=call_id, delta=delta, **held[1], **self._now())]

    def close_call(self, call_id: str, *, metadata: Meta | None = None) -> list[Event]:
        """The call's arguments are complete."""
        held = self._calls.pop(call_id, None)
        if held is None:
            return []
        return [ToolCallEndEvent(tool_call_id=call_id, **_given(metadata=metadata), **held[1], **self._now())]

    def result(
        self,
        message_id: str,
        call_id: str,
        content: str | list[Any],
        *,
        owner: str | None = None,
        metadata: Meta | None = None,
    ) -> list[Event]:
        """What the tool gave back; an open call is closed first."""
        events = self.close_call(call_id)
        self._unanswered.pop(call_id, None)
        events.append(
            ToolCallResultEvent(
                message_id=message_id,
                tool_call_id=call_id,
                content=content,
                role="tool",
                **_given(metadata=metadata),
                **_owned(owner),
                **self._now(),
            )
        )
        return events

    @property
    def unanswered(self) -> list[str]:
        """Calls of this run that have no result, in order: a success outcome names them as pending."""
        return list(self._unanswered)

    def forget_call(self, call_id: str) -> None:
        """This call needs no answer from the client (answered elsewhere, or hidden)."""
        self._unanswered.pop(call_id, None)

    def close_message(self, message_id: str, *, metadata: Meta | None = None) -> list[Event]:
        """The model is done with this message: its reasoning, text and calls end, in that order.

        `metadata` goes on the text's end; of a message that has calls alone, on its last call's.
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
        """Whether this thought still goes on."""
        return reasoning_id in self._reasoning

    def is_open_call(self, call_id: str) -> bool:
        """Whether this call still takes arguments."""
        return call_id in self._calls

    # ----------------------------------------------------------------- steps

    def step_started(
        self, name: str, *, owner: str | None = None, metadata: Meta | None = None
    ) -> list[Event]:
        """A step begins. Twins (a fan-out starts one node many times) share one step: only the first is told."""
        key = (owner, name)
        self._steps[key] = count = self._steps.get(key, 0) + 1
        if count > 1:
            return []
        return [StepStartedEvent(step_name=name, **_given(metadata=metadata), **_owned(owner), **self._now())]

    def step_finished(
        self, name: str, *, owner: str | None = None, metadata: Meta | None = None
    ) -> list[Event]:
        """A step ends; the last of its twins is told."""
        key = (owner, name)
        count = self._steps.get(key, 0)
        if count > 1:
            self._steps[key] = count - 1
            return []
        if count == 0:
            return []
        del self._steps[key]
        return [
            StepFinishedEvent(step_name=name, **_given(metadata=metadata), **_owned(owner), **self._now())
        ]

    # ------------------------------------------------------------- subagents

    def subagent_started(
        self,
        subagent_run_id: str,
        name: str,
        *,
        description: str | None = None,
        parent: str | None = None,
        tool_call_id: str | None = None,
        message_id: str | None = None,
        metadata: Meta | None = None,
    ) -> list[Event]:
        """A subagent begins; its id must be new in this run, for the client refuses a second life."""
        if subagent_run_id in self._subagents or subagent_run_id in self._ended_subagents:
            return []
        self._subagents[subagent_run_id] = parent
        given = _given(
            description=description,
            parent_subagent_run_id=parent,
            parent_tool_call_id=tool_call_id,
            parent_message_id=message_id,
            metadata=metadata,
        )
        return [SubagentStartedEvent(subagent_run_id=subagent_run_id, name=name, **given, **self._now())]

    def subagent_finished(
        self,
        subagent_run_id: str,
        *,
        result: Any = None,
        suspended_by: list[str] | None = None,
    ) -> list[Event]:
        """A subagent ends, or waits for answers (`suspended_by`: interrupt ids). What it left open is closed."""
        events = self._end_subagent(subagent_run_id)
        if events is None:
            return []
        given = _given(result=result)
        if suspended_by is not None:
            given["outcome"] = SubagentFinishedSuspendedOutcome(**_given(interrupt_ids=suspended_by or None))
        events.append(SubagentFinishedEvent(subagent_run_id=subagent_run_id, **given, **self._now()))
        return events

    def subagent_failed(self, subagent_run_id: str, message: str, *, code: str | None = None) -> list[Event]:
        """A subagent broke. What it left open is closed."""
        events = self._end_subagent(subagent_run_id)
        if events is None:
            return []
        events.append(
            SubagentErrorEvent(
                subagent_run_id=subagent_run_id, message=message, **_given(code=code), **self._now()
            )
        )
        return events

    def is_open_subagent(self, subagent_run_id: str) -> bool:
        """Whether this subagent is at work."""
        return subagent_run_id in self._subagents

    def _end_subagent(self, subagent_run_id: str) -> list[Event] | None:
        if subagent_run_id not in self._subagents:
            return None
        children = [child for child, parent in self._subagents.items() if parent == subagent_run_id]
        events = [event for child in children for event in self.subagent_finished(child)]
        events += self._close_owned(subagent_run_id)
        del self._subagents[subagent_run_id]
        self._ended_subagents.add(subagent_run_id)
        return events

    # ------------------------------------------------------------------- all

    def close_all(
        self, *, error: str | None = None, code: str | None = None, metadata: Meta | None = None
    ) -> list[Event]:
        """Close everything, innermost first; subagents end in error when `error` says why the run broke.

        `metadata` goes on the ends of texts and calls that did not come to an end by themselves.
        """
        events = self._close_streams(None, metadata)
        for subagent in reversed(list(self._subagents)):
            if subagent not in self._subagents:
                continue
            events += (
                self.subagent_finished(subagent)
                if error is None
                else self.subagent_failed(subagent, error, code=code)
            )
        for owner, name in list(self._steps):
            events += self._force_step(owner, name)
        return events

    def _close_owned(self, owner: str) -> list[Event]:
        events = self._close_streams(owner)
        for key in [key for key in self._steps if key[0] == owner]:
            events += self._force_step(*key)
        return events

    def _close_streams(self, owner: str | None, metadata: Meta | None = None) -> list[Event]:
        """End reasoning, text and calls: of one owner, or of everybody."""

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

    def _force_step(self, owner: str | None, name: str) -> list[Event]:
        self._steps[owner, name] = 1
        return self.step_finished(name, owner=owner)

    def _now(self) -> Meta:
        return {} if self._clock is None else {"timestamp": self._clock()}


_made: Callable[[type[TextMessageContentEvent]], TextMessageContentEvent] = TextMessageContentEvent.__new__
_BARE = dict(vars(TextMessageContentEvent(message_id="", delta="")))
_put_fields, _put_set, _put_extra, _put_private = (
    vars(BaseModel)[slot].__set__
    for slot in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def _said(message_id: str, delta: str, timestamp: int) -> TextMessageContentEvent:
    """The path of nearly every token: the model as its constructor makes it, of what is known to be right, in less
    than half the time."""
    event = _made(TextMessageContentEvent)
    fields = _BARE.copy()
    fields["timestamp"] = timestamp
    fields["message_id"] = message_id
    fields["delta"] = delta
    _put_fields(event, fields)
    _put_set(event, {"timestamp", "message_id", "delta"})
    _put_extra(event, {})
    _put_private(event, None)
    return event


def _owned(owner: str | None) -> Meta:
    return {} if owner is None else {"subagent_run_id": owner}


def _given(**fields: Any) -> Meta:
    """Only what is there: an absent optional is left out, never sent as null."""
    return {name: value for name, value in fields.items() if value is not None}
