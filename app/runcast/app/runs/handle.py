"""What starting a run returns: the same handle for a run of this process and for one that another node drives.

`LocalRun` (`run.py`) drives an adapter; `RemoteRun` (`nodes/handover.py`) watches the log. Knows how a run ends;
does not know where it is driven.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ag_ui.core import (
    Interrupt,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    TokenUsage,
)

from runcast.adapters import Adapter
from runcast.slim.folding.run_records import end_status

if TYPE_CHECKING:
    from runcast.slim import AgentState

Accepted = Literal["started", "queued", "steering"]
Terminal = RunFinishedEvent | RunErrorEvent


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended."""

    thread_id: str
    run_id: str
    status: str  # completed, interrupted, cancelled, failed, or truncated when it could not be recorded
    last_seq: int
    interrupts: tuple[Interrupt, ...] = ()
    usage: tuple[TokenUsage, ...] = ()
    result: Any = None
    error: str | None = None
    code: str | None = None


class RunHandle(Protocol):
    """A run that was started. Watching it, or dropping the handle, does not affect the run."""

    adapter: Adapter
    input: RunAgentInput
    thread_id: str
    run_id: str
    attempt: int
    epoch: str  # of the log, once the run is in it
    first_seq: int  # of RUN_STARTED, once it is in the log
    last_seq: int

    @property
    def accepted(self) -> Accepted:
        """What became of the request: a run at once, one that waits its turn, or words for the agent that runs."""
        ...

    @property
    def active(self) -> bool:
        """Whether the run has not ended."""
        ...

    @property
    def state(self) -> AgentState:
        """The thread as this run has left it so far; another node's run raises `AppError`."""
        ...

    async def begun(self) -> None:
        """Wait until RUN_STARTED is in the log."""
        ...

    async def result(self) -> RunResult:
        """Wait for the end. Cancelling the wait does not stop the run."""
        ...

    async def over(self) -> None:
        """As `result`, without raising or returning anything."""
        ...

    async def stop(self, *, hard: bool = False) -> None:
        """End the run at the framework's next border, or at once when `hard`."""
        ...

    async def abandon(self) -> None:
        """Drop the run as a crash would. Another node's run goes on, and is only watched no more."""
        ...


def result_of(run: RunHandle, terminal: Terminal | None) -> RunResult:
    """The result that a terminal event describes; without one the run was cut short."""
    ids = (run.thread_id, run.run_id)
    match terminal:
        case RunErrorEvent() as error:
            usage = tuple(error.usage or ())
            return RunResult(*ids, "failed", run.last_seq, usage=usage, error=error.message, code=error.code)
        case RunFinishedEvent() as end:
            asked = end.outcome.interrupts if isinstance(end.outcome, RunFinishedInterruptOutcome) else ()
            return RunResult(
                *ids,
                end_status(end),
                run.last_seq,
                interrupts=tuple(asked),
                usage=tuple(end.usage or ()),
                result=end.result,
            )
        case None:
            return truncated(run, "the run was cut short", "truncated")


def truncated(run: RunHandle, error: str, code: str) -> RunResult:
    """The result of a run that has no end in the log."""
    return RunResult(run.thread_id, run.run_id, "truncated", run.last_seq, error=error, code=code)
