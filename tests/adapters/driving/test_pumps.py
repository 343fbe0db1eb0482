"""The active runs of an adapter: cancelled by their id, forgotten when they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from ag_ui.core import RunAgentInput, RunErrorEvent, StepStartedEvent

from runcast.adapters import UnknownRun
from runcast.adapters.driving.pumps import Pumps
from runcast.adapters.remote.mended_run import MendedRun

INPUT = RunAgentInput(thread_id="t", run_id="r", messages=[])


async def forever() -> AsyncIterator[Any]:
    yield StepStartedEvent(step_name="s")
    await asyncio.Event().wait()


async def begun() -> Any:
    return forever(), MendedRun(INPUT, clock=lambda: 1)


async def test_a_run_is_cancelled_by_its_id():
    pumps = Pumps()
    events = []
    async for event in pumps.run("r", begun):
        events.append(event)
        if isinstance(event, StepStartedEvent):
            assert list(pumps.active) == ["r"]
            pumps.cancel("r")
    assert events[-1].type in ("RUN_FINISHED", "RUN_ERROR")
    assert not isinstance(events[0], RunErrorEvent)
    assert not pumps.active
    with pytest.raises(UnknownRun, match="no run 'r' is active here"):
        pumps.cancel("r")


async def test_a_run_that_ends_leaves_the_next_one_of_its_id():
    pumps = Pumps()
    first = pumps.run("r", begun)
    await anext(first)
    second = pumps.run("r", begun)
    await anext(second)
    await first.aclose()  # type: ignore[attr-defined]  # a generator
    assert list(pumps.active) == ["r"]
    await second.aclose()  # type: ignore[attr-defined]  # likewise
    assert not pumps.active
