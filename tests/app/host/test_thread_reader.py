"""What is read of a thread: of two results or two runs, each its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from ag_ui.core import (
    Event,
    MessagesSnapshotEvent,
    RunAgentInput,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    UserMessage,
)

from runcast.app import Cast, NotFound
from runcast.app.host import thread_reader
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


async def doubled(input: RunAgentInput) -> AsyncIterator[Event]:
    """Shows two messages of one id, and two results of one call."""
    messages = [UserMessage(id="twin", content=text) for text in ("older", "newer")]
    yield MessagesSnapshotEvent(messages=messages)
    yield ToolCallStartEvent(tool_call_id="c", tool_call_name="search")
    yield ToolCallEndEvent(tool_call_id="c")
    for text in ("first", "last"):
        yield ToolCallResultEvent(message_id=f"m-{text}", tool_call_id="c", content=text)


async def test_of_two_of_one_name_the_newest_is_read_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_reader, "_PAGE", 2)
    async with Cast.open("memory://", agents=[doubled], watch=False) as cast:
        run = await cast.say("t1", "go")
        await run.result()
        assert (await cast.threads.message("t1", "twin")).content == "newer"
        pages = list[int | None]()
        entries = cast.log.entries

        async def counted(thread_id: str, after: int = 0, limit: int | None = None) -> Any:
            pages.append(after)
            return await entries(thread_id, after, limit)

        monkeypatch.setattr(cast.log, "entries", counted)
        assert await cast.threads.tool_result("t1", "c") == "last"
        assert pages == [*range(0, run.last_seq, 2), run.last_seq]
