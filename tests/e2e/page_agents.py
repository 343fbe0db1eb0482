"""Agents that fill the page: a report in Markdown with a tool and a state, questions of every kind, a long answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from ag_ui.core import (
    Event,
    Interrupt,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from tests.app.agents import said

REPORT = """# Report on night trains

Here is **bold**, *italic* and `code`. See [the timetable](https://example.com).

| Train | To | Minutes |
|---|---|---:|
| EN 406 | Vienna | 620 |

1. First point
2. Second point
   - nested

```python
def greet(name: str) -> str:
    return f"hello {name}"
```

> A quotation.

![elsewhere](https://example.com/x.png) ![inside](data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7)
"""
RESULT = '{"rows": [{"train": "EN 406", "minutes": 620}]}'


def pieces(text: str, size: int = 12) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


async def writer(input: RunAgentInput) -> AsyncIterator[Event]:
    """Searches, changes its state, and writes a report."""
    call = f"call-{input.run_id}"
    yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
    yield StepStartedEvent(step_name="write")
    yield StateSnapshotEvent(snapshot={"draft": {"title": "Night trains", "words": 0}, "sources": []})
    yield ToolCallStartEvent(tool_call_id=call, tool_call_name="search_archive")
    for piece in ('{"route": "Warsaw', '-Vienna", "li', 'mit": 5}'):
        yield ToolCallArgsEvent(tool_call_id=call, delta=piece)
    yield ToolCallEndEvent(tool_call_id=call)
    yield ToolCallResultEvent(message_id=f"r-{call}", tool_call_id=call, content=RESULT)
    yield StateDeltaEvent(
        delta=[
            {"op": "replace", "path": "/draft/words", "value": 120},
            {"op": "add", "path": "/sources/-", "value": "archive"},
        ]
    )
    for event in said(input.run_id, *pieces(REPORT)):
        yield event
    yield StepFinishedEvent(step_name="write")
    yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id)


BOOKING: dict[str, Any] = {
    "type": "object",
    "title": "Booking",
    "properties": {
        "name": {"type": "string", "title": "Passenger", "minLength": 2},
        "seats": {"type": "integer", "title": "Seats", "minimum": 1, "maximum": 4},
        "class": {"enum": ["first", "second"], "title": "Class"},
        "meal": {"type": "boolean", "title": "With breakfast"},
        "stops": {"type": "array", "title": "Stops", "items": {"type": "string"}},
    },
    "required": ["name", "seats", "class"],
}
APPROVAL: dict[str, Any] = {
    "action_requests": [{"name": "pay", "args": {"amount": 80}, "description": "Pay for the seats"}],
    "review_configs": [{"action_name": "pay", "allowed_decisions": ["approve", "edit", "reject"]}],
}


def asking(*interrupts: Interrupt) -> Any:
    """An agent that asks these questions, and then says what it was answered."""

    async def agent(input: RunAgentInput) -> AsyncIterator[Event]:
        yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
        if input.resume:
            answers = {each.interrupt_id: each.payload for each in input.resume}
            for event in said(input.run_id, f"answered {answers}"):
                yield event
            yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id)
            return
        for event in said(input.run_id, "I need to know more."):
            yield event
        outcome = RunFinishedInterruptOutcome(interrupts=list(interrupts))
        yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id, outcome=outcome)

    return agent


booker = asking(Interrupt(id="q1", reason="input", message="Who travels?", response_schema=BOOKING))
twice = asking(
    Interrupt(id="q1", reason="confirm", message="Pay now?", response_schema={"type": "boolean"}),
    Interrupt(id="q2", reason="input", message="Which class?", response_schema={"enum": ["first", "second"]}),
)
approver = asking(
    Interrupt(
        id="q1",
        reason="tool_approval",
        message="Pay for the seats",
        metadata={"runcast": {"value": APPROVAL}},
    )
)


class Lengthy:
    """Says so many short messages, or one long one, at once."""

    def __init__(self, messages: int, words: int) -> None:
        self.messages, self.words = messages, words

    async def __call__(self, input: RunAgentInput) -> AsyncIterator[Event]:
        yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
        for n in range(self.messages):
            message = f"m-{input.run_id}-{n}"
            yield TextMessageStartEvent(message_id=message)
            for word in range(self.words):
                yield TextMessageContentEvent(message_id=message, delta=f"word{word} ")
            yield TextMessageEndEvent(message_id=message)
        yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id)
