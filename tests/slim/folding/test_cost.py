"""What folding costs, counted in function calls rather than in time."""

from __future__ import annotations

import sys
from typing import Any

from ag_ui.core import (
    CustomEvent,
    Event,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.slim.folding.conversation import Conversation


def calls_made(stream: list[Event]) -> int:
    """How many functions run to fold a stream: time without a clock."""
    made = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    conversation = Conversation()
    sys.setprofile(count)
    try:
        for event in stream:
            conversation.feed(event)
    finally:
        sys.setprofile(None)
    return made


def worst(count: int) -> list[Event]:
    """Many messages, calls that are answered long after they were made, and texts that all go on at once."""
    keys = range(count)
    return [
        RunStartedEvent(thread_id="t", run_id="r"),
        *(TextMessageStartEvent(message_id=f"m{n}") for n in keys),
        *(ToolCallStartEvent(tool_call_id=f"c{n}", tool_call_name="f", parent_message_id="m0") for n in keys),
        *(TextMessageContentEvent(message_id=f"m{n}", delta="x") for n in keys),
        *(ToolCallArgsEvent(tool_call_id=f"c{n}", delta="{}") for n in keys),
        *(ToolCallEndEvent(tool_call_id=f"c{n}") for n in keys),
        *(CustomEvent(name="n", value=n) for n in keys),
        *(ToolCallResultEvent(message_id=f"t{n}", tool_call_id=f"c{n}", content="ok") for n in keys),
        RunFinishedEvent(thread_id="t", run_id="r"),
    ]


def test_the_cost_is_linear_in_events_however_many_messages_there_are():
    small, large = calls_made(worst(200)), calls_made(worst(1_000))
    assert large < small * 5.5
