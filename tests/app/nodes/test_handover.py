"""A run that another node drives: whose end a message is told that reached it, and what is left when its process dies."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any, cast

import pytest
from ag_ui.core import CustomEvent, RunAgentInput, RunFinishedEvent, RunStartedEvent

from runcast.app import Cast
from runcast.app.host.event_function import EventFunction
from runcast.app.nodes.handover import RemoteRun
from runcast.slim import MemoryStore, RunLog, open_store
from tests.app.agents import parrot
from tests.app.mortal import Mortal, ahead
from tests.app.nodes.stage import PATIENCE, knows, until, web
from tests.app.nodes.test_queue import buried, words
from tests.app.nodes.test_steer import survived, whole
from tests.app.nodes.works import Framework, Works, is_paired, shown
from tests.conftest import LONG

pytestmark = pytest.mark.filterwarnings("ignore:create_react_agent has been moved")


@pytest.mark.parametrize("url", ["sqlite", "postgres"] if LONG else ["sqlite"], indirect=True)
@pytest.mark.parametrize("steps", range(1, 81, 2) if LONG else (1, 40, 79))
async def test_a_message_steers_a_run_of_another_node_whose_process_dies(url: str, steps: int) -> None:
    """The web node hands it over; the worker dies at this point of it, and another one goes on."""
    framework, works = Framework("langgraph"), Works()
    mortal = Mortal(cast("Any", open_store(url)), 100_000)
    victim = Cast(RunLog(cast("Any", mortal)), agents=[framework.agent(works, mortal)], recover="continue")
    again = survived()
    agent = framework.agent(again)
    async with web(url) as front, AsyncExitStack() as others:
        opening = asyncio.ensure_future(victim.opened())
        others.push_async_callback(buried, mortal, opening, victim)
        await knows(front, "agent")
        await front.say("t1", "one", agent="agent")
        await works.reaches(works.in_tool)
        later = [
            await front.say("t1", text, agent="agent", on_busy=how)
            for text, how in (("two", "steer"), ("three", "queue"))
        ]
        assert [each.accepted for each in later] == ["steering", "queued"]
        results = [asyncio.ensure_future(whole(each)) for each in later]
        mortal.dies_in(steps)
        works.open()
        async with asyncio.timeout(PATIENCE):
            await mortal.dead.wait()
        heir = Cast(
            RunLog(open_store(url), clock=ahead), agents=[agent], recover="continue", recover_every=0.05
        )
        await others.enter_async_context(heir)
        await until(lambda: _is_done(front))
        resumed = {each.parent for each in await front.log.runs("t1") if each.edge == "resume"}
        for result in await asyncio.gather(*results):
            assert result.status == ("truncated" if result.run_id in resumed else "completed")
        assert sorted(await words(front)) == ["one", "three", "two"]
        assert [heard for heard in [*works.heard, *again.heard] if not is_paired(heard)] == []
        state = await front.state("t1")
        assert state is not None
        assert shown(state.messages) == await framework.held(agent)


async def _is_done(cast: Cast) -> bool:
    """Nothing waits, and the last run is completed."""
    runs, notes = await cast.log.runs("t1"), await cast.log.notes.of_thread("t1")
    waits = any(each.box.startswith(("run ", "queue ")) for each in notes)
    return bool(runs) and runs[-1].status == "completed" and not waits


async def test_a_message_belongs_to_the_run_that_takes_it_after_the_one_that_died_with_it() -> None:
    """It still waits when the run that was handed it is cut short, so the end of that run is not its own."""
    async with RunLog(MemoryStore()) as log:
        await log.append("t1", RunStartedEvent(thread_id="t1", run_id="dead"))
        await log.append("t1", CustomEvent(name="runcast.steered", value={"run_id": "mine"}))
        await log.recovery.abandon("t1")

        async def waits() -> bool:
            for event in (RunStartedEvent, RunFinishedEvent):
                await log.append("t1", event(thread_id="t1", run_id="mine"))
            return True

        async def stop(hard: bool) -> None:
            raise AssertionError

        given = RunAgentInput(thread_id="t1", run_id="mine", messages=[], tools=[], context=[])
        run = RemoteRun(log, cast("Any", EventFunction(parrot)), given, after=0, stop=stop, waits=waits)
        result = await whole(run)
        assert (result.run_id, result.status) == ("mine", "completed")
