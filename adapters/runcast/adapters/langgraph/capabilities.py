"""What a graph can do, in the protocol's words, the schemas of what it takes and shows, and the agents inside it.

Reads a compiled graph's own attributes, and claims nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from types import FunctionType, MethodType
from typing import Any, Literal, cast

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

from runcast.adapters.adapter import STEER, Drawing, DrawnEdge, DrawnNode
from runcast.adapters.client_schemas import AgentSchemas, ClientSchema, object_schema
from runcast.adapters.langgraph.intake.client_channels import client_channels
from runcast.adapters.langgraph.options import LangGraphOptions
from runcast.adapters.langgraph.stream.graph_state import HIDDEN, is_shown
from runcast.slim.values.type_guards import as_mapping

ADDING = ("BinaryOperatorAggregate", "DeltaChannel")  # channels that add an update to what they hold
FRAMEWORKS = ("langchain", "langgraph", "deepagents")  # only their objects are looked into
# where they keep functions and graphs
HOLDING = ("func", "afunc", "coroutine", "tools_by_name", "steps", "bound")


def capabilities(
    graph: Any, *, name: str, stores: bool, files: Collection[str] = (), steers: bool = False
) -> AgentCapabilities:
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
        custom=dict(STEER) if steers else None,
    )


def steers(graph: Any, options: LangGraphOptions) -> bool:
    """Whether a message can be added between two steps: the conversation's channel adds, and no inner graph remembers.

    After a stop LangGraph takes the stored end of a graph with `checkpointer=True` for an end of the present call.
    """
    channel = graph.channels.get(options.messages_key)
    inner = [each for each in graphs_in(graph, set()) if each is not graph]
    return type(channel).__name__ in ADDING and not any(each.checkpointer is True for each in inner)


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


def completed(graph: Any, options: LangGraphOptions) -> LangGraphOptions:
    """The options, with what langchain's agents show: the graph's own tools, and middleware that redacts messages."""
    nodes: Mapping[str, Any] = getattr(graph, "nodes", None) or {}
    tools = as_mapping(getattr(getattr(nodes.get("tools"), "bound", None), "tools_by_name", None))
    agents = [(agent, hooks) for agent in graphs_in(graph, set()) if (hooks := _redacting(agent))]
    held = [_in_agent(agent, "model") for agent, _ in agents]
    last = [_in_agent(agent, hooks[0]) for agent, hooks in agents]  # hooks run from the last to the first
    return replace(
        options,
        hold_text_of=frozenset((*options.hold_text_of, *held)),
        released_by=frozenset(
            (*options.released_by, *(last if len(last) == 1 else filter(_names_agent, last)))
        ),
        available_tools={
            **({"model": list(tools)} if tools and "model" in nodes else {}),
            **options.available_tools,
        },
    )


def _in_agent(agent: Any, node: str) -> str:
    name = getattr(agent, "name", None)
    return node if name in (None, "", "LangGraph") else f"{name}/{node}"


def _names_agent(node: str) -> bool:
    return "/" in node


def _redacting(agent: Any) -> list[str]:
    """A langchain agent's nodes of middleware that rewrites what its model emits."""
    hooks = {name: node for name, node in agent.nodes.items() if name.endswith(".after_model")}
    functions = {name: getattr(getattr(hook, "bound", None), "func", None) for name, hook in hooks.items()}
    owners = {name: getattr(function, "__self__", None) for name, function in functions.items()}
    return [name for name, owner in owners.items() if getattr(owner, "apply_to_output", False) is True]


def graphs_in(value: Any, seen: set[int]) -> Iterator[Any]:
    """This graph, and those that its nodes and tools run, as far as their functions name them."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if _is_graph(value):
        yield value
        inner: list[Any] = [part for node in value.nodes.values() for part in (node.bound, *node.subgraphs)]
    elif isinstance(value, MethodType):
        inner = [value.__func__]
    elif isinstance(value, FunctionType):
        inner = _named_by(value)
    elif isinstance(value, Mapping):
        inner = list(as_mapping(value).values())
    elif isinstance(value, list | tuple):
        inner = list(cast("Iterable[Any]", value))
    elif type(value).__module__.partition(".")[0].startswith(FRAMEWORKS):
        inner = [getattr(value, name, None) for name in HOLDING]
    else:
        return
    for part in inner:
        yield from graphs_in(part, seen)


def _is_graph(value: Any) -> bool:
    return hasattr(value, "get_subgraphs") and isinstance(getattr(value, "nodes", None), Mapping)


def _named_by(function: FunctionType) -> list[Any]:
    """What a function closes over, and the graphs among the globals that it names."""
    found: list[Any] = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not bound yet
            found.append(cell.cell_contents)
    named = [function.__globals__.get(name) for name in function.__code__.co_names]
    return [*found, *(each for each in named if _is_graph(each))]


def replacing(graph: Any) -> frozenset[str]:
    """The channels of the graph's input that hold what was written last; none of a graph elsewhere."""
    builder, channels = getattr(graph, "builder", None), as_mapping(getattr(graph, "channels", None))
    schemas: Mapping[Any, Any] = getattr(builder, "schemas", None) or {}
    taken = schemas.get(getattr(builder, "input_schema", None)) or ()
    return frozenset(
        name for name in taken if name in channels and type(channels[name]).__name__ not in ADDING
    )


def for_client(graph: Any) -> frozenset[str]:
    """The channels that take what a client sends beside messages. It has sent them: no state shows them."""
    return client_channels(replacing(graph), getattr(getattr(graph, "builder", None), "input_schema", None))


def schemas(graph: Any, *, keys: Collection[str] | None, options: LangGraphOptions) -> AgentSchemas:
    """The channels that a client may set and see, and the graph's context; `keys` are the channels it may see.

    A graph without an input schema of its own takes the channels that it shows: the others are private.
    """
    builder = getattr(graph, "builder", None)
    state = getattr(builder, "state_schema", None)
    takes, gives = getattr(builder, "input_schema", None), getattr(builder, "output_schema", None)
    found: AgentSchemas = {}
    sent = for_client(graph)

    def shows(key: str) -> bool:
        return is_shown(key, keys, (options.messages_key,))

    def accepts(key: str) -> bool:
        if not options.client_config:
            return key in options.input_state_keys
        own = takes is not state and key not in (options.messages_key, *sent) and not key.startswith(HIDDEN)
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
