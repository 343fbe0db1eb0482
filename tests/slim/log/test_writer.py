"""What a writer keeps of a run that ends and is written to once more, and of a plan for one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import StateDeltaEvent, TextMessageContentEvent, TokenUsage

from runcast.slim.errors import Conflict, InvalidStream, StoreError
from runcast.slim.log.run_log import RunLog
from runcast.slim.log.writer import MOST_LOGGED
from runcast.slim.stores import MemoryStore
from runcast.slim.stores.records import Batch, Key
from tests.slim.logs import THREAD, finished, make_log, started, turn, user

LATE = StateDeltaEvent(delta=[{"op": "add", "path": "/late", "value": 1}])


@pytest.mark.parametrize("scheme", ["memory", "sqlite"])
async def test_a_late_event_changes_nothing_of_its_runs_end(scheme: str, tmp_path: Path) -> None:
    url = "memory://" if scheme == "memory" else f"sqlite:///{tmp_path}/runs.db"
    async with make_log(url) as log:
        usage = [TokenUsage(input_tokens=3, output_tokens=4)]
        await log.append_many(THREAD, [started("r"), finished("r", usage=usage)])
        (before,) = await log.runs(THREAD)
        assert before.usage is not None
        await log.append_many(THREAD, [LATE])
        (after,) = await log.runs(THREAD)
        assert (after.status, after.terminal, after.usage) == (before.status, before.terminal, before.usage)
        assert (after.last_seq, after.ended_at is not None) == (before.last_seq + 1, True)
        thread = await log.thread(THREAD)
        assert thread is not None
        assert thread.owner is None


class Counting(MemoryStore):
    """Counts its reads; writes nothing while it is down."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.down = False

    async def events(self, *asked: Any, **more: Any) -> Any:
        self.reads += 1
        return await super().events(*asked, **more)

    async def append(self, batch: Batch) -> int:
        if self.down:
            raise StoreError("the disk is full")
        return await super().append(batch)

    async def append_all(self, batches: Sequence[Batch]) -> list[int | None]:
        return [None] * len(batches)


async def test_what_a_starter_has_read_is_not_read_again() -> None:
    store = Counting()
    async with RunLog(store, flush_ms=1, derive="manual") as log:
        first = user("u1", "hello " * 50)
        await log.append_many(THREAD, [started("r1", first), finished("r1")])
        claim = await log.start_run(THREAD, "r2")
        claim.before = [first]
        store.reads = 0
        await log.append_many(THREAD, [started("r2", first, user("u2", "more")), finished("r2")])
        assert store.reads == 0
        given = await log.input(THREAD, "r2")
        assert given is not None
        assert [each.id for each in given.messages] == ["u1", "u2"]


async def test_a_claim_is_for_its_own_run_alone() -> None:
    async with make_log("memory://") as log:
        await log.append_many(THREAD, turn("r1"))
        await log.append_many(THREAD, turn("r2"))
        await log.branch(THREAD, "r1", "planned")
        await log.append_many(THREAD, turn("another"))
        runs = {run.run_id: (run.parent, run.edge) for run in await log.runs(THREAD)}
        assert runs["another"] == ("r2", "continue")


async def test_every_mistake_is_counted_and_the_first_of_each_kind_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with make_log("memory://") as log:
        for run in ("r1", "r2"):
            await log.append(THREAD, started(run))
            before = log.stats().violations
            caplog.clear()
            for n in (*range(MOST_LOGGED + 5), *range(MOST_LOGGED + 5)):
                await log.append(THREAD, TextMessageContentEvent(message_id=f"m{n}", delta="x"))
            assert log.stats().violations - before == 2 * (MOST_LOGGED + 5)
            lines = [each.getMessage() for each in caplog.records if f"run {run!r}" in each.getMessage()]
            assert len(lines) == len(set(lines)) == MOST_LOGGED
            await log.append(THREAD, finished(run))


async def test_only_a_whole_run_is_written_aside_and_only_where_none_is_active() -> None:
    store = MemoryStore()
    async with RunLog(store, derive="manual") as log, RunLog(store, derive="manual") as other:
        await log.append_many(THREAD, turn("r1"))
        for events in ([LATE, finished("a")], [started("a"), LATE], [LATE]):
            with pytest.raises(InvalidStream, match="begins with RUN_STARTED and ends with the end"):
                await log.archive.aside(THREAD, events)
        await other.append_many(THREAD, [started("r2"), finished("r2")])  # its lease is free
        await log.append(THREAD, started("r3"))
        with pytest.raises(Conflict, match="write into that"):
            await log.archive.aside(THREAD, [started("a"), finished("a")])
        await log.append_many(THREAD, [finished("r3")])
        entries = await log.archive.aside(THREAD, [started("a"), LATE, finished("a")])
        assert [each.run_id for each in entries] == ["a"] * 3
        assert [run.run_id for run in await log.runs(THREAD)] == ["r1", "r2", "r3"]
        *_, aside = await store.runs(Key("", THREAD))
        assert (aside.run_id, aside.edge, aside.parent_seq, aside.status) == ("a", "aside", None, "completed")
        thread = await log.thread(THREAD)
        assert thread is not None
        assert thread.owner is None
