"""What a run continues from is read under the thread's lease, and a request that makes no sense any more is refused."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from ag_ui.core import Event, ResumeEntry, RunAgentInput, RunStartedEvent

from runcast.app import BadRequest, Busy, Cast, Over, Overtaken
from runcast.app.nodes import node
from runcast.app.nodes.handover import RunRequest, input_for
from runcast.slim import RunLog
from runcast.slim.stores import MemoryStore
from tests.app.agents import Gated, asker, parrot


async def test_a_request_for_a_run_that_is_not_the_newest_any_more_is_refused_and_frees_the_thread() -> None:
    async with Cast.open("memory://", agents=[parrot, asker]) as cast:
        first = await (await cast.say("t1", "go", agent="asker")).result()
        await (await cast.say("t1", "other", agent="parrot")).result()
        late = RunRequest("asker", None, "resume", first.run_id, unfinished=True)
        with pytest.raises(Overtaken, match="has moved on since"):
            await cast.launcher.launch(late, "t1", "late")
        assert (await (await cast.say("t1", "on", agent="parrot")).result()).status == "completed"


async def test_a_run_that_has_completed_is_not_resumed() -> None:
    async with Cast.open("memory://", agents=[parrot]) as cast:
        run = await cast.say("t1", "hello")
        await run.result()
        with pytest.raises(Over, match="nothing to resume"):
            await cast.resume("t1")
        assert [each.run_id for each in await cast.log.runs("t1")] == [run.run_id]


async def begun(cast: Cast) -> str:
    """A run that has completed, of the agent `parrot`."""
    run = await cast.say("t1", "hello", agent="parrot")
    await run.result()
    return run.run_id


async def is_free(cast: Cast) -> bool:
    thread = await cast.log.thread("t1")
    return thread is not None and thread.owner is None


async def test_a_recovery_is_dropped_where_the_run_is_not_lost_or_was_to_be_stopped() -> None:
    async with Cast.open("memory://", agents=[parrot], watch=False, recover="off") as cast:
        again = RunRequest("parrot", None, "resume", await begun(cast), unfinished=True, recovery=True)
        with pytest.raises(Overtaken, match="has ended by itself as completed"):
            await cast.launcher.launch(again, "t1", "late")
        await cast.log.append("t1", RunStartedEvent(thread_id="t1", run_id="cut"))
        await cast.log.recovery.abandon("t1")
        await cast.log.notes.leave("n", box="stop nobody", body=b"soft", thread_id="t1", run_id="cut")
        with pytest.raises(Overtaken, match="was to be stopped"):
            await cast.launcher.launch(replace(again, parent="cut"), "t1", "late")
        assert await is_free(cast)
        assert [each.run_id for each in await cast.log.runs("t1")] == [again.parent, "cut"]


async def test_answers_are_checked_under_the_lease_too() -> None:
    async with Cast.open("memory://", agents=[asker], watch=False) as cast:
        first = await (await cast.say("t1", "go")).result()
        answers = [ResumeEntry(interrupt_id="q2", status="resolved", payload="?")]
        given = input_for("t1", "late", parent=first.run_id, resume=answers)
        with pytest.raises(BadRequest, match="no open question is called q2"):
            await cast.launcher.launch(RunRequest("asker", given, "resume", first.run_id), "t1", "late")
        assert await is_free(cast)
        assert [each.run_id for each in await cast.log.runs("t1")] == [first.run_id]


async def test_a_run_that_cannot_be_claimed_does_not_begin() -> None:
    async def claim() -> None:
        raise Busy("somebody was quicker")

    async with Cast.open("memory://", agents=[parrot], watch=False) as cast:
        first = await begun(cast)
        given = input_for("t1", "late")
        with pytest.raises(Busy, match="quicker"):
            await cast.launcher.launch(RunRequest("parrot", given), "t1", "late", claim=claim)
        assert await is_free(cast)
        assert [each.run_id for each in await cast.log.runs("t1")] == [first]


ASKS = (
    "acquire",
    "append",
    "append_all",
    "thread",
    "runs",
    "lineage",
    "named",
    "events",
    "notes",
    "notes_about",
)
KEPT = ("blob_index", "blobs", "put_blob", "drop_blobs")


class _Counting(MemoryStore):
    """Counts what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()
        for name in (*ASKS, *KEPT):
            setattr(self, name, self._counted(name, getattr(self, name)))

    def _counted(self, name: str, call: Any) -> Any:
        async def asked(*given: Any, **named: Any) -> Any:
            self.asked[name] += 1
            return await call(*given, **named)

        return asked


async def test_a_small_run_asks_the_store_for_nothing_that_is_known_or_can_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node, "POLL", 3_600.0)
    monkeypatch.setattr("runcast.slim.log.committer.SHORTEST", 3_600.0)
    store = _Counting()
    async with Cast(RunLog(store), agents=[parrot]) as cast, asyncio.timeout(60):
        await (await cast.say("first", "hello")).result()
        before = store.asked.copy()
        for n in range(5):
            await (await cast.say(f"t{n}", "hello")).result()
        assert store.asked - before == {"acquire": 5, "append": 10}
        assert (await cast.log.snapshot("t4")) is not None


async def test_a_turn_behind_many_others_reads_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "POLL", 3_600.0)
    monkeypatch.setattr("runcast.slim.log.committer.SHORTEST", 3_600.0)
    store = _Counting()
    async with Cast(RunLog(store, derive="manual"), agents=[parrot]) as cast, asyncio.timeout(60):
        await (await cast.say("t1", "hello")).result()
        before = store.asked.copy()
        for n in range(5):
            await (await cast.say("t1", f"hello {n}")).result()
        assert store.asked - before == {"acquire": 5, "named": 5, "append": 10}
        given = await cast.log.input("t1", (await cast.log.runs("t1"))[-1].run_id)
        assert given is not None
        assert [each.role for each in given.messages] == [*("user", "assistant") * 5, "user"]


async def test_enough_small_runs_are_compacted_together() -> None:
    async with Cast.open("memory://", agents=[parrot]) as cast, asyncio.timeout(60):
        while not (await cast.log.archive.size("t1")).segments if await cast.log.thread("t1") else True:
            await (await cast.say("t1", "hello")).result()
            await cast.log._core.rest()
        runs = await cast.log.runs("t1")
        assert runs[-2].last_seq < 64 <= runs[-1].last_seq


async def test_a_run_goes_on_though_its_caller_is_gone_before_it_began() -> None:
    begins = asyncio.Event()

    async def late(input: RunAgentInput) -> AsyncIterator[Event]:
        await begins.wait()
        async for each in parrot(input):
            yield each

    async with Cast.open("memory://", agents=[late], watch=False) as cast:
        calling = asyncio.create_task(cast.say("t1", "one"))
        async with asyncio.timeout(60):
            while cast.slots.in_thread("", "t1") is None:  # noqa: ASYNC110  the launch has no event for it
                await asyncio.sleep(0)
        run = cast.slots.in_thread("", "t1")
        assert run is not None
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        assert cast.slots.has("")
        begins.set()
        assert (await run.result()).status == "completed"
        assert not cast.slots.has("")
        assert [each.status for each in await cast.log.runs("t1")] == ["completed"]


async def test_a_resume_point_does_not_wait_where_messages_do() -> None:
    gated = Gated(1)
    async with Cast.open("memory://", agents=[gated], watch=False, on_busy="queue") as cast:
        run = await cast.say("t1", "one")
        try:
            agent, point = cast.agent(run.adapter.name), await cast.state("t1")
            with pytest.raises(Busy, match="is active"):
                await cast.start(agent, input_for("t1", "late"), resume=point)
            later = await cast.say("t1", "two")
            with pytest.raises(Busy, match="messages wait"):
                await cast.start(agent, input_for("t1", "late"), resume=point)
        finally:
            gated.open()
        assert [(await each.result()).status for each in (run, later)] == ["completed"] * 2


async def test_who_would_go_before_what_waits_finds_out_under_the_lease() -> None:
    """No run is active here, so only the lease shows what another worker has queued."""
    async with Cast.open("memory://", agents=[parrot], watch=False) as cast:
        first = RunRequest("elsewhere", input_for("t1", "first")).encode()
        await cast.log.notes.leave("n1", box="queue elsewhere", body=first, thread_id="t1", run_id="first")
        agent = next(iter(cast.agents.values()))
        with pytest.raises(Busy, match="messages wait"):
            await cast.start(agent, input_for("t1", "late"))
        thread = await cast.log.thread("t1")
        assert thread is not None
        assert thread.owner is None, "the lease was given back"
        waits = await cast.start(agent, input_for("t1", "late"), on_busy="queue")
        assert waits.accepted == "queued"
        assert [each.run_id for each in await cast.queue.waiting("t1")] == ["first", "late"]


class Given:
    """An agent that keeps its inputs, asks at first, and fails when it is to."""

    def __init__(self, *, fails: bool) -> None:
        self.fails = fails
        self.inputs: list[RunAgentInput] = []

    async def __call__(self, input: RunAgentInput) -> AsyncIterator[Event]:
        self.inputs.append(input)
        if self.fails and len(self.inputs) == 1:
            raise RuntimeError("the first attempt fails")
        async for event in asker(input):
            yield event


async def test_a_run_that_is_resumed_has_the_tools_and_the_context_of_its_client() -> None:
    """Its client is not there to give them again; and the state it sent may not have been stored."""
    sent = RunAgentInput.model_validate({
        "threadId": "t1", "runId": "r1", "messages": [], "state": {"topic": "tides"},
        "tools": [{"name": "paint", "description": "On the page.", "parameters": {}}],
        "context": [{"description": "page", "value": "harbour"}], "forwardedProps": {"model": "small"},
    })  # fmt: skip
    given = ("tools", "context", "forwarded_props")
    agent = Given(fails=True)
    async with Cast.open("memory://", agents=[agent], recover="off") as cast:
        assert (await (await cast.take(agent, sent)).result()).status == "failed"
        asked = await (await cast.resume("t1")).result()
        assert asked.status == "interrupted"
        await (await cast.resume("t1", {"q1": True})).result()
    first, again, answered = agent.inputs
    assert {name: getattr(again, name) for name in given} == {name: getattr(first, name) for name in given}
    assert again.state == first.state == {"topic": "tides"}
    assert {name: getattr(answered, name) for name in given} == {name: getattr(first, name) for name in given}
    assert answered.state is None, "the run that asked has taken it"
    assert [each.payload for each in answered.resume or ()] == [True]
