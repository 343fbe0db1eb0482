"""What a writer keeps of a run that ends and is written to once more, and of a plan for one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import StateDeltaEvent, TokenUsage

from runcast.slim.errors import StoreError
from runcast.slim.log.run_log import RunLog
from runcast.slim.stores import MemoryStore
from runcast.slim.stores.records import Batch
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
