"""The two ends of a run: RUN_STARTED, and the one terminal event.

Knows what a 1.0 producer must say there (version, input echo, usage, outcome). Does not know what happens in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ag_ui.core import (
    Event,
    Interrupt,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
)

from runcast.adapters.errors import Failure
from runcast.adapters.open_blocks import Clock, Meta
from runcast.adapters.usage import UsageTally

PROTOCOL_VERSION = "1.0"


@dataclass(frozen=True, slots=True)
class RunIds:
    """Which run this is. A translator makes up no ids."""

    thread_id: str
    run_id: str
    parent_run_id: str | None = None


def echoed(input: RunAgentInput) -> RunAgentInput:
    """The input as RUN_STARTED carries it. Clients before 1.0 refuse one without `tools` and `context`, even if empty."""
    absent = [field for field in ("tools", "context") if getattr(input, field) is None]
    return input.model_copy(update={field: [] for field in absent}) if absent else input


class RunFrame:
    """Opens a run once and ends it once; a second ending returns no event."""

    def __init__(
        self, ids: RunIds, *, input: RunAgentInput | None = None, clock: Clock | None = None
    ) -> None:
        self.ids = ids
        self.usage = UsageTally()
        self.ended = False
        self._input = None if input is None else echoed(input)
        self._clock = clock

    def started(self, *, metadata: Meta | None = None) -> list[Event]:
        """RUN_STARTED, with the version a 1.0 producer must declare, the parent and the input."""
        given: Meta = {}
        if self.ids.parent_run_id is not None:
            given["parent_run_id"] = self.ids.parent_run_id
        if self._input is not None:
            given["input"] = self._input
        return [
            RunStartedEvent(
                thread_id=self.ids.thread_id,
                run_id=self.ids.run_id,
                protocol_version=PROTOCOL_VERSION,
                **given,
                **self._common(metadata),
            )
        ]

    def succeeded(
        self,
        *,
        pending: Sequence[str] = (),
        derived: Sequence[str] = (),
        result: Any = None,
        metadata: Meta | None = None,
    ) -> list[Event]:
        """RUN_FINISHED with outcome success; `pending` are the calls that the client must answer.

        They are named only if they differ from `derived`, the calls that the client itself finds unanswered: clients
        before 1.0 refuse an outcome that names calls.
        """
        outcome = RunFinishedSuccessOutcome()
        if pending and list(pending) != list(derived):
            outcome.pending_tool_call_ids = list(pending)
        return self._finished(outcome, metadata, **({} if result is None else {"result": result}))

    def interrupted(self, interrupts: Sequence[Interrupt], *, metadata: Meta | None = None) -> list[Event]:
        """RUN_FINISHED with outcome interrupt: the run waits for answers."""
        return self._finished(RunFinishedInterruptOutcome(interrupts=list(interrupts)), metadata)

    def cancelled(self, *, metadata: Meta | None = None) -> list[Event]:
        """RUN_FINISHED with outcome cancelled: the run was stopped."""
        return self._finished(RunFinishedCancelledOutcome(), metadata)

    def failed(self, failure: Failure, *, metadata: Meta | None = None) -> list[Event]:
        """RUN_ERROR, with the usage up to there."""
        if self.ended:
            return []
        self.ended = True
        return [
            RunErrorEvent(
                message=failure.message, code=failure.code, **self._used(), **self._common(metadata)
            )
        ]

    def _finished(self, outcome: Any, metadata: Meta | None, **given: Any) -> list[Event]:
        if self.ended:
            return []
        self.ended = True
        return [
            RunFinishedEvent(
                thread_id=self.ids.thread_id,
                run_id=self.ids.run_id,
                outcome=outcome,
                **given,
                **self._used(),
                **self._common(metadata),
            )
        ]

    def _used(self) -> Meta:
        rows = self.usage.rows()
        return {} if rows is None else {"usage": rows}

    def _common(self, metadata: Meta | None) -> Meta:
        common: Meta = {} if metadata is None else {"metadata": metadata}
        if self._clock is not None:
            common["timestamp"] = self._clock()
        return common
