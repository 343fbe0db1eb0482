"""The protocol's capabilities of an ADK agent, read from the agent tree.

Knows the names of ADK's attributes; does not know runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ag_ui.core import (
    AgentCapabilities,
    ExecutionCapabilities,
    HumanInTheLoopCapabilities,
    IdentityCapabilities,
    MultiAgentCapabilities,
    ReasoningCapabilities,
    StateCapabilities,
    SubagentInfo,
    ToolsCapabilities,
    TransportCapabilities,
)

DELEGATED = frozenset({"task", "single_turn"})  # modes in which an agent is called like a tool


def tree(agent: Any) -> Iterator[Any]:
    """An agent, its sub-agents and the nodes of its workflow, at every depth."""
    seen: set[int] = set()
    waiting = [agent]
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += getattr(one, "sub_agents", None) or []
        graph = getattr(one, "graph", None)
        waiting += getattr(graph, "nodes", None) or []


def descriptions(root: Any) -> dict[str, str]:
    """The descriptions of the agents below the root, by name."""
    agents = (one for one in tree(root) if one is not root and hasattr(one, "sub_agents"))
    return {one.name: getattr(one, "description", "") or "" for one in agents}


def speakers(root: Any) -> frozenset[str]:
    """The agents that can continue from their messages alone: models that transfer, from the root down.

    The progress of a sequence, loop, workflow or task is in no message.
    """
    transfers = hasattr(root, "disallow_transfer_to_parent")  # ADK's own test
    if not transfers or getattr(root, "mode", None) in DELEGATED:
        return frozenset()
    return frozenset({root.name}).union(*(speakers(one) for one in root.sub_agents))


def capabilities(
    root: Any, agents: Mapping[str, str], *, streams: bool, resumable: bool
) -> AgentCapabilities:
    """The capabilities that can be read from the agent; the others are absent."""
    named: dict[str, Any] = {"name": root.name, "type": "google-adk"}
    if getattr(root, "description", ""):
        named["description"] = root.description
    below = [
        SubagentInfo(name=name, description=about or name)
        for name, about in agents.items()
        if name[:1] != "_"
    ]
    runs_code = any(getattr(one, "code_executor", None) is not None for one in tree(root))
    return AgentCapabilities(
        identity=IdentityCapabilities(**named),
        transport=TransportCapabilities(streaming=streams, resumable=True),
        tools=ToolsCapabilities(supported=True, parallel_calls=True, client_provided=True),
        state=StateCapabilities(snapshots=True, deltas=True, persistent_state=True),
        multi_agent=MultiAgentCapabilities(supported=bool(below), handoffs=bool(below), subagents=below),
        reasoning=ReasoningCapabilities(supported=True, streaming=streams, encrypted=True),
        execution=ExecutionCapabilities(code_execution=runs_code),
        human_in_the_loop=HumanInTheLoopCapabilities(
            supported=True, approvals=resumable, interrupts=resumable
        ),
    )
