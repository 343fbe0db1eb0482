"""Readers that stop reading, and readers whose host vanished: the run and the others do not notice them."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

import httpx

from runcast.app import Cast
from runcast.broadcast import Hub, HubLimits, LogHistory
from runcast.slim import RunLog, open_store
from tests.reliability.counting import Counter
from tests.reliability.ledger import Ledger
from tests.reliability.network import Network, misbehave, port_of
from tests.reliability.scenes import begin, hosting, over, settle, until, watching

MIB = 1 << 20
BUFFER = 200_000


def counting(folder: Path, *, ballast: int = 0, silence: float = 30) -> Cast:
    """A host whose hub has narrow limits."""
    log = RunLog(open_store(f"sqlite:///{folder}/runs.db"))
    limits = HubLimits(buffer=BUFFER, replay_bytes=60_000, ring=200, activity=silence, pong=silence)
    hub = Hub(
        "runcast",
        "runcast",
        "secret",
        authorize=lambda user, thread: True,
        history=LogHistory(log),
        limits=limits,
    )
    return Cast(log, hub=hub, agents=[Counter(ballast=ballast)])


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


async def test_readers_that_stop_reading(
    ledger: Ledger, http: httpx.AsyncClient, tmp_path: Path, long: bool
) -> None:
    cast = counting(tmp_path, ballast=7_000)
    assert cast.hub is not None
    async with hosting(cast) as address, Network(port_of(address)) as line:
        await begin(cast, ledger, "t0", 3, 2_000 if long else 400, 0.001)
        through = f"http://127.0.0.1:{line.port}"
        async with (
            watching(ledger, http, lambda: address),
            watching(ledger, http, lambda: through, quiet=5.0) as slow,
        ):
            await until(lambda: all(each.last for each in slow), "all have read something")
            before, peak = resident(), 0
            line.stall()
            run = cast.active[0]
            while run.active:
                await asyncio.sleep(0.05)
                peak = max(peak, resident())
                assert cast.hub.stats()["buffered"] <= 4 * BUFFER
            assert (await run.result()).status == "completed"
            assert cast.hub.stats()["slow_cuts"] >= 1
            line.go_on()
        ledger.note("MiB more", round((peak - before) / MIB, 1))
        assert max(each.connects for each in slow) > 1, "they were cut, and came back"
        await settle(ledger, cast.log)


async def test_readers_whose_host_vanished(
    ledger: Ledger, http: httpx.AsyncClient, tmp_path: Path, long: bool
) -> None:
    cast = counting(tmp_path, silence=1)
    assert cast.hub is not None
    async with hosting(cast) as address, Network(port_of(address)) as line:
        await begin(cast, ledger, "t0", 3, 600 if long else 80, 0.02)
        through = f"http://127.0.0.1:{line.port}"
        async with (
            watching(ledger, http, lambda: address),
            watching(ledger, http, lambda: through, kinds=("plain", "pusher", "plain"), quiet=2.0) as gone,
        ):
            await until(lambda: all(each.last for each in gone), "all have read something")
            line.swallowing = True
            await until(lambda: cast.hub is not None and cast.hub.stats()["timeouts"] >= 3, "the hub sees it")
            line.swallow_no_more()
            await over(cast.log, "t0")
        assert min(each.connects for each in gone) > 1
        await settle(ledger, cast.log)


async def test_lines_to_readers_that_stall_cut_and_delay(
    ledger: Ledger, http: httpx.AsyncClient, tmp_path: Path, long: bool
) -> None:
    cast = counting(tmp_path)
    async with hosting(cast) as address, Network(port_of(address)) as line:
        for thread in ("t0", "t1"):
            await begin(cast, ledger, thread, 3, 800 if long else 50, 0.02)
        async with watching(ledger, http, lambda: f"http://127.0.0.1:{line.port}", quiet=5.0):
            for turn in range(10 if long else 1):
                await misbehave(line, turn)
        ledger.note("cuts", line.cuts)
        await settle(ledger, cast.log)
