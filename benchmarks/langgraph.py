"""What an adapter adds to a LangGraph run: per token, per run, and in bytes; the official peer measured beside it.

Ours runs in a fresh process, as the peer does, with nothing frozen. The peer gets an environment of its own in `.venv-peers/`, made when it is first asked for; without a network its
rows are left out.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonpatch
from ag_ui.core import Event, RunAgentInput, UserMessage

from benchmarks._langgraph_load import RESULT, STEPS, compared, looking_up, raw, talking, writing
from runcast.adapters.langgraph import LangGraphAdapter
from runcast.slim.wire.codec import encode

ROOT = Path(__file__).resolve().parents[1]
PEER = ("ag-ui-langgraph==0.0.47", "fastapi", "langchain")
PEER_NAME = "ag-ui-langgraph 0.0.47"


def asks(thread: str) -> RunAgentInput:
    return RunAgentInput(
        thread_id=thread, run_id=f"run-{thread}", messages=[UserMessage(id=f"u-{thread}", content="hi")]
    )


async def ours(graph: Any, thread: str, *, encoded: bool = False) -> None:
    async for event in LangGraphAdapter(graph).run(asks(thread)):
        if encoded:
            encode(event)


async def events_of(graph: Any, thread: str) -> list[Event]:
    return [event async for event in LangGraphAdapter(graph).run(asks(thread))]


async def measured(tokens: int, rounds: int, runs: int) -> dict[str, float]:
    long, short = talking(tokens), talking(1)

    async def many(way: Any, name: str, at: int) -> None:
        for each in range(runs):
            await way(short, f"{name}{at}-{each}")

    return await compared(
        {
            "raw": lambda at: raw(long, f"raw{at}"),
            "events": lambda at: ours(long, f"events{at}"),
            "encoded": lambda at: ours(long, f"encoded{at}", encoded=True),
            "raw_runs": lambda at: many(raw, "raw", at),
            "runs": lambda at: many(ours, "run", at),
        },
        rounds,
    )


def state_of(events: list[Event]) -> Any:
    """The state a client ends with."""
    state: Any = {}
    for event in events:
        if event.type == "STATE_SNAPSHOT":
            state = event.snapshot
        elif event.type == "STATE_DELTA":
            patch = [each.model_dump(mode="json", by_alias=True) for each in event.delta]
            state = jsonpatch.apply_patch(state, patch)
    return state


async def sizes() -> dict[str, float]:
    graph = writing(STEPS)
    told = await events_of(graph, "state")
    held = (await graph.aget_state({"configurable": {"thread_id": "state"}})).values
    same = state_of(told) == {key: value for key, value in held.items() if key != "messages"}
    found = await events_of(looking_up(), "result")
    return {
        "state_bytes": sum(len(encode(event)) for event in told),
        "state_same": float(same),
        "result_bytes": sum(len(encode(event)) for event in found),
    }


def peer(tokens: int, rounds: int, runs: int, *, install: bool = True) -> dict[str, float] | None:
    """The peer's figures; None where it cannot be had, or is not there and may not be installed."""
    home = ROOT / ".venv-peers" / "langgraph"
    python = home / "bin" / "python"
    try:
        if not python.exists() and not install:
            return None
        if not python.exists():
            home.parent.mkdir(exist_ok=True)
            (home.parent / ".gitignore").write_text("*\n")
            subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, capture_output=True)
            pip = [str(python), "-m", "pip", "install", "--quiet", *PEER]
            subprocess.run(pip, check=True, capture_output=True, timeout=600)
        asked = [str(python), "-m", "benchmarks._langgraph_peer", *map(str, (tokens, rounds, runs))]
        answer = subprocess.run(
            asked, check=True, capture_output=True, cwd=ROOT, text=True, env={**os.environ}
        )
    except (OSError, subprocess.SubprocessError) as error:
        print(f"{PEER_NAME} cannot be measured here: {error}", file=sys.stderr)
        return None
    found: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return found


def row(
    name: str, mine: float, other: float, unit: str, bar: str = "", ok: bool | None = None
) -> dict[str, Any]:
    ratio = mine / other if other else None
    return {"name": name, "ours": mine, "peer": other, "ratio": ratio, "bar": bar, "unit": unit, "ok": ok}


def run(quick: bool) -> list[dict[str, Any]]:
    tokens, rounds, runs = (5_000, 3, 10) if quick else (5_000, 15, 60)
    command = [sys.executable, "-m", "benchmarks.langgraph", *map(str, (tokens, rounds, runs))]
    ran = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, timeout=300)
    found: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    theirs = peer(tokens, rounds, runs, install=not quick)
    size = asyncio.run(sizes())
    rows = [
        _per_token(found, "events", 1.18),
        _per_token(found, "encoded", 1.22),
        _per_run(found, runs),
        row(
            f"{STEPS} steps over a 100 KB document: bytes of events, the client's state the graph's",
            size["state_bytes"],
            theirs["state_bytes"] if theirs else 0,
            "bytes",
            "<= 250,000 bytes",
            size["state_bytes"] <= 250_000 and size["state_same"] == 1,
        ),
        row(
            "a tool result of 34 KB: bytes of events, against the result",
            size["result_bytes"],
            RESULT,
            "bytes",
            "<= 2.2",
            size["result_bytes"] <= 2.2 * RESULT,
        ),
    ]
    return rows + (_peer_rows(theirs, runs) if theirs else [])


def _per_token(found: dict[str, float], way: str, bar: float) -> dict[str, Any]:
    mine, other = found[way] * 1e3, found["raw"] * 1e3
    return row(
        f"5,000 tokens, {way}, against raw astream", mine, other, "CPU ms", f"<= {bar}", mine / other <= bar
    )


def _per_run(found: dict[str, float], runs: int) -> dict[str, Any]:
    mine, other = found["runs"] / runs * 1e3, found["raw_runs"] / runs * 1e3
    return row(
        "a run of one token, against raw", mine, other, "CPU ms", "<= 1.5 ms more", mine - other <= 1.5
    )


def _peer_rows(theirs: dict[str, float], runs: int) -> list[dict[str, Any]]:
    """The peer against raw, in its own process: shown, held to nothing."""
    return [
        row(f"{PEER_NAME}: 5,000 tokens, events", theirs["events"] * 1e3, theirs["raw"] * 1e3, "CPU ms"),
        row(f"{PEER_NAME}: 5,000 tokens, encoded", theirs["encoded"] * 1e3, theirs["raw"] * 1e3, "CPU ms"),
        row(
            f"{PEER_NAME}: a run of one token",
            theirs["runs"] / runs * 1e3,
            theirs["raw_runs"] / runs * 1e3,
            "CPU ms",
        ),
        row(f"{PEER_NAME}: a tool result of 34 KB", theirs["result_bytes"], RESULT, "bytes"),
    ]


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measured(*map(int, sys.argv[1:4])))))
