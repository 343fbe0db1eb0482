"""How late an envelope is at each size of `benchmarks.model`: with its engines, and a node's share of its runs and watchers.

A larger load has more nodes and not busier ones, so one worker and one web node show it: graphs run in the worker's
process, the watchers of one of them are on the web node, and between the two are PostgreSQL and Redis. The smallest size
is one process over SQLite. Beside it, in turns, the bare program of `benchmarks.end_to_end` with as many watchers. All of
it shares this machine's cores, which a real installation does not; a worker's share is a few runs that write faster than
real ones, not the 60 % of the plan.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from contextlib import ExitStack
from typing import Any

from benchmarks.end_to_end import MARK, late_by, path
from benchmarks.hub import Process, started
from benchmarks.model import LOADS, Load, late_key
from tests import servers

Row = dict[str, Any]
RUNS = 4  # at once in a worker, of which one is watched


def run(quick: bool) -> list[Row]:
    if servers.postgres_programs() is None or servers.redis_program() is None:
        return [{"name": "not measured: PostgreSQL and Redis are not both here", "bar": "shown", "ok": None}]
    rows: list[Row] = []
    with servers.postgres() as postgres, servers.redis() as redis:
        for load in LOADS[1:2] if quick else LOADS:
            rows += rows_of(load, postgres, redis, turns=1 if quick else 2, steps=12 if quick else 40)
    return rows


def rows_of(load: Load, postgres: str, redis: str, *, turns: int, steps: int) -> list[Row]:
    """The middle and the far end of one size, beside the bare program's."""
    single, watchers = load.active == 1, load.watchers // load.active
    ours: list[float] = []
    bare: list[float] = []
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        flush = str(load.flush_ms)
        if single:
            worker = web = node(stack, "both", f"sqlite:///{folder}/runs.db", "-", flush)
        else:
            worker, web = (node(stack, role, postgres, redis, flush) for role in ("worker", "web"))
        hand = stack.enter_context(started("benchmarks._end_to_end_peer", "bare", ""))
        hand_port = hand.answer()
        for turn in range(turns):
            thread = f"n{load.active}-{load.watchers}-{turn}"
            ours += late(
                worker[0], web[1], f"run {steps} {thread} {1 if single else RUNS}", thread, watchers, steps
            )
            bare += late(hand, hand_port, f"run {steps} {thread}", thread, watchers, steps)
    what = f"{load.active:,} run{'s' if load.active > 1 else ''}, {load.watchers:,} watchers"
    where = "one process" if single else f"a worker of {RUNS} runs, PostgreSQL, Redis, a web node"
    rows: list[Row] = []
    for percent in (50, 99):
        mine, other = (
            statistics.quantiles(each, n=100, method="inclusive")[percent - 1] for each in (ours, bare)
        )
        rows.append(
            {
                "name": f"{what} ({where}; {watchers:,} of one thread), p{percent}", "ours": mine, "peer": other,
                "unit": "ms", "ratio": mine / other, "bar": "shown", "ok": None, "key": late_key(load, percent),
            }
        )  # fmt: skip
    return rows


def node(stack: ExitStack, *arguments: str) -> tuple[Process, str]:
    process = stack.enter_context(started("benchmarks._scale_peer", *arguments))
    return process, process.answer()


def late(worker: Process, port: str, command: str, thread: str, watchers: int, steps: int) -> list[float]:
    """Milliseconds from each end of the node to each watcher of the thread."""
    with started("benchmarks._watchers") as clients:
        clients.ask(f"open 127.0.0.1 {port} {path(thread)} {watchers}")
        ends: list[int] = json.loads(worker.ask(command))
        moments: list[list[int]] = json.loads(clients.ask(f"wait {MARK} {steps}"))
    return [found for each in moments for found in late_by(ends, each)]
