"""What is read of a thread: of two results or two runs, each its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from ag_ui.core import (
    Event,
    RunAgentInput,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.app import Cast, NotFound
from tests.app.agents import parrot


async def twice(input: RunAgentInput) -> AsyncIterator[Event]:
    """Calls two tools."""
    for name in ("one", "two"):
        yield ToolCallStartEvent(tool_call_id=name, tool_call_name="search")
        yield ToolCallArgsEvent(tool_call_id=name, delta="{}")
        yield ToolCallEndEvent(tool_call_id=name)
        yield ToolCallResultEvent(message_id=f"m-{name}", tool_call_id=name, content=f"result of {name}")


async def test_of_several_results_each_is_read_by_its_call() -> None:
    async with Cast.open("memory://", agents=[twice], watch=False) as cast:
        await (await cast.say("t1", "go")).result()
        for name in ("one", "two"):
            assert await cast.threads.tool_result("t1", name) == f"result of {name}"
        with pytest.raises(NotFound, match="no result of a tool call"):
            await cast.threads.tool_result("t1", "three")


async def test_the_state_of_an_earlier_run_has_nothing_of_a_later_one() -> None:
    async with Cast.open("memory://", agents=[parrot], watch=False) as cast:
        await (await cast.say("t1", "one")).result()
        await (await cast.say("t1", "two words")).result()
        (first, _) = await cast.log.runs("t1")
        state = await cast.state("t1", first.run_id)
        assert state is not None
        assert state.run_id == first.run_id
        assert (state.seq or 0) <= first.last_seq
        assert len(state.steps) <= 1
