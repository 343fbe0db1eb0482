"""Events through the whole pipe, on one core: graph, adapter, log with redaction, mapper, hub; and what a long run holds.

Ways that do a little more each run in fresh processes, in turn with the graph alone, as a user's process runs them (see
`_pipe_ways`); a stage costs what its way costs above the one before. Log and show are measured by themselves too, without a
graph beside them: where these and the adapter do not add up to the whole within a tenth, a row says so, and the rest is
threads that wait for one another, the collector's walk over a larger heap, snapshots and compaction. CPU is that of the
whole process. A `Cast` keeps snapshots, and compacts the run when it has ended: both are waited for.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
Row = dict[str, Any]
STAGES = {
    "adapted": ("adapt_us", "the adapter"),
    "logged": ("log_us", "the log: verified, encoded, made entries of, written"),
    "clean": ("redact_us", "redaction"),
    "whole": ("show_us", "mapper, roll-up, hub and one watcher, snapshots, compaction"),
}
ALONE = {
    "recorded": "the log and redaction by themselves, no graph beside them",
    "shown": "mapper, roll-up, hub and one watcher by themselves",
}
NEAR = (0.9, 1.1)  # what the stages may add up to
SHARE, ONE_TOKEN = 0.60, 3.0


class Taken:
    """What one way took, beside the graph alone in the same process."""

    def __init__(self, found: Mapping[str, Any], events: int) -> None:
        self.alone = statistics.median(found["alone"]) / events * 1e6
        ratios = [way / alone for way, alone in zip(found["way"], found["alone"], strict=True)]
        self.ratio = statistics.median(ratios)
        self.way = statistics.median(found["way"]) / events * 1e6
        self.collected = statistics.mean(found["collected"]) / events * 1e6
        self.threads = {name: spent / events * 1e6 for name, spent in found["threads"].items()}


def taken(way: str, tokens: int, rounds: int, runs: int = 1) -> Taken:
    with tempfile.TemporaryDirectory() as home:
        numbers = map(str, (tokens, rounds, runs))
        command = [sys.executable, "-m", "benchmarks._pipe_ways", way, home, *numbers]
        ran = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, timeout=300)
    return Taken(json.loads(ran.stdout.splitlines()[-1]), tokens * runs)


def figure(
    name: str, ours: float, peer: float | None, unit: str, bar: str = "shown", ok: bool | None = None
) -> Row:
    ratio = None if peer is None else ours / peer
    return {"name": name, "ours": ours, "peer": peer, "unit": unit, "ratio": ratio, "bar": bar, "ok": ok}


def share_row(whole: Taken) -> Row:
    share = 1 / whole.ratio
    rates = round(1e6 / whole.way), round(1e6 / whole.alone)
    name = "events a second of one core, the whole pipe, as a share of the graph streaming alone"
    return figure(name, *rates, "events/s", f">= {SHARE}", share >= SHARE) | {"ratio": share}


def stage_rows(found: Mapping[str, Taken]) -> list[Row]:
    """What each way adds to the one before, in parts of the graph alone in its own process."""
    alone = statistics.median(each.alone for each in found.values())
    total = found["whole"].ratio * alone
    rows = [figure("  of it: the graph itself, streaming", alone, total, "us/event") | {"key": "graph_us"}]
    before = 1.0
    for way, (key, said) in STAGES.items():
        own = max(0.0, found[way].ratio - before) * alone
        before = max(before, found[way].ratio)
        rows.append(figure(f"  of it: {said}", own, total, "us/event") | {"key": key})
    return rows


def sum_rows(found: Mapping[str, Taken]) -> list[Row]:
    """The stages by themselves, and whether they add up to the whole."""
    whole = found["whole"]
    parts = {name: found[name].way * whole.alone / found[name].alone for name in ALONE}
    added = found["adapted"].ratio * whole.alone + sum(parts.values())
    near = NEAR[0] <= added / whole.way <= NEAR[1]
    said = "they add up" if near else f"they do NOT add up: {whole.way - added:.0f} us are in no stage"
    return [
        *(figure(f"  {ALONE[name]}", cost, whole.way, "us/event") for name, cost in parts.items()),
        figure(f"  graph, adapter and these, to the whole: {said}", added, whole.way, "us/event"),
    ]


def thread_rows(whole: Taken) -> list[Row]:
    """Where the whole's processor goes."""
    names = {
        "MainThread": "the event loop",
        "runcast-sqlite": "the store's threads",
        "asyncio": "compaction's thread",
    }
    rows = [
        figure(f"  of the whole, in {said}", whole.threads[name], whole.way, "us/event")
        for name, said in names.items()
        if name in whole.threads
    ]
    return [*rows, figure("  of the whole, in the collector", whole.collected, whole.way, "us/event")]


def run_row(runs: Taken) -> Row:
    name = "a run of one token through the whole pipe, to the graph alone"
    row = figure(
        name, runs.way / 1e3, runs.alone / 1e3, "CPU ms", f"<= {ONE_TOKEN:g}", runs.ratio <= ONE_TOKEN
    )
    return row | {"ratio": runs.ratio, "key": "run_ms"}


def memory_row(home: Path, sizes: tuple[int, int]) -> Row:
    """What a run holds for each event it has told, beside what the log keeps of one."""
    command = [sys.executable, "-m", "benchmarks._pipe_load", str(home), *map(str, sizes)]
    ran = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, timeout=300)
    told = json.loads(ran.stdout.splitlines()[-1])
    few, many = sizes
    growth = (told["weights"][str(many)] - told["weights"][str(few)]) / (many - few)
    name = f"memory a run grows by, from {few:,} to {many:,} events, to what the log keeps of one"
    kept = told["json"]
    return figure(name, growth, kept, "bytes/event", "<= 1", growth <= kept) | {"key": "held_bytes"}


def run(quick: bool) -> list[Row]:
    tokens, rounds, runs = (1_000, 1, 5) if quick else (5_000, 7, 40)
    found = {way: taken(way, tokens, rounds) for way in (*STAGES, *ALONE)}
    short = taken("unwatched", 1, rounds, runs)
    with tempfile.TemporaryDirectory() as folder:
        memory = memory_row(Path(folder), (5_000, 25_000) if quick else (100_000, 500_000))
    whole = found["whole"]
    return [
        share_row(whole),
        *stage_rows(found),
        *sum_rows(found),
        *thread_rows(whole),
        run_row(short),
        memory,
    ]
