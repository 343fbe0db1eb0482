"""Who speaks: the agent itself, a graph inside it, or an agent of its own (a subagent).

Knows namespaces and which task runs which graph. A graph inside a task is a *subagent* when the task was started
for a tool call, or when its own tasks name another agent (`lc_agent_name`) than the graph around it; else it is
a subgraph, which speaks for whoever runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ag_ui.core import Event

from runcast.adapters.blocks import OpenBlocks
from runcast.adapters.errors import scrub
from runcast.adapters.langgraph.encode import mapped
from runcast.adapters.langgraph.options import Subagents
from runcast.adapters.langgraph.parts import Namespace, called_for, enclosing, path_of


@dataclass(slots=True)
class Scope:
    """A graph at work in a namespace."""

    owner: str | None  # the subagent it speaks for
    agent: str | None  # what its tasks call their agent
    begun: bool = False  # a subagent of its own
    hidden: bool = False


class Scopes:
    """The graphs of one run, by namespace."""

    def __init__(self, blocks: OpenBlocks, *, subagents: Subagents = "attributed") -> None:
        self._blocks = blocks
        self._mode = subagents
        self._scopes: dict[Namespace, Scope] = {(): Scope(None, None)}
        self._calls: dict[str, Mapping[str, Any]] = {}  # running task -> the tool call it was started for

    def scope(self, ns: Namespace) -> Scope:
        """Who a part from this namespace speaks for."""
        while ns not in self._scopes:
            ns = ns[:-1]
        return self._scopes[ns]

    def task_started(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        """A task begins; the first of its graph shows whose graph it is."""
        agent = mapped(data.get("metadata")).get("lc_agent_name")
        events: list[Event] = []
        if ns not in self._scopes:
            events = self._discover(ns, agent)
        elif self._scopes[ns].agent is None:
            self._scopes[ns].agent = agent
        call = called_for(data.get("input"))
        if call is not None:
            self._calls[str(data["id"])] = call
        return events

    def _discover(self, ns: Namespace, agent: str | None) -> list[Event]:
        around = self.scope(enclosing(ns))
        path, again = path_of(ns)
        call = self._calls.get(path[-1]) if path else None
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
        """A task ended, and with it the graphs it ran, innermost first."""
        self._calls.pop(task_id, None)
        inside = [ns for ns in self._scopes if task_id in path_of(ns)[0]]
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
            return self._blocks.subagent_failed(owner, scrub(str(error)) or type(error).__name__)
        return self._blocks.subagent_finished(owner)

    def call_of(self, task_id: str) -> str | None:
        """The tool call a running task was started for."""
        call = self._calls.get(task_id)
        return None if call is None else str(call["id"])

    def works_for(self, call_id: str) -> bool:
        """Whether a running task was started for this call."""
        return any(call["id"] == call_id for call in self._calls.values())
