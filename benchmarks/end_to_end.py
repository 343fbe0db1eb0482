"""From the end of a node to an envelope in a watcher's socket: how long, for 1, 100 and 500 watchers, and in a browser.

A real LangGraph run in a `Cast` over SQLite, served as `runcast serve` does; the watchers are WebSocket clients in
another process. Beside it, in turns, the shortest program by hand: `astream` and `websockets.broadcast`, with nothing
kept. The difference is what durability costs: an envelope leaves when its entry is on disk. One watcher is measured over
PostgreSQL too, where there is one.

**The clock.** Node and watchers read CLOCK_MONOTONIC of one machine, which is one clock for all its processes, read
without a system call: the comparison is exact to well under a microsecond. A browser shows its own clock, coarsened to
0.1 ms and with another zero; the zero is found by asking for `performance.now()` many times and believing the
fastest answer, so it is known to half that answer's round trip. The row says what that was.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Any

from benchmarks.hub import Process, started
from tests import servers
from tests.e2e.browser import Tab, browsing, program

Row = dict[str, Any]
MARK = "agent.step.completed"
WARM = 5  # the first ends of the node are not counted
SIDES = ("cast", "bare")
TURNS = 3  # rounds of each side, in turns with the other's
BARS = {
    ("1 watcher", 50): 8.0,
    ("1 watcher", 99): 15.0,
    ("500 watchers", 50): 2.5,
    ("1 tab of Chromium", 50): 6.0,
}
COARSE = 0.1  # ms: what Chromium rounds its clock to
LISTEN = """
(() => { globalThis.had = []; globalThis.socket = new WebSocket(%s);
  socket.onmessage = (message) => { const now = performance.now(); if (message.data.includes(%s)) had.push(now); };
  return new Promise((yes, no) => { socket.onopen = () => yes(true); socket.onerror = () => no(new Error("no socket")); });
})()"""


class Programs:
    """The programs, each in its process, and where they listen."""

    def __init__(self, stack: ExitStack) -> None:
        self.processes: dict[str, Process] = {}
        self.ports: dict[str, str] = {}
        self.runs = 0
        self._stack = stack
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        self.add("cast", f"sqlite:///{folder}/runs.db")
        self.add("bare", "")

    def add(self, side: str, store: str) -> None:
        """Start a program: by hand without a store, else a cast."""
        kind = "cast" if store else "bare"
        self.processes[side] = self._stack.enter_context(started("benchmarks._end_to_end_peer", kind, store))
        self.ports[side] = self.processes[side].answer()

    def thread(self) -> str:
        self.runs += 1
        return f"t{self.runs}"

    def run(self, side: str, steps: int, thread: str) -> list[int]:
        ends: list[int] = json.loads(self.processes[side].ask(f"run {steps} {thread}"))
        return ends


def path(thread: str) -> str:
    return f"/ws?channel=agent.{thread}"


def watched(programs: Programs, side: str, watchers: int, steps: int) -> list[float]:
    """Milliseconds from each end of the node to each watcher."""
    thread = programs.thread()
    with started("benchmarks._watchers") as clients:
        clients.ask(f"open 127.0.0.1 {programs.ports[side]} {path(thread)} {watchers}")
        ends = programs.run(side, steps, thread)
        moments: list[list[int]] = json.loads(clients.ask(f"wait {MARK} {steps}"))
    return [late for each in moments for late in late_by(ends, each)]


def in_turns(
    programs: Programs, sides: Sequence[str], watchers: int, steps: int, turns: int = TURNS
) -> list[list[float]]:
    """The milliseconds of each side, in rounds that alternate: other work on the machine hits both."""
    found: list[list[float]] = [[] for _ in sides]
    for _ in range(turns):
        for side, taken in zip(sides, found, strict=True):
            taken += watched(programs, side, watchers, steps // turns)
    return found


def late_by(ends: Sequence[int], moments: Sequence[float]) -> list[float]:
    """Milliseconds between the n-th end and the n-th envelope; the first few are not counted."""
    if len(ends) != len(moments):
        raise RuntimeError(f"{len(ends)} ends of the node, and {len(moments)} envelopes")
    return [(came - end) / 1e6 for end, came in zip(ends, moments, strict=True)][WARM:]


# --------------------------------------------------------------------- browser


async def aligned(tab: Tab, times: int = 40) -> tuple[float, float]:
    """What to add to the tab's clock to get ours, in milliseconds, and how far off that may be."""
    best = (0.0, float("inf"))
    for _ in range(times):
        before = time.monotonic_ns()
        told = await tab.js("performance.now()")
        after = time.monotonic_ns()
        half = (after - before) / 2e6
        if half < best[1]:
            best = ((before + after) / 2e6 - float(told), half)
    return best


async def in_a_tab(programs: Programs, side: str, steps: int) -> tuple[list[float], float]:
    """Milliseconds from each end of the node to a page's `onmessage`, and how exact that is."""
    thread = programs.thread()
    here = f"127.0.0.1:{programs.ports[side]}"
    async with browsing() as browser:
        tab = await browser.tab(
            f"http://127.0.0.1:{programs.ports['cast']}/health"
        )  # any page of this machine's
        await tab.until("document.readyState === 'complete'")
        await tab.js(LISTEN % (json.dumps(f"ws://{here}{path(thread)}"), json.dumps(MARK)))
        zero, sure = await aligned(tab)
        ends = await asyncio.to_thread(programs.run, side, steps, thread)
        await tab.until(f"had.length >= {steps}")
        zero, sure = min((zero, sure), await aligned(tab), key=lambda each: each[1])
        had: list[float] = await tab.js("had")
    return late_by(ends, [(each + zero) * 1e6 for each in had]), sure


# ------------------------------------------------------------------------ rows


def rows_of(name: str, ours: Iterable[float], peer: Iterable[float], said: str = "") -> list[Row]:
    """Three rows: the middle and the far end."""
    sides = [statistics.quantiles(each, n=100, method="inclusive") for each in (list(ours), list(peer))]
    rows: list[Row] = []
    for percent in (50, 95, 99):
        mine, other = (each[percent - 1] for each in sides)
        most, ratio = BARS.get((name, percent)), mine / other
        rows.append(
            {
                "name": f"{name}, p{percent}{said}", "ours": mine, "peer": other, "unit": "ms", "ratio": ratio,
                "bar": "shown" if most is None else f"<= {most:g}", "ok": None if most is None else ratio <= most,
            }
        )  # fmt: skip
    return rows


def browser_rows(programs: Programs, steps: int) -> list[Row]:
    name = "1 tab of Chromium"
    if program() is None:
        return [{"name": f"{name}: not measured, there is no Chromium here", "bar": "shown", "ok": None}]
    ours, sure = asyncio.run(in_a_tab(programs, "cast", steps))
    peer, other = asyncio.run(in_a_tab(programs, "bare", steps))
    return rows_of(name, ours, peer, f" (clock within {max(sure, other) + COARSE:.1f} ms)")


def postgres_rows(programs: Programs, steps: int, turns: int) -> list[Row]:
    if servers.postgres_programs() is None:
        return [{"name": "PostgreSQL: not measured, its programs are not here", "bar": "shown", "ok": None}]
    with servers.postgres() as url:
        programs.add("postgres", url)
        rows = rows_of("1 watcher, PostgreSQL", *in_turns(programs, ("postgres", "bare"), 1, steps, turns))
        programs.processes["postgres"].process.kill()
    return rows


def run(quick: bool) -> list[Row]:
    sizes = {1: 15, 100: 12, 500: 10} if quick else {1: 300, 100: 150, 500: 150}
    turns = 1 if quick else TURNS
    rows: list[Row] = []
    with ExitStack() as stack:
        programs = Programs(stack)
        for watchers, steps in sizes.items():
            name = f"{watchers} watcher{'s' if watchers > 1 else ''}"
            rows += rows_of(name, *in_turns(programs, SIDES, watchers, steps, turns))
        rows += postgres_rows(programs, sizes[1], turns)
        rows += browser_rows(programs, sizes[1])
    return rows
