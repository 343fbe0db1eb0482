"""Events through the whole pipe, on one core: graph, adapter, log with redaction, mapper, hub; and what a long run holds.

Ways that do a little more each take turns, and a stage costs what its way costs above the one before. CPU is that of
the whole process, the thread that writes SQLite included. The hub has one watcher, in a process of its own, on every
thread it carries. A `Cast` also keeps snapshots and compacts the run when it has ended: that is in the last stage.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from ag_ui.core import RunAgentInput, UserMessage

from benchmarks._hub_peer import LIMITS
from benchmarks._langgraph_load import raw, talking
from benchmarks.hub import started
from runcast.adapters.langgraph import LangGraphAdapter
from runcast.app import Cast
from runcast.broadcast import Hub
from runcast.slim import Redactor, RunLog, open_store

ROOT = Path(__file__).resolve().parent.parent
Row = dict[str, Any]
Way = Callable[[str], Awaitable[None]]
STAGES = {
    "graph_us": "the graph itself, streaming",
    "adapt_us": "the adapter",
    "log_us": "the log: verified, encoded, made entries of, written",
    "redact_us": "redaction",
    "show_us": "mapper, roll-up, hub and one watcher, snapshots, compaction",
}


def asks(thread: str) -> RunAgentInput:
    message = UserMessage(id=f"u-{thread}", content="hi")
    return RunAgentInput(thread_id=thread, run_id=f"run-{thread}", messages=[message])


async def logged(log: RunLog, graph: Any, thread: str) -> None:
    async for event in LangGraphAdapter(graph).run(asks(thread)):
        await log.append(thread, event)


async def whole(cast: Cast, graph: Any, thread: str, watching: Way | None = None) -> None:
    """One run to its end, until the hub has all of it."""
    if watching is not None:
        await watching(thread)
    run = await cast.start(LangGraphAdapter(graph), asks(thread))
    last = (await run.result()).last_seq
    if watching is None or cast.hub is None:
        return
    async with asyncio.timeout(30):
        while cast.hub.position(f"agent.{thread}").offset < last:  # noqa: ASYNC110  a place is all the hub has
            await asyncio.sleep(0.005)


async def in_turns(ways: dict[str, Way], rounds: int) -> dict[str, list[float]]:
    """CPU seconds of each way, round by round."""
    for name, way in ways.items():
        await way(f"warm-{name}")
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for at in range(rounds):
        for name, way in ways.items():
            gc.collect()
            began = time.process_time()
            await way(f"{name}-{at}")
            taken[name].append(time.process_time() - began)
    return taken


async def measured(home: Path, tokens: int, rounds: int) -> dict[str, list[float]]:
    graph = talking(tokens)
    hub = Hub("1001", "app-key", "app-secret", public=True, prefix="agent.", limits=LIMITS)
    async with AsyncExitStack() as stack:
        plain = await stack.enter_async_context(
            RunLog(open_store(f"sqlite:///{home}/plain.db"), derive="manual")
        )
        clean = await stack.enter_async_context(
            RunLog(open_store(f"sqlite:///{home}/clean.db"), derive="manual", redactor=Redactor())
        )
        cast = await stack.enter_async_context(Cast.open(f"sqlite:///{home}/cast.db", hub=hub))
        server = await stack.enter_async_context(hub.serve())
        watcher = stack.enter_context(started("benchmarks._hub_load"))

        async def adapted(thread: str) -> None:
            async for _ in LangGraphAdapter(graph).run(asks(thread)):
                pass

        ways: list[Way] = [
            lambda it: raw(graph, it),
            adapted,
            lambda it: logged(plain, graph, it),
            lambda it: logged(clean, graph, it),
            lambda it: whole(cast, graph, it, watching),
        ]

        async def watching(thread: str) -> None:
            hello = f"open 127.0.0.1 {server.port} /ws?channel=agent.{thread} 1"
            await asyncio.to_thread(watcher.ask, hello)

        return await in_turns(dict(zip(STAGES, ways, strict=True)), rounds)


async def short(home: Path, runs: int, rounds: int) -> dict[str, list[float]]:
    """Runs of one token: what a run costs whatever it says."""
    graph = talking(1)
    async with Cast.open(f"sqlite:///{home}/short.db") as cast:

        async def many(each: Callable[[str], Awaitable[None]], it: str) -> None:
            for at in range(runs):
                await each(f"{it}-{at}")

        ways: dict[str, Way] = {
            "graph": lambda it: many(lambda thread: raw(graph, thread), it),
            "whole": lambda it: many(lambda thread: whole(cast, graph, thread), it),
        }
        return await in_turns(ways, rounds)


def speed_rows(taken: dict[str, list[float]], tokens: int) -> list[Row]:
    """The whole beside the graph alone, and each stage's own part of it."""
    medians = [statistics.median(taken[stage]) for stage in STAGES]
    first, *_, last = STAGES
    shares = [alone / all_of_it for alone, all_of_it in zip(taken[first], taken[last], strict=True)]
    rows: list[Row] = [
        {
            "name": "events a second of one core, the whole pipe, as a share of the graph streaming alone",
            "ours": round(tokens / medians[-1]), "peer": round(tokens / medians[0]), "unit": "events/s",
            "ratio": statistics.median(shares), "bar": "shown", "ok": None,
        }
    ]  # fmt: skip
    before = 0.0
    for (key, stage), median in zip(STAGES.items(), medians, strict=True):
        own = max(0.0, median - before)
        before = max(before, median)
        rows.append(
            {
                "name": f"  of it: {stage}", "ours": own / tokens * 1e6, "peer": medians[-1] / tokens * 1e6,
                "unit": "us/event", "ratio": own / medians[-1], "bar": "shown", "ok": None, "key": key,
            }
        )  # fmt: skip
    return rows


def run_row(taken: dict[str, list[float]], runs: int) -> Row:
    alone, cast = (statistics.median(taken[name]) / runs * 1e3 for name in ("graph", "whole"))
    return {
        "name": "a run of one token through the whole pipe, to the graph alone", "ours": cast, "peer": alone,
        "unit": "CPU ms", "ratio": cast / alone, "bar": "shown", "ok": None, "key": "run_ms",
    }  # fmt: skip


def memory_row(home: Path, sizes: tuple[int, int]) -> Row:
    """What a run holds for each event it has told, beside what the log keeps of one."""
    command = [sys.executable, "-m", "benchmarks._pipe_load", str(home), *map(str, sizes)]
    ran = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, timeout=300)
    told = json.loads(ran.stdout.splitlines()[-1])
    few, many = sizes
    growth = (told["weights"][str(many)] - told["weights"][str(few)]) / (many - few)
    return {
        "name": f"memory a run grows by, from {few:,} to {many:,} events, to what the log keeps of one",
        "ours": growth, "peer": told["json"], "unit": "bytes/event", "ratio": growth / told["json"],
        "bar": "<= 1", "ok": growth <= told["json"], "key": "held_bytes",
    }  # fmt: skip


def run(quick: bool) -> list[Row]:
    tokens, rounds, runs = (1_000, 2, 10) if quick else (5_000, 9, 40)
    logging.disable(logging.WARNING)
    try:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            taken = asyncio.run(measured(home, tokens, rounds))
            singles = asyncio.run(short(home, runs, rounds))
            memory = memory_row(home, (5_000, 25_000) if quick else (100_000, 500_000))
    finally:
        logging.disable(logging.NOTSET)
    return [*speed_rows(taken, tokens), run_row(singles, runs), memory]
