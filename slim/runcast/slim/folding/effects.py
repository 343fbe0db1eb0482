"""The effect of each event on a client's view, as the client of AG-UI 1.0 (`defaultApplyEvents`) has it.

`EFFECTS` is the table: the type of an event, and a function that changes the `View`. It returns the reason where the event
has no effect, or not its whole effect; the client warns there. Chunks have none before they are expanded. Knows nothing of
validity, or of how a history is made smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    CustomEvent,
    MessagesSnapshotEvent,
    RawEvent,
    ReasoningEncryptedValueEvent,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.slim.errors import PatchRefused
from runcast.slim.folding.run_records import RunBook
from runcast.slim.folding.transcript import Body, Call, Transcript
from runcast.slim.folding.unfinished import UnfinishedMessages
from runcast.slim.protocol.chunk_expander import ChunkExpander
from runcast.slim.values.json_patch import Document, operations_of
from runcast.slim.values.type_guards import as_list, is_list, is_object
from runcast.slim.wire.encoders import in_json_types

if TYPE_CHECKING:
    from runcast.slim.wire.codec import AnyEvent


@dataclass(slots=True)
class View:
    """What a client holds after the events so far."""

    transcript: Transcript
    state: Document
    unfinished: UnfinishedMessages
    runs: RunBook
    chunks: ChunkExpander = field(default_factory=ChunkExpander)
    growing: dict[str, list[str]] = field(default_factory=dict[str, list[str]])  # message -> its text parts
    passed: list[AnyEvent] = field(default_factory=list["AnyEvent"])  # events for the application alone
    keep_passed: bool = False

    def call(self, key: str) -> Call | None:
        """The tool call with this id, in whichever message it stands."""
        node = self.transcript.holder(key)
        return None if node is None else node.body.call(key)

    def home(self, call_id: str) -> str:
        """The id of the message that holds an existing call."""
        node = self.transcript.holder(call_id)
        assert node is not None
        return node.body.key


Effect = Callable[[View, Any], str | None]


def _none(view: View, event: AnyEvent) -> None:
    """The event changes nothing and is not for the application either."""


def passes(view: View, event: AnyEvent) -> None:
    """The event is for the application alone."""
    if view.keep_passed:
        view.passed.append(event)


# ---------------------------------------------------------------- text and reasoning


def _start_text(view: View, event: TextMessageStartEvent) -> str | None:
    return _start_message(view, event, event.role or "assistant", event.name)


def _start_reasoning(view: View, event: ReasoningMessageStartEvent) -> str | None:
    return _start_message(view, event, "reasoning", None)


def _start_message(
    view: View, event: TextMessageStartEvent | ReasoningMessageStartEvent, role: str, name: str | None
) -> str | None:
    """A new message; an existing one with this id keeps its role, name and owner."""
    node = view.transcript.find(event.message_id)
    if node is None:
        data = {"id": event.message_id, "role": role, "content": ""}
        if name is not None:
            data["name"] = name
        if event.subagent_run_id is not None:
            data["subagentRunId"] = event.subagent_run_id
        node = view.transcript.append(Body(data))
    elif node.body.role == "activity":
        return f"message {event.message_id!r} is an activity; ids must be unique across roles"
    node.body.merge(event.metadata)
    view.unfinished.began("message", event.message_id, event.message_id)
    return None


def _content(view: View, event: TextMessageContentEvent | ReasoningMessageContentEvent) -> str | None:
    node = view.transcript.find(event.message_id)
    if node is None or node.body.role == "activity":
        return f"there is no text message {event.message_id!r}; start it first"
    text = node.body.append(event.delta)
    node.body.merge(event.metadata)
    if not view.chunks.lanes:
        view.growing[event.message_id] = text
    return None


def _end_message(view: View, event: TextMessageEndEvent | ReasoningMessageEndEvent) -> str | None:
    node = view.transcript.find(event.message_id)
    if node is None or node.body.role == "activity":
        return f"there is no text message {event.message_id!r}; start it first"
    node.body.merge(event.metadata)
    view.unfinished.ended("message", event.message_id, event.message_id, event)
    return None


def _encrypted(view: View, event: ReasoningEncryptedValueEvent) -> str | None:
    data: dict[str, Any] | None = None
    if event.subtype == "tool-call":
        call = view.call(event.entity_id)
        data = None if call is None else call.data
    else:
        node = view.transcript.find(event.entity_id)
        data = None if node is None or node.body.role == "activity" else node.body.open()
    if data is not None:
        data["encryptedValue"] = event.encrypted_value
        kind = (event.model_extra or {}).get("encryptedValueType")  # of AG-UI 1.1's draft
        data |= {} if kind is None else {"encryptedValueType": kind}
        return None
    return f"there is no {event.subtype} {event.entity_id!r} to hold the encrypted value"


# ---------------------------------------------------------------- tool calls


def _start_call(view: View, event: ToolCallStartEvent) -> str | None:
    key = event.tool_call_id
    view.runs.called(key)
    call, problem = view.call(key), None
    if call is None:
        call, problem = _new_call(view, event)
    else:
        call.data["function"]["name"] = event.tool_call_name
    call.merge(event.metadata)
    view.unfinished.began("call", key, view.home(key))
    return problem


def _new_call(view: View, event: ToolCallStartEvent) -> tuple[Call, str | None]:
    """A call joins the assistant message it names; without one it gets a message of its own."""
    key, parent, problem = event.tool_call_id, event.parent_message_id, None
    node = view.transcript.find(parent) if parent else None
    if node is None or node.body.role != "assistant":
        if node is not None:
            problem = f"parent {parent!r} is no assistant message; the call stands on its own"
        home = parent if parent and node is None else key
        data: dict[str, Any] = {"id": home, "role": "assistant", "toolCalls": []}
        if event.subagent_run_id is not None and view.transcript.find(home) is None:
            data["subagentRunId"] = event.subagent_run_id
        node = view.transcript.append(Body(data))
    return view.transcript.add_call(node, key, event.tool_call_name), problem


def _args(view: View, event: ToolCallArgsEvent) -> str | None:
    call = view.call(event.tool_call_id)
    if call is None:
        return f"there is no tool call {event.tool_call_id!r}; start it first"
    call.parts.append(event.delta)
    call.merge(event.metadata)
    return None


def _end_call(view: View, event: ToolCallEndEvent) -> str | None:
    call = view.call(event.tool_call_id)
    if call is None:
        return f"there is no tool call {event.tool_call_id!r}; start it first"
    call.merge(event.metadata)
    view.unfinished.ended("call", event.tool_call_id, view.home(event.tool_call_id), event)
    return None


def _result(view: View, event: ToolCallResultEvent) -> None:
    view.runs.answered(event.tool_call_id)
    content = event.content
    data: dict[str, Any] = {
        "id": event.message_id,
        "toolCallId": event.tool_call_id,
        "role": "tool",
        "content": content if isinstance(content, str) else [in_json_types(part) for part in content],
    }
    if event.subagent_run_id is not None:
        data["subagentRunId"] = event.subagent_run_id
    if event.metadata is not None:
        data["metadata"] = event.metadata
    view.transcript.insert_result(event.tool_call_id, Body(data))


# ---------------------------------------------------------------- state and snapshots


def _state_snapshot(view: View, event: StateSnapshotEvent) -> None:
    view.state = Document(event.snapshot)


def _state_delta(view: View, event: StateDeltaEvent) -> str | None:
    failure = view.state.patch(operations_of(event.delta))
    return None if failure is None else f"the patch does not apply to the state: {failure}"


def _messages_snapshot(view: View, event: MessagesSnapshotEvent) -> None:
    bodies = [Body.of(message) for message in event.messages]
    roles = {body.role for body in bodies}
    owned = _authoritative_activity_types(event.metadata, whole="activity" in roles)

    def keep(body: Body) -> bool:
        if body.role == "activity":
            return owned is not None and body.activity_type() not in owned
        return body.role == "reasoning" and "reasoning" not in roles

    view.transcript.restate(bodies, keep)
    view.unfinished.restated(event)


def _authoritative_activity_types(metadata: dict[str, Any] | None, *, whole: bool) -> list[str] | None:
    """The activity types that a MESSAGES_SNAPSHOT removes by leaving them out; None means every type.

    The client's convention: a snapshot declares them under its own metadata key. Without that it owns all activities if
    it restates any of them (`whole`), and a declaration that cannot be read owns none.
    """
    declared = (metadata or {}).get("@ag-ui/client", {})
    if not is_object(declared):
        return []
    if "authoritativeActivityTypes" not in declared:
        return None if whole else []
    types = declared["authoritativeActivityTypes"]
    if types is None:
        return None
    named = as_list(types) if is_list(types) else []
    return named if all(isinstance(each, str) for each in named) else []


def _activity_snapshot(view: View, event: ActivitySnapshotEvent) -> None:
    node = view.transcript.find(event.message_id)
    body = node.body if node is not None else None
    if body is None or event.replace is not False:
        data: dict[str, Any] = {
            "id": event.message_id,
            "role": "activity",
            "activityType": event.activity_type,
            "content": event.content,
        }
        if event.subagent_run_id is not None:
            data["subagentRunId"] = event.subagent_run_id
        if body is not None and body.role == "activity":
            former = body.wire()
            data = {**{key: former[key] for key in former if key != "subagentRunId"}, **data}
        body = Body(data)
        if node is None:
            view.transcript.append(body)
        else:
            view.transcript.replace(node, body)
    if body.role == "activity":
        body.merge(event.metadata)


def _activity_delta(view: View, event: ActivityDeltaEvent) -> str | None:
    node = view.transcript.find(event.message_id)
    if node is None or node.body.role != "activity":
        return f"there is no activity {event.message_id!r}; send its snapshot first"
    node.body.merge(event.metadata)
    patched = node.body.patched(operations_of(event.patch), event.activity_type)
    if isinstance(patched, PatchRefused):
        return f"the patch does not apply to activity {event.message_id!r}: {patched}"
    node.body = patched
    return None


# ---------------------------------------------------------------- runs


def _start_run(view: View, event: RunStartedEvent) -> None:
    view.runs.start(event)
    view.unfinished.broke()  # the run before may be unfinished
    for message in event.input.messages if event.input is not None else ():
        if view.transcript.find(message.id) is None:
            view.transcript.append(Body.of(message))


def _finish_run(view: View, event: RunFinishedEvent) -> None:
    view.runs.finish(event)
    if isinstance(event.outcome, RunFinishedCancelledOutcome):
        view.unfinished.broke()
    else:
        view.unfinished.settled()


def _fail_run(view: View, event: RunErrorEvent) -> None:
    view.runs.fail(event)
    view.unfinished.broke()


_FOR_THE_APPLICATION = (
    *(CustomEvent, RawEvent, StepStartedEvent, StepFinishedEvent),
    *(SubagentStartedEvent, SubagentFinishedEvent, SubagentErrorEvent),
)
EFFECTS: Mapping[type, Effect] = {
    **dict.fromkeys(_FOR_THE_APPLICATION, passes),
    **dict.fromkeys((ReasoningStartEvent, ReasoningEndEvent), _none),
    **dict.fromkeys((TextMessageContentEvent, ReasoningMessageContentEvent), _content),
    **dict.fromkeys((TextMessageEndEvent, ReasoningMessageEndEvent), _end_message),
    ActivityDeltaEvent: _activity_delta,
    ActivitySnapshotEvent: _activity_snapshot,
    MessagesSnapshotEvent: _messages_snapshot,
    ReasoningEncryptedValueEvent: _encrypted,
    ReasoningMessageStartEvent: _start_reasoning,
    RunErrorEvent: _fail_run,
    RunFinishedEvent: _finish_run,
    RunStartedEvent: _start_run,
    StateDeltaEvent: _state_delta,
    StateSnapshotEvent: _state_snapshot,
    TextMessageStartEvent: _start_text,
    ToolCallArgsEvent: _args,
    ToolCallEndEvent: _end_call,
    ToolCallResultEvent: _result,
    ToolCallStartEvent: _start_call,
}
