"""Which agent a part belongs to: the root agent, or a subagent.

Knows namespaces and which task runs which graph. A graph inside a task is a *subagent* if the task was started for a
tool call, or if its own tasks name another agent (`lc_agent_name`) than the graph around it. Any other graph inside a
task is a subgraph, and its output belongs to the agent around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ag_ui.core import Event

from runcast.adapters.errors import describe
from runcast.adapters.langgraph.options import Subagents
from runcast.adapters.langgraph.stream.parts import Namespace, Namespaces, called_for
from runcast.adapters.langgraph.stream.tool_results import Results
from runcast.adapters.open_blocks import OpenBlocks
from runcast.slim.values.type_guards import as_mapping


@dataclass(slots=True)
class Scope:
    """A running graph in a namespace."""

    owner: str | None  # the subagent its output belongs to
    agent: str | None  # the agent name in its tasks
    begun: bool = False  # a subagent of its own
    hidden: bool = False


class Scopes:
    """The graphs of one run, by namespace."""

    def __init__(
        self,
        blocks: OpenBlocks,
        results: Results,
        *,
        subagents: Subagents = "attributed",
        namespaces: Namespaces | None = None,
    ) -> None:
        self._namespaces = namespaces or Namespaces()
        self._blocks = blocks
        self._results = results
        self._mode = subagents
        self._scopes: dict[Namespace, Scope] = {(): Scope(None, None)}
        self._calls: dict[str, Mapping[str, Any]] = {}  # running task -> the tool call it was started for

    def scope(self, ns: Namespace) -> Scope:
        """The graph that a part from this namespace belongs to."""
        while ns not in self._scopes:
            ns = self._namespaces.enclosing(ns)
        return self._scopes[ns]

    def task_started(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        """A task starts; the first of its graph shows which agent the graph is."""
        agent = as_mapping(data.get("metadata")).get("lc_agent_name")
        events: list[Event] = []
        if ns not in self._scopes:
            events = self._discover(ns, agent)
        elif self._scopes[ns].agent is None:
            self._scopes[ns].agent = agent
        call = called_for(data.get("input"))
        if call is not None:
            shown = self._results.shown_as(str(call["id"]), self._scopes[ns].owner)
            self._calls[str(data["id"])] = {**call, "id": shown}
        return events

    def _discover(self, ns: Namespace, agent: str | None) -> list[Event]:
        around = self.scope(self._namespaces.enclosing(ns))
        path = self._namespaces.tasks(ns) or ["|".join(ns)]
        again = ns[-1] if ns[-1].isdigit() else ""
        call = self._calls.get(path[-1])
        apart = call is not None or (agent is not None and agent != around.agent)
        if not apart or self._mode == "inline" or around.hidden:
            self._scopes[ns] = Scope(around.owner, agent or around.agent, hidden=around.hidden)
            return []
        if self._mode == "hidden":
            self._scopes[ns] = Scope(around.owner, agent, hidden=True)
            return []
        owner = path[-1] + (f":{again}" if again else "")
        self._scopes[ns] = Scope(owner, agent, begun=True)
        name = (
            agent if agent is not None and agent != around.agent else str((call or {}).get("name") or agent)
        )
        return self._blocks.subagent_started(
            owner, name, parent=around.owner, tool_call_id=str(call["id"]) if call else None
        )

    def task_over(self, task_id: str, *, error: BaseException | None, interrupts: list[str]) -> list[Event]:
        """A task ended, and the graphs it ran, innermost first."""
        self._calls.pop(task_id, None)
        inside = [ns for ns in self._scopes if task_id in self._namespaces.tasks(ns)]
        events: list[Event] = []
        for ns in sorted(inside, key=len, reverse=True):
            scope = self._scopes.pop(ns)
            if scope.begun and scope.owner is not None:
                events += self._end(scope.owner, error, interrupts)
        return events

    def _end(self, owner: str, error: BaseException | None, interrupts: list[str]) -> list[Event]:
        if interrupts:
            return self._blocks.subagent_finished(owner, suspended_by=interrupts)
        if error is not None:
            return self._blocks.subagent_failed(owner, describe(error))
        return self._blocks.subagent_finished(owner)

    def call_of(self, task_id: str) -> str | None:
        """The tool call a running task was started for."""
        call = self._calls.get(task_id)
        return None if call is None else str(call["id"])

    def works_for(self, call_id: str) -> bool:
        """Whether a running task was started for this call."""
        return any(call["id"] == call_id for call in self._calls.values())
