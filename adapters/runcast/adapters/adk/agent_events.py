"""The events of one runner as AG-UI events: of the run itself, or of an agent that runs as a tool of it.

A partial event streams a message. A complete event passes through stages; a stage that raises costs its part, and
the next stages still run. Knows ADK's events and what this runner has open; does not know how a run begins and ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from ag_ui.core import (
    ActivitySnapshotEvent,
    CustomEvent,
    Interrupt,
    Message,
    MessagesSnapshotEvent,
    StateDeltaEvent,
)
from ag_ui.core import Event as AgEvent

from runcast.adapters.adk.intake.session_conversation import answer_id, live_events
from runcast.adapters.adk.interrupts import answered, asked
from runcast.adapters.adk.options import AdkOptions
from runcast.adapters.adk.plain_values import cut, plain, pointer, visible
from runcast.adapters.adk.stream.complete_event import (
    ABORTED,
    Reader,
    Reading,
    answers_in,
    is_from_user,
    parts_of,
    tally,
)
from runcast.adapters.adk.stream.decisions import decides
from runcast.adapters.adk.stream.distinct_calls import DistinctCalls
from runcast.adapters.adk.stream.extras import extras
from runcast.adapters.adk.stream.model_messages import ModelMessages
from runcast.adapters.adk.stream.sent_content import Stream
from runcast.adapters.adk.stream.steps import TOOLS, Steps
from runcast.adapters.adk.stream.subagents import Entries, Entry, done, node_name
from runcast.adapters.errors import Failure, scrub
from runcast.adapters.open_blocks import Clock, OpenBlocks
from runcast.adapters.untranslated import Guard
from runcast.adapters.usage import UsageTally
from runcast.slim.folding.run_metadata import run_metadata
from runcast.slim.values.type_guards import as_mapping

if TYPE_CHECKING:
    from google.adk.events.event import Event

# Codes of an answer that stands: it stopped early, or it ended with calls, in the words of models that are not Gemini's.
STANDING = frozenset({"MAX_TOKENS", "FUNCTION_CALL", "TOOL_CALLS", "TOOL_USE"})


@dataclass(frozen=True, slots=True)
class RunContext:
    """What all runners of one run share."""

    options: AdkOptions
    blocks: OpenBlocks
    steps: Steps
    guard: Guard
    usage: UsageTally
    clock: Clock | None
    agents: Mapping[str, str]  # descriptions of the agents below the root, by name
    frontend: Collection[str]  # tools whose calls open no interrupt
    observed: bool  # other plugins may still change the events
    restated: Callable[[Sequence[Event]], list[Message]]  # a session, as the client shows it


class AgentEvents:
    """Translates the events of one runner. `base` is the subagent run of a runner inside a tool call."""

    def __init__(
        self,
        context: RunContext,
        root: str | None,
        *,
        base: Entry | None = None,
        session: Callable[[], Sequence[Event]] | None = None,
        held: Sequence[Event] = (),
    ) -> None:
        self._context = context
        self._options = context.options
        self._blocks = context.blocks
        self._steps = context.steps
        self._guard = context.guard
        self._base = base
        self._session = session  # without it a replaced message stays until the end of the run
        self._entries = Entries(root, base)
        self.calls = DistinctCalls(None if base is None else base.id)
        self.messages = ModelMessages(
            self._blocks,
            self._steps,
            self._entries,
            context.options,
            descriptions=context.agents,
            calls=self.calls,
        )
        self._reader = Reader(max_result_length=context.options.max_result_length)
        ids = {event.id for event in held}
        for event in self.calls.all(held if session is None else live_events(session())):
            if event.id in ids:  # results may belong to calls of these
                self._reader.read(event)
        self.shown: dict[str, int] = {}  # event id -> hash of the text that the client shows
        self.written: dict[str, Mapping[str, Any]] = {}  # event id -> the state that the client was sent
        self.answered: set[str] = set()
        self.pending: dict[str, Interrupt] = {}
        self.owners: dict[str, str] = {}  # interrupt id -> the subagent that asked
        self.executing: dict[str, str | None] = {}  # running calls and their subagents
        self.error: Failure | None = None  # of the last turn that failed, until one succeeds
        self.aborted = False
        self.result: Any = None

    def feed(self, event: Event) -> list[AgEvent]:
        """One event of the runner."""
        if event.partial:
            return self._partial(event)
        failed: list[AgEvent] = []
        try:
            event = self.calls.read(event)
        except Exception as error:  # noqa: BLE001  reported
            failed = self._guard.failed(event, error)
        if is_from_user(event):
            return failed + self._guard.run(event, lambda: self._results_of(event))
        return failed + self._complete(event)

    def _results_of(self, event: Event) -> list[AgEvent]:
        """Results that ADK itself stores in the user's name: of an agent that carried out a task."""
        events: list[AgEvent] = []
        for answer in answers_in(event):
            if answer.call_id not in self.answered:
                self.answered.add(answer.call_id)
                owner = self.executing.pop(answer.call_id, None)
                content = cut(answer.content, self._options.max_result_length)
                events += self._blocks.result(
                    answer_id(answer.call_id), answer.call_id, content, metadata=answer.metadata
                )
                events += self._steps.finish(TOOLS, owner, errors=int(answer.error))
        return events

    def _partial(self, event: Event) -> list[AgEvent]:
        if not self.messages.has_begun(event):
            return self._guard.run(event, lambda: self.messages.partial(event))
        try:  # nearly every event: nothing is opened here, so nothing has to be undone
            return self.messages.partial(event)
        except Exception as error:  # noqa: BLE001  reported
            return self._guard.failed(event, error)

    # ---------------------------------------------------------------- complete

    def _complete(self, event: Event) -> list[AgEvent]:
        """One complete event, stage by stage: a stage that fails is reported and the next ones still run."""
        it = _Translation(event)
        events: list[AgEvent] = []
        for stage in (
            self._read,
            self._open,
            self._message,
            self._retract,
            self._answers,
            self._side_effects,
            self._track_calls,
            self._end_steps,
            self._leave,
        ):
            events += self._guard.run(event, partial(stage, it))
        return events

    def _read(self, it: _Translation) -> list[AgEvent]:
        it.reading = self._reader.read(it.event)
        it.stream = self.messages.end(it.event)
        it.entry = None if it.stream is None else it.stream.entry
        return []

    def _open(self, it: _Translation) -> list[AgEvent]:
        """Begin what was not streamed: the agent's turn, and the model's message."""
        event, reading = it.event, it.reading
        failed = event.error_code not in (None, ABORTED)
        if not (reading.has_content or failed or decides(event)):
            return []
        if reading.answers and not reading.text and not reading.calls:
            it.entry, events = self.messages.enter(event)
            return events
        if it.stream is not None:
            return []
        if not reading.has_content and self.messages.current(event) is not None:
            return self.messages.break_off(event)
        it.replaced = self.messages.current(event)  # no event stores what streams there
        renewed = self._renew(event, it.replaced)
        it.stream, events = self.messages.begin(event, instead_of=it.replaced)
        self.messages.end(event)
        it.entry = it.stream.entry
        return renewed + events

    def _renew(self, event: Event, replaced: Stream | None) -> list[AgEvent]:
        """End a turn that is named after a message that is not stored: it begins with the event that is."""
        entry = None if replaced is None else replaced.entry
        if entry is None or replaced is None or not entry.begins_with(replaced.id):
            return []
        self._entries.close(event)
        events = self._blocks.close_message(replaced.id) + self._steps.finish(replaced.step, entry.id)
        self._steps.forget(entry.id)
        return events + self._blocks.subagent_finished(entry.id)

    def _message(self, it: _Translation) -> list[AgEvent]:
        if it.stream is None:
            return []
        self.shown[it.event.id] = hash((it.reading.thought, it.reading.text))
        return self.messages.complete(it.stream, it.event, it.reading)

    def _retract(self, it: _Translation) -> list[AgEvent]:
        """Remove a message that this event replaced: now if the session has the event already, else at the end."""
        if it.replaced is None:
            return []
        stored: Sequence[Event] = () if self._session is None else self._session()
        if not stored or stored[-1].id != it.event.id or self.messages.any_streaming:
            self.messages.needs_repair = True
            return []
        messages = self._context.restated(stored)
        note = run_metadata(corrects={"messages": [it.replaced.id]})
        return [MessagesSnapshotEvent(messages=messages, metadata=note, **self._now())]

    def _answers(self, it: _Translation) -> list[AgEvent]:
        events: list[AgEvent] = []
        reading, owner = it.reading, it.owner
        new = [answer for answer in reading.answers if answer.call_id not in self.answered]
        if new and not reading.calls and not self._steps.is_open(TOOLS, owner):
            events += self._steps.start(TOOLS, owner)
        for answer in new:
            self.answered.add(answer.call_id)
            events += self._blocks.result(
                answer.id, answer.call_id, answer.content, owner=owner, metadata=answer.metadata
            )
        return events

    def _side_effects(self, it: _Translation) -> list[AgEvent]:
        """State, output, and CUSTOM events for everything the protocol has no event for."""
        events: list[AgEvent] = []
        event = it.event
        if self._base is None:  # of a tool, its result carries the state
            events += self.changed(event.id, visible(event.actions.state_delta, self._options))
        tag: dict[str, Any] = {} if it.owner is None else {"subagent_run_id": it.owner}
        for widget in event.actions.render_ui_widgets or ():
            content = plain(widget.payload)
            shown: dict[str, Any] = {"message_id": widget.id, "activity_type": widget.provider, **tag}
            events.append(ActivitySnapshotEvent(**shown, content=content, **self._now()))
        for name, value in [*it.reading.extras, *extras(event)]:
            events.append(CustomEvent(name=name, value=value, **tag, **self._now()))
        if event.output is not None:
            events += self._output(event, tag)
        nodes = as_mapping(as_mapping(event.actions.agent_state).get("nodes"))
        return events + self._steps.nodes(nodes, self._context.agents)

    def changed(self, event_id: str, values: Mapping[str, Any]) -> list[AgEvent]:
        """The state that an event wrote."""
        if self._context.observed:
            self.written[event_id] = values
        delta = [{"op": "add", "path": pointer(key), "value": value} for key, value in values.items()]
        return [StateDeltaEvent(delta=delta, **self._now())] if delta else []  # type: ignore[arg-type]  # parsed by pydantic

    def _output(self, event: Event, tag: dict[str, Any]) -> list[AgEvent]:
        value = plain(event.output)
        if any("/" not in path for path in event.node_info.output_for or ()):
            self.result = value
        name = node_name(event)
        custom = CustomEvent(name="adk.output", value={"node": name, "output": value}, **tag, **self._now())
        return [*self._steps.node_output(name), custom] if event.content is None else [custom]

    def _judge(self, event: Event, reading: Reading) -> None:
        """Count the usage, and note whether this turn failed or made up for one that did."""
        self._context.usage.add(**tally(event))
        code = event.error_code
        if code == ABORTED:
            self.aborted = True
        elif code and not (code in STANDING and reading.has_content):
            message = event.error_message or f"The model ended its turn with {code}."
            self.error = Failure(str(getattr(code, "value", code)), scrub(message))
        elif reading.has_content:
            self.error = None

    def _track_calls(self, it: _Translation) -> list[AgEvent]:
        """Keep the turn's outcome, the open questions and the running tools."""
        event, owner = it.event, it.owner
        self._judge(event, it.reading)
        for call_id in answered(event):
            self.pending.pop(call_id, None)
            self.executing.pop(call_id, None)
            self._blocks.forget_call(call_id)
        waiting = event.long_running_tool_ids or ()
        for part in parts_of(event):
            call = part.function_call
            if call is not None and call.id and call.id not in waiting:
                self.executing[call.id] = owner
        for interrupt in asked(
            event, ttl=self._options.interrupt_ttl, owner=owner, skip=self._context.frontend
        ):
            self.pending[interrupt.id] = interrupt
            if owner is not None:
                self.owners[interrupt.id] = owner
        return []

    def _end_steps(self, it: _Translation) -> list[AgEvent]:
        events: list[AgEvent] = []
        if it.stream is not None:
            events += self.messages.end_step(it.stream, it.event, it.reading)
        answers = it.reading.answers
        if (answers or answered(it.event)) and it.owner not in self.executing.values():
            events += self._steps.finish(TOOLS, it.owner, errors=sum(answer.error for answer in answers))
        return events

    def _leave(self, it: _Translation) -> list[AgEvent]:
        event = it.event
        entry = self._entries.close(event) if done(event) else None
        if entry is None:
            return []
        self._steps.forget(entry.id)
        if event.error_code and self.error is not None:
            return self._blocks.subagent_failed(entry.id, self.error.message, code=self.error.code)
        return self._blocks.subagent_finished(entry.id)

    def _now(self) -> dict[str, Any]:
        clock = self._context.clock
        return {} if clock is None else {"timestamp": clock()}


@dataclass(slots=True)
class _Translation:
    """One complete event on its way through the stages."""

    event: Event
    reading: Reading = field(init=False)
    stream: Stream | None = None  # the model's message
    replaced: Stream | None = None  # a streamed message that this event replaces under another id
    entry: Entry | None = None  # the agent's turn; None is the root agent

    def __post_init__(self) -> None:
        self.reading = Reading(self.event.id)

    @property
    def owner(self) -> str | None:
        """The subagent run that the event belongs to."""
        return None if self.entry is None else self.entry.id
