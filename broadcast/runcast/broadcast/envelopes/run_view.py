"""The mapper's state of one run: its status, open steps and calls, and the length of each text.

Bounded: argument text beyond a summary's need is not kept, and all but the status is dropped when the run ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from runcast.slim.protocol.chunk_expander import ChunkExpander

Draft = tuple[str, dict[str, Any]]  # type and payload, not yet placed
Status = Literal["in_progress", "completed", "failed", "interrupted", "cancelled"]

# The moves that a status may make. An ended run stays ended, but for RUN_ERROR, which the protocol lets overrule.
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
    """An open step."""

    number: int
    attempt: int
    started: int
    calls: int = 0
    errors: int = 0


@dataclass(slots=True)
class CallView:
    """A tool call without a result yet."""

    name: str
    owner: str | None
    started: int
    args: list[str] = field(default_factory=list[str])
    size: int = 0
    reported: bool = False  # agent.tool.started was made

    def add(self, delta: str) -> None:
        """Keep as much argument text as a summary can need."""
        if self.size < LONGEST_ARGS:
            self.args.append(delta[: LONGEST_ARGS - self.size])
            self.size += len(delta)


@dataclass(slots=True)
class TextView:
    """The state of a streamed text."""

    role: str = "assistant"
    owner: str | None = None
    index: int = 0  # of the next chunk
    half: str = ""  # the first half of a surrogate pair; the other comes with the next delta
    length: int = 0
    crc: int = 0  # of the text so far, to compare with a later snapshot
    tokens: int = 0  # output tokens that were reported with its chunks
    gone: bool = False  # a snapshot removed the message; deltas are dropped until it is started again


@dataclass(slots=True)
class RunView:
    """One run as its watchers see it."""

    run_id: str
    room: int = 0  # characters of text and ids that fit into an envelope, whichever they are
    status: Status | None = None
    step_count: int = 0  # steps completed
    started_steps: int = 0
    steps: dict[tuple[str | None, str], StepView] = field(
        default_factory=dict[tuple[str | None, str], StepView]
    )
    calls: dict[str, CallView] = field(default_factory=dict[str, CallView])
    texts: dict[str, TextView] = field(default_factory=dict[str, TextView])
    thoughts: dict[str, TextView] = field(default_factory=dict[str, TextView])
    chunks: ChunkExpander = field(default_factory=ChunkExpander)  # expands the shorthand events
    # id -> (name, started)
    subagents: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    response_id: str | None = None
    response: str = ""
    partial: bool = False  # its beginning was not mapped here, so what belongs to that gives no envelope

    def move(self, status: Status) -> bool:
        """Take a new status where the table allows it; False when it stays."""
        if status not in MOVES[self.status]:
            return False
        self.status = status
        return True

    def ended(self) -> None:
        """Drop the state that only an active run needs."""
        self.steps.clear()
        self.calls.clear()
        self.texts.clear()
        self.thoughts.clear()
        self.subagents.clear()

    def has_room(self, payload: dict[str, Any]) -> bool:
        """Whether a chunk is so small that it fits without being measured."""
        owner: str = payload.get("subagent_run_id", "")
        return len(payload["chunk"]) + len(payload["message_id"]) + len(owner) <= self.room

    def current_step(self, owner: str | None) -> int | None:
        """The number of this owner's open step, when there is exactly one."""
        if not self.steps:
            return None
        numbers = [step.number for (who, _), step in self.steps.items() if who == owner]
        return numbers[0] if len(numbers) == 1 else None


def owned(payload: dict[str, Any], owner: str | None) -> dict[str, Any]:
    """The payload, with the subagent it belongs to where there is one."""
    if owner is not None:
        payload["subagent_run_id"] = owner
    return payload
