"""What a host drives: any framework, or any home-made agent, behind three methods.

Knows the shape that `Cast` and the HTTP endpoint ask for; does not know any framework.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from ag_ui.core import AgentCapabilities, Event, Interrupt, Message, RunAgentInput


@runtime_checkable
class ResumePoint(Protocol):
    """What a framework needs to go on from: a slim snapshot fits it without being imported."""

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation so far, valid for a model."""
        ...

    @property
    def state(self) -> Any:
        """The agent's state, as last sent."""
        ...

    @property
    def interrupts(self) -> Sequence[Interrupt]:
        """The questions that wait for an answer."""
        ...

    @property
    def framework(self) -> Mapping[str, Any]:
        """What the framework itself left to find its place again, e.g. `{"checkpoint_id": ...}`."""
        ...


@runtime_checkable
class Adapter(Protocol):
    """An agent that can be run, stopped and asked what it can do; serves any number of runs at once."""

    name: str

    def run(self, input: RunAgentInput, *, resume: ResumePoint | None = None) -> AsyncIterator[Event]:
        """One run as AG-UI events: RUN_STARTED first, a terminal event last, whatever happens."""
        ...

    async def stop(self, run_id: str, *, hard: bool = False) -> None:
        """End a run: at the next border the framework has, or at once when `hard`."""
        ...

    def capabilities(self) -> AgentCapabilities:
        """What this agent can do, as the protocol words it."""
        ...
