"""A message for an agent that works: handed to it before its next model call, once, and shown where the model reads it."""

from __future__ import annotations

import asyncio
from typing import Any, Literal, cast

import pytest
from ag_ui.core import CustomEvent, TextMessageStartEvent

from runcast.app import Cast
from runcast.slim import MemoryStore, RunLog, verify
from tests.app.mortal import Mortal, behind
from tests.app.nodes.stage import PATIENCE, until
from tests.app.nodes.test_queue import _buried, idle, words
from tests.app.nodes.works import Framework, Works, is_paired, shown
from tests.conftest import LONG

pytestmark = pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")  # ADK's own, once a process
FRAMEWORKS = ["langgraph", "adk"]


async def whole(run: Any) -> Any:
    async with asyncio.timeout(PATIENCE):
        return await run.result()


async def events_of(cast: Cast) -> list[Any]:
    return [each.event for each in await cast.log.entries("t1")]


@pytest.mark.parametrize("name", FRAMEWORKS)
async def test_a_message_is_read_before_the_next_model_call(name: str) -> None:
    works, framework = Works(), Framework(name)
    agent = framework.agent(works)
    async with Cast.open("memory://", agents=[agent], watch=False) as cast:
        first = await cast.say("t1", "one")
        await works.reaches(works.in_tool)
        second = await cast.say("t1", "two", on_busy="steer")
        third = await cast.say("t1", "three", on_busy="steer")
        assert [each.accepted for each in (first, second, third)] == ["started", "steering", "steering"]
        works.open()
        assert (await whole(second)).run_id == (await whole(first)).run_id == first.run_id
        assert (await whole(third)).status == "completed"
        assert [kind for kind, _ in works.heard[-1]] == [
            "user",
            "call",
            "call",
            "result",
            "result",
            "user",
            "user",
        ]
        assert [text for kind, text in works.heard[-1] if kind == "user"] == ["one", "two", "three"]
        assert all(is_paired(heard) for heard in works.heard)
        await until(lambda: _none_waits(cast))
        state = await cast.state("t1")
        assert state is not None
        assert shown(state.messages) == await framework.held(agent)
        assert [each.role for each in state.messages] == [
            "user",
            "assistant",
            "tool",
            "tool",
            "user",
            "user",
            "assistant",
        ]
        assert state.messages[-1].content == "saw one and two and three"
        assert [each.run_id for each in await cast.log.runs("t1")] == [first.run_id]
        events = await events_of(cast)
        assert not verify(events)
        told = [
            each.value for each in events if isinstance(each, CustomEvent) and each.name == "runcast.steered"
        ]
        said = [
            each.message_id
            for each in events
            if isinstance(each, TextMessageStartEvent) and each.role == "user"
        ]
        assert told == [
            {"run_id": run.run_id, "message_id": at} for run, at in zip((second, third), said, strict=True)
        ]
        assert (await whole(await cast.say("t1", "four"))).status == "completed"
        assert await words(cast) == ["one", "two", "three", "four"]


async def settled(cast: Cast, recover: str) -> None:
    """Nothing waits, and nothing runs or is to be resumed."""

    async def rests() -> bool:
        runs = await cast.log.runs("t1")
        return recover == "off" or runs[-1].status != "truncated"

    await idle(cast)
    await until(rests)
    await idle(cast)


async def _none_waits(cast: Cast) -> bool:
    return not await cast.queue.waiting("t1")


@pytest.mark.parametrize("recover", ["continue", "off"])
@pytest.mark.parametrize("name", FRAMEWORKS)
async def test_a_steered_message_is_neither_lost_nor_doubled_wherever_its_process_dies(
    name: str, recover: Literal["off", "continue"]
) -> None:
    graves: list[Any] = []
    for steps in range(1, 2_000, 1 if LONG else 4):
        store, framework, works = MemoryStore(), Framework(name), Works()
        mortal, acknowledged = Mortal(store, steps), list[str]()
        victim = Cast(
            RunLog(cast("Any", mortal), clock=behind, patience_ms=0),
            agents=[framework.agent(works, mortal)],
            recover=recover,
        )

        async def scene(victim: Cast = victim, works: Works = works, done: list[str] = acknowledged) -> None:
            async with victim:
                await victim.say("t1", "one")
                done.append("one")
                await works.reaches(works.in_tool)
                for text in ("two", "three"):
                    await victim.say("t1", text, on_busy="steer")
                    done.append(text)
                works.open()
                await idle(victim)

        playing = asyncio.ensure_future(scene())
        dying = asyncio.ensure_future(mortal.dead.wait())
        await asyncio.wait({playing, dying}, return_when=asyncio.FIRST_COMPLETED)
        died = mortal.dead.is_set() and not playing.done()
        again = Works()
        again.open()
        agent = framework.agent(again)
        async with Cast(RunLog(store), agents=[agent], recover=recover, recover_every=0.01) as survivor:
            if acknowledged:
                await settled(survivor, recover)
            if recover == "off" and acknowledged:
                await whole(await survivor.say("t1", "last", agent="agent"))
                acknowledged.append("last")
            said = await words(survivor)
            assert sorted(said) == sorted(set(said)), steps
            assert set(acknowledged) <= set(said), (steps, said)
            assert all(is_paired(heard) for heard in [*works.heard, *again.heard]), steps
            state = await survivor.state("t1")
            if state is not None and acknowledged:
                assert shown(state.messages) == await framework.held(agent), steps
            entries = await survivor.log.entries("t1")
            for run in await survivor.log.runs("t1"):
                own = [each.event for each in entries if each.run_id == run.run_id]
                assert run.status == "truncated" or not verify(own), steps
        dying.cancel()
        if died:
            graves.append(_buried(mortal, playing, victim))
        else:
            await playing
        if not died:
            break
    await asyncio.gather(*graves)
    assert steps > 30
