"""The steps of a run: a model's turn, the tools it called, a node of a workflow.

ADK has no word for steps. A model's turn begins with the first event of its id and ends with the complete one; tools
run from there until their results; a resumable workflow tells the status of its nodes, any other only their output.
Numbers count 1, 2, 3, … in the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ag_ui.core import Event as AgEvent

from runcast.adapters.adk.values import mapping
from runcast.adapters.blocks import OpenBlocks
from runcast.adapters.frame import note

TOOLS = "tools"
RUNNING = 2  # google.adk.workflow NodeStatus; all but PENDING (1) and RUNNING is an end or a pause


class Steps:
    """Opens and closes steps, each told with its number."""

    def __init__(self, blocks: OpenBlocks) -> None:
        self.count = 0
        self._blocks = blocks
        self._numbers: dict[tuple[str | None, str], int] = {}
        self._nodes: set[str] = set()

    def start(self, name: str, owner: str | None = None) -> list[AgEvent]:
        """A step begins."""
        if (owner, name) in self._numbers:
            return self._blocks.step_started(name, owner=owner)
        self.count += 1
        self._numbers[owner, name] = self.count
        said = note(step_number=self.count, attempt=1, node=name)
        return self._blocks.step_started(name, owner=owner, metadata=said)

    def finish(self, name: str, owner: str | None = None, **said: Any) -> list[AgEvent]:
        """A step ends; nothing when it is not open."""
        number = self._numbers.get((owner, name))
        if number is None:
            return []
        facts = {"has_tool_calls": False, "errors": 0} | said
        events = self._blocks.step_finished(
            name, owner=owner, metadata=note(step_number=number, attempt=1, **facts)
        )
        if events:
            del self._numbers[owner, name]
        return events

    def is_open(self, name: str, owner: str | None = None) -> bool:
        """Whether this step runs."""
        return (owner, name) in self._numbers

    def forget(self, owner: str) -> None:
        """A subagent ended, and its steps with it."""
        for key in [key for key in self._numbers if key[0] == owner]:
            del self._numbers[key]

    def nodes(self, statuses: Mapping[str, Any]) -> list[AgEvent]:
        """A workflow's own account of its nodes."""
        events: list[AgEvent] = []
        for name, node in statuses.items():
            status = mapping(node).get("status")
            if status == RUNNING and name not in self._nodes:
                self._nodes.add(name)
                events += self.start(name)
            elif isinstance(status, int) and status > RUNNING and name in self._nodes:
                self._nodes.discard(name)
                events += self.finish(name)
        return events

    def node_output(self, name: str) -> list[AgEvent]:
        """A node gave its output; where the workflow tells no statuses, that is the whole step."""
        return [] if name in self._nodes else self.start(name) + self.finish(name)
