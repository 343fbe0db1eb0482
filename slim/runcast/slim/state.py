"""The whole picture of a thread: what was said, done, spent, asked, and where to go on.

`AgentState` is that picture, `StateBuilder` grows it event by event. Neither cuts or hides anything: that is the
serializer's work. Knows the protocol and runcast's notes in `metadata["runcast"]`; does not know logs or frameworks.
A state fits `ResumePoint`, the shape in which adapters take up a thread.
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

from runcast.slim.fold import Conversation
from runcast.slim.jsonlike import is_mapping
from runcast.slim.pairs import valid_for_model
from runcast.slim.steps import NOTES, StepBook, StepRecord, Usage, notes
from runcast.slim.weight import text_bytes, weight

if TYPE_CHECKING:
    from runcast.slim.entry import Entry
    from runcast.slim.wire import AnyEvent

__all__ = ["AgentState", "StateBuilder"]

_STATUS = {
    "running": "in_progress",
    "success": "completed",
    "interrupt": "interrupted",
    "cancelled": "cancelled",
    "failed": "failed",
}
_OURS = frozenset({NOTES, "ag-ui", "runcast.input"})  # metadata that is not the application's


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
    run_usage: Usage = field(
        default_factory=Usage
    )  # the part of it that a run still going has reported so far
    started_at: int | None = None
    updated_at: int | None = None
    cumulative_seconds: float = 0.0  # time spent running, without the pauses between runs
    history: Sequence[Message] = ()  # all messages as they are
    content_bytes: int = 0  # what the messages weigh, so that nobody has to look at all of them
    steps: Sequence[StepRecord] = ()
    last_continuation: Mapping[str, Any] | None = None
    interrupts: Sequence[Interrupt] = ()
    pending_tool_call_ids: Sequence[str] = ()  # calls that the client is to answer
    state: Any = field(default_factory=dict[str, Any])
    state_known: bool = True  # false: it was too big for the snapshot this was read from
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])  # the application's own
    framework: Mapping[str, Any] = field(default_factory=dict[str, Any])  # what the framework needs to go on
    seq: int | None = None  # of the last log entry in it
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])  # what a snapshot left out
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])  # what a newer snapshot said besides
    half_said: Sequence[str] = ()  # ids of messages that a run broke off, or that are under way

    @property
    def messages(self) -> list[Message]:
        """The conversation, valid for a model: no call without its result, nothing that was half said."""
        return self.to_messages()

    def to_messages(self, *, half_said: bool = False) -> list[Message]:
        """As `messages`; `half_said` leaves in what was, for an agent that has a record of its own to judge it by."""
        waiting = {interrupt.tool_call_id for interrupt in self.interrupts if interrupt.tool_call_id}
        history, half = self.history, frozenset(() if half_said else self.half_said)
        said = [message for message in history if message.id not in half] if half else history
        return valid_for_model(said, waiting.union(self.pending_tool_call_ids))

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
        """The state after these events; with `base`, after what came before them too."""
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
        """What a conversation alone can tell: no steps and no times."""
        runs = conversation.runs
        latest = runs[-1] if runs else None
        thread_id = next((run.thread_id for run in reversed(runs) if run.thread_id is not None), None)
        return cls(
            agent_id=agent_id or thread_id or "agent",
            parent_agent_id=parent_agent_id,
            thread_id=thread_id,
            run_id=None if latest is None else latest.run_id,
            status="in_progress" if latest is None else _STATUS[latest.status],
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
    """Grows a state event by event. One object per thread."""

    def __init__(
        self,
        agent_id: str | None = None,
        *,
        parent_agent_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        base: AgentState | None = None,
    ) -> None:
        """With `base`, go on from it. `agent_id` is by default what the run says of itself, else the thread's id."""
        self._base = base or AgentState(agent_id="")
        self._agent_id = agent_id or self._base.agent_id
        self._parent_agent_id = parent_agent_id or self._base.parent_agent_id
        self._metadata = {**self._base.metadata, **(metadata or {})}
        self._named: str | None = None  # what the agent calls itself
        self.conversation = Conversation(self._base.history, half_said=self._base.half_said)
        if base is not None:
            self.conversation.feed(StateSnapshotEvent(snapshot=base.state))
            self.conversation.pending_interrupts = list(base.interrupts)
        self._steps = StepBook(self._base.steps, self._base.step_count)
        self._usage = self._base.usage - self._base.run_usage  # of the runs that are over
        self._spent = self._base.run_usage  # by this run so far, as its messages say
        self._seconds = self._base.cumulative_seconds  # of the runs that are over
        self._started_at = self._base.started_at
        self._updated_at = self._base.updated_at
        self._running = base is not None and base.status == "in_progress"
        self._run_since = self._base.updated_at if self._running else None
        self._thread_id, self._run_id = self._base.thread_id, self._base.run_id
        self._continuation = self._base.last_continuation
        self._framework = self._base.framework
        self._seq = self._base.seq
        self._state_known = self._base.state_known
        self._bytes: int | None = self._base.content_bytes  # None: to be counted anew

    def feed(self, event: AnyEvent, *, at: int | None = None, seq: int | None = None) -> None:
        """Take the next event; `at` is when it was received, for events that do not say when they happened."""
        if isinstance(event, RunStartedEvent):
            self._close_run()  # the run before it was cut short, and lasted as long as it was heard of
        own: object = getattr(event, "timestamp", None)
        when = own if isinstance(own, int) else at
        if when is not None:
            self._updated_at = max(when, self._updated_at or when)
        self._seq = seq if seq is not None else self._seq
        self._weigh(event)
        self._note(event, when)
        self.conversation.feed(event)

    def feed_entry(self, entry: Entry) -> None:
        """Take the next entry of a log."""
        self.feed(entry.event, at=entry.at, seq=entry.seq)

    def state(self) -> AgentState:
        """The state as it is now. Its history is a view that grows with the builder: serialise it before feeding on."""
        conversation, base = self.conversation, self._base
        if self._bytes is None:
            self._bytes = sum(map(weight, conversation.history))
        latest = conversation.runs[-1] if conversation.runs else None
        return AgentState(
            agent_id=self._agent_id or self._named or self._thread_id or "agent",
            parent_agent_id=self._parent_agent_id,
            thread_id=self._thread_id,
            run_id=self._run_id,
            status=base.status if latest is None else _STATUS[latest.status],
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
        """Keep count of what the messages weigh without looking at all of them."""
        match event:
            case TextMessageContentEvent() | ToolCallArgsEvent() | ReasoningMessageContentEvent():
                self._add(text_bytes(event.delta))
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
                self._steps.started(event.subagent_run_id, event.step_name, notes(event), when)
            case StepFinishedEvent():
                self._steps.finished(event.subagent_run_id, event.step_name, notes(event), when)
                self._continue(notes(event))
            case ToolCallStartEvent():
                self._steps.called(event.tool_call_id, event.tool_call_name)
            case ToolCallChunkEvent() if event.tool_call_id and event.tool_call_name:
                self._steps.called(event.tool_call_id, event.tool_call_name)
            case ToolCallResultEvent():
                self._steps.answered(error=notes(event).get("error") is True)
            case TextMessageEndEvent() | ToolCallEndEvent():
                self._steps.spoke(notes(event))
                self._spent += Usage.of_note(notes(event).get("usage")) or Usage()
            case _:
                pass

    def _run_started(self, event: RunStartedEvent, when: int | None) -> None:
        self._running = True
        self._run_since = when
        self._started_at = when if self._started_at is None else self._started_at
        self._thread_id, self._run_id = event.thread_id, event.run_id
        named = notes(event).get("agent")
        self._named = named if isinstance(named, str) else self._named
        self._metadata |= {key: value for key, value in (event.metadata or {}).items() if key not in _OURS}
        self._steps.run_started()

    def _run_ended(self, event: RunFinishedEvent | RunErrorEvent, when: int | None) -> None:
        said = notes(event)
        self._steps.run_ended(said, when, failed=isinstance(event, RunErrorEvent))
        if event.usage:
            self._spent = Usage.of_rows(event.usage)
        framework = said.get("framework")
        if is_mapping(framework):
            self._framework = framework
        self._continue(said)
        self._close_run()

    def _close_run(self) -> None:
        """Move what this run took and cost to what all runs did."""
        self._seconds += self._running_seconds()
        self._usage += self._spent
        self._spent = Usage()
        self._running = False

    def _continue(self, said: Mapping[str, Any]) -> None:
        continuation = said.get("continuation")
        if is_mapping(continuation):
            self._continuation = continuation


def _awaited(conversation: Conversation) -> tuple[str, ...]:
    """Calls that a finished run left to the client; a run still going, or cut short, awaits nobody."""
    latest = conversation.runs[-1] if conversation.runs else None
    return tuple(latest.pending_tool_call_ids or ()) if latest is not None else ()
