"""At which load a web node's queue grows: the formula that the plan stands on, beside a simulation of the queue.

A web node is one loop: a frame comes, is sent to all its readers, then the next one. On paper that is one server with
random arrivals; Pollaczek and Khinchine say how long a frame waits on average, and an exponential tail how long one in a
hundred does. The simulation follows frame after frame (Lindley's recursion), drawn by a seed, so that it comes out the
same everywhere. Times are in mean service times, so that nothing of the machine is in it. Pure.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

LOADS = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
SEED = 20_261
Draw = Callable[[random.Random], float]


@dataclass(frozen=True, slots=True)
class Waits:
    """How long frames wait before their turn, in mean service times."""

    mean: float
    p99: float


def crowd(rng: random.Random) -> float:
    """A frame's service: most threads have few readers, some have ten times as many. Its mean is 1."""
    return 5.0 if rng.random() * 9 < 1 else 0.5


CROWD_SQUARED = (8 * 0.25 + 25.0) / 9  # the mean of its square


def formula(load: float, squared: float = CROWD_SQUARED) -> Waits:
    """On paper: arrivals at random, services of mean 1 and of this mean square."""
    mean = load * squared / (2 * (1 - load))
    # A frame waits at all with probability `load`, and then about exponentially.
    tail = squared / (2 * (1 - load))
    return Waits(mean, max(0.0, tail * math.log(100 * load)))


def simulated(load: float, frames: int, *, seed: int = SEED, service: Draw = crowd) -> Waits:
    """Frame after frame: it waits for what is left of the one before it."""
    rng = random.Random(seed)
    waits: list[float] = []
    wait = 0.0
    for _ in range(frames):
        waits.append(wait)
        wait = max(0.0, wait + service(rng) - rng.expovariate(load))
    return _told(waits)


def in_step(load: float, frames: int, *, runs: int = 200, seed: int = SEED, service: Draw = crowd) -> Waits:
    """The same load from so many runs, each with a frame every 40 ms as the roll-up makes them, out of step.

    Runs end and others begin: every second their phases are drawn anew.
    """
    rng = random.Random(seed)
    period = runs / load
    phases: list[float] = []
    waits: list[float] = []
    free = 0.0
    for at in range(frames):
        turn, run = divmod(at, runs)
        if at % (25 * runs) == 0:
            phases = sorted(rng.uniform(0, period) for _ in range(runs))
        now = turn * period + phases[run]
        waits.append(max(0.0, free - now))
        free = max(free, now) + service(rng)
    return _told(waits)


def _told(waits: Sequence[float]) -> Waits:
    ordered = sorted(waits)
    return Waits(sum(waits) / len(waits), ordered[len(ordered) * 99 // 100])


def breaks_at(patience: float, *, squared: float = CROWD_SQUARED) -> float:
    """The load, in hundredths, from which one frame in a hundred waits longer than this many service times."""
    steps = range(1, 100)
    at = bisect_left(steps, patience, key=lambda percent: formula(percent / 100, squared).p99)
    return min(at + 1, 99) / 100


def run(quick: bool) -> list[dict[str, Any]]:
    """The simulation held to the formula; and the gentler arrivals of the real thing."""
    frames = 50_000 if quick else 400_000
    rows: list[dict[str, Any]] = []
    for load in LOADS:
        paper, queue, steady = formula(load), simulated(load, frames), in_step(load, frames)
        ratio = queue.p99 / paper.p99
        rows.append(
            {
                "name": f"a node busy to {load:.0%}: one frame in a hundred waits, simulated, to the formula",
                "ours": queue.p99, "peer": paper.p99, "unit": "services", "ratio": ratio, "bar": "0.75 to 1.25",
                "ok": None if quick else 0.75 <= ratio <= 1.25, "key": f"queue_{load:.0%}".removesuffix("%"),
            }
        )  # fmt: skip
        rows.append(
            {
                "name": "  the same with 200 runs that send every 40 ms, to random arrivals",
                "ours": steady.p99, "peer": queue.p99, "unit": "services", "ratio": steady.p99 / queue.p99,
                "bar": "shown", "ok": None,
            }
        )  # fmt: skip
    return rows
