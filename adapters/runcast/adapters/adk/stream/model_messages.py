"""The messages of models: partial events stream them, complete events end them.

A partial event is a display hint: ADK does not store it, and a callback may rewrite or drop its text before the
complete event. Knows what was sent of each message; does not know tools' results, state or interrupts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ag_ui.core import Event as AgEvent

from runcast.adapters.adk.options import AdkOptions
from runcast.adapters.adk.stream.complete_event import (
    Call,
    Reading,
    finish_reason,
    message_note,
    parts_of,
    reasoning_id,
    usage,
)
from runcast.adapters.adk.stream.decisions import decision
from runcast.adapters.adk.stream.distinct_calls import DistinctCalls
from runcast.adapters.adk.stream.parts import ModelCall
from runcast.adapters.adk.stream.sent_content import Stream, Streams
from runcast.adapters.adk.stream.steps import TOOLS, Steps
from runcast.adapters.adk.stream.streamed_args import ArgsWriter
from runcast.adapters.adk.stream.subagents import Entries, Entry, node_name, place
from runcast.adapters.open_blocks import OpenBlocks
from runcast.adapters.usage import counted

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.genai import types


class ModelMessages:
    """Writes the messages of one run through `OpenBlocks`."""

    def __init__(
        self,
        blocks: OpenBlocks,
        steps: Steps,
        entries: Entries,
        options: AdkOptions,
        *,
        descriptions: Mapping[str, str],
        calls: DistinctCalls,
    ) -> None:
        self._blocks = blocks
        self._ids = calls
        self._steps = steps
        self._entries = entries
        self._options = options
        self._descriptions = descriptions
        self._streams = Streams()
        self._calls: dict[str, ModelCall] = {}  # the latest request of each agent
        self._differs = False  # a complete event contradicts what was sent

    @property
    def needs_repair(self) -> bool:
        """Whether the client shows text or calls that no complete event confirms."""
        return self._differs or self._streams.unfinished_calls()

    @needs_repair.setter
    def needs_repair(self, value: bool) -> None:
        self._differs = value

    @property
    def any_streaming(self) -> bool:
        """Whether a model call streams anywhere."""
        return self._streams.any_current

    # ----------------------------------------------------------------- partial

    def partial(self, event: Event) -> list[AgEvent]:
        """Send the text, thoughts and, on request, arguments of a partial event."""
        parts = parts_of(event)
        if not parts or event.author in self._options.hold_text_of:
            return []
        events: list[AgEvent] = []
        stream = self._streams.get(event.id)
        for part in parts:
            if not part.text and not (self._options.stream_args and part.function_call is not None):
                continue
            if stream is None:
                stream, events = self.begin(event)
            if not part.text:
                assert part.function_call is not None
                events += self._partial_call(stream, event, part.function_call)
            elif part.thought:
                events += self._partial_thought(stream, part.text)
            else:
                stream.text.add(part.text)
                events += self._text(stream, part.text)
        tokens = usage(event)
        return events if tokens is None else counted(events, tokens.get("completion"))

    def _text(self, stream: Stream, delta: str) -> list[AgEvent]:
        grown = self._blocks.growth(stream.id, delta)
        return self._blocks.text(stream.id, delta, owner=stream.owner) if grown is None else [grown]

    def _partial_thought(self, stream: Stream, delta: str) -> list[AgEvent]:
        """A thought begins with its first visible character; the blanks before it wait."""
        delta = stream.blank + delta
        if not stream.thought.started and delta.isspace():
            stream.blank = delta
            return []
        stream.blank = ""
        stream.thought.add(delta)
        return self._thought(stream, delta)

    def _thought(self, stream: Stream, delta: str) -> list[AgEvent]:
        return self._blocks.reasoning(
            reasoning_id(stream.id), delta, message_id=stream.id, owner=stream.owner
        )

    def _partial_call(self, stream: Stream, event: Event, call: types.FunctionCall) -> list[AgEvent]:
        """Streamed arguments. A call that comes in one piece waits for the complete event."""
        if not call.id or not (call.partial_args or call.will_continue):
            return []
        events: list[AgEvent] = []
        call_id = self._ids.while_streaming(event, call.id)
        writer = stream.args.get(call_id)
        if writer is None:
            if not call.name:
                return []
            writer = stream.args[call_id] = ArgsWriter()
            events += self._blocks.call(call_id, call.name, message_id=stream.id, owner=stream.owner)
        for piece in call.partial_args or []:
            events += self._blocks.args(call_id, writer.feed(piece))
        return events

    # ------------------------------------------------------------ begin and end

    def model_called(self, call: ModelCall) -> None:
        """Note a request: the next message of its agent begins with these facts."""
        self._calls[call.agent] = call

    def has_begun(self, event: Event) -> bool:
        """Whether the event's message streams already."""
        return self._streams.get(event.id) is not None

    def begin(self, event: Event, *, instead_of: Stream | None = None) -> tuple[Stream, list[AgEvent]]:
        """Begin a model call: its agent's turn, its step, and the end of an unfinished call before it.

        A call that begins `instead_of` another one continues that one's step.
        """
        entry, events = self.enter(event)
        stream = Stream(event.id, entry, node_name(event))
        before = self._streams.begin(place(event), stream)
        if before is not None:
            events += self._blocks.close_message(before.id)
            if before is instead_of and before.entry is entry:
                return stream, events
            events += self._steps.finish(before.step, before.owner)
        call = self._calls.pop(event.author, None)
        if call is None:
            return stream, events + self._steps.start(stream.step, stream.owner)
        return stream, events + self._steps.start(
            stream.step,
            stream.owner,
            message_count=call.message_count,
            available_tools=list(call.tools) or None,
        )

    def enter(self, event: Event) -> tuple[Entry | None, list[AgEvent]]:
        """The turn of the event's agent, begun when it is new; None is the root agent."""
        entry = self._entries.entry(event)
        if entry is None:
            return None, []
        about = self._descriptions.get(entry.name) or None
        return entry, self._blocks.subagent_started(
            entry.id, entry.name, description=about, parent=entry.parent
        )

    def end(self, event: Event) -> Stream | None:
        """The model call that this event completes, if it was streamed."""
        return self._streams.end(place(event), event.id)

    def current(self, event: Event) -> Stream | None:
        """The model call that streams at the event's place."""
        return self._streams.current(place(event))

    def break_off(self, event: Event) -> list[AgEvent]:
        """End the call that streams there: ADK reports its exception by an event of another id."""
        stream = self._streams.end_current(place(event))
        events = self._blocks.close_message(stream.id)
        return events + self._steps.finish(stream.step, stream.owner, errors=1)

    # ---------------------------------------------------------------- complete

    def complete(self, stream: Stream, event: Event, reading: Reading) -> list[AgEvent]:
        """Send the rest of a message, in the order the client keeps, and end it."""
        events: list[AgEvent] = []
        thought, text = stream.thought.rest(reading.thought), stream.text.rest(reading.text)
        self._differs = self._differs or thought is None or text is None
        order = [(self._text, text), (self._thought, thought)]
        for send, rest in order if reading.text_first else reversed(order):
            events += send(stream, rest) if rest else []
        metadata = message_note(event)
        for call in reading.calls:
            events += self._call(stream, call)
        events += self._blocks.close_reasoning_of(stream.id)
        events += self._blocks.close_text(stream.id, metadata=metadata if reading.text else None)
        for index, call in enumerate(reading.calls, 1):
            last = index == len(reading.calls) and not reading.text
            events += self._blocks.close_call(call.id, metadata=metadata if last else None)
        events += self._blocks.close_message(stream.id)  # streamed calls that the complete event lacks
        events += self._signatures(stream, reading)
        self._differs = self._differs or bool(stream.args)
        return events

    def _call(self, stream: Stream, call: Call) -> list[AgEvent]:
        writer = stream.args.pop(call.id, None)
        rest = call.args
        if writer is not None:
            tail = writer.finish(call.args)
            self._differs = self._differs or tail is None
            rest = tail or ""
        events = self._blocks.call(call.id, call.name, message_id=stream.id, owner=stream.owner)
        return events + self._blocks.args(call.id, rest)

    def _signatures(self, stream: Stream, reading: Reading) -> list[AgEvent]:
        """The provider's signatures, each once and after the thing it signs."""
        owner = stream.owner
        events: list[AgEvent] = []
        if reading.thought and reading.thought_signature is not None:
            events += self._blocks.encrypted(reading.reasoning_id, reading.thought_signature, owner=owner)
        if reading.text and reading.text_signature is not None:
            events += self._blocks.encrypted(reading.id, reading.text_signature, owner=owner)
        for call in reading.calls:
            if call.signature is not None:
                events += self._blocks.encrypted(call.id, call.signature, subtype="tool-call", owner=owner)
        return events

    def end_step(self, stream: Stream, event: Event, reading: Reading) -> list[AgEvent]:
        """End the model's step; the step of its tools begins when they run now."""
        calls = bool(reading.calls)
        reason = finish_reason(event)
        events = self._steps.finish(
            stream.step,
            stream.owner,
            has_tool_calls=calls,
            errors=int(bool(event.error_code)),
            finish_reason=reason,
            usage=usage(event),
            continuation=decision(event, reading),
        )
        runs = calls and not reading.answers
        return events + self._steps.start(TOOLS, stream.owner) if runs else events
