"""What a run has left is what the log would give for the next one, and only where the thread has not moved on."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import Event, RunAgentInput, RunFinishedEvent, RunStartedEvent, UserMessage

from runcast.app import Cast
from runcast.slim import AgentState
from tests import streams
from tests.app.agents import parrot
from tests.conftest import share


def author(rng: random.Random) -> Any:
    """An agent that writes a random run, with every kind of event; one in three is hostile."""

    async def author(input: RunAgentInput) -> AsyncIterator[Event]:
        for event in rng.choice((streams.structured, streams.structured, streams.adversarial))(rng):
            own = {"thread_id": input.thread_id, "run_id": input.run_id}
            borders = isinstance(event, RunStartedEvent | RunFinishedEvent)
            yield event.model_copy(update=own) if borders else event

    return author


def plain(state: AgentState | None) -> Any:
    """A state to be compared; its history as JSON."""
    assert state is not None
    values = {name: getattr(state, name) for name in AgentState.__slots__}
    return {**values, "history": [each.model_dump(mode="json") for each in state.history]}


@pytest.mark.parametrize("seed", range(share(30)))
async def test_a_state_that_was_left_is_that_of_the_log(seed: int) -> None:
    rng = random.Random(seed)
    async with Cast.open("memory://", agents=[author(rng)], watch=False) as cast:
        for turn in range(4):
            given = RunAgentInput(
                thread_id="t1",
                run_id=f"r{turn}",
                messages=[UserMessage(id=f"u{turn}", content="go")],
                tools=[],
                context=[],
            )
            await (await cast.start(cast.agent("author"), given)).result()
            claim = await cast.log.start_run("t1", f"probe-{turn}")
            left = await cast.threads.state_under(claim, "t1", None)
            read = await cast.threads.state_under(claim, "t1", None)  # it was taken: this one is read
            await cast.log.recovery.abandon("t1")
            assert left is not read
            assert plain(left) == plain(read)


async def test_a_turn_of_another_process_is_not_missed(tmp_path: Path) -> None:
    where = f"sqlite:///{tmp_path}/runs.db"
    async with (
        Cast.open(where, agents=[parrot], watch=False) as one,
        Cast.open(where, agents=[parrot], watch=False) as other,
    ):
        for cast, word in ((one, "a"), (other, "b"), (one, "c"), (one, "d"), (other, "e")):
            run = await cast.say("t1", word)
            await run.result()
        assert [each.content for each in run.input.messages if each.role == "user"] == list("abcde")


async def test_a_run_behind_an_older_one_does_not_begin_with_what_the_newest_left() -> None:
    async with Cast.open("memory://", agents=[parrot], watch=False) as cast:
        first = await cast.say("t1", "one")
        await first.result()
        await (await cast.say("t1", "two")).result()
        branch = await cast.say("t1", "three", from_run=first.run_id)
        await branch.result()
        assert [each.content for each in branch.input.messages if each.role == "user"] == ["one", "three"]


async def test_what_a_function_does_to_its_input_changes_no_later_turn() -> None:
    async def careless(input: RunAgentInput) -> AsyncIterator[Event]:
        for message in input.messages:
            message.content = "gone"
        input.messages.clear()
        async for event in parrot(input):
            yield event

    async with Cast.open("memory://", agents=[careless], watch=False) as cast:
        for word in ("one", "two", "three"):
            run = await cast.say("t1", word)
            await run.result()
        assert [each.content for each in run.input.messages if each.role == "user"] == ["one", "two", "three"]


async def test_a_forgotten_thread_is_not_in_memory() -> None:
    async with Cast.open("memory://", agents=[parrot], watch=False) as cast:
        run = await cast.say("t1", "a secret")
        await run.result()
        kept = weakref.ref(run.state.history[0])
        del run
        gc.collect()
        assert kept() is not None  # for the next turn
        assert await cast.forget("t1") == "forgotten"
        gc.collect()
        assert kept() is None
