"""What the adapter adds to an ADK run: CPU per streamed chunk, and loads of the session; the official peer beside it.

The peer gets an environment of its own in `.venv-peers/`, made when it is first asked for; without a network its
rows are left out, and ours stand.
"""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

from ag_ui.core import RunAgentInput, UserMessage

from benchmarks._adk_load import CountedSessions, app, compared, raw, runner
from runcast.adapters.adk import AdkAdapter

ROOT = Path(__file__).resolve().parent.parent
PEER = ("ag-ui-adk==0.11.0", "google-adk==2.13.0")
MOST = 1.03


def asks(thread: str, run: str = "r") -> RunAgentInput:
    message = UserMessage(id=f"u-{run}-{thread}", content="hi")
    return RunAgentInput(thread_id=thread, run_id=f"{run}-{thread}", messages=[message])


async def ours(chunks: int, rounds: int) -> dict[str, float]:
    """CPU of raw `run_async` and of ours over the same chunks, and how often one turn loads the session."""
    mine = runner(chunks)
    adapter = AdkAdapter(app(chunks))

    async def events(thread: str) -> None:
        async for _ in adapter.run(asks(thread)):
            pass

    cpu = await compared({"raw": lambda it: raw(mine, it), "events": events}, rounds)
    sessions = CountedSessions()
    counted = AdkAdapter(app(1), session_service=sessions)
    for turn in ("1", "2"):
        sessions.reads = 0
        async for _ in counted.run(asks("t", turn)):
            pass
    return {**cpu, "reads": float(sessions.reads)}


def peer(chunks: int, rounds: int, *, install: bool = True) -> dict[str, float] | None:
    """The peer's figures; None where it cannot be had, or is not there and may not be installed."""
    home = ROOT / ".venv-peers" / "ag_ui_adk"
    python = home / "bin" / "python"
    try:
        if not python.exists() and not install:
            return None
        if not python.exists():
            home.parent.mkdir(exist_ok=True)
            (home.parent / ".gitignore").write_text("*\n")
            subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, capture_output=True)
            pip = [str(python), "-m", "pip", "install", "-q", *PEER]
            subprocess.run(pip, check=True, capture_output=True, timeout=600)
        asked = [str(python), "-m", "benchmarks._adk_peer", str(chunks), str(rounds)]
        answer = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True, timeout=600)
        figures: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        print(f"  the peer cannot be measured here: {error}", file=sys.stderr)
        return None
    return figures


def run(quick: bool) -> list[dict[str, Any]]:
    chunks, rounds = (1_000, 3) if quick else (5_000, 9)
    logging.disable(logging.WARNING)
    try:
        mine = asyncio.run(ours(chunks, rounds))
    finally:
        logging.disable(logging.NOTSET)
    theirs = peer(chunks, rounds, install=not quick)
    ratio = mine["events_ratio"]
    rows = [
        {
            "name": f"{chunks:,} chunks, CPU to raw run_async",
            "ours": mine["events"],
            "peer": mine["raw"],
            "ratio": ratio,
            "bar": f"<= {MOST}",
            "unit": "s",
            "ok": ratio <= MOST,
        },
        {
            "name": "loads of the session a turn, to the one that raw run_async does",
            "ours": mine["reads"],
            "peer": 1.0,
            "ratio": mine["reads"],
            "bar": "<= 1",
            "unit": "loads",
            "ok": mine["reads"] <= 1,
        },
    ]
    return rows + ([] if theirs is None else _theirs(chunks, mine, theirs))


def _theirs(chunks: int, mine: dict[str, float], theirs: dict[str, float]) -> list[dict[str, Any]]:
    """The peer against raw, in its own process: shown, held to nothing."""
    return [
        {
            "name": f"ag-ui-adk: {chunks:,} chunks, CPU to raw run_async",
            "ours": theirs["events"],
            "peer": theirs["raw"],
            "ratio": theirs["events_ratio"],
            "bar": None,
            "unit": "s",
            "ok": None,
        },
        {
            "name": "loads of the session a turn, ours to ag-ui-adk's",
            "ours": mine["reads"],
            "peer": theirs["reads"],
            "ratio": mine["reads"] / theirs["reads"] if theirs["reads"] else 0.0,
            "bar": None,
            "unit": "loads",
            "ok": None,
        },
    ]
