"""Folds a stream of events into a conversation: messages, state, interrupts, runs.

One rule holds: after any events, a `Conversation` has what the client of AG-UI 1.0 (`defaultApplyEvents`) would hold,
however odd the stream. Events that it ignores with a warning are ignored here and listed in `problems`. Knows nothing
of validity (a verifier's work), of storage, or of how a history is made smaller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ag_ui.core import Interrupt, Message, TextMessageContentEvent, ToolCall

from runcast.slim.errors import InvalidStream
from runcast.slim.folding.effects import EFFECTS, View, passes
from runcast.slim.folding.run_records import Problem, RunBook, RunRecord
from runcast.slim.folding.transcript import Body, History, Transcript
from runcast.slim.folding.unfinished import UnfinishedMessages
from runcast.slim.values.by_class import nearest
from runcast.slim.values.json_patch import Document, clone

if TYPE_CHECKING:
    from runcast.slim.wire.codec import AnyEvent


def fold(events: Iterable[AnyEvent], into: Conversation | None = None) -> Conversation:
    """Fold events into a conversation: a new one, or `into`, which is changed and returned."""
    conversation = Conversation() if into is None else into
    for event in events:
        conversation.feed(event)
    return conversation


class Conversation:
    """A client's view, event by event. Read the values of its properties, do not change them."""

    def __init__(
        self,
        messages: Iterable[Message] = (),
        state: Any = None,
        *,
        keep_passed: bool = False,
        max_problems: int = 1_000,
        half_said: Iterable[str] = (),
        pending_interrupts: Iterable[Interrupt] = (),
    ) -> None:
        """Start from what a client holds; without `state` from `{}`, as a client does.

        `half_said` are the ids of unfinished messages among `messages`, `pending_interrupts` unanswered questions.
        """
        self._view = View(
            Transcript(Body.of(message) for message in messages),
            Document({} if state is None else state),
            UnfinishedMessages(half_said),
            RunBook(pending_interrupts),
            keep_passed=keep_passed,
        )
        self._growing = self._view.growing
        self._max_problems = max_problems
        self._fed = 0
        self.problems: list[Problem] = []  # the first `max_problems` of them
        self.problem_count = 0  # all of them

    def feed(self, event: AnyEvent) -> None:
        """Take the next event of the stream."""
        if type(event) is TextMessageContentEvent:  # nearly every event: growing text costs next to nothing
            fields = event.__dict__
            text = self._growing.get(fields["message_id"])
            if text is not None and fields["metadata"] is None:
                text.append(fields["delta"])
                self._fed += 1
                return
        else:
            self._growing.clear()
        effect = EFFECTS.get(type(event))
        if effect is None or self._view.chunks.lanes:
            self._expand(event)
        else:
            problem = effect(self._view, event)
            if problem is not None:
                self._problem(event, problem)
        self._fed += 1

    @property
    def messages(self) -> list[Message]:
        """The messages, in the client's order."""
        return [body.model() for body in self._view.transcript]

    @property
    def history(self) -> Sequence[Message]:
        """A live view of the messages; reading from either end makes no others."""
        return History(self._view.transcript)

    @property
    def half_said(self) -> list[str]:
        """The unfinished messages: their streams are open, or were broken off by the end of a run.

        A message with a result for one of its calls counts as finished, since the result was acted on.
        """
        nodes = [(key, self._view.transcript.find(key)) for key in self._view.unfinished]
        return [key for key, node in nodes if node is not None and not node.acted_on()]

    @property
    def state(self) -> Any:
        """The shared state: any JSON value."""
        return self._view.state.value

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """The runs seen, oldest first; the last one may be active."""
        return tuple(self._view.runs.records)

    @property
    def passed(self) -> list[AnyEvent]:
        """With `keep_passed`: the events that are for the application alone, in order."""
        return self._view.passed

    @property
    def pending_interrupts(self) -> list[Interrupt]:
        """What the user has to answer before the next run."""
        return self._view.runs.interrupts

    @property
    def pending_tool_call_ids(self) -> list[str]:
        """Calls that the latest run left without an answer, or has so far if it is active."""
        return self._view.runs.pending()

    @property
    def pending_tool_calls(self) -> list[ToolCall]:
        """The calls of `pending_tool_call_ids` that stand in a message."""
        calls = [self.tool_call(key) for key in self.pending_tool_call_ids]
        return [call for call in calls if call is not None]

    def role_of(self, message_id: str) -> str | None:
        """The role of the first message with this id; None if there is none."""
        node = self._view.transcript.find(message_id)
        return None if node is None else node.body.role

    def holds_call(self, tool_call_id: str) -> bool:
        """Whether some message holds this tool call."""
        return self._view.transcript.holder(tool_call_id) is not None

    def tool_call(self, tool_call_id: str) -> ToolCall | None:
        """The tool call with this id, in whichever message it stands."""
        call = self._view.call(tool_call_id)
        return None if call is None else call.model()

    def wire_messages(self) -> list[dict[str, Any]]:
        """The messages as the wire spells them; a copy."""
        return [clone(body.wire()) for body in self._view.transcript]

    def _expand(self, event: AnyEvent) -> None:
        """Chunks, events that may end a chunked stream, subclasses, and unknown types."""
        try:
            expanded = self._view.chunks.feed(event)
        except InvalidStream as error:
            self._problem(event, str(error))
            return
        for each in expanded:
            effect = nearest(EFFECTS, type(each))
            problem = _unknown(self._view, each) if effect is None else effect(self._view, each)
            if problem is not None:
                self._problem(each, problem)

    def _problem(self, event: AnyEvent, reason: str) -> None:
        self.problem_count += 1
        if len(self.problems) < self._max_problems:
            kind = str(getattr(event.type, "value", event.type))
            self.problems.append(Problem(self._fed, kind, reason))


def _unknown(view: View, event: AnyEvent) -> str:
    passes(view, event)
    return "AG-UI 1.0 has no event of this type"
