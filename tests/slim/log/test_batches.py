"""Events on their way to the store: who hears of a failure, and which history a lease stands in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing, suppress
from pathlib import Path

import pytest

from runcast.slim.errors import Conflict, StoreError, UnknownThread
from runcast.slim.log.run_log import RunLog
from runcast.slim.stores import MemoryStore
from runcast.slim.stores.records import Batch, Key, Lease
from tests.slim.log.test_history import copy
from tests.slim.log.test_writer import Counting
from tests.slim.logs import THREAD, finished, make_log, started, text, turn


async def test_a_failure_behind_a_caller_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    store = Counting()
    async with RunLog(store, flush_ms=1, derive="manual") as log:
        await log.append(THREAD, started("r"))
        await log.flush()
        caplog.clear()
        store.down = True
        with caplog.at_level(logging.WARNING, "runcast.log"):
            await log.append(THREAD, next(text("m")))
            async with asyncio.timeout(30):
                while not log.stats().store_errors:  # noqa: ASYNC110  it is written by itself
                    await asyncio.sleep(0.001)
            assert "entries could not be written" in caplog.text
            caplog.clear()
            with pytest.raises(StoreError):
                await log.flush()
            assert caplog.text == "", "the caller has it"
        store.down = False


async def test_a_reader_of_a_thread_that_is_only_leased_notices_another_history(tmp_path: Path) -> None:
    here, other = tmp_path / "here.db", tmp_path / "other.db"
    async with make_log(f"sqlite:///{here}") as log:
        await log.append_many(THREAD, turn("r0"))
    copy(here, other)
    for path, runs in ((here, ["r1"]), (other, ["x1", "x2"])):
        async with make_log(f"sqlite:///{path}") as log:
            for run in runs:
                await log.append_many(THREAD, turn(run))
    async with make_log(f"sqlite:///{here}") as log:
        *_, before, last = await log.entries(THREAD)
        await log.start_run(THREAD, "r2")
        async with aclosing(log.attach(THREAD, before.seq, epoch=before.history)) as entries:
            assert (await anext(entries)).seq == last.seq
            waiting = asyncio.ensure_future(anext(entries))
            await asyncio.sleep(0)
            copy(other, here)
            with suppress(Conflict):
                await log.recovery.abandon(THREAD)
            async with asyncio.timeout(60):
                with pytest.raises(UnknownThread, match="lost the entries"):
                    await waiting


async def test_a_lease_that_is_released_at_this_moment_is_not_lost(caplog: pytest.LogCaptureFixture) -> None:
    """The renewal finds it gone before the writer has the store's answer, and the run has ended well."""
    answers = asyncio.Event()

    class Late(MemoryStore):
        renewals = 0

        async def append(self, batch: Batch) -> int:
            number = await super().append(batch)
            if batch.until is None:
                await answers.wait()
            return number

        async def renew(self, leases: Sequence[Lease], *, until: int) -> list[Lease]:
            lost = await super().renew(leases, until=until)
            self.renewals += bool(lost)
            return lost

    store = Late()
    async with RunLog(store, derive="manual", lease_ms=60) as log:
        await log.append(THREAD, started("r"))
        ending = asyncio.create_task(log.append_many(THREAD, [finished("r")]))
        async with asyncio.timeout(30):
            while store.renewals < 2:  # noqa: ASYNC110  by another thread
                await asyncio.sleep(0.002)
        answers.set()
        await asyncio.wait_for(ending, 30)
        await log.append_many(THREAD, turn("r2"))
        assert (log.stats().leases_lost, log.stats().lost) == (0, 0)
        assert [run.status for run in await log.runs(THREAD)] == ["completed", "completed"]
    assert "lost" not in caplog.text


async def test_a_snapshot_of_a_run_that_was_given_up_is_not_the_next_ones() -> None:
    store = Counting()
    options = {"flush_ms": 1, "flush_events": 3, "buffer_events": 3, "derive": "manual"}
    async with RunLog(store, on_store_error="continue", **options) as log:  # type: ignore[arg-type]  # numbers, but one
        await log.append(THREAD, started("r1"))
        store.down = True
        for event in text("m", *"abcdef"):
            await log.append(THREAD, event, on_entry=lambda entry: {"of": entry.run_id})
            async with asyncio.timeout(30):
                while not log.stats().store_errors:  # noqa: ASYNC110  what comes now waits behind it
                    await asyncio.sleep(0.001)
        store.down = False
        await log.append_many(THREAD, turn("r2"))
        assert [run.run_id for run in await log.runs(THREAD)] == ["r1", "r2"]
        found = await log.snapshot(THREAD)
        assert found is None or found.data == {"of": "r1"}
        index = await store.blob_index(Key("", THREAD), "snapshot")
        assert {info.run for info in index} <= {(await store.runs(Key("", THREAD)))[0].seq}


@pytest.mark.parametrize("given", [{"of": "r1"}, b'{"of":"r1"}'])
async def test_a_snapshot_is_given_as_data_or_as_its_json(given: dict[str, str] | bytes) -> None:
    async with RunLog(MemoryStore(), derive="manual") as log:
        await log.append(THREAD, started("r1"), on_entry=lambda entry: given)
        found = await log.snapshot(THREAD)
    assert found is not None
    assert found.data == {"of": "r1"}
