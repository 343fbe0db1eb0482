"""What a broken run left half said, taken back before an agent goes on that cannot know of it.

Frameworks with a record of their own settle it by that; their adapters say so (`settles`). Any other agent is asked
without it, and the client is told what stays. Knows states; does not know which run broke, or why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ag_ui.core import Event, Message, RunAgentInput

from runcast.adapters import Adapter, ResumePoint
from runcast.adapters.shown import Shown
from runcast.slim import AgentState


@dataclass(frozen=True, slots=True)
class Mended:
    """What the agent is asked, what it goes on from, and what the client is told when it has begun."""

    input: RunAgentInput
    resume: ResumePoint | None
    corrections: Callable[[Sequence[Message]], Sequence[Event]] = lambda asked: ()


def settles(agent: object) -> bool:
    """Whether this agent, or the adapter around it, settles what a broken run had half said."""
    return getattr(agent, "settles", False) is True


def mended(
    adapter: Adapter, input: RunAgentInput, resume: ResumePoint | None, base: AgentState | None
) -> Mended:
    """The run as it is begun; `base` is the thread as it finds it."""
    if base is None or not base.half_said or settles(adapter):
        return Mended(input, resume)
    half = frozenset(base.half_said)
    said = replace(base, history=[each for each in input.messages if each.id not in half])
    return Mended(
        input.model_copy(update={"messages": said.messages}), _without(resume, half), partial(_told, base)
    )


def _told(base: AgentState, asked: Sequence[Message]) -> list[Event]:
    """What takes back the half; `asked` are the messages that the run's beginning shows besides."""
    known = {message.id for message in base.history}
    shown = Shown([*base.history, *(message for message in asked if message.id not in known)])
    now = time.time_ns() // 1_000_000
    events = shown.restate(list(base.half_said))
    return [event.model_copy(update={"timestamp": now}) for event in events]


def _without(point: ResumePoint | None, half: frozenset[str]) -> ResumePoint | None:
    if not isinstance(point, AgentState):
        return point
    return replace(point, history=[each for each in point.history if each.id not in half], half_said=())
