"""What each type of event is to the streams of text: a piece of one, its border, or neither; and which fields stay as they are.

Knows the protocol's types, fields and lifecycles; does not know what a secret is, or any text.
"""

from __future__ import annotations

from typing import Any

from ag_ui.core import (
    ActivitySnapshotEvent,
    MessagesSnapshotEvent,
    ReasoningEndEvent,
    ReasoningStartEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentFinishedEvent,
    SubagentStartedEvent,
    TextMessageStartEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.slim.values.lifecycles import PHASES, STREAMS

# `TERSE` events hold ids, counts and words of the program, hardly a text of their own: a run has many of few outlines.
# So does a `BORDER`, which begins or ends a stream. `START` and `FINISH` are those of a run, and `PLAIN` are all others.
PLAIN, START, FINISH, CHUNK, TERSE, BORDER, DELTA = range(7)
_PART = {"start": BORDER, "content": DELTA, "end": BORDER, "chunk": CHUNK}
_CONTENT: dict[type, str] = {TextMessageStartEvent: "name", ToolCallStartEvent: "tool_call_name"}
_TERSE = (
    *(StepStartedEvent, StepFinishedEvent, SubagentStartedEvent, SubagentFinishedEvent),
    *(ReasoningStartEvent, ReasoningEndEvent),
)

# What an event is to the stream it names: its part, the drawer of that stream, the field with its id, and, for a
# border, the one field besides metadata that may hold content.
PARTS: dict[type[Any], tuple[int, int, str, str]] = {
    **dict.fromkeys(_TERSE, (TERSE, 0, "", "")),
    **{
        event: (_PART[phase], STREAMS.index(life), life.id_field, _CONTENT.get(event, "metadata"))
        for event, (life, phase) in PHASES.items()
        if life in STREAMS
    },
    RunStartedEvent: (START, 0, "", ""),
    RunFinishedEvent: (FINISH, 0, "", ""),
}
OTHER = (PLAIN, 0, "", "")  # the part of a type that is not in `PARTS`
CHUNKS = {event: name for event, (part, _, name, _) in PARTS.items() if part == CHUNK}  # with the id's field
MINTS = (ToolCallResultEvent, ActivitySnapshotEvent)  # make or replace the message they name
# These bring all messages anew, or end them.
RESTATES = (MessagesSnapshotEvent, RunStartedEvent, RunFinishedEvent, RunErrorEvent)

# Names and ids, never content. Opaque provider values must come back unchanged.
EXEMPT_FIELDS = frozenset(
    {
        *("type", "role", "id", "message_id", "tool_call_id", "thread_id", "run_id", "parent_run_id", "op"),
        *(
            "parent_message_id",
            "subagent_run_id",
            "parent_subagent_run_id",
            "parent_tool_call_id",
            "entity_id",
        ),
        *(
            "interrupt_id",
            "interrupt_ids",
            "pending_tool_call_ids",
            "encrypted_value",
            "mime_type",
            "timestamp",
        ),
        *("protocol_version", "expires_at", "subtype", "usage"),
    }
)
