"""What the mapper remembers of one run: its status, what is under way, and how far texts have come.

Bounded: argument text beyond what a summary needs is not kept, and everything goes when the run ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, cast

from runcast.slim.chunks import ChunkExpander

Draft = tuple[str, dict[str, Any]]  # type and payload, not yet placed
Status = Literal["in_progress", "completed", "failed", "interrupted", "cancelled"]

# From where a status may go where. An ended run is over, but for RUN_ERROR: the protocol lets it overrule.
MOVES: dict[Status | None, frozenset[Status]] = {
    None: frozenset({"in_progress", "completed", "failed", "interrupted", "cancelled"}),
    "in_progress": frozenset({"completed", "failed", "interrupted", "cancelled"}),
    "completed": frozenset({"failed"}),
    "interrupted": frozenset({"failed"}),
    "cancelled": frozenset({"failed"}),
    "failed": frozenset(),
}
LONGEST_ARGS = 65_536  # characters of one call's arguments kept for its summary


@dataclass(slots=True)
class StepView:
    """A step under way."""

    number: int
    attempt: int
    started: int
    calls: int = 0
    errors: int = 0


@dataclass(slots=True)
class CallView:
    """A tool call whose result is awaited."""

    name: str
    owner: str | None
    started: int
    args: list[str] = field(default_factory=list[str])
    size: int = 0
    told: bool = False  # agent.tool.started is out

    def add(self, delta: str) -> None:
        """Keep argument text as far as a summary can need it."""
        if self.size < LONGEST_ARGS:
            self.args.append(delta[: LONGEST_ARGS - self.size])
            self.size += len(delta)


@dataclass(slots=True)
class TextView:
    """How far a streamed text has come."""

    role: str = "assistant"
    owner: str | None = None
    index: int = 0  # of the next chunk
    half: str = ""  # the first half of a surrogate pair whose other half comes with the next delta
    length: int = 0
    crc: int = 0  # of the text so far: tells whether a later snapshot says something else
    gone: bool = False  # a snapshot took the message away; words for it go nowhere until it is started again


@dataclass(slots=True)
class RunView:
    """One run as its watchers know it."""

    run_id: str
    room: int = 0  # characters of text and ids that fit into an envelope whatever they are
    status: Status | None = None
    step_count: int = 0  # steps completed
    started_steps: int = 0
    steps: dict[tuple[str | None, str], StepView] = field(
        default_factory=dict[tuple[str | None, str], StepView]
    )
    calls: dict[str, CallView] = field(default_factory=dict[str, CallView])
    texts: dict[str, TextView] = field(default_factory=dict[str, TextView])
    thoughts: dict[str, TextView] = field(default_factory=dict[str, TextView])
    chunks: ChunkExpander = field(default_factory=ChunkExpander)  # spells out the shorthand events
    subagents: dict[str, tuple[str, int]] = field(
        default_factory=dict[str, tuple[str, int]]
    )  # id -> (name, started)
    response_id: str | None = None
    response: str = ""

    def move(self, status: Status) -> bool:
        """Take a new status where the table allows it; False when there is nothing to tell."""
        if status not in MOVES[self.status]:
            return False
        self.status = status
        return True

    def ended(self) -> None:
        """Let go of everything that only matters while the run goes on."""
        self.steps.clear()
        self.calls.clear()
        self.texts.clear()
        self.thoughts.clear()
        self.subagents.clear()

    def has_room(self, payload: dict[str, Any]) -> bool:
        """Whether a chunk is so small that it fits without being weighed."""
        owner: str = payload.get("subagent_run_id", "")
        return len(payload["chunk"]) + len(payload["message_id"]) + len(owner) <= self.room

    def current_step(self, owner: str | None) -> int | None:
        """The number of the one step this owner has under way, when it is only one."""
        if not self.steps:
            return None
        numbers = [step.number for (who, _), step in self.steps.items() if who == owner]
        return numbers[0] if len(numbers) == 1 else None


def owned(payload: dict[str, Any], owner: str | None) -> dict[str, Any]:
    """The payload, with the subagent it belongs to where there is one."""
    if owner is not None:
        payload["subagent_run_id"] = owner
    return payload


def notes(metadata: dict[str, Any] | None) -> dict[str, Any]:
    """What runcast's adapters noted on an event (`metadata["runcast"]`); nothing on foreign streams."""
    said = (metadata or {}).get("runcast")
    return cast("dict[str, Any]", said) if isinstance(said, dict) else {}
