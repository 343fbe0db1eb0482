"""An import that was killed, at any of its steps, is completed by the same import: log, checkpoints and what waits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import orjson
import pytest
from ag_ui.core import UserMessage
from langgraph.checkpoint.memory import InMemorySaver

from runcast.app import BadRequest, Cast
from runcast.app.nodes.handover import RunRequest, input_for
from runcast.slim import Conflict, RunLog
from runcast.slim.stores import open_store
from tests.app.keeping.test_thread_archives import content, exported, forged, graph_with, imported, rows_in
from tests.slim.killed import Killed, Process
from tests.slim.logs import Clock


class Saver(InMemorySaver):
    """A checkpointer that a process reaches until it dies."""

    def __init__(self) -> None:
        super().__init__()
        self.process = Process()

    async def aput(self, *args: Any, **kwargs: Any) -> Any:
        return await self.process.step(lambda: self.put(*args, **kwargs))

    async def aput_writes(self, *args: Any, **kwargs: Any) -> None:
        await self.process.step(lambda: self.put_writes(*args, **kwargs))

    async def adelete_thread(self, thread_id: str) -> None:
        await self.process.step(lambda: self.delete_thread(thread_id))


@pytest.fixture
async def archive() -> list[bytes]:
    """A thread with a snapshot, checkpoints and two messages that wait."""
    async with Cast.open("memory://", agents=[graph_with(InMemorySaver())], watch=False) as cast:
        await (await cast.say("t1", "one")).result()
        return [*await exported(cast), *map(waiting, ("w1", "w2"))]


def waiting(run_id: str) -> bytes:
    request = RunRequest("graph", input_for("t1", run_id, [UserMessage(id=f"m-{run_id}", content="later")]))
    return orjson.dumps({"beside": "waiting", "run_id": run_id, "body": request.encode().decode()}) + b"\n"


def kinds(archive: list[bytes]) -> list[tuple[str, str]]:
    return [(kind, each["run_id"]) for kind in ("snapshot", "waiting") for each in rows_in(archive, kind)]


@pytest.mark.parametrize("times", [1, 2])
async def test_a_killed_import_is_completed_by_the_same_import(archive: list[bytes], times: int) -> None:
    last, is_whole = 0, False
    while not is_whole:
        last += 1
        clock, store, saver = Clock(), open_store("memory://"), Saver()
        clock.pass_ms(2**41)  # later than the archive
        for n in range(times):
            saver.process = Process(last)
            cast = Cast(RunLog(saver.process.of(store), clock=clock), agents=[graph_with(saver)], work=False)
            with suppress(Killed):
                await imported(cast, archive, waiting=True)
                is_whole |= n == 0
            clock.pass_ms(60_000)
        saver.process = Process()
        log = RunLog(store, clock=clock)
        cast = Cast(log, agents=[graph_with(saver)], work=False)
        assert (await imported(cast, archive, waiting=True)).threads == ["t1"]
        there = await exported(cast)
        assert content(there) == content(archive), f"killed instead of step {last}"
        assert kinds(there) == kinds(archive)
        assert await log.notes.read("import") == []
    assert (last > 20, len(kinds(archive)), bool(rows_in(archive, "agent"))) == (True, 3, True)


async def test_what_a_framework_had_before_stays_when_an_import_is_killed(archive: list[bytes]) -> None:
    last, is_refused = 0, False
    while not is_refused:
        last += 1
        clock, store, saver = Clock(), open_store("memory://"), Saver()
        await graph_with(saver).kept.store("t1", forged())
        clock.pass_ms(2**41)
        saver.process = Process(last)
        cast = Cast(RunLog(saver.process.of(store), clock=clock), agents=[graph_with(saver)], work=False)
        with suppress(Killed, BadRequest):
            await imported(cast, archive)
        is_refused = last > 20
        clock.pass_ms(60_000)
        saver.process = Process()
        cast = Cast(RunLog(store, clock=clock), agents=[graph_with(saver)], work=False)
        with pytest.raises(BadRequest, match="has a thread 't1' already"):
            await imported(cast, archive)
        assert len(list(saver.list(None))) == 1
        assert await cast.log.thread("t1") is None


async def test_a_killed_import_is_repeated_with_the_agents_that_it_had(archive: list[bytes]) -> None:
    for last in range(1, 40):
        clock, store, saver = Clock(), open_store("memory://"), Saver()
        clock.pass_ms(2**41)
        saver.process = Process(last)
        cast = Cast(RunLog(saver.process.of(store), clock=clock), agents=[graph_with(saver)], work=False)
        with suppress(Killed):
            await imported(cast, archive)
        if not list(saver.list(None)):
            continue
        clock.pass_ms(60_000)
        saver.process = Process()
        log = RunLog(store, clock=clock)
        with pytest.raises(BadRequest, match="repeat it with its agent 'graph'"):
            await imported(Cast(log, work=False), archive)
        assert list(saver.list(None))
        clock.pass_ms(60_000)
        cast = Cast(log, agents=[graph_with(saver)], work=False)
        assert (await imported(cast, archive)).threads == ["t1"]
        assert content(await exported(cast)) == content(archive[:-2])
        return
    pytest.fail("no checkpoint was stored")


@pytest.mark.parametrize("is_forgotten", [False, True])
async def test_a_killed_import_is_completed_whatever_other_threads_did_meanwhile(is_forgotten: bool) -> None:
    async with Cast.open("memory://", agents=[graph_with(InMemorySaver())], watch=False) as cast:
        for thread in ("t1", "t2"):
            await (await cast.say(thread, "one")).result()
        both, second = await exported(cast), await exported(cast, "t2")
    clock, store, saver = Clock(), open_store("memory://"), Saver()
    clock.pass_ms(2**41)
    log = RunLog(saver.process.of(store), clock=clock)
    cast = Cast(log, agents=[graph_with(saver)], work=False)

    async def until_it_dies() -> AsyncIterator[bytes]:
        for line in both:
            if line == second[-1]:
                saver.process.kill()
            yield line

    with pytest.raises(Killed):
        await cast.archives.import_all(until_it_dies())
    clock.pass_ms(60_000)
    saver.process = Process()
    async with Cast(RunLog(store, clock=clock), agents=[graph_with(saver)]) as cast:
        await (await cast.say("t1", "two")).result()
        if is_forgotten:
            await cast.forget("t1")
            with pytest.raises(Conflict, match="'t1' was forgotten"):
                await imported(cast, both)
        else:
            runs = await cast.log.runs("t1")
            assert (await imported(cast, both)).threads == ["t1", "t2"]
            assert await cast.log.runs("t1") == runs
            assert len(runs) == 2
        assert content(await exported(cast, "t2")) == content(second)
