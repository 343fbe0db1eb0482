"""The complete state of a thread: messages, steps, usage, open questions, and the data for a resume.

`StateBuilder` builds an `AgentState` event by event. Neither cuts or redacts: the serializer does. A state is a
`ResumePoint`, from which adapters resume a thread. Knows the protocol and runcast's metadata; does not know logs or
frameworks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ag_ui.core import (
    Interrupt,
    Message,
    MessagesSnapshotEvent,
    ReasoningMessageChunkEvent,
    ReasoningMessageContentEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    ToolCallArgsEvent,
    ToolCallChunkEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.slim.folding.conversation import Conversation
from runcast.slim.folding.run_metadata import INPUT_KEY, METADATA_KEY, RunMetadata, metadata_of
from runcast.slim.folding.step_records import StepBook, StepRecord, Usage
from runcast.slim.snapshots.message_weight import text_bytes, weight
from runcast.slim.snapshots.tool_pairs import valid_for_model
from runcast.slim.values.lifecycles import DELTAS
from runcast.slim.values.type_guards import is_mapping

if TYPE_CHECKING:
    from runcast.slim.entry import Entry
    from runcast.slim.wire.codec import AnyEvent

_OURS = frozenset({METADATA_KEY, "ag-ui", INPUT_KEY})  # metadata that is not the application's


@dataclass(frozen=True, slots=True)
class AgentState:
    """A thread as it stands, unbounded. Times are milliseconds since the Unix epoch, UTC."""

    agent_id: str
    parent_agent_id: str | None = None
    thread_id: str | None = None
    run_id: str | None = None  # the latest run
    status: str = "in_progress"  # or completed, failed, interrupted, cancelled
    step_count: int = 0  # finished, over all runs
    usage: Usage = field(default_factory=Usage)
    run_usage: Usage = field(default_factory=Usage)  # the part of it that belongs to an active run
    started_at: int | None = None
    updated_at: int | None = None
    cumulative_seconds: float = 0.0  # time spent running, without the pauses between runs
    history: Sequence[Message] = ()  # all messages as they are
    content_bytes: int = 0  # size of all messages, kept so that a snapshot need not read them
    steps: Sequence[StepRecord] = ()
    last_continuation: Mapping[str, Any] | None = None
    interrupts: Sequence[Interrupt] = ()
    pending_tool_call_ids: Sequence[str] = ()  # calls that the client must answer
    state: Any = field(default_factory=dict[str, Any])
    state_known: bool = True  # false: it was too big for the snapshot
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])  # the application's own
    framework: Mapping[str, Any] = field(default_factory=dict[str, Any])  # what the framework needs to resume
    seq: int | None = None  # of the last log entry
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])  # counts of what a snapshot left out
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])  # unknown fields of a newer snapshot
    half_said: Sequence[str] = ()  # ids of unfinished messages

    @property
    def messages(self) -> list[Message]:
        """The conversation, valid for a model: no call without its result, results in the order of their calls, nothing unfinished."""
        return self.to_messages()

    def to_messages(self, *, half_said: bool = False) -> list[Message]:
        """As `messages`; `half_said` keeps unfinished ones, for an agent that compares them with its own record."""
        waiting = {interrupt.tool_call_id for interrupt in self.interrupts if interrupt.tool_call_id}
        history, half = self.history, frozenset(() if half_said else self.half_said)
        kept = [message for message in history if message.id not in half] if half else history
        return valid_for_model(kept, waiting.union(self.pending_tool_call_ids))

    @classmethod
    def from_events(
        cls,
        events: Iterable[AnyEvent],
        agent_id: str | None = None,
        *,
        parent_agent_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        base: AgentState | None = None,
    ) -> AgentState:
        """The state after these events, which continue `base`."""
        builder = StateBuilder(agent_id, parent_agent_id=parent_agent_id, metadata=metadata, base=base)
        for event in events:
            builder.feed(event)
        return builder.state()

    @classmethod
    def from_conversation(
        cls,
        conversation: Conversation,
        agent_id: str | None = None,
        *,
        parent_agent_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> AgentState:
        """The state of a conversation alone, without steps and times."""
        runs = conversation.runs
        latest = runs[-1] if runs else None
        thread_id = next((run.thread_id for run in reversed(runs) if run.thread_id is not None), None)
        return cls(
            agent_id=agent_id or thread_id or "agent",
            parent_agent_id=parent_agent_id,
            thread_id=thread_id,
            run_id=None if latest is None else latest.run_id,
            status="in_progress" if latest is None else latest.end_status,
            usage=sum((Usage.of_rows(run.usage or ()) for run in runs), Usage()),
            history=conversation.history,
            half_said=tuple(conversation.half_said),
            content_bytes=sum(map(weight, conversation.history)),
            interrupts=tuple(conversation.pending_interrupts),
            pending_tool_call_ids=_awaited(conversation),
            state=conversation.state,
            metadata=dict(metadata or {}),
        )


class StateBuilder:
    """Builds a state event by event. One object per thread."""

    def __init__(
        self,
        agent_id: str | None = None,
        *,
        parent_agent_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        base: AgentState | None = None,
    ) -> None:
        """Continue `base`, if given. `agent_id` is by default the agent's name in the run, else the thread's id."""
        self._base = base or AgentState(agent_id="")
        self._agent_id = agent_id or self._base.agent_id
        self._parent_agent_id = parent_agent_id or self._base.parent_agent_id
        self._metadata = {**self._base.metadata, **(metadata or {})}
        self._named: str | None = None  # the agent's name in the run
        self.conversation = Conversation(
            self._base.history, half_said=self._base.half_said, pending_interrupts=self._base.interrupts
        )
        if base is not None:
            self.conversation.feed(StateSnapshotEvent(snapshot=base.state))
        self._steps = StepBook(self._base.steps, self._base.step_count)
        self._usage = self._base.usage - self._base.run_usage  # of ended runs
        self._spent = self._base.run_usage  # by this run so far, from its messages
        self._seconds = self._base.cumulative_seconds  # of ended runs
        self._started_at = self._base.started_at
        self._updated_at = self._base.updated_at
        self._running = base is not None and base.status == "in_progress"
        self._run_since = self._base.updated_at if self._running else None
        self._thread_id, self._run_id = self._base.thread_id, self._base.run_id
        self._continuation = self._base.last_continuation
        self._framework = self._base.framework
        self._seq = self._base.seq
        self._state_known = self._base.state_known
        self._bytes: int | None = self._base.content_bytes  # None: must be counted again

    def feed(self, event: AnyEvent, *, at: int | None = None, seq: int | None = None) -> None:
        """Add the next event; `at` is its time of receipt, for events without a timestamp."""
        delta = type(event) in DELTAS
        if not delta and isinstance(event, RunStartedEvent):
            self._close_run()  # the run before it has no end and lasted until its last event
        own: object = getattr(event, "timestamp", None)
        when = own if isinstance(own, int) else at
        if when is not None and (self._updated_at is None or when > self._updated_at):
            self._updated_at = when
        self._seq = seq if seq is not None else self._seq
        if delta:  # nearly every event: only its size counts
            self._add(text_bytes(event.__dict__["delta"]))
        else:
            self._weigh(event)
            self._note(event, when)
        self.conversation.feed(event)

    def feed_entry(self, entry: Entry) -> None:
        """Add the next entry of a log."""
        self.feed(entry.event, at=entry.at, seq=entry.seq)

    def state(self) -> AgentState:
        """The state now. Its history is a view that grows with the builder: serialise it before the next event."""
        conversation, base = self.conversation, self._base
        if self._bytes is None:
            self._bytes = sum(map(weight, conversation.history))
        latest = conversation.runs[-1] if conversation.runs else None
        return AgentState(
            agent_id=self._agent_id or self._named or self._thread_id or "agent",
            parent_agent_id=self._parent_agent_id,
            thread_id=self._thread_id,
            run_id=self._run_id,
            status=base.status if latest is None else latest.end_status,
            step_count=self._steps.count,
            usage=self._usage + self._spent,
            run_usage=self._spent,
            started_at=self._started_at,
            updated_at=self._updated_at,
            cumulative_seconds=round(self._seconds + self._running_seconds(), 3),
            history=conversation.history,
            half_said=tuple(conversation.half_said),
            content_bytes=self._bytes,
            steps=self._steps.records,
            last_continuation=self._continuation,
            interrupts=tuple(conversation.pending_interrupts),
            pending_tool_call_ids=base.pending_tool_call_ids if latest is None else _awaited(conversation),
            state=conversation.state,
            state_known=self._state_known,
            metadata=dict(self._metadata),
            framework=self._framework,
            seq=self._seq,
            dropped=base.dropped,
            extra=base.extra,
        )

    def _running_seconds(self) -> float:
        if not self._running or self._run_since is None or self._updated_at is None:
            return 0.0
        return max(0, self._updated_at - self._run_since) / 1000

    def _weigh(self, event: AnyEvent) -> None:
        """Update the size of the messages without reading all of them."""
        match event:
            case TextMessageContentEvent() | ToolCallArgsEvent() | ReasoningMessageContentEvent():
                self._add(text_bytes(event.delta))  # of a class of one's own
            case TextMessageChunkEvent() | ToolCallChunkEvent() | ReasoningMessageChunkEvent():
                self._add(text_bytes(event.delta or ""))
            case ToolCallResultEvent() if isinstance(event.content, str):
                self._add(text_bytes(event.content))
            case RunStartedEvent(input=given) if given is not None:
                new = [each for each in given.messages if self.conversation.role_of(each.id) is None]
                self._add(sum(map(weight, new)))
            case ToolCallResultEvent() | MessagesSnapshotEvent():
                self._bytes = None
            case _:
                pass

    def _add(self, size: int) -> None:
        if self._bytes is not None:
            self._bytes += size

    def _note(self, event: AnyEvent, when: int | None) -> None:
        match event:
            case RunStartedEvent():
                self._run_started(event, when)
            case StateSnapshotEvent():
                self._state_known = True
            case RunFinishedEvent() | RunErrorEvent():
                self._run_ended(event, when)
            case StepStartedEvent():
                self._steps.started(event.subagent_run_id, event.step_name, metadata_of(event), when)
            case StepFinishedEvent():
                self._steps.finished(event.subagent_run_id, event.step_name, metadata_of(event), when)
                self._continue(metadata_of(event))
            case ToolCallStartEvent():
                self._steps.called(event.tool_call_id, event.tool_call_name)
            case ToolCallChunkEvent() if event.tool_call_id and event.tool_call_name:
                self._steps.called(event.tool_call_id, event.tool_call_name)
            case ToolCallResultEvent():
                self._steps.answered(error=metadata_of(event).get("error") is True)
            case TextMessageEndEvent() | ToolCallEndEvent():
                self._steps.message_ended(metadata_of(event))
                self._spent += Usage.of_metadata(metadata_of(event).get("usage")) or Usage()
            case _:
                pass

    def _run_started(self, event: RunStartedEvent, when: int | None) -> None:
        self._running = True
        self._run_since = when
        self._started_at = when if self._started_at is None else self._started_at
        self._thread_id, self._run_id = event.thread_id, event.run_id
        named = metadata_of(event).get("agent")
        self._named = named if isinstance(named, str) else self._named
        self._metadata |= {key: value for key, value in (event.metadata or {}).items() if key not in _OURS}
        self._steps.run_started()

    def _run_ended(self, event: RunFinishedEvent | RunErrorEvent, when: int | None) -> None:
        notes = metadata_of(event)
        self._steps.run_ended(notes, when, failed=isinstance(event, RunErrorEvent))
        if event.usage:
            self._spent = Usage.of_rows(event.usage)
        framework = notes.get("framework")
        if is_mapping(framework):
            self._framework = framework
        self._continue(notes)
        self._close_run()

    def _close_run(self) -> None:
        """Add this run's time and usage to those of all runs."""
        self._seconds += self._running_seconds()
        self._usage += self._spent
        self._spent = Usage()
        self._running = False

    def _continue(self, notes: RunMetadata) -> None:
        continuation = notes.get("continuation")
        if is_mapping(continuation):
            self._continuation = continuation


def _awaited(conversation: Conversation) -> tuple[str, ...]:
    """The calls that a finished run left to the client; an active or truncated run has none."""
    latest = conversation.runs[-1] if conversation.runs else None
    return tuple(latest.pending_tool_call_ids or ()) if latest is not None else ()
