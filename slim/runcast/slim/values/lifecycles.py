"""The lifecycles of AG-UI: the things that events start, continue and end, with the field of their id.

One table for the verifier, ownership, chunks, late join, redaction, compaction and older dialects. Knows event types and
field names; holds no state. Subagents and runs have rules of their own and are not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal

from ag_ui.core import (
    BaseEvent,
    ReasoningEndEvent,
    ReasoningMessageChunkEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallChunkEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)

Phase = Literal["start", "content", "end", "chunk"]


@dataclass(frozen=True, slots=True, eq=False)
class Lifecycle:
    """One kind of thing that events start, continue and end."""

    name: str
    noun: str  # for messages to people
    id_field: str
    start: type[BaseEvent]
    end: type[BaseEvent]
    content: type[BaseEvent] | None = None  # carries a delta
    chunk: type[BaseEvent] | None = None  # the shorthand for all three
    key: Callable[[Any], str] = field(init=False)  # reads the id of an event

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", attrgetter(self.id_field))


STEP = Lifecycle("step", "step", "step_name", StepStartedEvent, StepFinishedEvent)
SPAN = Lifecycle("span", "reasoning span", "message_id", ReasoningStartEvent, ReasoningEndEvent)
TEXT = Lifecycle(
    "text",
    "text message",
    "message_id",
    TextMessageStartEvent,
    TextMessageEndEvent,
    TextMessageContentEvent,
    TextMessageChunkEvent,
)
REASONING = Lifecycle(
    "reasoning",
    "reasoning message",
    "message_id",
    ReasoningMessageStartEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageChunkEvent,
)
CALL = Lifecycle(
    "call",
    "tool call",
    "tool_call_id",
    ToolCallStartEvent,
    ToolCallEndEvent,
    ToolCallArgsEvent,
    ToolCallChunkEvent,
)

STREAMS = (TEXT, REASONING, CALL)  # those that carry deltas
DELTAS = frozenset(life.content for life in STREAMS)  # nearly every event; none begins or ends a run
LIFECYCLES = (STEP, SPAN, *STREAMS)  # in the order in which they nest

PHASES: Mapping[type, tuple[Lifecycle, Phase]] = {
    **{life.start: (life, "start") for life in LIFECYCLES},
    **{life.content: (life, "content") for life in LIFECYCLES if life.content is not None},
    **{life.end: (life, "end") for life in LIFECYCLES},
    **{life.chunk: (life, "chunk") for life in LIFECYCLES if life.chunk is not None},
}
"""The lifecycle of each event, and its phase."""


def wire_type(event: type[BaseEvent]) -> str:
    """The `type` of an event on the wire: `TEXT_MESSAGE_START`."""
    return str(event.model_fields["type"].default.value)
