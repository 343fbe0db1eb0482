"""Reduces a history to its result: RUN_STARTED, MESSAGES_SNAPSHOT, STATE_SNAPSHOT, and how the run ended.

For an empty client, which then holds what the history would have given it: a MESSAGES_SNAPSHOT cannot reorder the messages
that a client already has. The run is the history's last one. Interrupts that an earlier run left open come first, with
that run's own borders. State that the history never set is left out, and an unfinished run stays unfinished.

The input that RUN_STARTED echoes is left out: its messages are restated, and merged in again they would end up in
other places. Unanswered calls are named in the outcome, since the events that started them are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar

from ag_ui.core import (
    ActivityMessage,
    BaseEvent,
    Message,
    MessagesSnapshotEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
)

from runcast.slim.errors import CheckpointRefused
from runcast.slim.folding.conversation import Conversation
from runcast.slim.folding.run_metadata import run_metadata

if TYPE_CHECKING:
    from runcast.slim.wire.codec import AnyEvent

# How a checkpoint treats two messages with one id.
Duplicates = Literal["refuse", "keep"]
E = TypeVar("E", bound=BaseEvent)


def checkpoint(events: Iterable[AnyEvent], *, duplicates: Duplicates = "refuse") -> list[AnyEvent]:
    """The few events that lead an empty client where these do. See `Checkpoint.events` for `duplicates`."""
    it = Checkpoint()
    for event in events:
        it.feed(event)
    return it.events(duplicates=duplicates)


class Checkpoint:
    """A checkpoint that keeps up with a history, event by event."""

    def __init__(self) -> None:
        self.conversation = Conversation()  # the history so far, folded
        self.started: RunStartedEvent | None = None  # the latest run
        self._ends: list[AnyEvent] = []  # how it ended: an outcome, an error, or first one and then the other
        self._asking: list[AnyEvent] = []  # the borders of the run whose interrupts are pending
        self._has_state = False  # the history set the state

    @property
    def running(self) -> bool:
        """Whether the history has no end of the latest run."""
        return self.started is not None and not self._ends

    def feed(self, event: AnyEvent) -> None:
        """Take the next event of the history."""
        self.conversation.feed(event)
        match event:
            case RunStartedEvent():
                self.started, self._ends = _bare(event.model_copy(update={"input": None})), []
            case RunFinishedEvent():
                end = self.named(event)
                self._ends.append(end)
                asks = isinstance(event.outcome, RunFinishedInterruptOutcome)
                self._asking = [self.started, end] if asks and self.started is not None else []
            case RunErrorEvent():
                self._ends.append(_bare(event))
            case StateSnapshotEvent() | StateDeltaEvent():
                self._has_state = True
            case _:
                pass

    def named(self, event: RunFinishedEvent) -> RunFinishedEvent:
        """The end of the latest run, with the calls it left unanswered named in a successful outcome."""
        pending = self.conversation.runs[-1].pending_tool_call_ids
        if pending and (event.outcome is None or isinstance(event.outcome, RunFinishedSuccessOutcome)):
            outcome = event.outcome or RunFinishedSuccessOutcome()
            outcome = outcome.model_copy(update={"pending_tool_call_ids": list(pending)})
            event = event.model_copy(update={"outcome": outcome})
        return _bare(event)

    def events(self, *, duplicates: Duplicates = "refuse") -> list[AnyEvent]:
        """The checkpoint. Raises CheckpointRefused where one MESSAGES_SNAPSHOT cannot express the conversation.

        Two messages with one id are refused, since a client that reads the checkpoint twice would mistake one for
        the other; `duplicates="keep"` is right for a client that is empty and reads it once.
        """
        return [*self.borders(), *self.snapshots(duplicates=duplicates), *self._ends]

    def borders(self) -> list[AnyEvent]:
        """The events before the snapshots: the run with the pending interrupts, if any, and the latest run."""
        if self.started is None:
            return []
        own = bool(self._asking) and self._asking[0] is self.started
        return [*([] if own else self._asking), self.started]

    def snapshots(self, *, duplicates: Duplicates = "refuse") -> list[AnyEvent]:
        """The messages and the state, each in one event, where there are any."""
        out: list[AnyEvent] = []
        messages = self.conversation.messages
        if messages:
            _check(messages, duplicates)
            metadata = run_metadata(half_said=self.conversation.half_said or None)
            out.append(MessagesSnapshotEvent(messages=messages, metadata=metadata))
        if self._has_state:
            out.append(StateSnapshotEvent(snapshot=self.conversation.state))
        return out


def _bare(event: E) -> E:
    """The event without the provider's raw event: a checkpoint is small."""
    return event if event.raw_event is None else event.model_copy(update={"raw_event": None})


def _check(messages: Sequence[Message], duplicates: Duplicates) -> None:
    seen: set[str] = set()
    for message in messages:
        if message.id in seen and duplicates == "refuse":
            raise CheckpointRefused(
                f"two messages share the id {message.id!r}; keep the compacted events instead"
            )
        seen.add(message.id)
        content: object = message.content
        if isinstance(message, ActivityMessage) and not isinstance(content, dict):
            raise CheckpointRefused(
                f"a patch left activity {message.id!r} with content that is no object, which no snapshot can hold"
            )
