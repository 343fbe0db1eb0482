"""The input of a run and what it continues from, without the unfinished messages of a run that broke.

An adapter that reconciles the history by a record of its own gets everything. Any other agent gets its input without the
unfinished messages, and the client gets events that retract them. Knows states; does not know which run broke, or why.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ag_ui.core import Event, Message, RunAgentInput

from runcast.adapters import Adapter, Anchored, ResumePoint
from runcast.slim import AgentState, Conversation
from runcast.slim.folding.retraction import retract


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run that is about to begin."""

    input: RunAgentInput
    base: AgentState | None = None  # the thread before the run
    attempt: int = 1
    resume: ResumePoint | None = None
    left: Mapping[str, Any] | None = None  # where the thread's last run left the adapter's framework
    before: object = None  # the traceparent of the attempt that this run resumes
    # emitted right after RUN_STARTED, given the messages of its input
    corrections: Callable[[Sequence[Message]], Sequence[Event]] = lambda asked: ()

    def opened(self, adapter: Adapter) -> AsyncIterator[Event]:
        """The run, as its adapter gives it."""
        if self.left and isinstance(adapter, Anchored):
            return adapter.run_after(self.left, self.input, resume=self.resume)
        return adapter.run(self.input, resume=self.resume)


def without_unfinished(adapter: Adapter, plan: RunPlan) -> RunPlan:
    """The plan with unfinished messages removed and retracted, where the adapter does not do so itself."""
    base, asked = plan.base, plan.input
    if base is None or not base.half_said or adapter.reconciles_history:
        return plan
    unfinished = frozenset(base.half_said)
    kept = replace(base, history=[each for each in asked.messages if each.id not in unfinished])
    return replace(
        plan,
        input=asked.model_copy(update={"messages": kept.messages}),
        resume=_without(plan.resume, unfinished),
        corrections=partial(_retracting, base),
    )


def _retracting(base: AgentState, asked: Sequence[Message]) -> list[Event]:
    """Events that retract unfinished messages; `asked` are the messages that RUN_STARTED adds."""
    known = {message.id for message in base.history}
    shown = Conversation([*base.history, *(message for message in asked if message.id not in known)])
    now = time.time_ns() // 1_000_000
    return [event.model_copy(update={"timestamp": now}) for event in retract(shown, list(base.half_said))]


def _without(point: ResumePoint | None, unfinished: frozenset[str]) -> ResumePoint | None:
    if not isinstance(point, AgentState):
        return point
    return replace(point, history=[each for each in point.history if each.id not in unfinished], half_said=())
