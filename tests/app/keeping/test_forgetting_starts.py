"""A thread is forgotten while a run of it is about to begin here: the run begins, is stopped, and nothing is left."""

from __future__ import annotations

import asyncio
import time

import pytest
from ag_ui.core import UserMessage

from runcast.app import Cast
from runcast.app.nodes.handover import RunRequest, input_for
from runcast.broadcast import PublishError
from runcast.slim import Forgotten, MemoryStore, RunLog
from tests.app.agents import Gated, parrot


async def test_the_lease_of_a_run_that_is_about_to_begin_is_its_own() -> None:
    claiming, goes_on = asyncio.Event(), asyncio.Event()

    async def claim() -> None:
        claiming.set()
        await goes_on.wait()

    async with Cast.open("memory://", agents=[parrot], watch=False, recover="off") as cast:
        await (await cast.say("t1", "a word")).result()
        cast.register(Gated(1), name="gated")
        asked = RunRequest("gated", input_for("t1", "r2", [UserMessage(id="u", content="go")]))
        starting = asyncio.create_task(cast.launcher.launch(asked, "t1", "r2", claim=claim))
        await claiming.wait()
        forgetting = asyncio.create_task(cast.forget("t1"))
        for _ in range(50):
            await asyncio.sleep(0)
        thread = await cast.log.thread("t1")
        assert thread is not None
        assert thread.owner == cast.log.owner
        goes_on.set()
        run = await starting
        assert await forgetting == "forgotten"
        await run.result()
        assert await cast.log.thread("t1") is None
        with pytest.raises(Forgotten):
            await cast.say("t1", "again", agent="parrot")


async def test_a_request_is_left_to_its_node_for_a_lease_and_then_finished_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also by the node that it came from, when that could not finish it."""
    async with Cast(RunLog(MemoryStore(), lease_ms=150), agents=[parrot]) as cast:
        await cast.node.close()  # it looks when the test has it look
        await (await cast.say("t1", "a word")).result()
        erase = cast.followers.erase

        async def fails(thread_id: str) -> None:
            monkeypatch.setattr(cast.followers, "erase", erase)
            raise PublishError("Redis is away")

        monkeypatch.setattr(cast.followers, "erase", fails)
        assert await cast.forget("t1") == "forgetting"
        (request,) = await cast.node.notes.read("forget")
        await cast.forgetter.look()
        if time.time_ns() // 1_000_000 < request.at + 150:  # a busy machine may be later
            assert await cast.node.notes.read("forget") == [request]
        await asyncio.sleep(0.16)
        await cast.forgetter.look()
        assert await cast.node.notes.read("forget") == []
        assert await cast.log.archive.is_forgotten("t1")
