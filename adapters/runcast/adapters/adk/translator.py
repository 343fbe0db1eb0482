"""One ADK run as AG-UI events: a function of `Runner.run_async`'s events alone.

Rules that come from ADK, and are kept here:

1. Events are keyed by `event.id`, never by their text: equal answers are different messages.
2. A partial event shows text and thoughts (and argument text on request). Calls, results, state, usage and errors are
   read from complete events only, for a partial shares the `actions` of the event that completes it.
3. A complete event settles what was streamed: it adds the rest, or, when a callback rewrote what is already out,
   asks for a repair. Text cannot be taken back, so the repair is a MESSAGES_SNAPSHOT before the run's end.
4. A turn that ended with an error code and without an answer is an error, unless a later one succeeded.

It knows ADK's events and nothing of runners, sessions or time. What only the session can tell (which questions are
open, what the conversation is) comes through `session`, a function that gives its events.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ag_ui.core import (
    CustomEvent,
    Interrupt,
    MessagesSnapshotEvent,
    RunAgentInput,
    StateDeltaEvent,
    StateSnapshotEvent,
)
from ag_ui.core import Event as AgEvent

from runcast.adapters.adk.conversation import answer_id, bounded, live_events, messages_from_events
from runcast.adapters.adk.interrupts import answered, asked, open_interrupts
from runcast.adapters.adk.options import AdkOptions
from runcast.adapters.adk.reading import (
    ABORTED,
    Answer,
    Call,
    Reader,
    Reading,
    extras,
    finish_reason,
    message_note,
    parts_of,
    said_by_user,
    tally,
    usage,
)
from runcast.adapters.adk.steps import TOOLS, Steps
from runcast.adapters.adk.streamed_args import ArgsWriter
from runcast.adapters.adk.streams import Stream, Streams
from runcast.adapters.adk.subagents import Entries, Entry, done, node_name, place
from runcast.adapters.adk.values import cut, mapping, plain, pointer, shown
from runcast.adapters.blocks import Clock, OpenBlocks
from runcast.adapters.errors import Failure, failure, scrub
from runcast.adapters.frame import RunFrame, RunIds, note

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.genai import types

# ADK's and google-genai's own exceptions, in the words that hold for every framework.
ADK_CODES: Mapping[str, str] = {
    "LlmCallsLimitExceededError": "recursion_limit",
    "_ResourceExhaustedError": "rate_limited",
    "ClientError": "model_error",
    "ServerError": "model_error",
    "SessionNotFoundError": "invalid_input",
    "StaleSessionError": "thread_busy",
}
# Codes with which a model stops in mid-answer, and the answer still stands as far as it goes.
CUT_SHORT = frozenset({"MAX_TOKENS"})


class AdkTranslator:
    """Translates one run. Give it `root` (the root agent's name) to have the other agents told as subagents."""

    def __init__(
        self,
        ids: RunIds,
        *,
        root: str | None = None,
        options: AdkOptions = AdkOptions(),  # noqa: B008  # frozen
        input: RunAgentInput | None = None,
        clock: Clock | None = None,
        session: Callable[[], Sequence[Event]] | None = None,
        state: Mapping[str, Any] | None = None,
        answers: Sequence[Answer] = (),
        agents: Mapping[str, str] | None = None,
        frontend: Collection[str] = (),
        resumed_from: str | None = None,
        place: Mapping[str, Any] | None = None,
        corrections: Sequence[AgEvent] = (),
    ) -> None:
        self._options = options
        self._clock = clock
        self._root = root
        self._agents = agents or {}  # descriptions by name
        self._session = session  # the session's events now; absent: no repair, interrupts of this stream only
        self._state = state  # what the client does not hold yet; absent: it holds it
        self._given = answers  # answers to interrupts that this run brings along
        self._frontend = frozenset(frontend) if options.frontend_tools == "pending" else frozenset[str]()
        self._resumed_from = resumed_from
        self._corrections = corrections  # what an attempt that broke off must not leave standing
        self._where = dict(place or {})  # session, app and user: what finds this run's place again
        self._frame = RunFrame(ids, input=input, clock=clock)
        self._blocks = OpenBlocks(clock=clock)
        self._steps = Steps(self._blocks)
        self._entries = Entries(root)
        self._streams = Streams()
        self._reader = Reader(max_result_length=options.max_result_length)
        self._answered: set[str] = set()
        self._pending: dict[str, Interrupt] = {}
        self._owners: dict[str, str] = {}  # interrupt id -> the subagent that asked
        self._executing: dict[str, str | None] = {}  # calls that ADK runs now, and who made them
        self._error: Failure | None = None  # the last turn that failed, while none has succeeded since
        self._aborted = False
        self._repair = False
        self._result: Any = None

    # ---------------------------------------------------------------- protocol

    def start(self) -> list[AgEvent]:
        """RUN_STARTED, the state the client lacks, and the answers that this run brings to open calls."""
        said = note(framework="adk", agent=self._root, resumed_from=self._resumed_from)
        events = self._frame.started(metadata=said)
        events += [event.model_copy(update=self._now()) for event in self._corrections]
        if self._state is not None:
            events.append(StateSnapshotEvent(snapshot=dict(self._state), **self._now()))
        events += self._steps.start(TOOLS) if self._given else []
        for answer in self._given:
            self._answered.add(answer.call_id)
            content = cut(answer.content, self._options.max_result_length)
            events += self._blocks.result(
                answer_id(answer.call_id), answer.call_id, content, metadata=answer.metadata
            )
        return events + self._steps.finish(TOOLS, errors=sum(it.error for it in self._given))

    def feed(self, part: Event) -> list[AgEvent]:
        """One event of the runner."""
        if part.partial:
            return self._partial(part)
        if part.invocation_id:
            self._where["invocation_id"] = part.invocation_id
        return [] if said_by_user(part) else self._complete(part)

    def finish(self) -> list[AgEvent]:
        """The runner is done: cancelled, waiting for answers, failed, or successful."""
        if self._aborted:
            return self.cancel()
        waiting = self._waiting()
        if self._error is not None and not waiting:
            return self._failed(self._error)
        events = self._suspend(waiting) + self._blocks.close_all() + self._snapshot()
        if waiting:
            return events + self._frame.interrupted(waiting, metadata=self._ending("interrupted"))
        pending = self._blocks.unanswered
        return events + self._frame.succeeded(
            pending=pending, result=self._result, metadata=self._ending("completed")
        )

    def fail(self, error: BaseException) -> list[AgEvent]:
        """The runner raised. While a tool runs, that is taken for the tool's doing."""
        return self._failed(
            failure(error, codes=ADK_CODES, default="tool_error" if self._executing else "agent_error")
        )

    def cancel(self) -> list[AgEvent]:
        """The run was stopped."""
        events = self._blocks.close_all(metadata=note(discarded="cancelled")) + self._snapshot()
        return events + self._frame.cancelled(metadata=self._ending("cancelled"))

    # ----------------------------------------------------------------- partial

    def _partial(self, event: Event) -> list[AgEvent]:
        parts = parts_of(event)
        if not parts or event.author in self._options.hold_text_of:
            return []
        events: list[AgEvent] = []
        stream = self._streams.get(event.id)
        for part in parts:
            if not part.text and not (self._options.stream_args and part.function_call is not None):
                continue
            if stream is None:
                stream, events = self._begin(event)
            if not part.text:
                assert part.function_call is not None
                events += self._partial_call(stream, part.function_call)
            elif part.thought:
                stream.thought.add(part.text)
                events += self._think(stream, part.text)
            else:
                stream.text.add(part.text)
                events += self._speak(stream, part.text)
        return events

    def _speak(self, stream: Stream, delta: str) -> list[AgEvent]:
        return self._blocks.text(stream.id, delta, owner=stream.owner)

    def _think(self, stream: Stream, delta: str) -> list[AgEvent]:
        return self._blocks.reasoning(
            f"{stream.id}-reasoning", delta, message_id=stream.id, owner=stream.owner
        )

    def _partial_call(self, stream: Stream, call: types.FunctionCall) -> list[AgEvent]:
        """Streamed arguments: told as they come. A call that comes whole waits for the complete event."""
        if not call.id or not (call.partial_args or call.will_continue):
            return []
        events: list[AgEvent] = []
        writer = stream.args.get(call.id)
        if writer is None:
            if not call.name:
                return []
            writer = stream.args[call.id] = ArgsWriter()
            events += self._blocks.call(call.id, call.name, message_id=stream.id, owner=stream.owner)
        for piece in call.partial_args or []:
            events += self._blocks.args(call.id, writer.feed(piece))
        return events

    def _begin(self, event: Event) -> tuple[Stream, list[AgEvent]]:
        """The first event of a model call: its agent's entry, its step, and the end of what it follows."""
        entry, events = self._enter(event)
        stream = Stream(event.id, entry, node_name(event))
        before = self._streams.begin(place(event), stream)
        if before is not None:
            events += self._blocks.close_message(before.id)
            events += self._steps.finish(before.step, before.owner)
        return stream, events + self._steps.start(stream.step, stream.owner)

    def _enter(self, event: Event) -> tuple[Entry | None, list[AgEvent]]:
        entry = self._entries.entry(event)
        if entry is None:
            return None, []
        about = self._agents.get(entry.name) or None
        return entry, self._blocks.subagent_started(
            entry.id, entry.name, description=about, parent=entry.parent
        )

    # ---------------------------------------------------------------- complete

    def _complete(self, event: Event) -> list[AgEvent]:
        reading = self._reader.read(event)
        stream = self._streams.end(place(event), event.id)
        events: list[AgEvent] = []
        entry = None if stream is None else stream.entry
        if reading.speaks or event.error_code not in (None, ABORTED):
            if reading.answers and not reading.text and not reading.calls:
                entry, events = self._enter(event)
            elif stream is None:
                if not reading.speaks and self._streams.current(place(event)):
                    return self._broke_off(event)
                stream, events = self._begin(event)
                self._streams.end(place(event), event.id)
                entry = stream.entry
        owner = None if entry is None else entry.id
        if stream is not None:
            events += self._settle(stream, event, reading)
        events += self._answers(reading, owner)
        events += self._aside(event, reading, owner)
        self._judge(event, reading)
        self._ask(event, owner)
        if stream is not None:
            events += self._end_step(stream, event, reading)
        if (reading.answers or answered(event)) and owner not in self._executing.values():
            events += self._steps.finish(TOOLS, owner, errors=sum(it.error for it in reading.answers))
        if done(event):
            events += self._leave(event)
        return events

    def _broke_off(self, event: Event) -> list[AgEvent]:
        """ADK tells an exception by an event of its own: it ends the model call that streams there."""
        stream = self._streams.end_current(place(event))
        self._judge(event, Reading(event.id))
        events = self._blocks.close_message(stream.id)
        return events + self._steps.finish(stream.step, stream.owner, errors=1)

    def _settle(self, stream: Stream, event: Event, reading: Reading) -> list[AgEvent]:
        """Say what is missing of a message, in the order the client will keep it, and end it."""
        events: list[AgEvent] = []
        thought, text = stream.thought.rest(reading.thought), stream.text.rest(reading.text)
        self._repair = self._repair or thought is None or text is None
        order = [(self._speak, text), (self._think, thought)]
        for say, rest in order if reading.text_first else reversed(order):
            events += say(stream, rest) if rest else []
        metadata = message_note(event)
        for call in reading.calls:
            events += self._call(stream, call)
        events += self._blocks.close_reasoning_of(stream.id)
        events += self._blocks.close_text(stream.id, metadata=metadata if reading.text else None)
        for index, call in enumerate(reading.calls, 1):
            last = index == len(reading.calls) and not reading.text
            events += self._blocks.close_call(call.id, metadata=metadata if last else None)
        events += self._blocks.close_message(
            stream.id
        )  # calls that were begun, and are not in the complete event
        events += self._signatures(stream, reading)
        self._repair = self._repair or bool(stream.args)
        return events

    def _signatures(self, stream: Stream, reading: Reading) -> list[AgEvent]:
        """What a provider signed, each once and after the thing it signs."""
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

    def _call(self, stream: Stream, call: Call) -> list[AgEvent]:
        writer = stream.args.pop(call.id, None)
        rest = call.args
        if writer is not None:
            tail = writer.finish(call.args)
            self._repair = self._repair or tail is None
            rest = tail or ""
        events = self._blocks.call(call.id, call.name, message_id=stream.id, owner=stream.owner)
        return events + self._blocks.args(call.id, rest)

    def _answers(self, reading: Reading, owner: str | None) -> list[AgEvent]:
        events: list[AgEvent] = []
        told = [it for it in reading.answers if it.call_id not in self._answered]
        if told and not reading.calls and not self._steps.is_open(TOOLS, owner):
            events += self._steps.start(TOOLS, owner)
        for answer in told:
            self._answered.add(answer.call_id)
            events += self._blocks.result(
                answer.id, answer.call_id, answer.content, owner=owner, metadata=answer.metadata
            )
        return events

    def _aside(self, event: Event, reading: Reading, owner: str | None) -> list[AgEvent]:
        """State, and what the protocol has no word of its own for."""
        events: list[AgEvent] = []
        delta = [
            {"op": "add", "path": pointer(key), "value": plain(value)}
            for key, value in event.actions.state_delta.items()
            if shown(key, self._options)
        ]
        if delta:
            events.append(StateDeltaEvent(delta=delta, **self._now()))  # type: ignore[arg-type]  # parsed by pydantic
        tag: dict[str, Any] = {} if owner is None else {"subagent_run_id": owner}
        for name, value in [*reading.extras, *extras(event)]:
            if name == "adk.media":
                value = {"message_id": event.id, **value}
            events.append(CustomEvent(name=name, value=value, **tag, **self._now()))
        if event.output is not None:
            events += self._output(event, tag)
        return events + self._steps.nodes(mapping(mapping(event.actions.agent_state).get("nodes")))

    def _output(self, event: Event, tag: dict[str, Any]) -> list[AgEvent]:
        value = plain(event.output)
        if any("/" not in path for path in event.node_info.output_for or ()):
            self._result = value
        name = node_name(event)
        said = CustomEvent(name="adk.output", value={"node": name, "output": value}, **tag, **self._now())
        return [*self._steps.node_output(name), said] if event.content is None else [said]

    def _judge(self, event: Event, reading: Reading) -> None:
        """Usage, and whether this turn failed or made up for one that did."""
        self._frame.usage.add(**tally(event))
        code = event.error_code
        if code == ABORTED:
            self._aborted = True
        elif code and not (code in CUT_SHORT and reading.speaks):
            said = event.error_message or f"The model ended its turn with {code}."
            self._error = Failure(str(getattr(code, "value", code)), scrub(said))
        elif reading.speaks:
            self._error = None

    def _ask(self, event: Event, owner: str | None) -> None:
        """Keep the list of open questions, and of the tools that ADK runs."""
        for call_id in answered(event):
            self._pending.pop(call_id, None)
            self._executing.pop(call_id, None)
            self._blocks.forget_call(call_id)
        waiting = event.long_running_tool_ids or ()
        for part in parts_of(event):
            call = part.function_call
            if call is not None and call.id and call.id not in waiting:
                self._executing[call.id] = owner
        for interrupt in asked(event, ttl=self._options.interrupt_ttl, owner=owner, skip=self._frontend):
            self._pending[interrupt.id] = interrupt
            if owner is not None:
                self._owners[interrupt.id] = owner

    def _end_step(self, stream: Stream, event: Event, reading: Reading) -> list[AgEvent]:
        calls = bool(reading.calls)
        reason = finish_reason(event)
        resolved = {"should_continue": calls, "stop_reason": reason or "stop", "resolved_by": "model"}
        events = self._steps.finish(
            stream.step,
            stream.owner,
            has_tool_calls=calls,
            errors=int(bool(event.error_code)),
            finish_reason=reason,
            usage=usage(event),
            continuation=resolved,
        )
        runs = calls and not reading.answers
        return events + self._steps.start(TOOLS, stream.owner) if runs else events

    def _leave(self, event: Event) -> list[AgEvent]:
        entry = self._entries.close(event)
        if entry is None:
            return []
        self._steps.forget(entry.id)
        if event.error_code and self._error is not None:
            return self._blocks.subagent_failed(entry.id, self._error.message, code=self._error.code)
        return self._blocks.subagent_finished(entry.id)

    # ------------------------------------------------------------------ ending

    def _waiting(self) -> list[Interrupt]:
        """What must be answered: told by the session where there is one, for an incomplete answer gives no event."""
        if self._session is None:
            return list(self._pending.values())
        live = live_events(self._session())
        return open_interrupts(
            live, ttl=self._options.interrupt_ttl, owners=self._owners, skip=self._frontend
        )

    def _suspend(self, waiting: Sequence[Interrupt]) -> list[AgEvent]:
        """Subagents that asked are suspended, not finished."""
        asking: dict[str, list[str]] = {}
        for interrupt in waiting:
            if interrupt.id in self._owners:
                asking.setdefault(self._owners[interrupt.id], []).append(interrupt.id)
        return [
            event
            for owner, ids in asking.items()
            for event in self._blocks.subagent_finished(owner, suspended_by=ids)
        ]

    def _failed(self, told: Failure) -> list[AgEvent]:
        torn = note(discarded="error")
        events = self._blocks.close_all(error=told.message, code=told.code, metadata=torn) + self._snapshot()
        return events + self._frame.failed(told, metadata=self._ending("error"))

    def _snapshot(self) -> list[AgEvent]:
        """One MESSAGES_SNAPSHOT when it was asked for, or when something must not stay visible."""
        wanted = self._options.messages_snapshot == "end"
        repair = self._repair or self._streams.unfinished_calls()
        if self._session is None or self._frame.ended or not (wanted or repair):
            return []
        messages = messages_from_events(self._session(), root=self._root, options=self._options)
        limit = self._options.snapshot_messages if wanted else None
        return [MessagesSnapshotEvent(messages=bounded(messages, limit), **self._now())]

    def _ending(self, reason: str) -> dict[str, Any] | None:
        return note(
            step_count=self._steps.count,
            framework=self._where or None,
            continuation={"should_continue": False, "stop_reason": reason, "resolved_by": "adk"},
        )

    def _now(self) -> dict[str, Any]:
        return {} if self._clock is None else {"timestamp": self._clock()}
