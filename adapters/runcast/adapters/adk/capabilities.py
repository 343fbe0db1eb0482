"""The protocol's capabilities of an ADK agent, and the schemas of what it takes and writes, read from the agent tree.

Knows the names of ADK's attributes; does not know runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ag_ui.core import (
    AgentCapabilities,
    ExecutionCapabilities,
    HumanInTheLoopCapabilities,
    IdentityCapabilities,
    MultiAgentCapabilities,
    MultimodalCapabilities,
    MultimodalInputCapabilities,
    ReasoningCapabilities,
    StateCapabilities,
    SubagentInfo,
    ToolsCapabilities,
    TransportCapabilities,
)

from runcast.adapters.adapter import STEER, Drawing, DrawnEdge, DrawnNode
from runcast.adapters.adk.options import AdkOptions
from runcast.adapters.adk.plain_values import SHARED, is_visible
from runcast.adapters.client_schemas import AgentSchemas, ClientSchema, object_schema, value_schema
from runcast.slim.values.type_guards import as_mapping

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


def has_model(agent: Any) -> bool:
    """Whether the agent asks a model, by the sign that ADK itself goes by."""
    return hasattr(agent, "disallow_transfer_to_parent")


def speakers(root: Any) -> frozenset[str]:
    """The agents that can continue from their messages alone: models that transfer, from the root down.

    The progress of a sequence, loop, workflow or task is in no message.
    """
    if not has_model(root) or getattr(root, "mode", None) in DELEGATED:
        return frozenset()
    return frozenset({root.name}).union(*(speakers(one) for one in root.sub_agents))


def drawing(root: Any) -> Drawing:
    """The tree of agents, with the tools of each; a workflow as the graph of its nodes."""
    nodes: dict[str, DrawnNode] = {}
    edges: list[DrawnEdge] = []
    for one in tree(root):
        graph = getattr(one, "graph", None)
        nodes.setdefault(one.name, _node(one))
        for edge in _all(graph, "edges"):
            for each in (edge.from_node, edge.to_node):
                nodes.setdefault(each.name, _node(each))
            label = "" if edge.route is None else str(edge.route)
            edges.append(DrawnEdge(edge.from_node.name, edge.to_node.name, label, edge.route is not None))
        edges += [
            DrawnEdge(one.name, each.name) for each in ([] if graph is not None else _all(one, "sub_agents"))
        ]
        for tool in _all(one, "tools"):
            name = str(getattr(tool, "name", None) or getattr(tool, "__name__", "tool"))
            nodes.setdefault(f"tool {name}", DrawnNode(f"tool {name}", name, "tool"))
            edges.append(DrawnEdge(one.name, f"tool {name}", conditional=True))
    linked = {name for edge in edges for name in (edge.source, edge.target)}
    return Drawing([node for name, node in nodes.items() if name in linked or len(nodes) == 1], edges)


def _all(one: Any, name: str) -> list[Any]:
    return list(getattr(one, name, None) or ())


def _node(one: Any) -> DrawnNode:
    if one.name == "__START__":
        return DrawnNode(one.name, "start", "start")
    return DrawnNode(one.name, one.name, "agent" if hasattr(one, "sub_agents") else "node")


def capabilities(
    root: Any, agents: Mapping[str, str], *, streams: bool, resumable: bool, files: Collection[str] = ()
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
        multimodal=MultimodalCapabilities(input=MultimodalInputCapabilities(**dict.fromkeys(files, True)))
        if files
        else None,
        human_in_the_loop=HumanInTheLoopCapabilities(
            supported=True, approvals=resumable, interrupts=resumable
        ),
        custom=dict(STEER) if any(reads(one) for one in tree(root)) else None,
    )


def reads(agent: Any) -> bool:
    """Whether an agent's model reads the whole conversation, and not only its own task."""
    whole = getattr(agent, "include_contents", "none") != "none"
    return whole and getattr(agent, "mode", None) not in DELEGATED


def schemas(root: Any, options: AdkOptions) -> AgentSchemas:
    """The root's input schema, and the visible state: a workflow's schema, and the keys that agents write answers to."""
    found: AgentSchemas = {}
    if (schema := object_schema([getattr(root, "input_schema", None)])) is not None:
        found["input"] = ClientSchema(schema=schema, place="message")

    def shows(key: str) -> bool:
        return is_visible(key, options) and not key.startswith(SHARED)

    state = object_schema([getattr(root, "state_schema", None)], shows) or {
        "type": "object",
        "properties": {},
    }
    for one in tree(root):
        key = getattr(one, "output_key", None)
        if key and shows(key):
            written = getattr(one, "output_schema", None)
            schema = {"type": "string"} if written is None else value_schema(written)
            state["$defs"] = {**as_mapping(state.get("$defs")), **as_mapping(schema.pop("$defs", None))}
            state["properties"].setdefault(key, schema)
    if state["properties"]:
        state.pop("required", None)
        found["state"] = ClientSchema(schema=state, place="state" if options.accept_state else None)
    return found
