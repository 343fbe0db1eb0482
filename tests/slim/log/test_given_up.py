"""A run that was given up or lost its lease: the next run of the thread is judged by itself."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import RunStartedEvent, ToolCallEndEvent, ToolCallStartEvent

from runcast.slim.errors import Conflict, SlimError, StoreError, WireError
from runcast.slim.log.run_log import RunLog
from runcast.slim.redaction.redactor import Redactor
from runcast.slim.stores import MemoryStore
from runcast.slim.stores.records import Batch
from tests.slim.logs import THREAD, Clock, finished, make_log, started, text, turn


@pytest.mark.parametrize("verify", ["reject", "warn"])
async def test_a_run_that_was_given_up_is_not_held_against_the_next(
    verify: str, caplog: pytest.LogCaptureFixture
):
    async with make_log("memory://", verify=verify, redactor=Redactor()) as log:
        for n, give_up in enumerate((log.recovery.abandon, log.recovery.release_running)):
            await log.append_many(THREAD, [started(f"open {n}"), *list(text("m", "api_key=sk-12"))[:2]])
            await give_up(THREAD)
            await log.resume(THREAD, f"next {n}")
            await log.append_many(THREAD, turn(f"next {n}", "again"))
        assert log.stats().violations == 0
        assert "has not ended" not in caplog.text


class Away(MemoryStore):
    """A store that can be taken away."""

    down = False

    async def append(self, batch: Batch) -> int:
        if self.down:
            raise StoreError("the disk is full")
        return await super().append(batch)


async def test_a_run_given_up_while_the_store_was_away_is_not_held_against_the_next():
    store = Away()
    async with RunLog(store, verify="reject", patience_ms=1) as log:
        await log.append_many(THREAD, [started("open"), *list(text("m", "half"))[:2]])
        store.down = True
        with pytest.raises(StoreError, match="disk is full"):
            await log.recovery.abandon(THREAD)
        store.down = False
        await log.resume(THREAD, "next")
        await log.append_many(THREAD, turn("next", "again"))
        assert [run.status for run in await log.runs(THREAD)] == ["truncated", "completed"]
        assert log.stats().violations == 0


async def test_a_run_that_lost_its_lease_is_not_held_against_the_next(shared_url: str):
    clock = Clock()
    mine = make_log(shared_url, verify="reject", clock=clock, lease_ms=1_000)
    theirs = make_log(shared_url, clock=clock)
    async with mine, theirs:
        await mine.append(THREAD, started("r1"))
        clock.pass_ms(2_000)
        await theirs.append_many(THREAD, turn("r2"))
        with pytest.raises(Conflict):
            await mine.append_many(THREAD, text("m", "late"))
        await mine.append_many(THREAD, turn("r3"))
        assert [run.status for run in await mine.runs(THREAD)] == ["truncated", "completed", "completed"]


def too_deep() -> Any:
    found: Any = 1
    for _ in range(400):
        found = [found]
    return found


@pytest.mark.parametrize(
    "bad",
    [
        RunStartedEvent(thread_id=THREAD, run_id="r2", metadata={"a": too_deep()}),
        started("r1"),
        RunStartedEvent(thread_id=THREAD, run_id="\0"),
    ],
    ids=["too deep", "a used id", "no id"],
)
async def test_a_run_that_cannot_begin_keeps_no_other_from_it(bad: RunStartedEvent) -> None:
    """One request would end a thread."""
    async with make_log("memory://", verify="reject") as log:
        await log.append_many(THREAD, turn("r1"))
        with pytest.raises(SlimError, match=r"deep|already|NUL"):
            await log.append(THREAD, bad)
        await log.append_many(THREAD, turn("r3"))
        assert [run.run_id for run in await log.runs(THREAD)] == ["r1", "r3"]


async def test_an_event_that_cannot_be_written_is_not_judged() -> None:
    """What it began has not begun."""
    async with make_log("memory://", verify="reject") as log:
        await log.append(THREAD, started("r1"))
        deep = ToolCallStartEvent(tool_call_id="c", tool_call_name="n", metadata={"a": too_deep()})
        with pytest.raises(WireError):
            await log.append(THREAD, deep)
        for event in (
            deep.model_copy(update={"metadata": None}),
            ToolCallEndEvent(tool_call_id="c"),
            finished("r1"),
        ):
            assert await log.append(THREAD, event)


async def test_a_run_that_another_process_keeps_from_beginning_is_not_held_against_the_next(
    shared_url: str,
) -> None:
    async with make_log(shared_url) as theirs, make_log(shared_url, verify="reject") as mine:
        await theirs.append(THREAD, started("r1"))
        with pytest.raises(Conflict, match="is being written"):
            await mine.append(THREAD, started("r2"))
        await theirs.append(THREAD, finished("r1"))
        await mine.append_many(THREAD, turn("r3"))
        assert mine.stats().violations == 0
