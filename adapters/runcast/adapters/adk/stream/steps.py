"""The steps of a run: a model's turn, its tools, a node of a workflow.

ADK has no steps. A model's turn lasts from the first event of its id to the complete one; its tools run from there
until their results. A resumable workflow reports the status of its nodes, any other only their output. Step numbers
count from 1 in each run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ag_ui.core import Event as AgEvent

from runcast.adapters.open_blocks import OpenBlocks
from runcast.slim.folding.run_metadata import run_metadata
from runcast.slim.values.type_guards import as_mapping

TOOLS = "tools"
RUNNING = 2  # google.adk.workflow NodeStatus; all but PENDING (1) and RUNNING is an end or a pause


class Steps:
    """Opens and closes numbered steps."""

    def __init__(self, blocks: OpenBlocks) -> None:
        self.count = 0
        self._blocks = blocks
        self._numbers: dict[tuple[str | None, str], int] = {}
        self._nodes: set[str] = set()

    def start(self, name: str, owner: str | None = None, **more: Any) -> list[AgEvent]:
        """Begin a step."""
        if (owner, name) in self._numbers:
            return self._blocks.step_started(name, owner=owner)
        self.count += 1
        self._numbers[owner, name] = self.count
        metadata = run_metadata(step_number=self.count, attempt=1, node=name, **more)
        return self._blocks.step_started(name, owner=owner, metadata=metadata)

    def finish(self, name: str, owner: str | None = None, **more: Any) -> list[AgEvent]:
        """End a step, if it is open."""
        number = self._numbers.get((owner, name))
        if number is None:
            return []
        facts = {"has_tool_calls": False, "errors": 0} | more
        events = self._blocks.step_finished(
            name, owner=owner, metadata=run_metadata(step_number=number, attempt=1, **facts)
        )
        if events:
            del self._numbers[owner, name]
        return events

    def is_open(self, name: str, owner: str | None = None) -> bool:
        """Whether this step is open."""
        return (owner, name) in self._numbers

    def forget(self, owner: str) -> None:
        """Drop the steps of a subagent that ended."""
        for key in [key for key in self._numbers if key[0] == owner]:
            del self._numbers[key]

    def nodes(self, statuses: Mapping[str, Any], agents: Collection[str] = ()) -> list[AgEvent]:
        """Steps from the node statuses that a workflow reports; a node that is an agent has steps of its own."""
        events: list[AgEvent] = []
        for name, node in statuses.items():
            if name in agents:
                continue
            status = as_mapping(node).get("status")
            if status == RUNNING and name not in self._nodes:
                self._nodes.add(name)
                events += self.start(name)
            elif isinstance(status, int) and status > RUNNING and name in self._nodes:
                self._nodes.discard(name)
                events += self.finish(name)
        return events

    def node_output(self, name: str) -> list[AgEvent]:
        """A node's output; if the workflow reports no statuses, that is the whole step."""
        return [] if name in self._nodes else self.start(name) + self.finish(name)
