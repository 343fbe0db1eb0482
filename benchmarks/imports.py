"""What a start costs: importing a house, and asking the command line for help, each in fresh processes.

Seconds of processor beyond Python's own start, the least of several: a busy machine adds to them and takes nothing
away. Ways alternate. Python's compiled files are there, as pip leaves them.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from tests.house.tree import ROOT

Row = dict[str, Any]
START, CORE = "-c pass", "-c import ag_ui.core"
HOUSES = ("-c import runcast.slim", "-c import runcast.broadcast", "-c import runcast.app")
LOG = "-c from runcast.slim import RunLog, fold, open_store"
GRAPH = "-c import ag_ui.core, langgraph.graph"
ADAPTER = "-c import runcast.adapters.langgraph"
HELP = "-m runcast.app --help"
TYPER = '-c import typer; app = typer.Typer(); app.command()(lambda: None); app(["--help"])'
WAYS = (START, CORE, *HOUSES, LOG, GRAPH, ADAPTER, HELP, TYPER)


def run(quick: bool) -> list[Row]:
    took = least(2 if quick else 10)
    core = took[CORE]
    rows = [
        row(way.removeprefix("-c ") + ", to `import ag_ui.core`", took[way], core, at_most=1.5)
        for way in HOUSES
    ]
    rows.append(row("the log's names of it: RunLog, fold, open_store", took[LOG], core))
    rows.append(row("import runcast.adapters.langgraph, to langgraph.graph and ag_ui.core", took[ADAPTER], took[GRAPH]))  # fmt: skip
    shown = row("runcast --help beyond Python's own start, to a bare typer's", took[HELP], took[TYPER])
    rows.append(shown | {"bar": "<= 0.3 s", "ok": took[HELP] <= 0.3})
    return rows


def least(rounds: int) -> dict[str, float]:
    """For each way, the seconds of processor beyond Python's own start."""
    with tempfile.TemporaryDirectory() as compiled:
        hidden = ("PYTHONDONTWRITEBYTECODE",)
        given = {name: value for name, value in os.environ.items() if name not in hidden}
        given["PYTHONPYCACHEPREFIX"] = compiled
        for way in WAYS:
            spent(way, given)  # compiles
        found = [{way: spent(way, given) for way in WAYS} for _ in range(rounds)]
    best = {way: min(each[way] for each in found) for way in WAYS}
    return {way: best[way] - best[START] for way in WAYS}


def spent(way: str, environment: Mapping[str, str]) -> float:
    flag, _, rest = way.partition(" ")
    words = rest.split() if flag == "-m" else [rest]
    before = used()
    subprocess.run([sys.executable, flag, *words], check=True, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)  # fmt: skip
    return used() - before


def used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def row(name: str, ours: float, peer: float, at_most: float | None = None) -> Row:
    ratio = ours / peer
    bar, held = ("shown", None) if at_most is None else (f"<= {at_most:g}", ratio <= at_most)
    return {"name": name, "ours": ours, "peer": peer, "unit": "s", "ratio": ratio, "bar": bar, "ok": held}
