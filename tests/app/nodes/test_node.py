"""What a process does for the others at every look, and what it holds of messages that wait."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from ag_ui.core import CustomEvent, RunStartedEvent

from runcast.app import Cast
from runcast.app.nodes import orphans
from runcast.app.nodes.node import AGENTS
from runcast.app.nodes.orphans import recover_runs
from runcast.app.nodes.queue import Queue
from runcast.app.nodes.requests import HOUR_MS
from runcast.slim import MemoryStore, RunLog
from tests.app.agents import Gated, parrot
from tests.app.nodes.stage import until
from tests.app.nodes.test_queue import whole


async def test_a_message_that_is_taken_back_is_taken_off_the_list_at_once() -> None:
    gated = Gated(1)
    async with Cast.open("memory://", agents=[gated], watch=False) as cast:
        first = await cast.say("t1", "one")
        second = await cast.say("t1", "two", on_busy="queue")
        assert cast.slots.is_noted("", "t1"), "it begins when the run has ended, whether a node looks or not"
        await cast.queue.withdraw("t1", second.run_id)
        await cast.log.flush()
        events: list[Any] = [each.event for each in await cast.log.entries("t1")]
        assert [each.value["count"] for each in events if isinstance(each, CustomEvent)] == [1, 0]
        gated.open()
        await whole(first)


async def asks_to_look(cast: Cast) -> None:
    await cast.log.notes.leave(
        "look", box=f"stop {cast.log.owner}", body=b"queue", thread_id="t1", lasting_ms=HOUR_MS, replace=True
    )


async def test_a_change_while_what_waits_is_announced_is_announced_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = list[int]()

    async def changed(queue: Queue, thread_id: str) -> None:
        seen.append(len(seen))
        if len(seen) == 1:
            await asks_to_look(cast)

    monkeypatch.setattr(Queue, "changed", changed)
    async with Cast.open("memory://", agents=[parrot], watch=False, recover="off") as cast:
        await asks_to_look(cast)

        async def over() -> bool:
            return bool(seen) and not await cast.log.notes.read(f"stop {cast.log.owner}")

        await until(over)
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(seen) == 2


async def test_the_agents_of_a_worker_that_left_are_known_for_an_hour() -> None:
    store = MemoryStore()
    async with Cast(RunLog(store), agents=[parrot], recover="report", recover_every=0.01) as cast:
        for name, lasting in (("long ago", -2 * HOUR_MS), ("just now", -1_000)):
            await cast.log.notes.leave(name, box=AGENTS, body=b"[]", lasting_ms=lasting)

        async def swept() -> list[str]:
            found = [each.id for each in await cast.log.notes.read(AGENTS)]
            return [] if "long ago" in found else found

        assert "just now" in await until(swept)


async def test_a_thread_that_cannot_be_recovered_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Cast.open("memory://", agents=[parrot], watch=False, recover="off") as cast:
        for thread in ("t1", "t2"):
            await cast.log.append(thread, RunStartedEvent(thread_id=thread, run_id=f"r-{thread}"))
            await cast.log.recovery.release_running(thread)
        sound: Any = orphans._mark_truncated

        async def fails(view: Cast, thread_id: str) -> Any:
            if thread_id == "t1":
                raise RuntimeError("a bug")
            return await sound(view, thread_id)

        monkeypatch.setattr(orphans, "_mark_truncated", fails)
        found = await recover_runs(cast, "report")
        assert [run.run_id for _, run in found] == ["r-t2"]


async def test_a_stop_for_a_run_that_was_cut_short_stays_and_keeps_it_from_being_resumed() -> None:
    async with Cast.open("memory://", agents=[parrot], watch=False, recover="off") as cast:
        box = f"stop {cast.log.owner}"
        await (await cast.say("t2", "a word")).result()
        (ended,) = await cast.log.runs("t2")
        await cast.log.append("t1", RunStartedEvent(thread_id="t1", run_id="r1"))
        await cast.log.recovery.release_running("t1")
        await cast.log.recovery.mark_truncated("t1")
        for thread, run in (("t1", "r1"), ("t2", ended.run_id), ("t3", "unheard-of")):
            await cast.log.notes.leave(
                f"stop {run}", box=box, body=b"soft", thread_id=thread, run_id=run, lasting_ms=HOUR_MS
            )

        async def others_are_gone() -> bool:
            return len(await cast.log.notes.read(box)) <= 1

        await until(others_are_gone)
        assert [each.run_id for each in await cast.log.notes.read(box)] == ["r1"]
