"""A host that is told to end while a hundred runs are active: nothing that was seen is lost, and it begins again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from runcast.app import Cast
from runcast.slim import RunLog, open_store, verify
from tests.app.agents import steady
from tests.app.serving import run_input, sent
from tests.house.tree import ROOT

pytestmark = pytest.mark.slow

RUNS = 100


@asynccontextmanager
async def hosting(url: str) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    settings = {
        **os.environ,
        "RUNCAST_URL": url,
        "RUNCAST_MAX_RUNS": "200",
        "RUNCAST_GRACE": "1",
        "RUNCAST_AUTHORIZE": "tests.app.serving:anyone",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "runcast.app", "serve", "tests.app.agents:steady", "--port", "0",
        cwd=ROOT, env=settings, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), 30)).decode()
        yield line.split()[-1], process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def stream(http: httpx.AsyncClient, n: int, seen: dict[int, list[Any]]) -> None:
    """A client of the AG-UI endpoint, for as long as it is told something."""
    async with http.stream("POST", "/", json=run_input(thread=f"t{n}", run=f"r{n}")) as response:
        async for each in sent(response):
            seen.setdefault(n, []).append(each)


async def watch(address: str, n: int, closes: list[int]) -> None:
    async with connect(f"{address}/ws?channel=agent.t{n}&after=0") as socket:
        try:
            while True:
                json.loads(await socket.recv())
        except ConnectionClosed:
            closes.append(socket.close_code or 0)


async def test_nothing_that_was_acknowledged_is_lost(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    seen: dict[int, list[Any]] = {}
    closes: list[int] = []
    limits = httpx.Limits(max_connections=200)
    async with (
        hosting(url) as (address, process),
        httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as http,
    ):
        streams = [asyncio.create_task(stream(http, n, seen)) for n in range(RUNS)]
        async with asyncio.timeout(60):
            while len(seen) < RUNS or min(map(len, seen.values())) < 8:  # noqa: ASYNC110  streams have no event
                await asyncio.sleep(0.05)
        ws = address.replace("http", "ws")
        watchers = [asyncio.create_task(watch(ws, n, closes)) for n in range(10)]
        await asyncio.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(40):
            await asyncio.gather(*streams)
            await asyncio.gather(*watchers)
            await process.wait()
    assert closes == [4200] * 10  # "come back at once"
    log = RunLog(open_store(url))
    async with log:
        for n in range(RUNS):
            stored = {entry.seq: entry.event for entry in await log.entries(f"t{n}")}
            told = [each for each in seen[n] if each.id]
            assert [int(each.id.rpartition(":")[2]) for each in told] == list(range(1, len(told) + 1))
            assert len(stored) >= len(told)
            kinds = [str(stored[seq].type.value) for seq in range(1, len(told) + 1)]
            assert kinds == [each.event["type"] for each in told]
            assert not verify(list(stored.values()))


async def test_what_was_cut_short_goes_on_after_a_restart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    async with hosting(url) as (address, process), httpx.AsyncClient(base_url=address, timeout=60) as http:
        for n in range(5):
            await http.post(f"/threads/t{n}/runs", json={"message": "count"})
        await asyncio.sleep(1)
        process.kill()  # no goodbye: the leases run out by themselves
        await process.wait()
    async with Cast(RunLog(open_store(url)), agents=[steady]) as cast:
        before = {f"t{n}": len(await cast.log.entries(f"t{n}")) for n in range(5)}
        found: list[Any] = []
        async with asyncio.timeout(40):
            while len(found) < 5:
                found += await cast.recover("continue")
                await asyncio.sleep(0.2)
        await asyncio.sleep(1)
        for thread, length in before.items():
            runs = await cast.log.runs(thread)
            assert [(run.status, run.edge, run.attempt) for run in runs] == [
                ("truncated", "continue", 1),
                ("in_progress", "resume", 2),
            ]
            entries = await cast.log.entries(thread)
            assert len(entries) > length
            spoken = "".join(getattr(entry.event, "delta", "") for entry in entries)
            assert spoken.split() == [
                str(n) for n in range(len(spoken.split()))
            ]  # nothing left out, nothing twice
        for run in cast.active:
            await run.stop()
