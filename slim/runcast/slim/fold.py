"""What a stream of events amounts to: messages, state, interrupts, runs.

Holds to one rule: after any events, a `Conversation` says what the client of AG-UI 1.0 (`defaultApplyEvents`) would
hold, however odd the stream. What that client ignores with a warning is ignored here and listed in `problems`.
Knows nothing of validity (a verifier's work), of storage, or of how a history is made smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    CustomEvent,
    Interrupt,
    Message,
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
    RunFinishedInterruptOutcome,
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
    ToolCall,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from pydantic import BaseModel

from runcast.slim.chunks import ChunkExpander
from runcast.slim.dispatch import nearest
from runcast.slim.errors import InvalidStream
from runcast.slim.halves import Halves
from runcast.slim.patch import Document, clone, operations_of
from runcast.slim.records import Problem, RunRecord
from runcast.slim.transcript import Body, Call, History, Transcript

if TYPE_CHECKING:
    from runcast.slim.wire import AnyEvent

__all__ = ["Conversation", "fold"]


def fold(events: Iterable[AnyEvent], into: Conversation | None = None) -> Conversation:
    """Fold events into a conversation: a new one, or `into`, which is changed and returned."""
    conversation = Conversation() if into is None else into
    for event in events:
        conversation.feed(event)
    return conversation


class Conversation:
    """A client's view, event by event. What its properties return is to be read, not changed."""

    def __init__(
        self,
        messages: Iterable[Message] = (),
        state: Any = None,
        *,
        keep_passed: bool = False,
        max_problems: int = 1_000,
        half_said: Iterable[str] = (),
    ) -> None:
        """Start from what a client holds; without `state` from `{}`, as a client does."""
        self._halves = Halves(half_said)
        self._transcript = Transcript(Body.of(message) for message in messages)
        self._state = Document({} if state is None else state)
        self._chunks = ChunkExpander()
        self._runs: list[RunRecord] = []
        self._started: dict[str, None] = {}  # tool calls this run started, in order
        self._answered: set[str] = set()  # tool calls this run answered
        self._keep_passed = keep_passed
        self._max_problems = max_problems
        self._fed = 0
        self.pending_interrupts: list[Interrupt] = []  # what the user has to answer before the next run
        self.problems: list[Problem] = []  # the first `max_problems` of them
        self.problem_count = 0  # all of them
        self.passed: list[
            AnyEvent
        ] = []  # with `keep_passed`: events that are for the application alone, in order

    def feed(self, event: AnyEvent) -> None:
        """Take the next event of the stream."""
        handler = self._HANDLERS.get(type(event))
        if handler is None or self._chunks.lanes:
            self._expand(event)
        else:
            handler(self, event)
        self._fed += 1

    @property
    def messages(self) -> list[Message]:
        """The messages, in the client's order."""
        return [body.model() for body in self._transcript]

    @property
    def history(self) -> Sequence[Message]:
        """The messages as they stand whenever one looks; either end is reached without making the others."""
        return History(self._transcript)

    @property
    def half_said(self) -> list[str]:
        """The messages whose streams a run broke off, or that are under way: not to be taken for said.

        One of whose calls a result came stays: somebody acted on it.
        """
        nodes = [(key, self._transcript.find(key)) for key in self._halves]
        return [key for key, node in nodes if node is not None and not node.acted_on()]

    @property
    def state(self) -> Any:
        """The shared state: any JSON value."""
        return self._state.value

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """The runs seen, oldest first; the last one may still be running."""
        return tuple(self._runs)

    @property
    def pending_tool_call_ids(self) -> list[str]:
        """Calls that the latest run left without an answer, or so far if it is running."""
        settled = self._runs[-1].pending_tool_call_ids if self._runs else None
        return self._unanswered() if settled is None else list(settled)

    @property
    def pending_tool_calls(self) -> list[ToolCall]:
        """The calls of `pending_tool_call_ids` that stand in a message."""
        calls = [self.tool_call(key) for key in self.pending_tool_call_ids]
        return [call for call in calls if call is not None]

    def role_of(self, message_id: str) -> str | None:
        """The role of the first message with this id; None if there is none."""
        node = self._transcript.find(message_id)
        return None if node is None else node.body.role

    def holds_call(self, tool_call_id: str) -> bool:
        """Whether some message holds this tool call."""
        return self._transcript.holder(tool_call_id) is not None

    def tool_call(self, tool_call_id: str) -> ToolCall | None:
        """The tool call with this id, in whichever message it stands."""
        call = self._call(tool_call_id)
        return None if call is None else call.model()

    def wire_messages(self) -> list[dict[str, Any]]:
        """The messages as the wire would spell them; a copy."""
        return [clone(body.wire()) for body in self._transcript]

    def _expand(self, event: AnyEvent) -> None:
        """Chunks, events that may end a chunked stream, subclasses, and types that nobody knows."""
        try:
            expanded = self._chunks.feed(event)
        except InvalidStream as problem:
            self._problem(event, str(problem))
            return
        for each in expanded:
            handler = nearest(self._HANDLERS, type(each))
            if handler is None:
                self._problem(each, "nobody knows this type of event")
                self._pass(each)
            else:
                handler(self, each)

    def _problem(self, event: AnyEvent, reason: str) -> None:
        self.problem_count += 1
        if len(self.problems) < self._max_problems:
            kind = str(getattr(event.type, "value", event.type))
            self.problems.append(Problem(self._fed, kind, reason))

    def _pass(self, event: AnyEvent) -> None:
        if self._keep_passed:
            self.passed.append(event)

    def _quiet(self, event: AnyEvent) -> None:
        """Events that neither change the view nor are for the application alone."""

    # text and reasoning

    def _start_text(self, event: TextMessageStartEvent) -> None:
        self._start_message(event, event.role or "assistant", event.name)

    def _start_reasoning(self, event: ReasoningMessageStartEvent) -> None:
        self._start_message(event, "reasoning", None)

    def _start_message(
        self, event: TextMessageStartEvent | ReasoningMessageStartEvent, role: str, name: str | None
    ) -> None:
        """A new message, unless there is one with this id already: then it keeps its role, name and owner."""
        node = self._transcript.find(event.message_id)
        if node is None:
            data = {"id": event.message_id, "role": role, "content": ""}
            if name is not None:
                data["name"] = name
            if event.subagent_run_id is not None:
                data["subagentRunId"] = event.subagent_run_id
            node = self._transcript.append(Body(data))
        elif node.body.role == "activity":
            self._problem(
                event, f"message {event.message_id!r} is an activity; ids must be unique across roles"
            )
            return
        node.body.merge(event.metadata)
        self._halves.began("message", event.message_id, event.message_id)

    def _content(self, event: TextMessageContentEvent | ReasoningMessageContentEvent) -> None:
        node = self._transcript.find(event.message_id)
        if node is None or node.body.role == "activity":
            self._problem(event, f"there is no text message {event.message_id!r}; start it first")
            return
        node.body.append(event.delta)
        if event.metadata is not None:
            node.body.merge(event.metadata)

    def _end_message(self, event: TextMessageEndEvent | ReasoningMessageEndEvent) -> None:
        node = self._transcript.find(event.message_id)
        if node is None or node.body.role == "activity":
            self._problem(event, f"there is no text message {event.message_id!r}; start it first")
            return
        node.body.merge(event.metadata)
        self._halves.ended("message", event.message_id, event.message_id, event)

    def _encrypted(self, event: ReasoningEncryptedValueEvent) -> None:
        if event.subtype == "tool-call":
            call = self._call(event.entity_id)
            if call is not None:
                call.data["encryptedValue"] = event.encrypted_value
                return
        else:
            node = self._transcript.find(event.entity_id)
            if node is not None and node.body.role != "activity":
                node.body.open()["encryptedValue"] = event.encrypted_value
                return
        self._problem(event, f"there is no {event.subtype} {event.entity_id!r} to hold the encrypted value")

    # tool calls

    def _call(self, key: str) -> Call | None:
        node = self._transcript.holder(key)
        return None if node is None else node.body.call(key)

    def _start_call(self, event: ToolCallStartEvent) -> None:
        key = event.tool_call_id
        self._started.setdefault(key)
        call = self._call(key)
        if call is None:
            call = self._new_call(event)
        else:
            call.data["function"]["name"] = event.tool_call_name
        call.merge(event.metadata)
        self._halves.began("call", key, self._home(key))

    def _home(self, key: str) -> str:
        """The message of a call that there is."""
        node = self._transcript.holder(key)
        assert node is not None
        return node.body.key

    def _new_call(self, event: ToolCallStartEvent) -> Call:
        """A call joins the assistant message it names; without one it gets a message of its own."""
        key, parent = event.tool_call_id, event.parent_message_id
        node = self._transcript.find(parent) if parent else None
        if node is None or node.body.role != "assistant":
            if node is not None:
                self._problem(event, f"parent {parent!r} is no assistant message; the call stands on its own")
            home = parent if parent and node is None else key
            data: dict[str, Any] = {"id": home, "role": "assistant", "toolCalls": []}
            if event.subagent_run_id is not None and self._transcript.find(home) is None:
                data["subagentRunId"] = event.subagent_run_id
            node = self._transcript.append(Body(data))
        return self._transcript.add_call(node, key, event.tool_call_name)

    def _args(self, event: ToolCallArgsEvent) -> None:
        call = self._call(event.tool_call_id)
        if call is None:
            self._problem(event, f"there is no tool call {event.tool_call_id!r}; start it first")
            return
        call.parts.append(event.delta)
        call.merge(event.metadata)

    def _end_call(self, event: ToolCallEndEvent) -> None:
        call = self._call(event.tool_call_id)
        if call is None:
            self._problem(event, f"there is no tool call {event.tool_call_id!r}; start it first")
            return
        call.merge(event.metadata)
        self._halves.ended("call", event.tool_call_id, self._home(event.tool_call_id), event)

    def _result(self, event: ToolCallResultEvent) -> None:
        self._answered.add(event.tool_call_id)
        content = event.content
        data: dict[str, Any] = {
            "id": event.message_id,
            "toolCallId": event.tool_call_id,
            "role": "tool",
            "content": content if isinstance(content, str) else [_plain(part) for part in content],
        }
        if event.subagent_run_id is not None:
            data["subagentRunId"] = event.subagent_run_id
        if event.metadata is not None:
            data["metadata"] = event.metadata
        self._transcript.insert_result(event.tool_call_id, Body(data))

    # state and snapshots

    def _state_snapshot(self, event: StateSnapshotEvent) -> None:
        self._state = Document(event.snapshot)

    def _state_delta(self, event: StateDeltaEvent) -> None:
        failure = self._state.patch(operations_of(event.delta))
        if failure is not None:
            self._problem(event, f"the patch does not apply to the state: {failure}")

    def _messages_snapshot(self, event: MessagesSnapshotEvent) -> None:
        bodies = [Body.of(message) for message in event.messages]
        roles = {body.role for body in bodies}
        owned = _authoritative_activity_types(event.metadata, whole="activity" in roles)

        def keep(body: Body) -> bool:
            if body.role == "activity":
                return owned is not None and body.activity_type() not in owned
            return body.role == "reasoning" and "reasoning" not in roles

        self._transcript.restate(bodies, keep)
        self._halves.restated(event)

    def _activity_snapshot(self, event: ActivitySnapshotEvent) -> None:
        node = self._transcript.find(event.message_id)
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
                self._transcript.append(body)
            else:
                self._transcript.replace(node, body)
        if body.role == "activity":
            body.merge(event.metadata)

    def _activity_delta(self, event: ActivityDeltaEvent) -> None:
        node = self._transcript.find(event.message_id)
        if node is None or node.body.role != "activity":
            self._problem(event, f"there is no activity {event.message_id!r}; send its snapshot first")
            return
        node.body.merge(event.metadata)
        patched = node.body.patched(operations_of(event.patch), event.activity_type)
        if isinstance(patched, str):
            self._problem(event, f"the patch does not apply to activity {event.message_id!r}: {patched}")
        else:
            node.body = patched

    # runs

    def _start_run(self, event: RunStartedEvent) -> None:
        self._runs.append(RunRecord(event.run_id, event.thread_id, event.parent_run_id))
        self._started = {}
        self._answered = set()
        self._halves.broke()  # where the run before was cut short
        for message in event.input.messages if event.input is not None else ():
            if self._transcript.find(message.id) is None:
                self._transcript.append(Body.of(message))

    def _finish_run(self, event: RunFinishedEvent) -> None:
        outcome, changes = event.outcome, dict[str, Any]()
        if event.usage is not None:
            changes["usage"] = tuple(event.usage)
        if event.result is not None:
            changes["result"] = event.result
        self.pending_interrupts = []
        match outcome:
            case RunFinishedInterruptOutcome():
                changes["outcome"] = "interrupt"
                self.pending_interrupts = list(outcome.interrupts)
            case RunFinishedCancelledOutcome():
                changes["outcome"] = "cancelled"
            case _:
                named = outcome.pending_tool_call_ids if outcome is not None else None
                changes["outcome"] = "success"
                changes["pending_tool_call_ids"] = tuple(named or self._unanswered())
        if changes["outcome"] == "cancelled":
            self._halves.broke()
        else:
            self._halves.settled()
        self._amend_run(**changes)

    def _fail_run(self, event: RunErrorEvent) -> None:
        self._halves.broke()
        self._amend_run(error=event)

    def _amend_run(self, **changes: Any) -> None:
        if not self._runs:
            self._runs.append(RunRecord(None))
        self._runs[-1] = replace(self._runs[-1], **changes)

    def _unanswered(self) -> list[str]:
        return [key for key in self._started if key not in self._answered]

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        ActivityDeltaEvent: _activity_delta,
        ActivitySnapshotEvent: _activity_snapshot,
        CustomEvent: _pass,
        MessagesSnapshotEvent: _messages_snapshot,
        RawEvent: _pass,
        ReasoningEncryptedValueEvent: _encrypted,
        ReasoningEndEvent: _quiet,
        ReasoningMessageContentEvent: _content,
        ReasoningMessageEndEvent: _end_message,
        ReasoningMessageStartEvent: _start_reasoning,
        ReasoningStartEvent: _quiet,
        RunErrorEvent: _fail_run,
        RunFinishedEvent: _finish_run,
        RunStartedEvent: _start_run,
        StateDeltaEvent: _state_delta,
        StateSnapshotEvent: _state_snapshot,
        StepFinishedEvent: _pass,
        StepStartedEvent: _pass,
        SubagentErrorEvent: _pass,
        SubagentFinishedEvent: _pass,
        SubagentStartedEvent: _pass,
        TextMessageContentEvent: _content,
        TextMessageEndEvent: _end_message,
        TextMessageStartEvent: _start_text,
        ToolCallArgsEvent: _args,
        ToolCallEndEvent: _end_call,
        ToolCallResultEvent: _result,
        ToolCallStartEvent: _start_call,
    }


def _plain(part: BaseModel) -> dict[str, Any]:
    return part.model_dump(mode="json", by_alias=True)


def _authoritative_activity_types(metadata: dict[str, Any] | None, *, whole: bool) -> list[str] | None:
    """The activity types a MESSAGES_SNAPSHOT removes by leaving them out; None means every type.

    The client's convention: a snapshot says so under its own metadata key, else it owns all activities if it
    restates `whole`, that is any of them, and a declaration that cannot be read owns none.
    """
    found = (metadata or {}).get("@ag-ui/client", {})
    if not isinstance(found, dict):
        return []
    declared = cast("dict[str, object]", found)
    if "authoritativeActivityTypes" not in declared:
        return None if whole else []
    types = declared["authoritativeActivityTypes"]
    if types is None:
        return None
    named = cast("list[object]", types) if isinstance(types, list) else []
    texts = [each for each in named if isinstance(each, str)]
    return texts if len(texts) == len(named) else []
