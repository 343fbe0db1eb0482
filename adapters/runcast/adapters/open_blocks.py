"""Everything that is open in a run: streams (see `open_streams`), and the steps and subagents around them.

1. Steps of one name share one block; only the first start and the last end are emitted.
2. A closed subagent may not be opened again. Its end closes its own children, streams and steps.
3. `close_all` leaves nothing open for which RUN_FINISHED would be refused.

This is the only code that opens and closes. It does not know the frameworks.
"""

from __future__ import annotations

from typing import Any

from ag_ui.core import (
    Event,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentFinishedSuspendedOutcome,
    SubagentStartedEvent,
)

from runcast.adapters.open_streams import Clock, Meta, OpenStreams, given, owned

__all__ = ["Clock", "Meta", "OpenBlocks"]


class OpenBlocks(OpenStreams):
    """One run's open streams, steps and subagents. Every method returns the events to send."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        super().__init__(clock=clock)
        self._steps: dict[tuple[str | None, str], int] = {}  # (owner, name) -> how many are running
        self._subagents: dict[str, str | None] = {}  # subagent run id -> its parent's, in order of opening
        self._ended_subagents: set[str] = set()

    def step_started(
        self, name: str, *, owner: str | None = None, metadata: Meta | None = None
    ) -> list[Event]:
        """A step starts. A fan-out starts one node many times: only the first is emitted."""
        key = (owner, name)
        self._steps[key] = count = self._steps.get(key, 0) + 1
        if count > 1:
            return []
        start = StepStartedEvent(step_name=name, **given(metadata=metadata), **owned(owner), **self._now())
        return self._changed(start)

    def step_finished(
        self, name: str, *, owner: str | None = None, metadata: Meta | None = None
    ) -> list[Event]:
        """A step ends; of several with one name, the last end is emitted."""
        key = (owner, name)
        count = self._steps.get(key, 0)
        if count > 1:
            self._steps[key] = count - 1
            return []
        if count == 0:
            return []
        del self._steps[key]
        end = StepFinishedEvent(step_name=name, **given(metadata=metadata), **owned(owner), **self._now())
        return self._changed(end)

    def subagent_started(
        self,
        subagent_run_id: str,
        name: str,
        *,
        description: str | None = None,
        parent: str | None = None,
        tool_call_id: str | None = None,
        message_id: str | None = None,
        metadata: Meta | None = None,
    ) -> list[Event]:
        """A subagent starts. Its id must be new in this run: the client refuses one that ended before."""
        if subagent_run_id in self._subagents or subagent_run_id in self._ended_subagents:
            return []
        self._subagents[subagent_run_id] = parent
        fields = given(
            description=description,
            parent_subagent_run_id=parent,
            parent_tool_call_id=tool_call_id,
            parent_message_id=message_id,
            metadata=metadata,
        )
        start = SubagentStartedEvent(subagent_run_id=subagent_run_id, name=name, **fields, **self._now())
        return self._changed(start)

    def subagent_finished(
        self,
        subagent_run_id: str,
        *,
        result: Any = None,
        suspended_by: list[str] | None = None,
    ) -> list[Event]:
        """A subagent ends, or waits for answers (`suspended_by`: interrupt ids). What it left open is closed."""
        if subagent_run_id not in self._subagents:
            return []
        fields = given(result=result)
        if suspended_by is not None:
            fields["outcome"] = SubagentFinishedSuspendedOutcome(**given(interrupt_ids=suspended_by or None))
        events = self._end_subagent(subagent_run_id)
        end = SubagentFinishedEvent(subagent_run_id=subagent_run_id, **fields, **self._now())
        return events + self._changed(end)

    def subagent_failed(self, subagent_run_id: str, message: str, *, code: str | None = None) -> list[Event]:
        """A subagent failed. What it left open is closed."""
        if subagent_run_id not in self._subagents:
            return []
        events = self._end_subagent(subagent_run_id)
        end = SubagentErrorEvent(
            subagent_run_id=subagent_run_id, message=message, **given(code=code), **self._now()
        )
        return events + self._changed(end)

    def is_open_subagent(self, subagent_run_id: str) -> bool:
        """Whether this subagent is running."""
        return subagent_run_id in self._subagents

    def _end_subagent(self, subagent_run_id: str) -> list[Event]:
        children = [child for child, parent in self._subagents.items() if parent == subagent_run_id]
        events = [event for child in children for event in self.subagent_finished(child)]
        events += self.close_streams(owner=subagent_run_id)
        for key in [key for key in self._steps if key[0] == subagent_run_id]:
            events += self._force_step(*key)
        del self._subagents[subagent_run_id]
        self._ended_subagents.add(subagent_run_id)
        return events

    def close_all(
        self, *, error: str | None = None, code: str | None = None, metadata: Meta | None = None
    ) -> list[Event]:
        """Close everything, innermost first. With `error`, the reason the run failed, subagents end in error.

        `metadata` goes on the ends of texts and calls that were not complete.
        """
        events = self.close_streams(metadata=metadata)
        for subagent in reversed(list(self._subagents)):
            events += (
                self.subagent_finished(subagent)
                if error is None
                else self.subagent_failed(subagent, error, code=code)
            )
        for owner, name in list(self._steps):
            events += self._force_step(owner, name)
        return events

    def _force_step(self, owner: str | None, name: str) -> list[Event]:
        self._steps[owner, name] = 1
        return self.step_finished(name, owner=owner)
