"""From an append to a reader of the thread, and the commits of a hundred runs; the reference Durable Streams server beside.

An appended event is read by `log.attach` of the same process once it is durable; the peer, npm's
`@durable-streams/server` in memory, is appended to and read over HTTP, as it has no other way: a POST on an open connection,
and SSE. Appends are a few milliseconds apart and alternate between both, so that whatever else the machine does hits
both. The peer gets a folder of its own in `.venv-peers/`, made when it is first asked for; without npm or a network its rows
are left out. Commits are counted at the store, with a hundred runs at the pace of the model in `model.py`.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ag_ui.core import (
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)

from benchmarks.hub import running
from runcast.slim import RunLog, encode, open_store
from tests import servers

Row = dict[str, Any]
ROOT = Path(__file__).resolve().parent.parent
PEER = "@durable-streams/server@0.3.7"
SERVE = """
import { DurableStreamTestServer } from "@durable-streams/server"
console.log(await new DurableStreamTestServer({ port: 0, host: "127.0.0.1", compression: false }).start())
"""
PAUSE = (0.002, 0.008)  # seconds between two appends
WARM = 10  # the first are not counted
RUNS, EVENTS_S = 100, 80  # active runs, and events a second of each
MOST_COMMITS = 313  # a second: a tenth of one commit a flush of every run
DELTA = TextMessageContentEvent(message_id="m", delta="word ")


class Ours:
    """A thread of a log with one reader."""

    def __init__(self, log: RunLog) -> None:
        self._log = log

    async def __aenter__(self) -> Ours:
        await self._log.append("t", RunStartedEvent(thread_id="t", run_id="r"))
        await self._log.append("t", TextMessageStartEvent(message_id="m", role="assistant"))
        await self._log.flush()
        self._entries = self._log.attach("t", after=2)
        self._next = asyncio.ensure_future(anext(self._entries))
        await asyncio.sleep(0.05)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._next.cancel()
        await asyncio.gather(self._next, return_exceptions=True)
        await self._entries.aclose()

    async def once(self) -> float:
        """Milliseconds from an append to its entry."""
        began = time.perf_counter()
        await self._log.append("t", DELTA)
        await self._next
        took = time.perf_counter() - began
        self._next = asyncio.ensure_future(anext(self._entries))
        return took * 1e3


class Theirs:
    """A stream of the reference server with one reader, over HTTP."""

    def __init__(self, url: str, name: str) -> None:
        self._name = name
        self._host, _, port = url.removeprefix("http://").partition(":")
        self._port = int(port)
        self._body = b"[" + encode(DELTA) + b"]"

    def _request(self, method: str, query: str = "", body: bytes = b"") -> bytes:
        head = f"{method} /v1/stream/{self._name}{query} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    async def __aenter__(self) -> Theirs:
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
        await self._ask("PUT")
        self._events, self._asking = await asyncio.open_connection(self._host, self._port)
        self._asking.write(self._request("GET", "?offset=-1&live=sse"))
        await self._events.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.05)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        self._asking.close()

    async def _ask(self, method: str, body: bytes = b"") -> None:
        self._writer.write(self._request(method, body=body))
        head = await self._reader.readuntil(b"\r\n\r\n")
        if not head.startswith((b"HTTP/1.1 201", b"HTTP/1.1 204", b"HTTP/1.1 200")):
            raise RuntimeError(f"the reference server said {head[:100]!r}")
        if b"chunked" in head.lower():
            await self._reader.readuntil(b"0\r\n\r\n")

    async def once(self) -> float:
        began = time.perf_counter()
        asked = asyncio.ensure_future(self._ask("POST", self._body))
        while b"TEXT_MESSAGE_CONTENT" not in await self._events.readline():
            pass
        took = time.perf_counter() - began
        await asked
        return took * 1e3


@contextmanager
def reference(*, install: bool) -> Generator[str | None]:
    """The reference server's URL; None where it cannot be had, or is not there and may not be installed."""
    home = ROOT / ".venv-peers" / "durable_streams"
    npm, node = shutil.which("npm"), shutil.which("node")
    try:
        if not (home / "node_modules").exists() and install and npm is not None:
            home.mkdir(parents=True, exist_ok=True)
            (home.parent / ".gitignore").write_text("*\n")
            command = [npm, "install", "--silent", "--prefix", str(home), PEER]
            subprocess.run(command, check=True, capture_output=True, timeout=300)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"{PEER} cannot be measured here: {error}", file=sys.stderr)
    if node is None or not (home / "node_modules" / "@durable-streams" / "server").exists():
        yield None
        return
    script = home / "serve.mjs"
    script.write_text(SERVE)
    with running(node, str(script)) as server:
        yield server.answer()


async def delays(sides: list[Any], count: int) -> list[list[float]]:
    """Milliseconds of every side, taken in turns."""
    rng, found = random.Random(5), [[] for _ in sides]
    for at in range(count + WARM):
        for side, taken in zip(sides, found, strict=True):
            await asyncio.sleep(rng.uniform(*PAUSE))
            took = await side.once()
            if at >= WARM:
                taken.append(took)
    return found


async def both(store: str, peer: str | None, count: int) -> list[list[float]]:
    async with RunLog(open_store(store), derive="manual") as log, Ours(log) as ours:
        if peer is None:
            return [*await delays([ours], count), []]
        async with Theirs(peer, store.partition(":")[0]) as theirs:
            return await delays([ours, theirs], count)


def delay_rows(name: str, found: list[list[float]], most: float | None) -> list[Row]:
    sides = [statistics.quantiles(each, n=100, method="inclusive") if each else [] for each in found]
    rows: list[Row] = []
    for percent in (50, 99):
        mine, peer = (each[percent - 1] if each else None for each in sides)
        ratio = None if peer is None or mine is None else mine / peer
        held = most if percent == 50 and ratio is not None else None
        rows.append(
            {
                "name": f"{name}, p{percent}", "ours": mine, "peer": peer, "unit": "ms", "ratio": ratio,
                "bar": "shown" if held is None else f"<= {held:g}", "ok": None if held is None else (ratio or 0) <= held,
            }
        )  # fmt: skip
    return rows


# --------------------------------------------------------------------- commits


async def speaking(log: RunLog, thread: str, seconds: float, rng: random.Random) -> None:
    """A run at its pace."""
    await log.append(thread, RunStartedEvent(thread_id=thread, run_id=f"run-{thread}"))
    await log.append(thread, TextMessageStartEvent(message_id="m", role="assistant"))
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        await log.append(thread, DELTA)
        await asyncio.sleep(rng.uniform(0.5, 1.5) / EVENTS_S)
    await log.append(thread, TextMessageEndEvent(message_id="m"))
    await log.append(thread, RunFinishedEvent(thread_id=thread, run_id=f"run-{thread}"))


async def commits(url: str, seconds: float) -> tuple[float, float]:
    """Transactions and events a second, while a hundred runs speak."""
    store = open_store(url)
    written = 0

    def counted(write: Any) -> Any:
        async def one(batches: Any) -> Any:
            nonlocal written
            written += 1
            return await write(batches)

        return one

    async with RunLog(store, derive="manual") as log:
        for name in ("append", "append_all"):
            setattr(store, name, counted(getattr(store, name)))
        rng = random.Random(7)
        began = time.monotonic()
        await asyncio.gather(*(speaking(log, f"t{at}", seconds, rng) for at in range(RUNS)))
        took = time.monotonic() - began
        appended = log.stats().appended
    return written / took, appended / took


def commit_row(name: str, found: tuple[float, float]) -> Row:
    commits_s, events_s = found
    return {
        "name": f"{RUNS} active runs on {name}: commits, to events", "ours": round(commits_s), "peer": round(events_s),
        "unit": "/s", "ratio": commits_s / events_s, "bar": f"<= {MOST_COMMITS} /s", "ok": commits_s <= MOST_COMMITS,
    }  # fmt: skip


def run(quick: bool) -> list[Row]:
    count, seconds = (30, 0.5) if quick else (400, 4.0)
    name = "appended to read by `attach`, durable; to the reference server in memory"
    with tempfile.TemporaryDirectory() as folder, reference(install=not quick) as peer:
        rows = delay_rows(f"{name}: SQLite", asyncio.run(both(f"sqlite:///{folder}/a.db", peer, count)), 1.0)
        rows.append(commit_row("SQLite", asyncio.run(commits(f"sqlite:///{folder}/b.db", seconds))))
        if servers.postgres_programs() is None:
            return rows
        with servers.postgres() as url:
            rows += delay_rows(f"{name}: PostgreSQL", asyncio.run(both(url, peer, count)), None)
        with servers.postgres() as url:
            rows.append(commit_row("PostgreSQL", asyncio.run(commits(url, seconds))))
    return rows
