"""Records beside messages and state: how each run went, what it left unanswered, and which events had no effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ag_ui.core import (
    Interrupt,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    TokenUsage,
)

# The outcome of a run on the wire, and its status when its error counts too.
Outcome = Literal["success", "interrupt", "cancelled"]
Status = Literal["running", "success", "interrupt", "cancelled", "failed"]
# The status of an ended run in the log, in snapshots and in envelopes.
EndStatus = Literal["completed", "interrupted", "cancelled", "failed"]

_END: Mapping[Outcome, EndStatus] = {
    "success": "completed",
    "interrupt": "interrupted",
    "cancelled": "cancelled",
}


def end_status(event: RunFinishedEvent | RunErrorEvent) -> EndStatus:
    """The status of a run that ends with this event. RUN_FINISHED without an outcome is a success."""
    if isinstance(event, RunErrorEvent):
        return "failed"
    return "completed" if event.outcome is None else _END[event.outcome.type]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run as its stream describes it. An unfinished run has no outcome and no error: its end is unknown."""

    run_id: str | None  # None: a terminal event came without a RUN_STARTED
    thread_id: str | None = None
    parent_run_id: str | None = None  # the wire's parentRunId; the store's lineage is the truth
    outcome: Outcome | None = None
    result: Any = None
    error: RunErrorEvent | None = None  # also after an outcome: a RUN_ERROR after RUN_FINISHED fails the run
    usage: tuple[TokenUsage, ...] | None = None
    pending_tool_call_ids: tuple[str, ...] | None = None  # unanswered calls; None unless the run succeeded

    @property
    def status(self) -> Status:
        """The status of the run: its error counts before its outcome."""
        return "failed" if self.error is not None else self.outcome or "running"

    @property
    def end_status(self) -> EndStatus | Literal["in_progress"]:
        """The same as the log, snapshots and envelopes spell it."""
        if self.error is not None:
            return "failed"
        return "in_progress" if self.outcome is None else _END[self.outcome]


class RunBook:
    """The runs of a conversation, and what the latest one left to the user and to the client."""

    __slots__ = ("_answered", "_called", "interrupts", "records")

    def __init__(self, interrupts: Iterable[Interrupt] = ()) -> None:
        self.records: list[RunRecord] = []
        self.interrupts = list(interrupts)
        self._called: dict[str, None] = {}  # tool calls of this run, in order
        self._answered: set[str] = set()

    def start(self, event: RunStartedEvent) -> None:
        """A run begins."""
        self.records.append(RunRecord(event.run_id, event.thread_id, event.parent_run_id))
        self._called = {}
        self._answered = set()

    def called(self, call_id: str) -> None:
        """The run calls a tool."""
        self._called.setdefault(call_id)

    def answered(self, call_id: str) -> None:
        """A call got its result."""
        self._answered.add(call_id)

    def finish(self, event: RunFinishedEvent) -> None:
        """The run ends with an outcome."""
        outcome, changes = event.outcome, dict[str, Any]()
        if event.usage is not None:
            changes["usage"] = tuple(event.usage)
        if event.result is not None:
            changes["result"] = event.result
        self.interrupts = list(outcome.interrupts) if isinstance(outcome, RunFinishedInterruptOutcome) else []
        if outcome is None or isinstance(outcome, RunFinishedSuccessOutcome):
            named = outcome.pending_tool_call_ids if outcome is not None else None
            changes["pending_tool_call_ids"] = tuple(named or self._unanswered())
        self._amend(outcome="success" if outcome is None else outcome.type, **changes)

    def fail(self, event: RunErrorEvent) -> None:
        """The run ends with an error."""
        self._amend(error=event)

    def pending(self) -> list[str]:
        """Calls that the latest run left without an answer, or has so far."""
        named = self.records[-1].pending_tool_call_ids if self.records else None
        return self._unanswered() if named is None else list(named)

    def _unanswered(self) -> list[str]:
        return [key for key in self._called if key not in self._answered]

    def _amend(self, **changes: Any) -> None:
        if not self.records:
            self.records.append(RunRecord(None))
        self.records[-1] = replace(self.records[-1], **changes)


@dataclass(frozen=True, slots=True)
class Problem:
    """An event, counted from 0, that had no effect or not its whole effect, and why."""

    index: int
    type: str
    reason: str
