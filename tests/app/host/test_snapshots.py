"""Snapshots of a run: as often as was said, counted from the last one, and one of its very end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from ag_ui.core import CustomEvent, Event, RunAgentInput, RunFinishedEvent, RunStartedEvent

from runcast.app import Cadence, Cast, EventFunction
from runcast.slim import RunLog, StoreError, open_store


async def noisy(input: RunAgentInput) -> AsyncIterator[Event]:
    """Twelve entries, and a breath behind each."""
    yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
    for number in range(10):
        await asyncio.sleep(0)
        yield CustomEvent(name="noise", value=number)
    yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id)


class Watched(RunLog):
    """A log that remembers which snapshots it was given; a broken one keeps none."""

    def __init__(self, **given: Any) -> None:
        super().__init__(open_store("memory://"), **given)
        self.kept: list[int] = []
        self.broken = False

    async def save_snapshot(self, thread_id: str, data: Any, **given: Any) -> Any:
        self.kept.append(data["resume"]["seq"])
        if self.broken:
            raise StoreError("full")
        return await super().save_snapshot(thread_id, data, **given)


@pytest.mark.parametrize("broken", [False, True])
async def test_they_are_counted_from_the_last_one_in_a_long_thread_too(broken: bool) -> None:
    log = Watched()
    log.broken = broken
    often = Cadence(events=5, seconds=60)
    async with Cast(log, agents=[EventFunction(noisy, name="noisy")], cadence=often) as cast:
        for _ in range(2):
            run = await cast.say("t1", "go")
            assert (await run.result()).status == "completed"
    assert log.kept == [5, 10, 12, 17, 22, 24]


async def test_time_is_what_the_entries_say() -> None:
    log = Watched(clock=iter(range(0, 1_000_000, 700)).__next__)
    slow = Cadence(events=100, seconds=2)
    async with Cast(log, agents=[EventFunction(noisy, name="noisy")], cadence=slow) as cast:
        run = await cast.say("t1", "go")
        await run.result()
    assert len(log.kept) > 1
    assert log.kept[-1] == 12
    assert log.kept == sorted(set(log.kept))
