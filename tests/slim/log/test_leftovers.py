"""What is easily left behind: events before a new run, held text, a failed write, a lease."""

from __future__ import annotations

import asyncio

import pytest
from ag_ui.core import CustomEvent, TextMessageContentEvent

from runcast.slim.errors import Conflict, StoreError
from runcast.slim.log.run_log import RunLog
from runcast.slim.redaction.redactor import Redactor
from runcast.slim.stores import MemoryStore, open_store
from runcast.slim.stores.records import Batch
from tests.slim.logs import THREAD, Clock, make_log, seqs, started, text, turn


def custom(n: int) -> CustomEvent:
    return CustomEvent(name="n", value=n)


async def test_events_of_a_run_are_written_before_the_next_begins(store_url: str):
    async with make_log(store_url, verify="off") as log:
        await log.append(THREAD, started("r1"))
        for n in range(3):
            await log.append(THREAD, custom(n))
        await log.append(THREAD, started("r2"))
        entries = await log.entries(THREAD)
        assert [entry.run_id for entry in entries] == [*["r1"] * 4, "r2"]
        assert [run.status for run in await log.runs(THREAD)] == ["truncated", "in_progress"]


@pytest.mark.parametrize("ending", ["close", "abandon", "release_running"])
async def test_text_that_the_redactor_holds_is_written_when_a_log_lets_go(store_url: str, ending: str):
    log = make_log(store_url, redactor=Redactor())
    await log.append(THREAD, started("r"))
    for event in list(text("m", "the password=hunter"))[:2]:
        await log.append(THREAD, event)
    await (log.close() if ending == "close" else getattr(log.recovery, ending)(THREAD))
    again = log if store_url == "memory://" else make_log(store_url)
    deltas = [
        entry.event.delta
        for entry in await again.entries(THREAD)
        if isinstance(entry.event, TextMessageContentEvent)
    ]
    assert "".join(deltas) == "the password=[redacted]"
    await again.close()
    await log.close()


class Moody(MemoryStore):
    """Fails while it is down; keeps the batches it wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.down = False
        self.written: list[Batch] = []

    async def append(self, batch: Batch) -> int:
        if self.down:
            raise StoreError("the disk is full")
        self.written.append(batch)
        return await super().append(batch)


async def test_a_write_that_failed_is_tried_again_by_itself(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("runcast.slim.log.batches.RETRY_MS", 20)
    store = Moody()
    async with RunLog(store, derive="manual") as log:
        await log.append(THREAD, started())
        store.down = True
        await log.append(THREAD, custom(1))
        await asyncio.sleep(0.07)
        assert log.stats().store_errors >= 2, "it was tried more than once"
        store.down = False
        async with asyncio.timeout(60):
            async for entry in log.attach(THREAD, after=1):
                assert entry.seq == 2
                break


async def test_a_batch_that_is_written_late_leaves_a_whole_lease():
    store, clock = Moody(), Clock()
    async with RunLog(store, derive="manual", clock=clock) as log:
        await log.append(THREAD, started())
        store.down = True
        with pytest.raises(StoreError):
            await log.append_many(THREAD, [custom(1)])
        clock.pass_ms(60_000)
        store.down = False
        await log.flush()
        thread = await log.thread(THREAD)
        assert thread is not None
        assert thread.lease_until == clock.now + 15_000


async def test_a_run_id_that_is_refused_leaves_no_lease(shared_url: str):
    async with make_log(shared_url) as mine, make_log(shared_url) as theirs:
        await mine.append_many(THREAD, turn("r1"))
        with pytest.raises(Conflict, match="already in thread"):
            await mine.start_run(THREAD, "r1")
        await theirs.append_many(THREAD, turn("r2"))
        assert seqs(await theirs.entries(THREAD)) == list(range(1, 13))


async def test_a_cancelled_append_is_written_whole_or_not_at_all(store_url: str):
    """Also beside others on the same connection."""
    store = open_store(store_url)
    async with RunLog(store, derive="manual") as log:
        for n in range(4):
            await log.append(f"t{n}", started("r"))
        for turn_ in range(20):
            tasks = [asyncio.ensure_future(log.append_many(f"t{n}", [custom(turn_)] * 5)) for n in range(4)]
            await asyncio.sleep(0.0005 * (turn_ % 4))
            tasks[turn_ % 4].cancel()
            await asyncio.wait(tasks)
        await log.flush()
        for n in range(4):
            values = [entry.event.value for entry in (await log.entries(f"t{n}"))[1:]]  # type: ignore[union-attr]
            assert len(values) % 5 == 0
            assert seqs(await log.entries(f"t{n}")) == list(range(1, len(values) + 2))
