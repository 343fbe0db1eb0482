"""Facts about a run that its events lack; plugins observe them.

An agent that runs as a tool (`AgentTool`) has a runner of its own, whose events the outer runner does not yield.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.adk.events.event import Event


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A request to a model, before its first event."""

    invocation_id: str
    agent: str
    message_count: int
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InnerRun:
    """The run of an agent that carries out a tool call."""

    invocation_id: str
    call_id: str
    agent: str
    description: str = ""
    within: str = ""
    """The invocation that made the call."""
    caller: str = ""
    """The agent that made it."""


@dataclass(frozen=True, slots=True)
class InnerPart:
    """The start of an inner run, one of its events, or its end."""

    run: InnerRun
    event: Event | None = None
    ended: bool = False
    error: BaseException | None = None
