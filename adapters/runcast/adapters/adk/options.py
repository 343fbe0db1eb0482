"""What a user may decide about a translation and a run; every default is the safe one.

Knows names and meanings; does not know who reads them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class AdkOptions:
    """Choices for `AdkAdapter`, `AdkPlugin` and `AdkTranslator`; those about running matter to the adapter only."""

    streaming: Literal["sse", "none"] = "sse"  # "none" asks the model for whole answers
    messages_snapshot: Literal["end"] | None = None  # one MESSAGES_SNAPSHOT before the terminal event
    snapshot_messages: int | None = None  # at most so many, the latest; what is left out, the client deletes
    max_result_length: int | None = None  # characters of a tool result that travel; the session keeps all
    hold_text_of: Collection[
        str
    ] = ()  # agents whose text waits for the final, so that a callback can rewrite it
    stream_args: bool = False  # argument text while the model writes it, where the model streams arguments
    state_keys: Collection[str] | None = (
        None  # the only keys of session state that are shown; None: all but private
    )
    shared_state: bool = False  # show `user:` and `app:` keys too, where `state_keys` does not name them
    accept_state: bool = True  # changes in the input's state are written to the session
    frontend_tools: Literal["interrupt", "pending"] = (
        "interrupt"  # how a call of the client's own tool ends a run
    )
    frontend_agents: Collection[str] | None = None  # agents that get the client's tools; None: the root agent
    client_instructions: bool = False  # system and developer messages of the input reach the model
    interrupt_ttl: float | None = None  # seconds in which an interrupt can be answered
    on_busy: Literal["refuse", "queue"] = "refuse"  # a second run on a thread that has one
    on_disconnect: Literal["stop", "finish"] = "stop"  # what a run does when its reader goes away
    buffer: int = 256  # events that wait for a slow reader before the run is held back
