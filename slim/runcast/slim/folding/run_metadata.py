"""Runcast's own metadata keys: those inside `metadata["runcast"]`, and the two keys beside it.

Adapters and the host write them on events; folding, snapshots and envelopes read them, and a snapshot that was read
back has some on messages and calls. `Key` is the table, and docs/protocol.md describes it. Streams of other producers
carry none, and a value may have any shape: a reader checks it before use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, TypeAlias, cast, get_args

from runcast.slim.values.type_guards import is_mapping

METADATA_KEY = "runcast"
INPUT_KEY = "runcast.input"  # on a stored RUN_STARTED: what its input left out, to restore it exactly
PLACE_KEY = "runcast.place"  # on a LangGraph message: the task that emitted it, and its superstep

Key: TypeAlias = Literal[
    # RUN_STARTED
    "agent",  # the agent's name
    "aside",  # true: the run is no agent's; also on its end
    "traceparent",  # the run's span, as W3C Trace Context writes it
    "attempt",  # which attempt of the run this is, counted from 1; also on steps
    "framework",  # the framework's name; on a terminal event a mapping: what the framework needs to resume
    "resumed_from",  # the framework's position that the run continues from
    # terminal events; steps carry the last of these too
    "step_count",  # steps of this run
    "continuation",  # why the loop went on or stopped: should_continue, stop_reason, resolved_by
    # STEP_STARTED and STEP_FINISHED
    "step_number",
    "node",  # the framework's own name of the step
    "task_id",
    "message_count",  # messages the step began with
    "available_tools",
    "has_tool_calls",
    "errors",  # how many errors the step had
    # the end of a step, of a message or of a call
    "finish_reason",
    "usage",  # tokens: prompt, completion, total; on text, the message's completion so far
    "model",
    "discarded",  # why the stream was broken off; the message is unfinished
    # TOOL_CALL_RESULT and tool messages
    "tool_name",
    "error",  # true: the tool failed
    # MESSAGES_SNAPSHOT
    "corrects",  # ids of what an earlier run streamed and this replaces, by kind: messages, reasoning
    "half_said",  # a checkpoint's ids of unfinished messages
    # an interrupt's own metadata
    "value",  # the framework's payload
    # messages and calls of a snapshot that was read back
    "original_length",
    "parts",  # what a list of parts held besides text
    "no_arguments",  # true: the snapshot left the arguments out
    "arguments_length",
    "arguments_changed",  # true: cut or redacted, not to be executed
    "by_reference",  # true: an activity whose content is in the log alone
]
RunMetadata: TypeAlias = Mapping[Key, Any]

KEYS: frozenset[str] = frozenset(get_args(Key))


class Annotated(Protocol):
    """Whatever carries metadata: an event, a message, a tool call, an interrupt."""

    metadata: dict[str, Any] | None


def run_metadata(**fields: Any) -> dict[str, Any] | None:
    """Metadata with these fields under runcast's key; None when all of them are None. Raises ValueError for an unknown key."""
    kept = {name: value for name, value in fields.items() if value is not None}
    if not KEYS.issuperset(kept):
        raise ValueError(
            f"{sorted(kept.keys() - KEYS)} are not in the table of metadata keys; add them to `Key`"
        )
    return {METADATA_KEY: kept} if kept else None


def metadata_of(carrier: Annotated) -> RunMetadata:
    """What runcast noted on an event, a message or a call; empty where there is nothing."""
    found = (carrier.metadata or {}).get(METADATA_KEY)
    return cast("RunMetadata", found) if is_mapping(found) else {}
