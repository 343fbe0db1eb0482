"""The user's choices for a translation and a run; every default is the safe one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ag_ui.core import Event, RunAgentInput

    from runcast.adapters.adk.intake.inside_tools import InsideTools
    from runcast.adapters.adk.stream.complete_event import Answer


@dataclass(frozen=True, slots=True)
class AdkOptions:
    """Choices for `AdkAdapter`, `AdkPlugin` and `AdkTranslator`; those about running matter to the adapter only."""

    streaming: Literal["sse", "none"] = "sse"
    """`none` asks the model for whole answers."""
    messages_snapshot: Literal["end"] | None = None
    """`end` adds one MESSAGES_SNAPSHOT before the terminal event. What agents said that ran as tools in earlier runs stays in
    it where the input holds it: no session does. So a client that sends only new messages loses it, and with `AdkPlugin` all do."""
    snapshot_messages: int | None = None
    """The most messages of that snapshot, the latest ones; the client deletes the others."""
    max_result_length: int | None = None
    """The most characters of a tool result that are sent; the session keeps all of them."""
    hold_text_of: Collection[str] = ()
    """Agents whose text waits for the complete event, so that a callback can still rewrite it."""
    files: Collection[Literal["image", "audio", "video", "pdf", "file"]] = ()
    """The kinds of files that the agent's model takes: pages offer to add them. Nothing but its user knows."""
    stream_args: bool = False
    """Send tool arguments while the model writes them, where the model streams arguments."""
    state_keys: Collection[str] | None = None
    """The only keys of session state that are shown; None shows all but private ones."""
    shared_state: bool = False
    """Show `user:` and `app:` keys too, where `state_keys` does not name them."""
    accept_state: bool = True
    """Write changes in the input's state to the session."""
    frontend_tools: Literal["interrupt", "pending"] = "pending"
    """The outcome of a run that calls a tool of the client: success with a pending call, whose result a client sends as a
    message; or an interrupt, which clients of 1.0 answer by `resume` alone."""
    frontend_agents: Collection[str] | None = None
    """Agents that get the client's tools; None means those with an `AGUIToolset`, or else the root agent."""
    client_instructions: bool = False
    """Let system and developer messages of the input reach the model."""
    on_new_message: Literal["abandon", "refuse"] = "abandon"
    """A new user message while questions are open: let the questions go, or refuse the run."""
    interrupt_ttl: float | None = None
    """Seconds in which an interrupt can be answered."""
    buffer: int = 256
    """Events that wait for a slow reader before the run is held back."""


@dataclass(frozen=True, slots=True)
class RunStart:
    """What `AdkTranslator` knows of a run before its first event."""

    input: RunAgentInput | None = None
    """Echoed in RUN_STARTED."""
    state: Mapping[str, Any] | None = None
    """Sent as a STATE_SNAPSHOT; None when the client has it already."""
    answers: Sequence[Answer] = ()
    """Answers to interrupts that the input brings."""
    agents: Mapping[str, str] | None = None
    """Descriptions of the agents below the root, by name."""
    frontend: Collection[str] = ()
    """Names of the client's tools."""
    resumed_from: str | None = None
    """`session` or `snapshot`, when the run continues one that stopped."""
    place: Mapping[str, Any] | None = None
    """App, user and session, by which a later run finds this one."""
    held: Sequence[Any] = ()
    """The stored ADK events of the invocation that the run continues."""
    corrections: Sequence[Event] = ()
    """Events that remove what a broken attempt left at the client."""
    inside: InsideTools | None = None
    """Earlier messages of agents that ran as tools: no session has them."""
    observed: bool = False
    """The events come from a plugin, and other plugins may still change them before ADK stores them."""
