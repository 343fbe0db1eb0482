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
BARE = ("benchmarks._end_to_end_peer", "bare", "")
RUNS = 4  # at once in a worker, of which one is watched


def run(quick: bool) -> list[Row]:
    if servers.postgres_programs() is None or servers.redis_program() is None:
        return [{"name": "not measured: PostgreSQL and Redis are not both here", "bar": "shown", "ok": None}]
    rows: list[Row] = []
    with servers.postgres() as postgres, servers.redis() as redis, started(*BARE) as hand:
        port = hand.answer()
        for load in LOADS[1:2] if quick else LOADS:
            ours, bare = late_at(
                load, (postgres, redis), (hand, port), turns=1 if quick else 2, steps=12 if quick else 40
            )
            rows += rows_of(load, ours, bare)
    return rows


Programs = tuple[Process, str]  # and its port


def late_at(
    load: Load, engines: tuple[str, str], hand: Programs, *, turns: int, steps: int
) -> tuple[list[float], list[float]]:
    """The milliseconds of a size's nodes and those of the bare program, in turns."""
    watchers = load.watchers // load.active
    ours: list[float] = []
    bare: list[float] = []
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        alone = ("both", f"sqlite:///{folder}/runs.db", "-")
        roles = [alone] if load.active == 1 else [("worker", *engines), ("web", *engines)]
        nodes = [
            stack.enter_context(started("benchmarks._scale_peer", *role, str(load.flush_ms)))
            for role in roles
        ]
        ports = [each.answer() for each in nodes]  # started side by side
        for turn in range(turns):
            thread = f"n{load.active}-{load.watchers}-{turn}"
            runs = 1 if load.active == 1 else RUNS
            ours += late(nodes[0], ports[-1], f"run {steps} {thread} {runs}", thread, watchers, steps)
            bare += late(*hand, f"run {steps} {thread}", thread, watchers, steps)
    return ours, bare


def rows_of(load: Load, ours: list[float], bare: list[float]) -> list[Row]:
    """The middle and the far end of one size, beside the bare program's."""
    what = f"{load.active:,} run{'s' if load.active > 1 else ''}, {load.watchers:,} watchers"
    where = "one process" if load.active == 1 else f"a worker of {RUNS} runs, PostgreSQL, Redis, a web node"
    rows: list[Row] = []
    for percent in (50, 99):
        mine, other = (
            statistics.quantiles(each, n=100, method="inclusive")[percent - 1] for each in (ours, bare)
        )
        rows.append(
            {
                "name": f"{what} ({where}; {load.watchers // load.active:,} of one thread), p{percent}", "ours": mine, "peer": other,
                "unit": "ms", "ratio": mine / other, "bar": "shown", "ok": None, "key": late_key(load, percent),
            }
        )  # fmt: skip
    return rows


def late(worker: Process, port: str, command: str, thread: str, watchers: int, steps: int) -> list[float]:
    """Milliseconds from each end of the node to each watcher of the thread."""
    with started("benchmarks._watchers") as clients:
        clients.ask(f"open 127.0.0.1 {port} {path(thread)} {watchers}")
        ends: list[int] = json.loads(worker.ask(command))
        moments: list[list[int]] = json.loads(clients.ask(f"wait {MARK} {steps}"))
    return [found for each in moments for found in late_by(ends, each)]
