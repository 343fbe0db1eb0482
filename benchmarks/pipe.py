"""Events through the whole pipe, on one core: graph, adapter, log with redaction, mapper, hub; and what a long run holds.

Ways that do a little more each run in fresh processes, in turn with a process that has the graph alone, as users' processes run
them (see `_pipe_ways`); a stage costs what its way costs above the one before. All that comes behind the adapter is measured by
itself too, without a graph beside it, and compared without the collector, of which a full collection falls into one round of
several: where this, the adapter and the collector do not add up to the whole within a tenth, a row says so, and the rest
is threads that wait for one another. CPU is that of the whole process. A `Cast` keeps snapshots, and compacts the run when it has ended: both are waited for.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.hub import Process, started

ROOT = Path(__file__).resolve().parent.parent
Row = dict[str, Any]
STAGES = {
    "adapted": ("adapt_us", "the adapter"),
    "logged": ("log_us", "the log: verified, encoded, made entries of, written"),
    "clean": ("redact_us", "redaction"),
    "whole": ("show_us", "mapper, roll-up, hub and one watcher, snapshots, compaction"),
}
HAND = "  by hand: graph, adapter, encoding and gathered inserts, nothing else"
FROZEN = "  the same as `runcast serve` runs it, its start left out of collections"
ALONE = {
    "driven": "all behind the adapter by itself, no graph beside it, less the collector",
    "recorded": "  of that: the log and redaction by themselves",
    "shown": "  of that: mapper, roll-up, hub and one watcher by themselves",
}
NEAR = (0.9, 1.1)  # what the stages may add up to
SHARE, ONE_TOKEN = 0.60, 3.0


class Side:
    """What one way took, in microseconds an event: means, for a full collection falls into one round of several."""

    def __init__(self, rounds: Sequence[Mapping[str, Any]], events: int) -> None:
        self.spent = statistics.fmean(each["spent"] for each in rounds) / events * 1e6
        self.collected = statistics.fmean(each["collected"] for each in rounds) / events * 1e6
        self.own = self.spent - self.collected
        threads = {name for each in rounds for name in each["threads"]}
        self.threads = {
            name: statistics.fmean(each["threads"].get(name, 0.0) for each in rounds) / events * 1e6
            for name in threads
        }


class Taken:
    """A way beside the graph alone, each in a process of its own."""

    def __init__(self, alone: Side, way: Side) -> None:
        self.alone, self.way = alone.spent, way.spent
        self.collected, self.threads = way.collected, way.threads
        self.ratio = way.spent / alone.spent
        self.own, self.own_alone = way.own, alone.own  # without the collector


@contextmanager
def answering(tokens: int, runs: int) -> Generator[Process]:
    """A process that does rounds of ways."""
    with (
        tempfile.TemporaryDirectory() as home,
        started("benchmarks._pipe_ways", home, str(tokens), str(runs)) as it,
    ):
        yield it
        it.tell("")  # its watchers end with it
        it.process.wait(60)


def round_of(it: Process, way: str) -> dict[str, Any]:
    it.tell(way)
    found: dict[str, Any] = json.loads(it.answer(300))
    return found


def taken(
    ways: Sequence[str], tokens: int, rounds: int, runs: int = 1, *, together: bool = False
) -> dict[str, Taken]:
    """The figures of ways, each in a process of its own or all in one, beside one process that has the graph alone."""
    events, found = tokens * runs, dict[str, Taken]()
    with answering(tokens, runs) as alone:
        for lot in [ways] if together else [[way] for way in ways]:
            with answering(tokens, runs) as process:
                for way in lot:
                    pairs = [(round_of(alone, "alone"), round_of(process, way)) for _ in range(rounds)]
                    found[way] = Taken(*(Side(side, events) for side in zip(*pairs, strict=True)))
    return found


def figure(
    name: str, ours: float, peer: float | None, unit: str, bar: str = "shown", ok: bool | None = None
) -> Row:
    ratio = None if peer is None else ours / peer
    return {"name": name, "ours": ours, "peer": peer, "unit": unit, "ratio": ratio, "bar": bar, "ok": ok}


def share_rows(whole: Taken, frozen: Taken, by_hand: Taken) -> list[Row]:
    name = "events a second of one core, the whole pipe, as a share of the graph streaming alone"
    held = f">= {SHARE}", 1 / whole.ratio >= SHARE
    sides = ((name, whole, *held), (FROZEN, frozen, "shown", None), (HAND, by_hand, "shown", None))
    return [
        figure(said, round(1e6 / it.way), round(1e6 / it.alone), "events/s", bar, ok)
        | {"ratio": 1 / it.ratio}
        for said, it, bar, ok in sides
    ]


def stage_rows(found: Mapping[str, Taken]) -> list[Row]:
    """What each way adds to the one before, the collector included, in parts of the graph alone."""
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
    """What comes behind the adapter by itself, and whether the stages add up to the whole. The collector is a stage of its
    own: a collection of the whole heap falls into whichever runs when it is due."""
    whole = found["whole"]

    def own(way: str) -> float:
        return found[way].own * whole.own_alone / found[way].own_alone

    parts = {name: own(name) for name in ALONE}
    added = own("adapted") + parts["driven"] + whole.collected
    near = NEAR[0] <= added / whole.way <= NEAR[1]
    rest = whole.way - added
    where = "in no stage" if rest > 0 else "in more than one stage"
    said = "they add up" if near else f"they do NOT add up: {abs(rest):.0f} us are {where}"
    name = f"  graph and adapter, all behind them, and the collector, to the whole: {said}"
    return [
        *(figure(f"  {ALONE[way]}", cost, whole.way, "us/event") for way, cost in parts.items()),
        figure(name, added, whole.way, "us/event"),
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


def run_rows(runs: Taken, watched: Taken, by_hand: Taken) -> list[Row]:
    name, bar = "a run of one token that nobody watches, to the graph alone", f"<= {ONE_TOKEN:g}"
    sides = (
        (name, runs, bar, runs.ratio <= ONE_TOKEN),
        ("  the same with a watcher who comes for it, mapped and sent", watched, "shown", None),
        (HAND, by_hand, "shown", None),
    )
    rows = [
        figure(said, it.way / 1e3, it.alone / 1e3, "CPU ms", held, ok) | {"ratio": it.ratio}
        for said, it, held, ok in sides
    ]
    return [rows[0] | {"key": "run_ms"}, *rows[1:]]


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
    tokens, rounds, runs = (300, 1, 3) if quick else (5_000, 5, 40)
    ways = (*STAGES, *ALONE, "frozen", "by_hand")
    found = taken(ways, tokens, rounds, together=quick)  # each by itself where it is measured
    # What a graph's saver keeps of many short runs weighs on the collector: a fresh process for each of these.
    short = {way: taken((way,), 1, rounds, runs)[way] for way in ("unwatched", "whole", "by_hand")}
    with tempfile.TemporaryDirectory() as folder:
        memory = memory_row(Path(folder), (5_000, 25_000) if quick else (100_000, 500_000))
    whole, frozen, by_hand = found["whole"], found.pop("frozen"), found.pop("by_hand")
    return [
        *share_rows(whole, frozen, by_hand),
        *stage_rows(found),
        *sum_rows(found),
        *thread_rows(whole),
        *run_rows(short["unwatched"], short["whole"], short["by_hand"]),
        memory,
    ]
