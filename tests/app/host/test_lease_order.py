"""Finished work is not repeated: between any two awaits of a path, the world may change, and the path notices.

Each path is stopped at its first, second, third … await, until it has no more. There an owner that slept past its lease
wakes and finishes its run, or another client is quicker.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from ag_ui.core import Event, RunAgentInput

from runcast.app import BadRequest, Busy, Cast, EventFunction, Over
from runcast.slim import RunLog, verify
from tests.app.agents import Gated, asker, parrot
from tests.app.delays import Delayed, Yielding

HOUR_MS = 3_600_000
Path = Callable[[Cast, str], Awaitable[Any]]  # the cast, and the run of the sleeping owner


def behind() -> int:
    """A clock so late that its leases have expired for everybody else."""
    return time.time_ns() // 1_000_000 - HOUR_MS


class Listening:
    """An agent that emits nothing, and keeps what it was given."""

    reconciles_history = True  # its input includes the unfinished messages

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def __call__(self, input: RunAgentInput) -> AsyncIterator[Event]:
        self.heard.append("".join(str(each.content) for each in input.messages if each.role == "assistant"))
        for event in ():
            yield event


class Stage:
    """One owner that sleeps in the middle of a run, and one cast that continues from that run."""

    def __init__(self, store: Yielding) -> None:
        self.store, self.gated, self.listening = store, Gated(4), Listening()
        self.asleep = Cast(
            RunLog(store, clock=behind, flush_ms=1), agents=[EventFunction(self.gated, name="counter")]
        )
        self.cast = Cast(RunLog(store, flush_ms=1), agents=[EventFunction(self.listening, name="counter")])
        self.first = ""

    async def wakes(self) -> None:
        """The owner wakes, and ends its run if it still may."""
        self.gated.open()
        await self.asleep.run(self.first).over()

    async def all_over(self) -> None:
        """Every run of the cast has ended, also one that a node is about to start."""
        while await self.cast.log.notes.read("run counter") or self.cast.slots.has(""):
            for run in self.cast.active:
                await run.over()
            await asyncio.sleep(0)

    async def says_more(self) -> Any:
        """Another run; a node that lost the race for a note gives its reservation back in a moment."""
        async with asyncio.timeout(60):
            while True:
                with suppress(Busy):
                    return await self.cast.say("t1", "more")
                await asyncio.sleep(0)

    async def text_of_first(self) -> str:
        entries = [each.event for each in await self.cast.log.entries("t1") if each.run_id == self.first]
        return "".join(str(getattr(each, "delta", "")) for each in entries)


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    it = Stage(Yielding())
    async with it.asleep, it.cast:
        it.first = (await it.asleep.say("t1", "count")).run_id
        it.gated.open(2)
        while len(await it.asleep.log.entries("t1")) < 4:
            pass
        try:
            yield it
        finally:
            if it.asleep.active:
                await it.wakes()


async def resumes(cast: Cast, first: str) -> Any:
    return await cast.resume("t1")


async def recovers(cast: Cast, first: str) -> Any:
    return await cast.recover("continue")


async def speaks(cast: Cast, first: str) -> Any:
    return await cast.say("t1", "and then")


async def branches(cast: Cast, first: str) -> Any:
    return await cast.say("t1", "and then", from_run=first)


@pytest.mark.parametrize("path", [resumes, recovers, speaks, branches])
async def test_a_run_that_ends_meanwhile_is_not_repeated_and_what_continues_knows_all_of_it(
    path: Path,
) -> None:
    ends = set()
    for nth in range(1, 1_000):
        async with stage() as it:
            delayed = Delayed(path(it.cast, it.first), nth, it.wakes)  # type: ignore[arg-type]  # a coroutine
            try:
                await delayed
            except (Busy, Over) as error:
                ends.add(type(error).__name__)
            if not delayed.reached:
                break
            await it.all_over()
            runs = await it.cast.log.runs("t1")
            finished = runs[0].status == "completed"
            resumed = [run for run in runs[1:] if run.edge == "resume"]
            assert not (finished and resumed), nth
            assert it.listening.heard == [await it.text_of_first()] * len(runs[1:]), nth
            assert [each.seq for each in await it.cast.log.entries("t1")] == list(
                range(1, runs[-1].last_seq + 1)
            )
            for run in (each for each in runs if each.status != "truncated"):
                entries = await it.cast.log.entries("t1")
                assert not verify([each.event for each in entries if each.run_id == run.run_id])
            assert it.cast.log.stats().lost == 0
            ends.add(runs[0].status)
            free = await it.says_more()  # the thread is free
            assert (await free.result()).status == "completed"
    assert nth > 10
    assert {"completed", "truncated"} <= ends


async def test_of_two_clients_that_answer_at_once_one_is_refused() -> None:
    for nth in range(1, 1_000):
        store = Yielding()
        async with (
            Cast(RunLog(store), agents=[asker, parrot]) as cast,
            Cast(RunLog(store), agents=[asker]) as other,
        ):
            await (await cast.say("t1", "go", agent="asker")).result()

            async def quicker(other: Cast = other) -> None:
                with suppress(Busy):  # the first one has the lease by now
                    await (await other.resume("t1", {"q1": "theirs"})).result()

            delayed = Delayed(cast.resume("t1", {"q1": "ours"}), nth, quicker)
            with suppress(Busy, BadRequest):  # refused at once, or under the lease
                await (await delayed).result()
            if not delayed.reached:
                break
            runs = await cast.log.runs("t1")
            assert [(run.edge, run.status) for run in runs] == [
                ("continue", "interrupted"),
                ("resume", "completed"),
            ], nth
    assert nth > 10


async def test_a_run_that_is_to_be_stopped_is_stopped_or_not_resumed() -> None:
    asked = 0
    for nth in range(1, 1_000):
        # The clock of `front` is late too: it sees the owner's lease, which has expired for the one that recovers.
        async with stage() as it, Cast(RunLog(it.store, clock=behind)) as front:
            answers: list[str] = []

            async def stops(front: Cast = front, it: Stage = it, answers: list[str] = answers) -> None:
                try:
                    answers.append(await front.stop(it.first))
                except Over:
                    answers.append("over")

            delayed = Delayed(recovers(it.cast, it.first), nth, stops)
            await delayed
            if not delayed.reached:
                break
            resumed = len(await it.cast.log.runs("t1")) > 1
            assert not (resumed and answers == ["asked"]), nth
            asked += answers == ["asked"]
    assert nth > 10
    assert asked
