"""What a user may choose about a LangGraph adapter, and what a translator is given about the client.

Data alone. Each default is the behaviour that loses nothing and reveals nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from ag_ui.core import Message, ToolMessage

Subagents = Literal["attributed", "inline", "hidden"]
Stream = Literal["auto", "v2", "v3"]
CANCELLED: Mapping[str, Any] = {"cancelled": True}


@dataclass(frozen=True, slots=True)
class LangGraphOptions:
    """Choices for `LangGraphAdapter`, `LangGraphCallbacks` and `LangGraphTranslator`."""

    messages_key: str = "messages"
    """The channel that holds the conversation."""
    stream: Stream = "auto"
    """Which of LangGraph's streams is read: the parts of `astream` (`v2`), or the events of `astream_events` (`v3`). By
    default the parts, where this LangGraph has them: reading events changes what models' messages are in the state."""
    subgraphs: bool = True
    """Show what happens inside subgraphs; without it, only the root graph's own nodes."""
    subagents: Subagents = "attributed"
    """An agent inside an agent: with events of its own, as its parent's output, or not shown."""
    system_messages: bool = False
    """Show system messages that nodes write into the conversation. Off: prompts are not sent to clients."""
    hold_text_of: Collection[str] = frozenset()
    """Nodes with messages that others rewrite (redaction): held until the graph goes on, never streamed raw.
    `agent/node` names that agent's node alone. The adapter adds the models of agents with
    `PIIMiddleware(apply_to_output=True)` itself, where nodes or tools refer to them."""
    released_by: Collection[str] = frozenset()
    """Nodes that are the last to rewrite what is held: it is shown behind them, and with a question that comes after. The
    adapter adds those of `PIIMiddleware`. Without a node of your own here, it is shown before the next one that is no
    middleware's hook."""
    internal_calls: Literal["hidden", "activity"] = "hidden"
    """Model calls that middleware makes for itself (summaries, tool selection): not shown, or an activity each."""
    middleware_steps: bool = False
    """Give langchain's middleware hooks steps of their own; else they are part of their agent's."""
    snapshot_on_rewrite: bool = True
    """Send MESSAGES_SNAPSHOT when a graph removes or rewrites messages: no other event can express it."""
    on_new_message: Literal["abandon", "refuse"] = "abandon"
    """A new user message while interrupts wait: start over from it (LangGraph's way), or refuse the run."""
    on_cancelled_answer: Literal["payload", "refuse"] = "payload"
    """A `cancelled` resume entry: hand `cancelled_payload` to the node, or refuse the run."""
    cancelled_payload: Any = field(default_factory=lambda: dict(CANCELLED))
    """What a node's `interrupt()` returns when its question was cancelled. The default also carries what AG-UI's own server
    for LangGraph hands over: `__agui_cancelled__` and `interrupt_id`."""
    input_state_keys: Collection[str] = frozenset()
    """Channels a client may set through `input.state`. None by default."""
    forwarded_keys: Collection[str] = frozenset()
    """Channels a client may set through `forwardedProps`. None by default."""
    client_config: bool = False
    """Let clients set the run's context and configuration, as LangGraph's server does: `forwardedProps.context` and
    `.configurable`. `runcast attach` and `serve` turn it on."""
    predict_state: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict[str, Any])
    """Tool name -> `[{"state_key", "tool", "tool_argument"}]`, sent as CUSTOM PredictState when the call starts."""
    available_tools: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Any])
    """Node -> the tools of its model, sent with its step. The adapter fills in those of a langchain agent."""
    files: Collection[Literal["image", "audio", "video", "pdf", "file"]] = ()
    """The kinds of files that the agent's model takes: pages offer to add them. Nothing but its user knows."""
    durability: Literal["sync", "async", "exit"] | None = None
    """When the graph's checkpointer writes; None leaves it to the graph."""
    import_types: Collection[type] = ()
    """Your own types in the state that an imported thread may hold, beside messages and Python's plain values."""
    max_queue: int = 1_000
    """Events that wait for a slow consumer before text is merged, as far as the order of events allows."""
    max_raw_nodes: int = 2_000
    """How much of a native part a RAW event may carry, in values."""

    def predictions(self, tool: str, meta: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """What a call of this tool predicts about the state: from here, or from the node's metadata."""
        noted = meta.get("predict_state") or meta.get("copilotkit:emit-intermediate-state") or ()
        return [*self.predict_state.get(tool, ()), *(entry for entry in noted if entry.get("tool") == tool)]


@dataclass(frozen=True, slots=True)
class ClientView:
    """What the client holds when a run starts, and how the run corrects it."""

    known: Collection[str] = ()
    """Ids of messages that must not be emitted again."""
    aliases: Mapping[str, str] | None = None
    """Public ids of messages that have another id in the graph's state."""
    resumed_from: str | None = None
    """Where the run continues: `checkpoint`, `fork` or `snapshot`."""
    shown: Sequence[Message] | None = None
    """The messages it shows; None if unknown, in which case nothing can be taken back."""
    gone: Collection[str] = ()
    """Shown messages that are taken back."""
    instead: Sequence[Message] = ()
    """The graph's messages, for those that are shown in part or not at all."""
    order: Sequence[str] = ()
    """The graph's latest turn and the run's messages by their ids, if the client lacks some of that turn."""
    results: Sequence[ToolMessage] = ()
    """Results of calls that a stopped step left open."""
    held: Collection[str] = ()
    """Messages of the graph that are shown when it has rewritten them."""
    settled: Collection[str] = ()
    """Calls that the client has decided about: it need not answer them itself."""
    answerable: bool = True
    """Whether an answer can reach the graph; without a checkpointer none can."""
    breakpoints: bool = False
    """Whether the graph, or one inside, has static breakpoints."""


class ClientFields(TypedDict, total=False):
    """The fields of `ClientView`, as keyword arguments."""

    known: Collection[str]
    aliases: Mapping[str, str] | None
    resumed_from: str | None
    shown: Sequence[Message] | None
    gone: Collection[str]
    instead: Sequence[Message]
    order: Sequence[str]
    results: Sequence[ToolMessage]
    held: Collection[str]
    settled: Collection[str]
    answerable: bool
    breakpoints: bool
