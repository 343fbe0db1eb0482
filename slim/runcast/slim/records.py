"""What is noted beside messages and state: how each run went, and which events came to nothing. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ag_ui.core import RunErrorEvent, TokenUsage

__all__ = ["Problem", "RunRecord"]

# How a run said it ended, and how it stands when its error is counted too.
Outcome = Literal["success", "interrupt", "cancelled"]
Status = Literal["running", "success", "interrupt", "cancelled", "failed"]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run as its stream tells it. A run that was cut short has no outcome and no error: nobody knows how it ended."""

    run_id: str | None  # None: a terminal event came without a RUN_STARTED
    thread_id: str | None = None
    parent_run_id: str | None = None  # as the wire says it; the store's lineage is the truth
    outcome: Outcome | None = None
    result: Any = None
    error: RunErrorEvent | None = None  # also after an outcome: a RUN_ERROR behind RUN_FINISHED fails the run
    usage: tuple[TokenUsage, ...] | None = None
    pending_tool_call_ids: tuple[str, ...] | None = None  # unanswered calls; None unless the run succeeded

    @property
    def status(self) -> Status:
        """How the run stands: its error counts before its outcome."""
        return "failed" if self.error is not None else self.outcome or "running"


@dataclass(frozen=True, slots=True)
class Problem:
    """An event, counted from 0, that changed nothing or not all it meant to, and why."""

    index: int
    type: str
    reason: str
