"""A run that is driven here: nothing is written behind its end, and a message that it was handed is written whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
from ag_ui.core import (
    CustomEvent,
    Event,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageEndEvent,
)

from runcast.app import Cast
from runcast.app.nodes.handover import STEERED
from runcast.slim import MemoryStore, RunLog
from runcast.slim.stores.records import Batch
from tests.app.nodes.stage import lingering, until
from tests.app.nodes.test_steer import FRAMEWORKS, whole
from tests.app.nodes.works import Framework, Works


async def test_what_is_announced_behind_the_end_is_not_written() -> None:
    async with lingering() as (cast, run, goes_on):
        assert await cast.run(run.run_id).announce(CustomEvent(name="late", value=1)) is False
        goes_on.set()
        await run.result()
        assert [each.event.type for each in await cast.log.entries("t1")] == ["RUN_STARTED", "RUN_FINISHED"]


async def test_what_is_announced_is_written_before_an_end_that_comes_later() -> None:
    goes_on, may_write = asyncio.Event(), asyncio.Event()

    async def waits(input: RunAgentInput) -> AsyncIterator[Event]:
        yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
        await goes_on.wait()
        yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id)

    log = RunLog(MemoryStore())
    append: Any = log.append

    async def late(thread_id: str, event: Event, **more: Any) -> Any:
        if isinstance(event, CustomEvent):
            await may_write.wait()
        return await append(thread_id, event, **more)

    log.append = late  # type: ignore[method-assign]
    async with Cast(log, agents=[waits]) as cast:
        run = await cast.say("t1", "go")
        announced = asyncio.create_task(cast.run(run.run_id).announce(CustomEvent(name="n", value=1)))
        await asyncio.sleep(0)
        goes_on.set()
        for _ in range(50):
            await asyncio.sleep(0)
        may_write.set()
        assert await announced is True
        await run.result()
        types = [each.event.type for each in await cast.log.entries("t1")]
        assert types == ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]


class Slow(MemoryStore):
    """A store that writes nothing while it is held."""

    def __init__(self) -> None:
        super().__init__()
        self.free = asyncio.Event()
        self.free.set()

    async def append(self, batch: Batch) -> int:
        await self.free.wait()
        return await super().append(batch)

    async def append_all(self, batches: Sequence[Batch]) -> list[int | None]:
        await self.free.wait()
        return await super().append_all(batches)


@pytest.mark.parametrize("name", FRAMEWORKS)
async def test_a_message_waits_until_the_log_has_it_whole_with_what_is_told_of_it(name: str) -> None:
    works, store = Works(), Slow()
    async with Cast(RunLog(store), agents=[Framework(name).agent(works)]) as cast:
        first = await cast.say("t1", "one")
        await works.reaches(works.in_tool)
        second = await cast.say("t1", "two", on_busy="steer")
        await cast.log.flush()
        store.free.clear()
        try:
            works.open()
            run = cast.run(first.run_id)
            await until(lambda: _has(run, "two"))
            cast.node.begin_next(cast, "t1")
            await asyncio.sleep(0.1)
            waits = [each.text for each in await cast.queue.waiting("t1")]
        finally:
            store.free.set()
        assert waits == ["two"]
        await whole(second)
        await whole(first)
        assert not await cast.queue.waiting("t1")
        told = [each.event for each in await cast.log.entries("t1")]
        ((ends, steered),) = [
            two for two in pairwise(told) if isinstance(two[1], CustomEvent) and two[1].name == STEERED
        ]
        assert isinstance(ends, TextMessageEndEvent)
        assert isinstance(steered, CustomEvent)
        assert steered.value == {"run_id": second.run_id, "message_id": ends.message_id}


async def _has(run: Any, text: str) -> bool:
    return any(each.role == "user" and each.content == text for each in run.state.history)
