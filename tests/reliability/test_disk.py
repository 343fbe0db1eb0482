"""A disk that is full under a run: the run waits, and goes on where it stood when there is room again."""

from __future__ import annotations

import asyncio
import resource
import signal
import sqlite3
from multiprocessing.connection import Connection
from pathlib import Path

from runcast.app import Cast
from runcast.slim import RunLog, StoreError, open_store
from tests.forked import everything, spawn
from tests.reliability.counting import Counter, asked, plan
from tests.reliability.ledger import Ledger
from tests.reliability.scenes import settle

ROOM = 400_000  # bytes that a file may have


def run_out_of_room(pipe: Connection, url: str, effects: str, size: int, patience_ms: int) -> None:
    """In a child: run a counter until no file may grow; make room, and end the work."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    async def main() -> None:
        log = RunLog(open_store(url), patience_ms=patience_ms)
        async with Cast(log, agents=[Counter(Path(effects))]) as cast:
            run = await cast.start(cast.agent("counter"), asked("t0", "r1", plan(3, size, 0.005)))
            resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, resource.RLIM_INFINITY))
            while log.stats().store_errors < 3 and run.active:  # noqa: ASYNC110  nobody says it
                await asyncio.sleep(0.01)
            pipe.send(("errors", log.stats().store_errors))
            if patience_ms < 10_000:
                pipe.send(("ended", (await run.result()).code))
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            if patience_ms < 10_000:
                while (await log.runs("t0"))[-1].status != "truncated":  # noqa: ASYNC110  a store has no event
                    await asyncio.sleep(0.05)
                run = await cast.resume("t0")
            pipe.send(("ended", (await run.result()).status))

    try:
        asyncio.run(main())
    except StoreError as error:
        pipe.send(("broke", str(error)))


async def fill(ledger: Ledger, folder: Path, size: int, patience_ms: int) -> list[object]:
    url, effects = f"sqlite:///{folder}/runs.db", folder / "effects"
    ledger.plan("t0", 3, size)
    child, pipe = spawn(run_out_of_room, url, str(effects), size, patience_ms)
    said = await asyncio.to_thread(everything, pipe)
    await asyncio.to_thread(child.join)
    pipe.close()
    with sqlite3.connect(f"{folder}/runs.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    async with RunLog(open_store(url)) as log:
        await settle(ledger, log, effects)
    return said


async def test_a_full_disk_and_a_run_that_waits(ledger: Ledger, tmp_path: Path, long: bool) -> None:
    said = await fill(ledger, tmp_path, 1_200 if long else 400, 60_000)
    assert said[0] == ("errors", 3)
    assert said[1:] == [("ended", "completed")]


async def test_a_full_disk_and_a_run_that_does_not_wait(ledger: Ledger, tmp_path: Path, long: bool) -> None:
    said = await fill(ledger, tmp_path, 1_200 if long else 400, 100)
    assert said[1:] == [("ended", "store_error"), ("ended", "completed")]
