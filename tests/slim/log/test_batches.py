"""Events on their way to the store: who hears of a failure, and which history a lease stands in."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing, suppress
from pathlib import Path

import pytest

from runcast.slim.errors import Conflict, StoreError, UnknownThread
from runcast.slim.log.run_log import RunLog
from tests.slim.log.test_history import copy
from tests.slim.log.test_writer import Counting
from tests.slim.logs import THREAD, make_log, started, text, turn


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
