"""Checkpoints, joins and pages where a run grew after it had ended, stands aside, or is followed by another one."""

from __future__ import annotations

from contextlib import aclosing
from random import Random

from ag_ui.core import MessagesSnapshotEvent, RunFinishedEvent, RunStartedEvent, StateDeltaEvent

from runcast.slim.folding.conversation import fold
from tests.slim.logs import THREAD, make_log, started, text, turn


async def test_a_checkpoint_of_a_run_that_grew_is_not_used() -> None:
    late = StateDeltaEvent(delta=[{"op": "add", "path": "/late", "value": "here"}])
    async with make_log("memory://") as log:
        noise = text("long", Random(1).randbytes(20_000).hex())
        await log.append_many(THREAD, [started("r1"), *noise, *turn("r1")[4:]])
        await log.archive.compact(THREAD)
        assert (await log.archive.size(THREAD)).checkpoints
        await log.append(THREAD, late)
        await log.append_many(THREAD, turn("r2"))
        expected = fold(await log.restore(THREAD, compacted=False))
        assert expected.state == {"r1": "yes", "late": "here", "r2": "yes"}
        assert fold(await log.restore(THREAD)).state == expected.state


async def test_a_run_that_joins_behind_an_aside_has_the_history_before_it() -> None:
    async with make_log("memory://") as log:
        await log.append_many(THREAD, turn("r1"))
        ids = {"thread_id": THREAD, "run_id": "aside"}
        await log.archive.aside(THREAD, [RunStartedEvent(**ids), RunFinishedEvent(**ids)])
        async with aclosing(log.join(THREAD)) as portions:
            first = await anext(portions)
        assert first.seq == 8
        assert [each.id for each in fold(first.events).messages] == ["r1-user", "r1-answer"]
        assert any(isinstance(each, MessagesSnapshotEvent) for each in first.events)


async def test_entries_are_read_on_from_a_position_into_the_runs_behind_it() -> None:
    async with make_log("memory://") as log:
        for run in ("r1", "r2", "r3"):
            await log.append_many(THREAD, turn(run))
        every = await log.entries(THREAD)
        for at in (every[2], every[5], every[8]):
            assert await log.entries(THREAD, at.seq, epoch=at.history) == every[at.seq :]
