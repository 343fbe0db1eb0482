"""What a run leaves for the next turn in memory, and when the log has to be asked instead."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from ag_ui.core import (
    AgentCapabilities,
    Event,
    MessagesSnapshotEvent,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    StateDeltaEvent,
    UserMessage,
)

from runcast.adapters import ResumePoint
from runcast.app import Cast
from runcast.slim import RunLog
from tests.app.agents import parrot
from tests.slim.log.test_writer import Counting


class Late:
    """An adapter that changes the state behind its end."""

    name = "late"
    reconciles_history = False

    async def run(self, input: RunAgentInput, *, resume: ResumePoint | None = None) -> AsyncIterator[Event]:
        ids = {"thread_id": input.thread_id, "run_id": input.run_id}
        yield RunStartedEvent(**ids)
        yield RunFinishedEvent(**ids)
        yield StateDeltaEvent(delta=[{"op": "add", "path": "/late", "value": 1}])

    async def stop(self, run_id: str, *, hard: bool = False) -> None:
        """It ends by itself."""

    def capabilities(self) -> AgentCapabilities:
        return AgentCapabilities()


async def twice(input: RunAgentInput) -> AsyncIterator[Event]:
    """Shows two messages of one id."""
    one, other = (UserMessage(id="twin", content=text) for text in ("one", "other"))
    yield MessagesSnapshotEvent(messages=[one, other])


@pytest.mark.parametrize(("agent", "leaves"), [(parrot, True), (Late(), False), (twice, False)])
async def test_what_a_run_leaves_is_its_thread_whole_or_nothing(agent: Any, leaves: bool) -> None:
    async with Cast.open("memory://", agents=[agent], watch=False) as cast:
        run: Any = await cast.say("t1", "go")
        await run.result()
        assert (run.left is not None) is leaves
        state = await cast.state("t1")
        assert state is not None
        if leaves:
            thread = await cast.log.thread("t1")
            assert thread is not None
            assert (run.left.seq, [*run.left.state.history]) == (thread.last_seq, [*state.history])


async def test_what_was_left_counts_at_its_place_in_its_history_alone() -> None:
    async with Cast.open("memory://", agents=[parrot], watch=False) as cast:
        run: Any = await cast.say("t1", "go")
        await run.result()
        left = replace(run.left, state=replace(run.left.state, state={"from": "memory"}))
        claim = await cast.log.start_run("t1", "probe")
        for given, state in (
            (claim, {"from": "memory"}),
            (replace(claim, history="another.1.0a"), {}),
            (replace(claim, seq=claim.seq + 1), {}),
        ):
            cast.threads.remember(SimpleNamespace(left=left, thread_id="t1"))  # type: ignore[arg-type]
            found = await cast.threads.state_under(given, "t1", None)
            assert found is not None
            assert (found.state or {}) == state
        await cast.log.recovery.abandon("t1")


async def test_the_snapshot_of_a_run_has_what_came_behind_its_end() -> None:
    async with Cast.open("memory://", agents=[Late()], watch=False) as cast:
        await (await cast.say("t1", "go")).result()
        kept, thread = await cast.log.snapshot("t1"), await cast.log.thread("t1")
        assert kept is not None
        assert thread is not None
        assert kept.seq == thread.last_seq
        assert kept.data["state"] == {"late": 1}


async def test_an_adapter_whose_run_cannot_be_recorded_is_closed() -> None:
    closed = list[str]()

    class Watched(Late):
        async def run(
            self, input: RunAgentInput, *, resume: ResumePoint | None = None
        ) -> AsyncIterator[Event]:
            try:
                async for event in super().run(input, resume=resume):
                    yield event
                    store.down = True
            finally:
                closed.append(input.run_id)

    store = Counting()
    async with Cast(RunLog(store, patience_ms=0), agents=[Watched()], recover="off") as cast:
        run = await cast.say("t1", "go")
        assert (await run.result()).code == "store_error"
        assert closed == [run.run_id]
        store.down = False
