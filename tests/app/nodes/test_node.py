"""What a process does for the others at every look, and what it holds of messages that wait."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from ag_ui.core import CustomEvent, RunAgentInput, RunStartedEvent

from runcast.adapters import AgentSchemas
from runcast.app import Cast, EventFunction
from runcast.app.nodes import node, orphans
from runcast.app.nodes.handover import RunRequest
from runcast.app.nodes.node import AGENTS
from runcast.app.nodes.orphans import recover_runs
from runcast.app.nodes.queue import Queue
from runcast.app.nodes.requests import HOUR_MS, leave
from runcast.slim import MemoryStore, Note, RunLog, StoreError
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


async def test_a_stop_stays_until_its_run_can_be_stopped_and_is_over() -> None:
    """If this process died before, no other would resume the run."""

    class Slow(EventFunction):
        async def stop(self, run_id: str, *, hard: bool = False) -> None:
            """It ends at a border, and comes to none before the gate is open."""

    gated = Gated(1)
    async with Cast.open("memory://", agents=[Slow(gated, name="slow")], watch=False, recover="off") as cast:
        box = f"stop {cast.log.owner}"

        async def asked(thread_id: str, run_id: str) -> int:
            await cast.log.notes.leave(
                f"stop {run_id}",
                box=box,
                body=b"soft",
                thread_id=thread_id,
                run_id=run_id,
                lasting_ms=HOUR_MS,
            )
            await cast.node.look()
            for _ in range(100):
                await asyncio.sleep(0)
            return len(await cast.log.notes.read(box))

        async def nothing() -> bool:
            return not await cast.log.notes.read(box)

        cast.slots.reserve("", "t1", "r1")
        assert await asked("t1", "r1") == 1, "the run is about to begin"
        cast.slots.free("", "t1", "r1")
        await cast.node.look()
        await until(nothing)
        run = await cast.say("t2", "go")
        assert await asked("t2", run.run_id) == 1, "the agent has not come to a border yet"
        gated.open()
        await run.result()
        await until(nothing)


async def test_a_request_for_a_forgotten_thread_is_taken_off() -> None:
    async with Cast.open("memory://", agents=[parrot], watch=False, recover="off") as cast:
        await cast.node.close()
        await cast.log.archive.forget("t1")
        note = await leave(cast, "t1", "r1", RunRequest("parrot"))
        assert note is not None
        assert await cast.node.start_requested(note)
        assert await cast.log.notes.read("run parrot") == []
        assert await cast.log.archive.is_forgotten("t1"), "and nothing was written about it"


async def test_a_node_that_was_woken_and_has_nothing_to_do_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a request had to wait, and another node has it now."""
    monkeypatch.setattr(node, "RETRY", 0.002)
    monkeypatch.setattr(node, "POLL", 0.01)
    looks = 0

    class Store(MemoryStore):
        async def notes(self, *boxes: str, limit: int | None = None) -> list[Note]:
            nonlocal looks
            looks += boxes[0].startswith("run ")
            return await super().notes(*boxes, limit=limit)

    store = Store()
    other = RunLog(store)
    async with Cast(RunLog(store), agents=[parrot], recover="off") as cast, other:
        await other.start_run("t1", "theirs")
        note = await leave(cast, "t1", "r1", RunRequest("parrot"))
        assert note is not None

        async def tried_again() -> bool:
            return looks > 9

        await until(tried_again)
        monkeypatch.setattr(node, "POLL", 3_600.0)
        await cast.log.notes.take(note)
        cast.node.wake(agents=True)
        await asyncio.sleep(0.05)
        before = looks
        await asyncio.sleep(0.1)
        assert looks - before < 9


async def test_a_request_that_had_to_wait_is_tried_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "RETRY", 0.02)
    monkeypatch.setattr(node, "POLL", 3_600.0)
    store = MemoryStore()
    other = RunLog(store)
    async with Cast(RunLog(store), agents=[parrot], recover="off") as cast, other:
        await other.start_run("t1", "theirs")
        tried = asyncio.Event()
        start: Any = cast.node.start_requested

        async def starts(note: Note) -> bool:
            done = await start(note)
            tried.set()
            return bool(done)

        monkeypatch.setattr(cast.node, "start_requested", starts)
        await leave(cast, "t1", "r1", RunRequest("parrot"))
        await asyncio.wait_for(tried.wait(), 20)
        await other.recovery.abandon("t1")

        async def began() -> bool:
            return bool(await cast.log.find("r1"))

        assert await until(began)


async def test_that_the_others_are_back_is_logged_once_all_reach_them(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(node, "RETRY", 0.002)
    monkeypatch.setattr(node, "POLL", 0.01)
    away = True

    class Store(MemoryStore):
        async def notes(self, *boxes: str, limit: int | None = None) -> list[Note]:
            if away:
                raise StoreError("no route")
            return await super().notes(*boxes, limit=limit)

    def lines() -> list[str]:
        return [each.getMessage() for each in caplog.records if each.name == "runcast.app"]

    async def said(text: str) -> bool:
        return any(text in each for each in lines())

    async with Cast(RunLog(Store()), agents=[parrot], recover="report", recover_every=0.01):
        for times in (1, 2):
            away = True
            await until(lambda: said("cannot be reached just now"))
            away = False
            await until(lambda: said("are reached again"))
            assert sum("reached" in each for each in lines()) == 2, (times, lines())
            caplog.clear()
            await asyncio.sleep(0.05)
            assert not [each for each in lines() if "reached" in each]


async def test_active_runs_do_not_wait_for_the_schemas_of_another_agent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[str] = []

    class Slow(EventFunction):
        def schemas(self) -> AgentSchemas:
            made.append(self.name)
            return {"state": {"schema": {"type": "object"}, "place": None}}

    async def announced(cast: Cast) -> dict[str, Any]:
        await cast.node.join()
        (note,) = await cast.log.notes.read(AGENTS)
        return {row["name"]: row["schemas"] for row in orjson.loads(note.body)}

    def asked(thread_id: str) -> RunAgentInput:
        return RunAgentInput(
            thread_id=thread_id,
            run_id=f"r-{thread_id}",
            state={},
            messages=[],
            tools=[],
            context=[],
            forwarded_props={},
        )

    gated, early = EventFunction(Gated(), name="gated"), Slow(parrot, name="early")
    async with Cast.open("memory://", agents=[gated, early], watch=False) as cast:
        assert (await announced(cast))["early"]
        run = await cast.start(gated, asked("t1"))
        made.clear()
        cast.register(Slow(parrot, name="late"))
        found = await announced(cast)
        assert (bool(found["early"]), found["late"], made) == (True, {}, ["early"])
        await run.stop()
        await run.over()
        assert (await announced(cast))["late"]
        run = await cast.start(gated, asked("t2"))
        monkeypatch.setattr(node, "PUT_OFF", -1.0)
        cast.register(Slow(parrot, name="much later"))
        assert (await announced(cast))["much later"], (
            "a process that is never idle announces them after a while"
        )
        await run.stop()
