"""What a graph can do, in the protocol's words.

Reads a compiled graph's own attributes, and claims nothing else.
"""

from __future__ import annotations

from typing import Any

from ag_ui.core import (
    AgentCapabilities,
    HumanInTheLoopCapabilities,
    IdentityCapabilities,
    MultiAgentCapabilities,
    ReasoningCapabilities,
    StateCapabilities,
    ToolsCapabilities,
    TransportCapabilities,
)


def capabilities(graph: Any, *, name: str, stores: bool) -> AgentCapabilities:
    """Streaming, state deltas and attribution always; memory, resuming and questions where a checkpointer is."""
    return AgentCapabilities(
        identity=IdentityCapabilities(name=name, type="langgraph", **_description(graph)),
        transport=TransportCapabilities(streaming=True, resumable=stores),
        tools=ToolsCapabilities(supported=True, parallel_calls=True, client_provided=True),
        state=StateCapabilities(snapshots=True, deltas=True, memory=stores, persistent_state=stores),
        multi_agent=MultiAgentCapabilities(supported=True, delegation=True),
        reasoning=ReasoningCapabilities(supported=True, streaming=True, encrypted=True),
        human_in_the_loop=HumanInTheLoopCapabilities(supported=stores, interrupts=stores, approvals=stores),
    )


def _description(graph: Any) -> dict[str, Any]:
    text = getattr(graph, "description", None)
    return {"description": text} if isinstance(text, str) and text else {}
