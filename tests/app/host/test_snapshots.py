"""Snapshots of a run: as often as was said, counted from the last one, and one of its very end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from ag_ui.core import (
    CustomEvent,
    Event,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
)

from runcast.app import Cadence, Cast, EventFunction
from runcast.slim import AgentState, RunLog, SlimSerializer, StoreError, open_store
from runcast.slim.stores.memory import MemoryStore
from runcast.slim.stores.records import Batch


async def noisy(input: RunAgentInput) -> AsyncIterator[Event]:
    """Twelve entries, and a breath behind each."""
    yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
    for number in range(10):
        await asyncio.sleep(0)
        yield CustomEvent(name="noise", value=number)
    yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id)


class Watched(SlimSerializer):
    """Remembers which snapshots were taken; those of a broken one are no JSON."""

    def __init__(self, *, broken: bool = False) -> None:
        super().__init__()
        self.taken: list[int] = []
        self._broken = broken

    def serialize(self, state: AgentState) -> dict[str, Any]:
        self.taken.append(state.seq or 0)
        return {"not": object()} if self._broken else super().serialize(state)


@pytest.mark.parametrize("broken", [False, True])
async def test_they_are_counted_from_the_last_one_in_a_long_thread_too(broken: bool) -> None:
    log, often = RunLog(open_store("memory://")), Cadence(events=5, seconds=60)
    async with Cast(log, agents=[EventFunction(noisy, name="noisy")], cadence=often) as cast:
        cast.serializer = watched = Watched(broken=broken)
        for _ in range(2):
            run = await cast.say("t1", "go")
            assert (await run.result()).status == "completed"
        kept = await log.snapshot("t1")
    assert watched.taken == [5, 10, 12, 17, 22, 24]
    assert kept is None if broken else kept is not None and kept.seq == 24


async def test_time_is_what_the_entries_say() -> None:
    log = RunLog(open_store("memory://"), clock=iter(range(0, 1_000_000, 700)).__next__)
    slow = Cadence(events=100, seconds=2)
    async with Cast(log, agents=[EventFunction(noisy, name="noisy")], cadence=slow) as cast:
        cast.serializer = watched = Watched()
        run = await cast.say("t1", "go")
        await run.result()
    assert len(watched.taken) > 1
    assert watched.taken[-1] == 12
    assert watched.taken == sorted(set(watched.taken))


class Dying(MemoryStore):
    """Remembers the batches that it wrote, and is away once told to be."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[Batch] = []
        self.away = False

    async def append(self, batch: Batch) -> int:
        if self.away:
            raise StoreError("the disk is full")
        number = await super().append(batch)
        self.batches.append(batch)
        return number


async def test_the_last_one_is_written_in_one_transaction_with_the_end() -> None:
    store = Dying()
    async with Cast(RunLog(store), agents=[EventFunction(noisy, name="noisy")]) as cast:
        await (await cast.say("t1", "go")).result()
        assert [batch.snapshot is not None for batch in store.batches if batch.end] == [True]
        run = await cast.say("t1", "go")
        store.away = True
        assert (await run.result()).status == "truncated"
        store.away = False
        kept = await cast.log.snapshot("t1")
    assert kept is not None
    assert kept.seq == 12, "no snapshot shows what never became durable"
