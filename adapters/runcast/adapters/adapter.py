"""What a host runs: any framework, or an agent of one's own, behind one protocol.

Knows the shape that `Cast` and the HTTP endpoints need; does not know any framework.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from ag_ui.core import AgentCapabilities, Event, Interrupt, Message, RunAgentInput, UserMessage


@runtime_checkable
class ResumePoint(Protocol):
    """What a framework needs to continue a thread. A slim snapshot fits it and is not imported."""

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation so far, valid for a model."""
        ...

    @property
    def history(self) -> Sequence[Message] | None:
        """Every message that the client shows, unfinished ones included; None where that is unknown."""
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
        """What the framework left to find its place again, for example `{"checkpoint_id": ...}`."""
        ...


@runtime_checkable
class Adapter(Protocol):
    """An agent that can be run and stopped and lists its capabilities; serves any number of runs at once."""

    name: str

    @property
    def reconciles_history(self) -> bool:
        """Whether it corrects unfinished messages of a failed run by a record of its own.

        If False, the host removes them from the agent's input and retracts them from the client's view.
        """
        ...

    def run(self, input: RunAgentInput, *, resume: ResumePoint | None = None) -> AsyncIterator[Event]:
        """One run as AG-UI events: RUN_STARTED first, one terminal event last, whatever happens.

        The input's messages are the host's: an adapter that changes one copies it first.
        """
        ...

    async def stop(self, run_id: str, *, hard: bool = False) -> None:
        """End a run: at the framework's next step border, or at once when `hard`."""
        ...

    def capabilities(self) -> AgentCapabilities:
        """What this agent can do, in the protocol's words."""
        ...


# ------------------------------------------------------------------ an optional member


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A node; `id` is unique in its drawing."""

    id: str
    name: str
    kind: Literal["start", "end", "node", "agent", "tool"] = "node"


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """An edge between two nodes, by their ids; `conditional` ones are taken or not."""

    source: str
    target: str
    label: str = ""
    conditional: bool = False


@dataclass(frozen=True, slots=True)
class Drawing:
    """Nodes and edges, without places: who draws them decides where they are."""

    nodes: Sequence[DrawnNode] = ()
    edges: Sequence[DrawnEdge] = ()

    @classmethod
    def read(cls, given: dict[str, Any]) -> Drawing:
        """A drawing from its fields as plain values."""
        return cls(
            [DrawnNode(**each) for each in given["nodes"]], [DrawnEdge(**each) for each in given["edges"]]
        )


@runtime_checkable
class Drawable(Protocol):
    """An adapter whose framework knows the shape of its agents."""

    def drawing(self) -> Drawing:
        """The agent's graph; an empty one where it cannot be drawn."""
        ...


def drawing_of(adapter: object) -> Drawing:
    """What an adapter draws, or an empty drawing."""
    return adapter.drawing() if isinstance(adapter, Drawable) else Drawing()


class Kept(Protocol):
    """What a framework keeps of threads, as it moves to another store: rows of JSON values."""

    def rows(self, thread_id: str, *, prefix: str = "") -> AsyncIterator[dict[str, Any]]:
        """What is kept of a thread; nothing for one that the framework does not know. Inside the framework the ids of the
        thread and its runs carry the prefix."""
        ...

    async def store(self, thread_id: str, rows: Sequence[dict[str, Any]], *, prefix: str = "") -> None:
        """Store such rows, from wherever they come; reading them runs nothing. `InvalidInput` for rows that are none, and
        for a thread that is there already; then nothing was stored."""
        ...


@runtime_checkable
class Portable(Protocol):
    """An adapter that can export and import what its framework keeps of a thread."""

    @property
    def kept(self) -> Kept:
        """What its framework keeps."""
        ...


@runtime_checkable
class Forgetting(Protocol):
    """An adapter that can delete what its framework keeps of a thread."""

    async def forget(self, thread_id: str) -> None:
        """Delete it; harmless to repeat, and for a thread that the framework does not know."""
        ...


@runtime_checkable
class Anchored(Protocol):
    """An adapter whose framework keeps threads where a worker that had lost its lease may have stored something last."""

    def run_after(
        self, place: Mapping[str, Any], input: RunAgentInput, *, resume: ResumePoint | None = None
    ) -> AsyncIterator[Event]:
        """As `run`, of a thread whose last run left the framework at this place (`ResumePoint.framework`).

        What a run that was over by then has stored since is passed over.
        """
        ...


Take = Callable[[], Awaitable[Sequence[UserMessage]]]
STEER: dict[str, bool] = {"steer": True}  # in `custom` of the capabilities of an agent that can be steered


@runtime_checkable
class Steerable(Protocol):
    """An adapter that can hand a message to an agent while it runs; its capabilities have `STEER` where the agent can."""

    async def steer(self, run_id: str, take: Take) -> None:
        """Before the run's next model call, hand it what `take` returns then, and emit it there.

        A message whose id the framework already holds is not added again. Raises `UnknownRun`. A run that makes no more
        model call takes nothing.
        """
        ...


def can_steer(adapter: Adapter) -> bool:
    """Whether this agent takes messages while it runs, by its capabilities."""
    return (adapter.capabilities().custom or {}).get("steer") is True
