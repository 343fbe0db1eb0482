"""Case 59: a reader slower than its graph costs neither memory nor order, and never holds the graph up for good."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runcast.adapters.langgraph import LangGraphOptions
from runcast.slim.protocol.verifier import verify
from tests.adapters.langgraph.fakes import CountingModel
from tests.adapters.langgraph.scenes.book import answering
from tests.adapters.langgraph.stage import Stage

MANY = 8_000


async def read(stage: Stage, model: CountingModel) -> tuple[list[Any], dict[str, Any]]:
    """Read with pauses until the model is done; the box's counters when it was fullest."""
    events: list[Any] = []
    box: dict[str, Any] = {}
    async for event in stage.adapter.run(stage.input("hi")):
        events.append(event)
        if not model.finished:
            await asyncio.sleep(0.01)
        box = stage.adapter.stats()["boxes"].get("r1", box)
    return events, box


async def test_59_memory_stays_bounded_and_order_is_kept():
    words = [f"{n} " for n in range(MANY)]
    model = CountingModel(count=MANY)
    stage = Stage().play(answering(model), options=LangGraphOptions(max_queue=50))
    events, box = await read(stage, model)
    assert not verify(events)
    assert "".join(event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT") == "".join(words)
    assert box["highest"] <= 50
    assert box["merged"] > MANY / 2
    assert len(events) < MANY / 2


async def test_59_a_reader_that_keeps_up_gets_every_token_by_itself():
    stage = Stage().play(answering(CountingModel(count=2_000)))
    events = [event async for event in stage.adapter.run(stage.input("hi"))]
    assert len([event for event in events if event.type == "TEXT_MESSAGE_CONTENT"]) == 2_000


@pytest.mark.parametrize("hard", [True, False])
async def test_59_a_lagging_run_can_be_stopped(hard: bool):
    stage = Stage().play(
        answering(CountingModel(count=100_000 if hard else 3_000)), options=LangGraphOptions(max_queue=20)
    )
    events: list[Any] = []
    async for event in stage.adapter.run(stage.input("hi")):
        events.append(event)
        if len(events) == 30:
            await stage.adapter.stop("r1", hard=hard)
        if len(events) < 40:
            await asyncio.sleep(0.01)
    assert not verify(events)
    assert events[-1].outcome.type == ("cancelled" if hard else "success")  # its only step was its last


async def test_59_a_lagging_reader_may_leave():
    stage = Stage().play(answering(CountingModel(count=30_000)), options=LangGraphOptions(max_queue=20))
    run = stage.adapter.run(stage.input("hi"))
    seen = 0
    async for _ in run:
        seen += 1
        await asyncio.sleep(0.01)
        if seen == 20:
            break
    await run.aclose()
    assert stage.adapter.stats()["active"] == 0
