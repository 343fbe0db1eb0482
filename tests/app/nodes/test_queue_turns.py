"""What goes before a message that waits: a run that is to be resumed, and not the request that it was to replace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest
from ag_ui.core import CustomEvent, RunFinishedEvent, RunStartedEvent, UserMessage

from runcast.app import Cast, Full
from runcast.app.nodes import queue
from runcast.app.nodes.handover import RunRequest, input_for
from runcast.app.nodes.requests import leave
from runcast.app.nodes.waiting import to_wait
from runcast.slim import MemoryStore, RunLog
from tests.app.agents import Gated, parrot
from tests.app.nodes.stage import until
from tests.app.nodes.test_queue import idle, queued, words


@pytest.mark.parametrize(
    ("recover", "edges"),
    [("continue", ["continue", "resume", "continue"]), ("report", ["continue", "continue"])],
)
async def test_a_run_that_lost_its_worker_is_resumed_before_the_next_message_begins(
    recover: Literal["continue", "report"], edges: list[str]
) -> None:
    store = MemoryStore()
    first = Cast(RunLog(store), recover="off")
    async with first:
        first.register(Gated(1), name="gated")
        await first.say("t1", "one", agent="gated")
        await first.say("t1", "two", agent="gated", on_busy="queue")
        await first.aclose(grace=0)
    open_gate = Gated(1)
    open_gate.open()
    second = Cast(RunLog(store), recover=recover, recover_every=3_600)
    second.register(open_gate, name="gated")
    async with second:
        await idle(second)
        assert [each.edge for each in await second.log.runs("t1")] == edges
        assert await words(second) == ["one", "two"]


async def put(cast: Cast, text: str, over: str | None) -> None:
    """A message as its sender's process leaves it when it dies before it has stopped the run `over`."""
    asked = RunRequest("parrot", input_for("t1", text, [UserMessage(id=f"u-{text}", content=text)]))
    request = to_wait(asked, "interrupt" if over else "queue", over)
    assert await cast.log.notes.leave(
        f"queue {text}", box="queue parrot", body=request.encode(), thread_id="t1", run_id=text
    )


@pytest.mark.parametrize("over", ["r1", "another", None])
async def test_a_message_waits_for_a_requested_run_unless_it_is_to_replace_it(over: str | None) -> None:
    async with Cast.open("memory://", agents=[parrot], watch=False, recover="off") as cast:
        await cast.node.close()  # it looks when the test has it look
        request = RunRequest("elsewhere", input_for("t1", "r1", [UserMessage(id="u", content="one")]))
        assert await leave(cast, "t1", "r1", request)
        await put(cast, "two", over)
        await cast.queue.begin_next("t1")
        begun = [each.run_id for each in await cast.log.runs("t1")]
        assert begun == (["two"] if over == "r1" else [])


async def test_a_message_whose_agent_is_elsewhere_wakes_its_workers() -> None:
    async with Cast.open("memory://", agents=[parrot], watch=False, recover="off") as cast:
        await cast.node.close()
        request = RunRequest("absent", input_for("t1", "r1", [UserMessage(id="u", content="one")]))
        await cast.log.notes.leave(
            "queue r1",
            box="queue absent",
            body=replace(request, on_busy="queue", append=True).encode(),
            thread_id="t1",
            run_id="r1",
        )
        bell = await cast.log.notes.listen("queue absent")
        try:
            await cast.queue.begin_next("t1")
            await bell.wait()
        finally:
            bell.close()
        assert await queued(cast) == ["one"]


async def test_a_full_host_begins_the_next_message_when_there_is_room() -> None:
    gated = Gated(1)
    async with Cast.open("memory://", agents=[gated], watch=False, max_runs=1) as cast:
        cast.register(parrot, name="parrot")
        other = await cast.say("t2", "busy", agent=next(iter(cast.agents)))
        with pytest.raises(Full):
            await cast.say("t1", "one", agent="parrot")
        await put(cast, "two", None)
        await cast.queue.begin_next("t1")
        assert await queued(cast) == ["two"]
        gated.open()
        await other.result()

        async def begun() -> bool:
            return not await queued(cast)

        await until(begun)
        await idle(cast)
        assert [each.run_id for each in await cast.log.runs("t1")] == ["two"]


async def test_an_announcement_lists_a_few_and_counts_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "LISTED", 2)
    gated = Gated(1)
    async with Cast.open("memory://", agents=[gated], watch=False, on_busy="queue") as cast:
        run = await cast.say("t1", "one")
        for text in ("two", "three", "four"):
            await cast.say("t1", text)
        await cast.log.flush()
        events: list[Any] = [each.event for each in await cast.log.entries("t1")]
        told = [each.value for each in events if isinstance(each, CustomEvent)]
        assert [(len(each["messages"]), each["count"]) for each in told] == [(1, 1), (2, 2), (2, 3)]
        gated.open()
        await run.result()
        await idle(cast)


async def test_a_rollback_takes_no_run_back_that_came_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was to take back the one that was active; another process was quicker, and its run stays."""
    store, gated = MemoryStore(), Gated(1)
    async with (
        Cast(RunLog(store), agents=[parrot], recover="off") as cast,
        RunLog(store) as other,
    ):
        cast.register(gated, name="gated")
        launch, met = cast.launcher.launch, list[str]()

        async def late(request: RunRequest, thread_id: str, run_id: str, **more: Any) -> Any:
            if request.edge == "branch" and not met:
                met.append(run_id)
                for event in (RunStartedEvent, RunFinishedEvent):
                    await other.append(thread_id, event(thread_id=thread_id, run_id="theirs"))
                await other.flush()
            return await launch(request, thread_id, run_id, **more)

        monkeypatch.setattr(cast.launcher, "launch", late)
        await cast.say("t1", "one", agent="gated")
        instead = await cast.say("t1", "two", agent="parrot", on_busy="rollback")
        await instead.result()
        assert met == [instead.run_id]
        run = (await cast.log.runs("t1"))[-1]
        assert (run.run_id, run.edge, run.parent) == (instead.run_id, "continue", "theirs")
