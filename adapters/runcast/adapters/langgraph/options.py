"""What a user may choose about a LangGraph adapter.

Data alone; each default is the behaviour that loses nothing and reveals nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Subagents = Literal["attributed", "inline", "hidden"]


@dataclass(frozen=True, slots=True)
class LangGraphOptions:
    """Choices for `LangGraphAdapter`, `LangGraphCallbacks` and `LangGraphTranslator`."""

    messages_key: str = "messages"
    """The channel that holds the conversation."""
    subgraphs: bool = True
    """Tell what happens inside subgraphs; without it only the root graph's own nodes are heard."""
    subagents: Subagents = "attributed"
    """An agent inside an agent: with events of its own, as if its parent spoke, or not at all."""
    system_messages: bool = False
    """Tell system messages that nodes write into the conversation. Off: prompts stay at home."""
    snapshot_on_rewrite: bool = True
    """Send MESSAGES_SNAPSHOT when a graph removes or rewrites messages: no other event can say it."""
    on_new_message: Literal["abandon", "refuse"] = "abandon"
    """A new user message while interrupts wait: start over from it (LangGraph's way), or refuse the run."""
    on_cancelled_answer: Literal["payload", "refuse"] = "payload"
    """A `cancelled` resume entry: hand `cancelled_payload` to the node, or refuse the run."""
    cancelled_payload: Any = field(default_factory=lambda: {"cancelled": True})
    """What a node's `interrupt()` returns when its question was cancelled."""
    input_state_keys: Collection[str] = frozenset()
    """Channels a client may set through `input.state`. None by default."""
    forwarded_keys: Collection[str] = frozenset()
    """Channels a client may set through `forwardedProps`. None by default."""
    predict_state: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict[str, Any])
    """Tool name -> `[{"state_key", "tool", "tool_argument"}]`, told as CUSTOM PredictState when the call begins."""
    durability: Literal["sync", "async", "exit"] | None = None
    """When the graph's checkpointer writes; None leaves it to the graph."""
    max_queue: int = 1_000
    """Events that wait for a slow consumer before text is merged, and merged only so far as its order allows."""
    max_raw_nodes: int = 2_000
    """How much of a native part a RAW event may carry, in values."""

    def predictions(self, tool: str, meta: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """What a call of this tool says about the state: from here, or from the node's `predict_state` metadata."""
        noted = meta.get("predict_state") or ()
        return [*self.predict_state.get(tool, ()), *(entry for entry in noted if entry.get("tool") == tool)]
