"""One remote run as a valid stream: what breaks a rule is mended where nothing is lost, else the run ends with RUN_ERROR.

A `Translator` whose parts are events, as a remote agent sent them. The verifier's `client` profile judges each one. Mends
that lose nothing: a missing RUN_STARTED is added, with the input that clients and the log need; the run's own ids replace
others at both ends; text without a start gets one; an end without a start, and a step that starts twice, are left out;
open items are closed before RUN_FINISHED. Events after the end are ignored, and a response that stops without an end is
an error. Does not know HTTP.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ag_ui.core import (
    BaseEvent,
    Event,
    ReasoningMessageContentEvent,
    ReasoningMessageStartEvent,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunStartedEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentStartedEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
)

from runcast.adapters.errors import AdapterError, failure
from runcast.adapters.run_frame import PROTOCOL_VERSION, echoed
from runcast.slim.protocol.rules import Violation
from runcast.slim.protocol.verifier import Verifier
from runcast.slim.values.lifecycles import LIFECYCLES


class BrokenStream(AdapterError, code="invalid_stream"):
    """The remote agent's events break a rule of AG-UI, and mending them would lose something."""


class StoppedShort(AdapterError, code="remote_ended"):
    """The remote agent's response ended without RUN_FINISHED or RUN_ERROR."""


# The start of an item, the field that names it, and the event that ends it.
_ITEMS: dict[type[BaseEvent], tuple[str, type[Any]]] = {
    **{life.start: (life.id_field, life.end) for life in LIFECYCLES},
    SubagentStartedEvent: ("subagent_run_id", SubagentFinishedEvent),
}
_ENDS: dict[type[BaseEvent], type[BaseEvent]] = {
    **{end: start for start, (_, end) in _ITEMS.items()},
    SubagentErrorEvent: SubagentStartedEvent,
}
# A rule, and the events that may be left out when they break it: they change nothing a client shows.
_LEFT_OUT: dict[str, type[BaseEvent]] = {
    **{f"{life.name}-not-open": life.end for life in LIFECYCLES},
    "step-already-open": StepStartedEvent,
}


class MendedRun:
    """The translator of one remote run."""

    def __init__(self, input: RunAgentInput, *, clock: Callable[[], int]) -> None:
        self._input = input
        self._clock = clock
        self._verifier = Verifier("client", refusing=True)
        self._open: dict[tuple[type[BaseEvent], str], BaseEvent] = {}  # starts, in their order
        self._started = False
        self._ended = False

    def start(self) -> list[Event]:
        """Nothing: the remote agent begins its run itself."""
        return []

    def feed(self, part: Event) -> list[Event]:
        """The event, mended; nothing after the run's end."""
        if self._ended:
            return []
        if isinstance(part, RunStartedEvent):
            return self._begin(part)
        events = [] if self._started or isinstance(part, RunErrorEvent) else self._begin(None)
        if isinstance(part, RunFinishedEvent):
            ids = {"thread_id": self._input.thread_id, "run_id": self._input.run_id}
            return [*events, *self._closings(), *self._end(part.model_copy(update=ids))]
        if isinstance(part, RunErrorEvent):
            return [*events, *self._end(part)]
        return [*events, *self._judged(part)]

    def finish(self) -> list[Event]:
        """The response is over; without a terminal event the run has failed."""
        return self.fail(
            StoppedShort("the remote agent's response ended before RUN_FINISHED or RUN_ERROR: ask it again")
        )

    def fail(self, error: BaseException) -> list[Event]:
        """RUN_ERROR for a fault on the way, or of the remote agent."""
        if self._ended:
            return []
        found = failure(error, default="remote_error")
        begun = [] if self._started else self._begin(None)
        return [
            *begun,
            *self._end(RunErrorEvent(message=found.message, code=found.code, timestamp=self._clock())),
        ]

    def cancel(self) -> list[Event]:
        """Close what is open and end as cancelled; the remote agent sees its connection close."""
        if self._ended:
            return []
        given = self._input
        end = RunFinishedEvent(
            thread_id=given.thread_id,
            run_id=given.run_id,
            outcome=RunFinishedCancelledOutcome(),
            timestamp=self._clock(),
        )
        begun = [] if self._started else self._begin(None)
        return [*begun, *self._closings(), *self._end(end)]

    def _begin(self, sent: RunStartedEvent | None) -> list[Event]:
        if self._started:
            return self._broken("the remote agent sent RUN_STARTED twice in one response")
        self._started = True
        given = self._input
        if sent is None:
            sent = RunStartedEvent(
                thread_id=given.thread_id,
                run_id=given.run_id,
                protocol_version=PROTOCOL_VERSION,
                timestamp=self._clock(),
            )
        own = {"thread_id": given.thread_id, "run_id": given.run_id, "input": echoed(sent.input or given)}
        started = sent.model_copy(update=own)
        self._verifier.feed(started)
        return [started]

    def _judged(self, event: Event) -> list[Event]:
        violation = self._verifier.feed(event)
        if violation is None:
            return [self._noted(event)]
        return self._mended(event, violation)

    def _mended(self, event: Event, violation: Violation) -> list[Event]:
        left_out = _LEFT_OUT.get(violation.rule)
        if left_out is not None and isinstance(event, left_out):
            return []
        if isinstance(event, TextMessageContentEvent | ReasoningMessageContentEvent):
            start = _start_of(event)
            if self._verifier.feed(start) is None and self._verifier.feed(event) is None:
                return [self._noted(start), event]
        return self._broken(
            f"the remote agent's stream breaks the rule {violation.rule}: {violation.message}"
        )

    def _broken(self, sentence: str) -> list[Event]:
        return self.fail(BrokenStream(sentence))

    def _noted(self, event: Event) -> Event:
        kind = type(event)
        if kind in _ITEMS:
            self._open[kind, getattr(event, _ITEMS[kind][0])] = event
        elif kind in _ENDS:
            start = _ENDS[kind]
            self._open.pop((start, getattr(event, _ITEMS[start][0])), None)
        return event

    def _closings(self) -> list[Event]:
        """Ends for everything open, the newest item first."""
        closings: list[Event] = []
        for (kind, ident), start in reversed(self._open.items()):
            field, end = _ITEMS[kind]
            tag = getattr(start, "subagent_run_id", None)
            given = {} if tag is None else {"subagent_run_id": tag}
            closings.append(end(**{**given, field: ident}, timestamp=self._clock()))
        self._open.clear()
        return closings

    def _end(self, event: Event) -> list[Event]:
        self._ended = True
        return [event]


def _start_of(content: TextMessageContentEvent | ReasoningMessageContentEvent) -> Event:
    """The start that this content lacks: its id is all that it takes."""
    start: Event
    if isinstance(content, TextMessageContentEvent):
        start = TextMessageStartEvent(message_id=content.message_id, role="assistant")
    else:
        start = ReasoningMessageStartEvent(message_id=content.message_id, role="reasoning")
    given = {name: getattr(content, name) for name in ("subagent_run_id", "timestamp")}
    return start.model_copy(update={name: value for name, value in given.items() if value is not None})
