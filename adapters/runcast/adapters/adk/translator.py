"""One ADK run as AG-UI events: a pure function of the events of `Runner.run_async`.

Rules that follow from ADK:

1. Events are keyed by `event.id`, never by their text: equal answers are different messages.
2. A partial event adds text, thoughts and, on request, arguments. Calls, results, state, usage and errors come from
   complete events only, because a partial shares the `actions` of the event that completes it.
3. A complete event adds what was not streamed. If a callback rewrote text that was already sent, the run ends with a
   repairing MESSAGES_SNAPSHOT, because no other event removes text.
4. A turn with an error code and no answer is an error, unless a later turn succeeds.

The translator knows no runner, session or time. `session`, a function that returns the session's events, answers
what only the session knows: the open questions and the conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ag_ui.core import Event as AgEvent
from ag_ui.core import Interrupt, Message, MessagesSnapshotEvent, StateSnapshotEvent

from runcast.adapters.adk.agent_events import AgentEvents, RunContext
from runcast.adapters.adk.inner_runs import InnerRuns
from runcast.adapters.adk.intake.session_conversation import (
    answer_id,
    bounded,
    live_events,
    messages_from_events,
    texts,
)
from runcast.adapters.adk.interrupts import answered, open_interrupts
from runcast.adapters.adk.options import AdkOptions, RunStart
from runcast.adapters.adk.plain_values import cut, visible
from runcast.adapters.adk.stream.complete_event import Answer, Reader, is_from_user, is_steered
from runcast.adapters.adk.stream.decisions import ending
from runcast.adapters.adk.stream.distinct_calls import DistinctCalls
from runcast.adapters.adk.stream.parts import InnerPart, ModelCall
from runcast.adapters.adk.stream.steps import TOOLS, Steps
from runcast.adapters.errors import Failure, failure
from runcast.adapters.open_blocks import Clock, OpenBlocks
from runcast.adapters.run_frame import RunFrame, RunIds
from runcast.adapters.untranslated import Guard, Report
from runcast.slim.folding.run_metadata import run_metadata

if TYPE_CHECKING:
    from google.adk.events.event import Event

    Part = Event | ModelCall | InnerPart

# Exceptions of ADK and google-genai, as codes that every framework shares.
ADK_CODES: Mapping[str, str] = {
    "LlmCallsLimitExceededError": "recursion_limit",
    "_ResourceExhaustedError": "rate_limited",
    "ClientError": "model_error",
    "ServerError": "model_error",
    "SessionNotFoundError": "invalid_input",
    "StaleSessionError": "thread_busy",
}


class AdkTranslator:
    """Translates one run. With `root` (the root agent's name) the other agents become subagents.

    `start` holds what is known before the first event; its fields are accepted as keywords too.
    """

    def __init__(
        self,
        ids: RunIds,
        *,
        root: str | None = None,
        options: AdkOptions = AdkOptions(),  # noqa: B008  # frozen
        clock: Clock | None = None,
        session: Callable[[], Sequence[Event]] | None = None,
        start: RunStart = RunStart(),  # noqa: B008  # frozen
        report: Report | None = None,
        **fields: Any,
    ) -> None:
        self._start = start = replace(start, **fields)
        self._options = options
        self._clock = clock
        self._root = root
        self._session = session  # without it: no repair, and only the interrupts of this stream
        self._frontend = frozenset(start.frontend if options.frontend_tools == "pending" else ())
        self._where = dict(start.place or {})
        self._frame = RunFrame(ids, input=start.input, clock=clock)
        self._blocks = OpenBlocks(clock=clock)
        self._steps = Steps(self._blocks)
        self._guard = Guard(self._blocks, clock=clock, report=report)
        self._context = RunContext(
            options=options,
            blocks=self._blocks,
            steps=self._steps,
            guard=self._guard,
            usage=self._frame.usage,
            clock=clock,
            agents=start.agents or {},
            frontend=self._frontend,
            observed=start.observed,
            restated=self._messages,
        )
        self._own = AgentEvents(self._context, root, session=session, held=start.held)
        self._inner = InnerRuns(self._context)
        self.asides: list[Event] = []  # stored while the run went on, by others than its runner

    # ---------------------------------------------------------------- protocol

    def start(self) -> list[AgEvent]:
        """RUN_STARTED, the state that the client lacks, and the answers that this run brings to open calls."""
        start = self._start
        metadata = run_metadata(framework="adk", agent=self._root, resumed_from=start.resumed_from)
        events = self._frame.started(metadata=metadata)
        events += [event.model_copy(update=self._now()) for event in start.corrections]
        if start.state is not None:
            events.append(StateSnapshotEvent(snapshot=dict(start.state), **self._now()))
        events += self._steps.start(TOOLS) if start.answers else []
        for answer in start.answers:
            self._own.answered.add(answer.call_id)
            content = cut(answer.content, self._options.max_result_length)
            events += self._blocks.result(
                answer_id(answer.call_id), answer.call_id, content, metadata=answer.metadata
            )
        return events + self._steps.finish(TOOLS, errors=sum(it.error for it in start.answers))

    def feed(self, part: Part) -> list[AgEvent]:
        """One event of the runner, or a fact that a plugin observed."""
        if isinstance(part, ModelCall):  # no event comes of it
            self._inner.events_of(part.invocation_id, self._own).messages.model_called(part)
            return []
        return self._asides() + self._fed(part) if self.asides else self._fed(part)

    def _fed(self, part: Event | InnerPart) -> list[AgEvent]:
        if isinstance(part, InnerPart):
            return self._inner.feed(part, self._own)
        if part.partial:
            return self._own.feed(part)
        if is_steered(part):
            return self._steered(part)
        if part.invocation_id:
            self._where["invocation_id"] = part.invocation_id
        return self._own.feed(part)

    def aside(self, part: Part) -> None:
        """A part from outside the runner's events; what comes of it goes before those of the next part."""
        if isinstance(part, ModelCall | InnerPart):
            self.feed(part)
        else:
            self.asides.append(part)

    def _asides(self) -> list[AgEvent]:
        asides, self.asides[:] = list(self.asides), []
        return [event for each in asides for event in self._fed(each)]

    def _steered(self, event: Event) -> list[AgEvent]:
        """A message that the agent was handed, where its model reads it."""
        found: list[AgEvent] = []
        for message in messages_from_events([event]):
            found += self._blocks.text(message.id, "".join(texts(message)), role="user")
            found += self._blocks.close_text(message.id)
        return found

    def finish(self) -> list[AgEvent]:
        """The runner ended: cancelled, waiting for answers, failed, or successful."""
        if self.asides:
            return self._asides() + self.finish()
        if self._own.aborted:
            return self.cancel()
        waiting = self._waiting()
        if self._own.error is not None and not waiting:
            return self._failed(self._own.error)
        events = self._suspend(waiting) + self._blocks.close_all() + self._snapshot()
        if waiting:
            return events + self._frame.interrupted(
                waiting, metadata=self._ending("interrupted", waiting=waiting)
            )
        return events + self._frame.succeeded(result=self._own.result, metadata=self._ending("completed"))

    def fail(self, error: BaseException) -> list[AgEvent]:
        """The runner raised; while a tool runs, that counts as the tool's error."""
        return self._failed(
            failure(error, codes=ADK_CODES, default="tool_error" if self._own.executing else "agent_error")
        )

    def cancel(self) -> list[AgEvent]:
        """The run was stopped."""
        events = self._asides() + self._blocks.close_all(metadata=run_metadata(discarded="cancelled"))
        events += self._snapshot()
        return events + self._frame.cancelled(metadata=self._ending("cancelled"))

    # ------------------------------------------------------------------ ending

    def _waiting(self) -> list[Interrupt]:
        """The open questions, by the session if there is one: an incomplete answer gives no event."""
        if self._session is None:
            return list(self._own.pending.values())
        live = live_events(self._session())
        return open_interrupts(
            live, ttl=self._options.interrupt_ttl, owners=self._own.owners, skip=self._frontend
        )

    def _stored(self, answers: Sequence[Answer]) -> bool:
        """Whether the session has these answers."""
        if not answers or self._session is None:
            return True
        events = DistinctCalls().all(live_events(self._session()))
        stored = {call_id for event in events for call_id in answered(event)}
        return stored.issuperset(answer.call_id for answer in answers)

    def _suspend(self, waiting: Sequence[Interrupt]) -> list[AgEvent]:
        """Subagents with open questions are suspended, not finished."""
        asking: dict[str, list[str]] = {}
        for interrupt in waiting:
            owner = self._own.owners.get(interrupt.id)
            if owner is not None:
                asking.setdefault(owner, []).append(interrupt.id)
        return [
            event
            for owner, ids in asking.items()
            for event in self._blocks.subagent_finished(owner, suspended_by=ids)
        ]

    def _failed(self, fault: Failure) -> list[AgEvent]:
        discarded = run_metadata(discarded="error")
        events = self._asides()
        events += self._blocks.close_all(error=fault.message, code=fault.code, metadata=discarded)
        return (
            events
            + self._snapshot()
            + self._frame.failed(fault, metadata=self._ending("error", code=fault.code))
        )

    def _snapshot(self) -> list[AgEvent]:
        """One MESSAGES_SNAPSHOT, on request or to remove what must not stay visible."""
        if self._session is None or self._frame.ended:
            return []
        events = self._guard.run(self._session, partial(self._rewritten_state, self._session))
        return events + self._guard.run(self._session, partial(self._restated, self._session))

    def _rewritten_state(self, session: Callable[[], Sequence[Event]]) -> list[AgEvent]:
        """State that another plugin wrote on events behind `AdkPlugin`, before ADK stored them."""
        unseen, later, missed = dict(self._own.written), set[str](), dict[str, Any]()
        for event in reversed(session() if unseen else ()):
            if not unseen:
                break
            if event.id in unseen:
                sent, stored = unseen.pop(event.id), visible(event.actions.state_delta, self._options)
                for key, value in stored.items():
                    if key not in later and (key not in sent or sent[key] != value):
                        missed[key] = value
                later.update(stored)
        return self._own.changed("", missed)

    def _restated(self, session: Callable[[], Sequence[Event]]) -> list[AgEvent]:
        wanted = self._options.messages_snapshot == "end"
        differs = self._own.messages.needs_repair or not self._stored(self._start.answers)
        if not (wanted or differs or self._is_rewritten(session())):
            return []
        limit = self._options.snapshot_messages if wanted else None
        return [MessagesSnapshotEvent(messages=bounded(self._messages(session()), limit), **self._now())]

    def _messages(self, events: Sequence[Event]) -> list[Message]:
        """The conversation of a session, with the messages of agents that run as tools."""
        held = messages_from_events(events, root=self._root, options=self._options)
        before = self._start.inside
        return self._inner.added_to(held if before is None else before.added_to(held))

    def _is_rewritten(self, events: Sequence[Event]) -> bool:
        """Whether a plugin changed texts of this run before ADK stored them: the model's, or the user's."""
        given = [] if self._start.input is None else self._start.input.messages
        sent = {it.id: texts(it) for it in given if it.role == "user"}
        unseen = dict(self._own.shown)
        for event in reversed(events):
            if not (unseen or sent):
                return False
            if event.id in unseen:
                stored = Reader().read(event)
                if unseen.pop(event.id) != hash((stored.thought, stored.text)):
                    return True
            elif is_from_user(event) and sent:
                for message in messages_from_events([event]):
                    if message.id in sent and sent.pop(message.id) != texts(message):
                        return True
        return False

    def _ending(
        self, reason: str, *, waiting: Sequence[Interrupt] = (), code: str | None = None
    ) -> dict[str, Any] | None:
        return run_metadata(
            step_count=self._steps.count,
            framework=self._where or None,
            continuation=ending(reason, waiting=[it.reason for it in waiting], code=code),
        )

    def _now(self) -> dict[str, Any]:
        return {} if self._clock is None else {"timestamp": self._clock()}
