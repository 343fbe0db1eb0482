"""Home-made agents for tests of the host: each says what it is asked, waits where it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from ag_ui.core import (
    Event,
    Interrupt,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
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


def said(run_id: str, *deltas: str) -> list[Event]:
    message = f"m-{run_id}"
    return [
        TextMessageStartEvent(message_id=message),
        *(TextMessageContentEvent(message_id=message, delta=delta) for delta in deltas),
        TextMessageEndEvent(message_id=message),
    ]


async def parrot(input: RunAgentInput) -> AsyncIterator[Event]:
    """Says back the last user message, one word at a time."""
    last = next((each.content for each in reversed(input.messages) if each.role == "user"), "nothing")
    yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
    yield StepStartedEvent(step_name="speak")
    for event in said(input.run_id, *(f"{word} " for word in str(last).split())):
        await asyncio.sleep(0)
        yield event
    yield StepFinishedEvent(step_name="speak")
    yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id)


async def asker(input: RunAgentInput) -> AsyncIterator[Event]:
    """Asks once whether to go on, and says what was answered."""
    yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
    if input.resume:
        for event in said(input.run_id, *(f"{each.status} {each.payload}" for each in input.resume)):
            yield event
        yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id)
        return
    asked = RunFinishedInterruptOutcome(interrupts=[Interrupt(id="q1", reason="confirm", message="go on?")])
    yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id, outcome=asked)


LONG = "row, " * 7_000


async def tooled(input: RunAgentInput) -> AsyncIterator[Event]:
    """Calls a tool whose result is long; or the client's own tool, when it brought one."""
    own = input.tools[0].name if input.tools else None
    answered = any(message.role == "tool" for message in input.messages)
    yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
    if own is not None and answered:
        for event in said(input.run_id, "thanks"):
            yield event
    else:
        call = f"call-{input.run_id}"
        yield ToolCallStartEvent(tool_call_id=call, tool_call_name=own or "search")
        yield ToolCallArgsEvent(tool_call_id=call, delta='{"query": "all"}')
        yield ToolCallEndEvent(tool_call_id=call)
        if own is None:
            yield ToolCallResultEvent(message_id=f"m-{call}", tool_call_id=call, content=LONG)
    yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id)


async def steady(input: RunAgentInput) -> AsyncIterator[Event]:
    """Speaks for minutes, a number at a time; picks up the count where its own words in the thread end."""
    spoken = "".join(str(each.content) for each in input.messages if each.role == "assistant")
    start = int(spoken.split()[-1]) + 1 if spoken.split() else 0
    yield TextMessageStartEvent(message_id=f"m-{input.run_id}")
    for n in range(start, start + 5_000):
        await asyncio.sleep(0.02)
        yield TextMessageContentEvent(message_id=f"m-{input.run_id}", delta=f"{n} ")


steady.reconciles_history = True  # type: ignore[attr-defined]  # it goes on where its words end, half said or not


class Gated:
    """An agent that speaks one token each time the gate is opened, for runs that must be caught in the middle."""

    def __init__(self, tokens: int = 5) -> None:
        self.tokens = tokens
        self.gate = asyncio.Semaphore(0)
        self.ran = 0

    async def __call__(self, input: RunAgentInput) -> AsyncIterator[Event]:
        self.ran += 1
        yield TextMessageStartEvent(message_id=f"m-{input.run_id}")
        for n in range(self.tokens):
            await self.gate.acquire()
            yield TextMessageContentEvent(message_id=f"m-{input.run_id}", delta=f"{n} ")
        yield TextMessageEndEvent(message_id=f"m-{input.run_id}")

    def open(self, times: int = 1000) -> None:
        for _ in range(times):
            self.gate.release()
