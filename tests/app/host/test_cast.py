"""Runs that this process owns: started, watched, stopped, answered, branched, taken up again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import Event, RunAgentInput, RunErrorEvent, RunFinishedEvent, UserMessage

from runcast.app import (
    AccessPolicy,
    BadRequest,
    Busy,
    Cast,
    Closing,
    Full,
    NotFound,
    Over,
    RunHandle,
    as_adapter,
)
from runcast.broadcast import Broadcaster, MemoryPublisher, Position
from runcast.slim import MemoryStore, RunLog, verify
from tests.app.agents import Gated, asker, parrot


def ask(text: str = "hello you", thread_id: str = "t1", run_id: str = "r1") -> RunAgentInput:
    message = UserMessage(id=f"u-{run_id}", content=text)
    return RunAgentInput(thread_id=thread_id, run_id=run_id, messages=[message], tools=[], context=[])


@pytest.fixture
async def cast() -> AsyncIterator[Cast]:
    async with Cast.open("memory://", agents=[parrot, asker]) as it:
        yield it


async def events(cast: Cast, thread_id: str = "t1") -> list[Any]:
    return [entry.event for entry in await cast.log.entries(thread_id)]


async def test_a_run_goes_into_the_log_and_ends(cast: Cast) -> None:
    run: RunHandle = await cast.start(parrot, ask())
    result = await run.result()
    assert (result.status, result.last_seq, run.first_seq) == ("completed", 8, 1)
    stream = await events(cast)
    assert not verify(stream)
    assert stream[0].input.messages[0].content == "hello you"
    assert (await cast.snapshot("t1"))["messages"][-1]["content"] == "hello you "


async def test_nobody_has_to_watch_and_whoever_comes_late_sees_all(cast: Cast) -> None:
    gated = Gated()
    run = await cast.start(gated, ask())
    seen: list[int] = []

    async def watch() -> None:
        async for entry in cast.attach("t1"):
            seen.append(entry.seq)
            if isinstance(entry.event, RunFinishedEvent):
                return

    first = asyncio.create_task(watch())
    gated.open(2)
    await asyncio.sleep(0.05)
    first.cancel()
    gated.open()
    await run.result()
    seen.clear()
    await watch()
    assert seen == list(range(1, run.last_seq + 1))


async def test_one_thread_has_one_active_run(cast: Cast) -> None:
    gated = Gated()
    run = await cast.start(gated, ask())
    with pytest.raises(Busy, match="run r1 of this thread is active"):
        await cast.start(parrot, ask(run_id="r2"))
    await cast.start(parrot, ask(thread_id="t2", run_id="r3"))
    gated.open()
    await run.result()
    again = await cast.start(parrot, ask(run_id="r4"))
    assert (await again.result()).status == "completed"


async def test_a_run_id_is_used_once(cast: Cast) -> None:
    await (await cast.start(parrot, ask())).result()
    with pytest.raises(Busy, match="the run id was used"):
        await cast.start(parrot, ask())
    assert (await (await cast.start(parrot, ask(run_id="r2"))).result()).status == "completed"


async def test_more_runs_than_allowed_are_refused_and_taken_later() -> None:
    async with Cast.open("memory://", max_runs=1) as cast:
        gated = Gated()
        run = await cast.start(gated, ask())
        with pytest.raises(Full, match="1 runs are active"):
            await cast.start(parrot, ask(thread_id="t2", run_id="r2"))
        gated.open()
        await run.result()
        await (await cast.start(parrot, ask(thread_id="t2", run_id="r2"))).result()


async def test_stop_ends_a_run_and_says_so(cast: Cast) -> None:
    gated = Gated()
    run = await cast.start(gated, ask())
    gated.open(2)
    await asyncio.sleep(0.02)
    await cast.stop("r1")
    assert ((await run.result()).status, (await run.result()).code) == ("failed", "cancelled")
    with pytest.raises(Over, match="run 'r1' is over: it ended as failed"):
        await cast.stop("r1")
    with pytest.raises(NotFound, match="no run 'r9' is active here"):
        await cast.stop("r9")


async def test_questions_are_answered_in_a_run_of_their_own(cast: Cast) -> None:
    first = await (await cast.start(asker, ask())).result()
    assert (first.status, first.interrupts[0].id) == ("interrupted", "q1")
    result = await (await cast.resume("t1", {"q1": "yes"})).result()
    assert result.status == "completed"
    runs = await cast.log.runs("t1")
    assert [(run.edge, run.attempt, run.parent) for run in runs] == [
        ("continue", 1, None),
        ("resume", 2, "r1"),
    ]
    started = (await events(cast))[2]
    assert started.metadata["runcast"]["attempt"] == 2
    assert (await cast.snapshot("t1"))["messages"][-1]["content"] == "resolved yes"


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ({"q9": 1}, "no open question is called q9; open questions: q1"),
        ({}, "answer these questions too, or cancel them: q1"),
        (None, "answer these questions too"),
        ([{"interruptId": "q1", "status": "resolved"}] * 2, "answered twice"),
        ([{"id": "q1"}], "an answer is"),
    ],
)
async def test_answers_that_fit_no_question_are_refused(cast: Cast, answers: Any, sentence: str) -> None:
    await (await cast.start(asker, ask())).result()
    with pytest.raises(BadRequest, match=sentence):
        await cast.resume("t1", answers)


async def test_a_question_can_be_cancelled(cast: Cast) -> None:
    await (await cast.start(asker, ask())).result()
    await (await cast.resume("t1", [{"interruptId": "q1", "status": "cancelled"}])).result()
    assert (await cast.snapshot("t1"))["messages"][-1]["content"] == "cancelled None"


async def test_a_thread_branches_from_any_run(cast: Cast) -> None:
    paris = await cast.say("t1", "about Paris", agent="parrot")
    await paris.result()
    london = await cast.say("t1", "about London", from_run=paris.run_id, agent="parrot")
    await london.result()
    tokyo = await cast.say("t1", "about Tokyo", from_run=paris.run_id, agent="parrot")
    await tokyo.result()
    told = {}
    for run in (paris, london, tokyo):
        state = await cast.state("t1", run.run_id)
        assert state is not None
        told[run.run_id] = [message.content for message in state.history]
    assert told[tokyo.run_id] == ["about Paris", "about Paris ", "about Tokyo", "about Tokyo "]
    assert told[london.run_id] == ["about Paris", "about Paris ", "about London", "about London "]


async def test_unknown_things_are_told_in_sentences(cast: Cast) -> None:
    for awaited, sentence in (
        (cast.resume("ghost"), "there is no thread 'ghost'"),
        (cast.snapshot("ghost"), "there is no thread 'ghost'"),
        (cast.say("t", "x", agent="ghost"), "no agent is called 'ghost'; there are: parrot, asker"),
        (cast.say("t", "x", agent="parrot", from_run="r9"), "there is no run 'r9'"),
    ):
        with pytest.raises(NotFound, match=sentence):
            await awaited
    with pytest.raises(BadRequest, match="name the agent to run; there are: parrot, asker"):
        await cast.say("t", "x")
    with pytest.raises(BadRequest, match="an object of the class int is no agent"):
        as_adapter(7)


async def test_what_an_agent_raises_is_told_and_not_raised(cast: Cast) -> None:
    async def broken(input: RunAgentInput) -> AsyncIterator[Event]:
        raise RuntimeError("boom api_key=sk-123456789012")
        yield  # pragma: no cover  makes it a generator

    result = await (await cast.start(broken, ask())).result()
    assert (result.status, result.code) == ("failed", "agent_error")
    assert "sk-123456789012" not in (result.error or "")


async def test_an_adapter_that_breaks_its_promises_still_ends(cast: Cast) -> None:
    class Rude:
        name = "rude"
        reconciles_history = False

        async def run(self, input: RunAgentInput, *, resume: Any = None) -> AsyncIterator[Event]:
            for event in [each async for each in parrot(input)][:3]:
                yield event
            raise KeyError("not told")

        async def stop(self, run_id: str, *, hard: bool = False) -> None: ...

        def capabilities(self) -> Any: ...

    result = await (await cast.start(Rude(), ask())).result()
    assert result.status == "failed"
    assert isinstance((await events(cast))[-1], RunErrorEvent)


async def test_what_is_broadcast_was_durable_and_is_all_there() -> None:
    target = MemoryPublisher()
    log = RunLog(MemoryStore())
    async with Cast(log, Broadcaster(target), agents=[parrot]) as cast:
        for n in range(3):
            run = await cast.say("t1", f"word number {n}")
            await run.result()
        for _ in range(100):
            await asyncio.sleep(0.01)
            told = target.envelopes("private-agent.t1")
            if sum(each.type == "agent.status" for each in told) == 6:
                break
        history = await cast.history.read("t1", Position("", 0), most=1_000)

    def shown(envelopes: Any) -> list[Any]:
        return [
            (each.execution_id, each.payload.get("chunk", each.payload.get("status", each.type)))
            for each in envelopes
            if each.payload.get("chunk") != ""
        ]

    def joined(rows: list[Any]) -> str:
        return "|".join(str(text) for _, text in rows).replace(" |", " ")

    assert joined(shown(told)) == joined(shown(history.envelopes))


async def test_closing_lets_a_run_end_and_takes_no_more() -> None:
    cast = Cast.open("memory://")
    await cast.log.__aenter__()
    gated = Gated()
    run = await cast.start(gated, ask())
    closing = asyncio.create_task(cast.aclose(grace=4))
    await asyncio.sleep(0.01)
    with pytest.raises(Closing):
        await cast.start(parrot, ask(thread_id="t2", run_id="r2"))
    gated.open()
    assert (await run.result()).status == "completed"
    await closing


async def test_what_closing_cuts_short_is_taken_up_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"

    class Deaf(Gated):
        """Does not stop when asked."""

    stubborn = as_adapter(Deaf(), name="agent")
    stubborn.stop = _ignore  # type: ignore[method-assign]  # a framework that reaches no border
    async with Cast.open(url) as cast:
        await cast.start(stubborn, ask())
        await cast.aclose(grace=0.1)
    async with Cast.open(url, agents=[as_adapter(parrot, name="agent")]) as later:
        runs = await later.log.runs("t1")
        assert runs[-1].status == "truncated"
        assert not any(isinstance(each, RunFinishedEvent) for each in await events(later))
        result = await (await later.resume("t1")).result()
        assert result.status == "completed"
        runs = await later.log.runs("t1")
        assert [(run.edge, run.attempt) for run in runs][-1] == ("resume", 2)


async def _ignore(run_id: str, *, hard: bool = False) -> None:
    return None


async def test_the_former_name_of_access_is_accepted_with_a_warning() -> None:
    policy = AccessPolicy()
    with pytest.deprecated_call(match="`door=` is called `access=` now"):
        cast = Cast.open("memory://", door=policy)
    assert cast.access is policy
    assert cast.options.access is policy


def test_a_setting_that_a_cast_does_not_have_is_named() -> None:
    settings: dict[str, Any] = {"watch": False}
    with pytest.raises(
        TypeError, match=r"Cast has no setting 'watch': it has access, .* belong to `Cast\.open`"
    ):
        Cast(RunLog(MemoryStore()), **settings)
