"""Requests that come to nothing: a run that is declined is in the log, and one that has to stay is not resumed."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from ag_ui.core import RunErrorEvent, RunFinishedEvent, RunStartedEvent

from runcast.app import Busy, Cast, EventFunction, NotFound, Over
from runcast.app.nodes.handover import RunRequest
from runcast.app.nodes.orphans import resume_truncated
from runcast.app.nodes.requests import HOUR_MS, decline, leave, threads_of
from runcast.slim import MemoryStore, RunLog
from tests.app.agents import Gated, parrot
from tests.app.nodes.stage import ask, until


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


async def cut_short(cast: Cast, thread_id: str = "t1") -> str:
    """A run of `gated` that nobody drives any more, and that is truncated."""
    run = await cast.say(thread_id, "one", agent="gated")
    await cast.run(run.run_id).abandon()
    await cast.log.recovery.abandon(thread_id)
    assert [each.status for each in await cast.log.runs(thread_id)] == ["truncated"]
    return run.run_id


@asynccontextmanager
async def host(**options: Any) -> AsyncIterator[Cast]:
    async with Cast.open("memory://", watch=False, recover="off", **options) as cast:
        cast.register(Gated(), name="gated")
        yield cast


async def test_a_run_that_was_cut_short_is_requested_once() -> None:
    store = MemoryStore()
    async with (
        Cast(RunLog(store), agents=[EventFunction(Gated(), name="gated")], recover="off") as worker,
        Cast(RunLog(store), work=False, recover="off") as front,
    ):
        run_id = await cut_short(worker)
        assert await resume_truncated(front, "t1", "another") == []
        await worker.node.close()  # the request stays where it is
        await front.log.notes.leave(  # a run id is unique in a thread alone
            "elsewhere", box="stop nobody", body=b"hard", thread_id="t2", run_id=run_id, lasting_ms=HOUR_MS
        )
        found = await resume_truncated(front, "t1", run_id)
        assert found is not None
        assert [(thread, run.run_id) for thread, run in found] == [("t1", run_id)]
        (note,) = await front.log.notes.read("run gated")
        request = RunRequest.decode(note.body)
        assert (request.edge, request.parent) == ("resume", run_id)
        assert (request.unfinished, request.recovery) == (True, True)
        assert await resume_truncated(front, "t1", run_id) == [], "it is requested already"


async def test_a_run_that_was_cut_short_and_is_to_stay_so_is_not_requested() -> None:
    async with host(max_attempts=1) as cast:
        assert await resume_truncated(cast, "t1", await cut_short(cast)) is None
    async with host() as cast:
        run_id = await cut_short(cast)
        await cast.log.notes.leave(
            "stop it", box="stop nobody", body=b"soft", thread_id="t1", run_id=run_id, lasting_ms=HOUR_MS
        )
        assert await resume_truncated(cast, "t1", run_id) is None
        await cast.log.append("t2", RunStartedEvent(thread_id="t2", run_id="r1"))  # of no agent
        await cast.log.recovery.abandon("t2")
        assert await resume_truncated(cast, "t2", "r1") is None
        assert await cast.log.notes.read("run gated") == []


async def test_of_two_runs_of_one_id_the_one_in_this_thread_is_stopped() -> None:
    store, gated = MemoryStore(), Gated(1)
    async with (
        Cast(RunLog(store), agents=[EventFunction(gated, name="gated")], recover="off") as worker,
        Cast(RunLog(store), work=False, recover="off") as front,
    ):
        runs = [await worker.start(worker.agent("gated"), ask(thread_id=each)) for each in ("t1", "t2")]
        await worker.node.close()  # what it is asked stays where it is
        assert await front.stop("r1", thread_id="t2") == "asked"
        asked = await front.log.notes.read(f"stop {worker.log.owner}")
        assert [(note.key.thread_id, note.run_id) for note in asked] == [("t2", "r1")]
        gated.open()
        assert [(await each.result()).status for each in runs] == ["completed"] * 2


async def test_a_stop_that_comes_late_does_not_stop_the_next_run() -> None:
    gated = Gated(1)
    async with Cast.open("memory://", watch=False, recover="off") as cast:
        cast.register(gated, name="gated")
        run = await cast.start(cast.agent("gated"), ask())
        try:
            await cast.log.notes.leave(
                "late",
                box=f"stop {cast.log.owner}",
                body=b"hard",
                thread_id="t1",
                run_id="r0",
                lasting_ms=HOUR_MS,
            )

            async def is_read() -> bool:
                return not await cast.log.notes.about("r0")

            await until(is_read)
        finally:
            gated.open()
        assert (await run.result()).status == "completed"


async def test_a_run_is_named_in_the_threads_that_have_it_or_wait_for_it() -> None:
    gated = Gated(1)
    async with Cast.open("memory://", agents=[gated], watch=False) as cast:
        await cast.start(gated, ask(thread_id="t1", run_id="first"))
        for thread in ("t2", "t1"):
            await cast.start(gated, ask(thread_id=thread, run_id="twin"), on_busy="queue")
        assert await threads_of(cast, "twin") == ["t2", "t1"], "it is active in one, and waits in the other"
        assert await threads_of(cast, "another") == []
        gated.open()


async def test_a_declined_run_shows_what_it_was_asked() -> None:
    async with Cast.open("memory://", agents=[parrot], watch=False, work=False) as cast:
        note = await leave(cast, "t1", "r1", RunRequest("parrot", ask("my words", run_id="r1")))
        assert note is not None
        assert await decline(cast, note, Busy("full today"), "busy")
        started: Any = (await cast.log.entries("t1"))[0].event
        assert [each.content for each in started.input.messages] == ["my words"]


async def test_a_run_that_ends_as_it_is_to_be_stopped_leaves_no_note(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    async with Cast(RunLog(store), agents=[parrot], work=False) as cast, RunLog(store) as other:
        await other.append("t1", RunStartedEvent(thread_id="t1", run_id="r1"))
        leave_note = cast.log.notes.leave

        async def late(*given: Any, **more: Any) -> Any:
            await other.append("t1", RunFinishedEvent(thread_id="t1", run_id="r1"))
            return await leave_note(*given, **more)

        monkeypatch.setattr(cast.log.notes, "leave", late)
        with pytest.raises(Over, match="ended as completed"):
            await cast.stop("r1")
        assert await cast.log.notes.of_thread("t1") == []


async def test_the_last_word_about_a_stop_counts() -> None:
    store = MemoryStore()
    async with RunLog(store) as driving, Cast(RunLog(store), work=False, recover="off") as front:
        await driving.append("t1", RunStartedEvent(thread_id="t1", run_id="r1"))
        for hard, word in ((False, b"soft"), (True, b"hard")):
            assert await front.stop("r1", hard) == "asked"
            assert [note.body for note in await front.log.notes.read(f"stop {driving.owner}")] == [word]


async def test_a_request_of_another_thread_is_not_declined_for_a_run_of_the_same_id() -> None:
    async with Cast.open("memory://", watch=False, work=False) as front:
        assert await leave(front, "t1", "r1", RunRequest("parrot")) is not None
        with pytest.raises(NotFound):
            await front.stop("r1", thread_id="t2")
        assert len(await front.log.notes.read("run parrot")) == 1
        assert await front.stop("r1", thread_id="t1") == "stopped"
