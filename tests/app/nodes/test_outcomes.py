"""What a second message does to a run, the same for both frameworks: in a tool, and among the words of an answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from ag_ui.core import TextMessageContentEvent, TextMessageEndEvent

from runcast.app import Cast
from runcast.app.nodes.handover import OnBusy
from runcast.slim import verify
from tests.app.nodes.stage import PATIENCE, until
from tests.app.nodes.test_queue import words
from tests.app.nodes.works import Framework, Works, is_paired

pytestmark = pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")  # ADK's own, once a process
FRAMEWORKS = ["langgraph", "adk"]
POLICIES: list[OnBusy] = ["queue", "steer", "interrupt", "rollback"]


async def whole(run: Any) -> Any:
    async with asyncio.timeout(PATIENCE):
        return await run.result()


@pytest.mark.parametrize("on_busy", POLICIES)
@pytest.mark.parametrize("name", FRAMEWORKS)
async def test_in_a_tool_no_model_sees_a_call_without_its_result(name: str, on_busy: OnBusy) -> None:
    works = Works()
    agent = Framework(name).agent(works)
    async with Cast.open("memory://", agents=[agent], watch=False) as cast:
        first = await cast.say("t1", "one")
        await works.reaches(works.in_tool)
        await works.reaches(works.quick)
        for _ in range(100):  # until the framework has taken its result
            await asyncio.sleep(0)
        second = await cast.say("t1", "two", on_busy=on_busy)
        works.open()
        assert (await whole(second)).status == "completed"
        assert (await whole(first)).status == ("completed" if on_busy in ("queue", "steer") else "cancelled")
        assert all(is_paired(heard) for heard in works.heard), works.heard[-1]
        people = ["two"] if on_busy == "rollback" else ["one", "two"]
        assert [text for kind, text in works.heard[-1] if kind == "user"] == people
        assert await words(cast) == people
        if on_busy != "rollback":  # what returned stays
            state = await cast.state("t1")
            assert state is not None
            assert next(each.content for each in state.messages if each.role == "tool") == "quick done"
        assert (await whole(await cast.say("t1", "three"))).status == "completed"
        assert await words(cast) == [*people, "three"]
        assert all(is_paired(heard) for heard in works.heard)
        entries = await cast.log.entries("t1")
        for run in await cast.log.runs("t1"):
            assert not verify([each.event for each in entries if each.run_id == run.run_id])


@pytest.mark.parametrize("earlier", [0, 1])
@pytest.mark.parametrize("on_busy", ["interrupt", "rollback"])
@pytest.mark.parametrize("name", FRAMEWORKS)
async def test_a_run_that_is_stopped_at_once_keeps_its_message(
    name: str, on_busy: OnBusy, earlier: int
) -> None:
    works = Works()
    works.open()
    agent = Framework(name).agent(works)
    async with Cast.open("memory://", agents=[agent], watch=False) as cast:
        for _ in range(earlier):
            await whole(await cast.say("t1", "zero"))
        await cast.say("t1", "one")
        assert (await whole(await cast.say("t1", "two", on_busy=on_busy))).status == "completed"
        people = ["zero"] * earlier + (["two"] if on_busy == "rollback" else ["one", "two"])
        assert [text for kind, text in works.heard[-1] if kind == "user"] == people
        assert await words(cast) == people


@pytest.mark.parametrize("on_busy", ["interrupt", "rollback", "steer"])
@pytest.mark.parametrize("name", FRAMEWORKS)
async def test_words_that_were_shown_are_kept_struck_out_or_taken_back(name: str, on_busy: OnBusy) -> None:
    works = Works()
    works.tool.set()
    agent = Framework(name).agent(works)
    async with Cast.open("memory://", agents=[agent], watch=False) as cast:
        first = await cast.say("t1", "one")

        async def partial() -> str | None:
            entries = [each.event for each in await cast.log.entries("t1")]
            return next((it.message_id for it in entries if isinstance(it, TextMessageContentEvent)), None)

        shown = await until(partial)
        second = await cast.say("t1", "two", on_busy=on_busy)
        works.open()
        assert (await whole(second)).status == "completed"
        state, runs = await cast.state("t1"), await cast.log.runs("t1")
        assert state is not None
        entries = [each.event for each in await cast.log.entries("t1")]
        (end,) = [it for it in entries if isinstance(it, TextMessageEndEvent) and it.message_id == shown]
        discarded = ((end.metadata or {}).get("runcast") or {}).get("discarded")
        kept = [each.content for each in state.history if each.id == shown]
        if on_busy == "steer":  # the answer was the last model call: the message begins afterwards
            assert (discarded, kept) == (None, ["saw one"])
        elif on_busy == "interrupt":  # struck out; a model does not read it as its own whole answer
            assert discarded == "cancelled"
            assert all(each.id != shown for each in state.messages)
        else:
            assert kept == []
            assert [(run.run_id, run.edge) for run in runs][-1] == (second.run_id, "branch")
            assert first.run_id in [run.run_id for run in runs]
