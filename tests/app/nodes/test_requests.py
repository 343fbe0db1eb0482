"""Requests that come to nothing: a run that is declined is in the log, and one that has to stay is not resumed."""

from __future__ import annotations

import time

from ag_ui.core import RunErrorEvent, RunStartedEvent

from runcast.app import Busy, Cast
from runcast.app.nodes.handover import RunRequest
from runcast.app.nodes.orphans import resume_truncated
from runcast.app.nodes.requests import decline, leave
from tests.app.agents import parrot


async def test_a_declined_run_is_recorded_as_started_and_failed_at_this_moment() -> None:
    async with Cast.open("memory://", agents=[parrot], watch=False, work=False) as cast:
        note = await leave(cast, "t1", "r1", RunRequest("parrot"))
        assert note is not None
        before = time.time_ns() // 1_000_000
        assert await decline(cast, note, Busy("full today"), "busy")
        started, failed = [each.event for each in await cast.log.entries("t1")]
        assert isinstance(started, RunStartedEvent)
        assert isinstance(failed, RunErrorEvent)
        assert (started.run_id, failed.message, failed.code) == ("r1", "full today", "busy")
        for event in (started, failed):
            assert event.timestamp is not None
            assert before <= event.timestamp <= time.time_ns() // 1_000_000
        (run,) = await cast.log.runs("t1")
        assert (run.run_id, run.status) == ("r1", "failed")


async def test_a_run_that_is_over_or_unknown_is_not_resumed() -> None:
    async with Cast.open("memory://", agents=[parrot], watch=False) as cast:
        assert await resume_truncated(cast, "t1", "r1") == []
        run = await cast.say("t1", "one")
        await run.result()
        for name in (run.run_id, "another"):
            assert await resume_truncated(cast, "t1", name) == []
        assert [each.status for each in await cast.log.runs("t1")] == ["completed"]
