"""The conversation as the client shows it, and what puts it right when the graph's differs.

One rule: the conversation is the root state's. A message that a run emitted for the root agent and that no state holds
once its step is over (a draft, a router's verdict, what an agent inside emits) is taken back. What a subagent emits stays
as its own: it carries the subagent's run id. Without the client's view nothing can be taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from ag_ui.core import (
    AssistantMessage,
    Event,
    Message,
    MessagesSnapshotEvent,
    ToolCallResultEvent,
    ToolMessage,
)

from runcast.adapters.langgraph.stream.tool_results import Results
from runcast.adapters.open_blocks import Clock
from runcast.slim.folding.conversation import Conversation
from runcast.slim.folding.retraction import reorder, retract


@dataclass(slots=True)
class Unsettled:
    """What a step of the root graph leaves to correct: with public ids."""

    gone: Collection[str] = ()
    """Emitted messages that the state does not hold: taken back first."""
    restated: Sequence[Message] | None = None
    """All messages of the state, if it has removed or rewritten some."""
    removed: Collection[str] = ()
    """The messages that it has removed."""
    order: Sequence[str] = field(default_factory=list[str])
    """Messages in the order of the state."""


class ShownMessages:
    """The client's view of one run's conversation; unknown if `shown` is None."""

    def __init__(
        self,
        shown: Sequence[Message] | None,
        results: Results,
        clock: Clock | None = None,
        *,
        settled: Collection[str] = (),
    ) -> None:
        self._settled = settled  # calls that the client has decided about
        self._view = None if shown is None else Conversation(shown)
        self._results = results
        self._clock = clock
        self._freed: set[str] = set()  # calls that were taken back and may come again
        # this event goes to the client next
        self.show: Callable[[Event], None] = _ignore if self._view is None else self._view.feed

    def feed(self, events: list[Event]) -> list[Event]:
        """These events go to the client next."""
        for event in events:
            self.show(event)
        return events

    def holds_call(self, call_id: str) -> bool:
        """Whether the client shows a call of this id, which is not being taken back."""
        if call_id in self._freed:
            self._freed.discard(call_id)
            return False
        return self._view is not None and self._view.holds_call(call_id)

    def waits(self, call_id: str) -> bool:
        """Whether the client has to answer this call: it shows no result, and the call is no subagent's or decided."""
        if call_id in self._settled:
            return False
        for message in () if self._view is None else reversed(self._view.history):
            if isinstance(message, ToolMessage) and message.tool_call_id == call_id:
                return False
            calls = (message.tool_calls or ()) if isinstance(message, AssistantMessage) else ()
            if any(call.id == call_id for call in calls):
                return getattr(message, "subagent_run_id", None) is None
        return True

    def retracted(self, gone: Collection[str], instead: Sequence[Message] = ()) -> list[Event]:
        """Take messages back from the client's view, and show others in their place."""
        if self._view is None:
            return []
        return self._stamped(retract(self._view, gone, instead))

    def take_back(self, gone: Collection[str]) -> list[Event]:
        """Messages of a failed attempt: the next attempt may use their ids and calls again."""
        shown = [] if self._view is None else [key for key in gone if self._view.role_of(key)]
        if not shown:
            return []
        events = self.retracted(shown)
        calls = [event.tool_call_id for event in events if isinstance(event, ToolCallResultEvent)]
        self._freed.update(calls)
        self._results.forget(shown, calls)
        return events

    def settled(self, step: Unsettled) -> list[Event]:
        """The events after which the client shows what the step's state holds."""
        events: list[Event] = []
        if step.restated is not None:
            messages = list(self._among(step.restated, step.removed))
            events += self.feed(self._stamped([MessagesSnapshotEvent(messages=messages)]))
        if self._view is not None and len(step.order) > 1:
            events += self.feed(self._stamped(reorder(self._view, step.order)))
        return events

    def _among(self, stated: Sequence[Message], removed: Collection[str]) -> Iterator[Message]:
        """The state's messages, and in their places those of subagents, of which the root holds none."""
        subagents: dict[str, str] = {}
        behind: dict[str | None, list[Message]] = {}
        ids, last = {message.id for message in stated}, None
        for message in () if self._view is None else self._view.history:
            owner = getattr(message, "subagent_run_id", None)
            if message.id in ids:
                last = message.id
                subagents.update({last: owner} if owner else {})
            elif owner and message.id not in removed and message.role not in ("reasoning", "activity"):
                behind.setdefault(last, []).append(message)
        yield from behind.get(None, ())
        for message in stated:
            owner = subagents.get(message.id)
            yield message if owner is None else message.model_copy(update={"subagent_run_id": owner})
            yield from behind.get(message.id, ())

    def _stamped(self, events: list[Event]) -> list[Event]:
        if self._clock is None:
            return events
        return [event.model_copy(update={"timestamp": self._clock()}) for event in events]


def _ignore(event: Event) -> None:
    """The view is unknown."""
