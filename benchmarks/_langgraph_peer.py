"""The peer's half, run by an interpreter that has `ag-ui-langgraph` and not runcast; prints figures as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from typing import Any

from ag_ui.core import RunAgentInput, UserMessage
from ag_ui.encoder import EventEncoder
from ag_ui_langgraph import LangGraphAgent

from benchmarks._langgraph_load import STEPS, compared, looking_up, raw, talking, writing


def asks(thread: str) -> RunAgentInput:
    return RunAgentInput(
        thread_id=thread,
        run_id=f"run-{thread}",
        state={},
        messages=[UserMessage(id=f"u-{thread}", content="hi")],
        tools=[],
        context=[],
        forwarded_props={},
    )


async def run(graph: Any, thread: str, *, encoded: bool = False) -> int:
    agent = LangGraphAgent(name="peer", graph=graph, emit_raw_events=False)
    encoder = EventEncoder()
    size = 0
    async for event in agent.run(asks(thread)):
        if encoded:
            size += len(encoder.encode(event)) - len("data: \n\n")
    return size


async def main(tokens: int, rounds: int, runs: int) -> dict[str, float]:
    long, short = talking(tokens), talking(1)

    async def many(way: Any, name: str, at: int) -> None:
        for each in range(runs):
            await way(short, f"{name}{at}-{each}")

    cpu = await compared(
        {
            "raw": lambda at: raw(long, f"raw{at}"),
            "events": lambda at: run(long, f"events{at}"),
            "encoded": lambda at: run(long, f"encoded{at}", encoded=True),
            "raw_runs": lambda at: many(raw, "raw", at),
            "runs": lambda at: many(run, "run", at),
        },
        rounds,
    )
    sizes = {
        "state_bytes": await run(writing(STEPS), "state", encoded=True),
        "result_bytes": await run(looking_up(), "result", encoded=True),
    }
    return {**cpu, **sizes}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(asyncio.run(main(*map(int, sys.argv[1:4])))))
