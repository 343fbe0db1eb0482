"""What a graph can do, in the protocol's words, and the schemas of what it takes and shows.

Reads a compiled graph's own attributes, and claims nothing else.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

from ag_ui.core import (
    AgentCapabilities,
    HumanInTheLoopCapabilities,
    IdentityCapabilities,
    MultiAgentCapabilities,
    MultimodalCapabilities,
    MultimodalInputCapabilities,
    ReasoningCapabilities,
    StateCapabilities,
    ToolsCapabilities,
    TransportCapabilities,
)

from runcast.adapters.adapter import Drawing, DrawnEdge, DrawnNode
from runcast.adapters.client_schemas import AgentSchemas, ClientSchema, object_schema
from runcast.adapters.langgraph.options import LangGraphOptions
from runcast.adapters.langgraph.stream.graph_state import HIDDEN, is_shown


def capabilities(graph: Any, *, name: str, stores: bool, files: Collection[str] = ()) -> AgentCapabilities:
    """Streaming, state deltas and attribution always; memory, resuming and questions where a checkpointer is."""
    return AgentCapabilities(
        identity=IdentityCapabilities(name=name, type="langgraph", **_description(graph)),
        transport=TransportCapabilities(streaming=True, resumable=stores),
        tools=ToolsCapabilities(supported=True, parallel_calls=True, client_provided=True),
        state=StateCapabilities(snapshots=True, deltas=True, memory=stores, persistent_state=stores),
        multi_agent=MultiAgentCapabilities(supported=True, delegation=True),
        reasoning=ReasoningCapabilities(supported=True, streaming=True, encrypted=True),
        multimodal=MultimodalCapabilities(input=MultimodalInputCapabilities(**dict.fromkeys(files, True)))
        if files
        else None,
        human_in_the_loop=HumanInTheLoopCapabilities(supported=stores, interrupts=stores, approvals=stores),
    )


def drawing(graph: Any) -> Drawing:
    """The graph's own nodes, as `get_graph` has them; a subgraph is one node."""
    drawn = graph.get_graph()
    ends: dict[str, tuple[str, Literal["start", "end"]]] = {
        "__start__": ("start", "start"),
        "__end__": ("end", "end"),
    }
    nodes = [DrawnNode(id, *ends.get(id, (each.name, "node"))) for id, each in drawn.nodes.items()]
    edges = [
        DrawnEdge(each.source, each.target, "" if each.data is None else str(each.data), each.conditional)
        for each in drawn.edges
    ]
    return Drawing(nodes, edges)


def _description(graph: Any) -> dict[str, Any]:
    text = getattr(graph, "description", None)
    return {"description": text} if isinstance(text, str) and text else {}


def schemas(graph: Any, *, keys: Collection[str] | None, options: LangGraphOptions) -> AgentSchemas:
    """The channels that a client may set and see, and the graph's context; `keys` are the channels it may see.

    A graph without an input schema of its own takes the channels that it shows: the others are private.
    """
    builder = getattr(graph, "builder", None)
    state = getattr(builder, "state_schema", None)
    takes, gives = getattr(builder, "input_schema", None), getattr(builder, "output_schema", None)
    found: AgentSchemas = {}

    def shows(key: str) -> bool:
        return is_shown(key, keys, (options.messages_key,))

    def accepts(key: str) -> bool:
        if not options.client_config:
            return key in options.input_state_keys
        own = takes is not state and key != options.messages_key and not key.startswith(HIDDEN)
        return own or shows(key)

    if (schema := object_schema([takes], accepts)) is not None:
        if takes is state:  # a graph starts without channels that it makes itself
            schema.pop("required", None)
        found["input"] = ClientSchema(
            schema=schema, place="forwardedProps.input" if options.client_config else "state"
        )
    if (schema := object_schema([getattr(graph, "context_schema", None)])) is not None:
        found["context"] = ClientSchema(
            schema=schema, place="forwardedProps.context" if options.client_config else None
        )
    if (schema := object_schema([state, gives], shows)) is not None:
        schema.pop("required", None)
        found["state"] = ClientSchema(schema=schema, place=None)
    return found
