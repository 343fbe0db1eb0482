"""The peer's half, run by an interpreter that has `ag-ui-adk` and not runcast; prints figures as JSON."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import warnings

from ag_ui.core import RunAgentInput, UserMessage
from ag_ui_adk import ADKAgent

from benchmarks._adk_load import CountedSessions, app, compared, raw, runner


def asks(thread: str, run: str = "r") -> RunAgentInput:
    return RunAgentInput(
        thread_id=thread,
        run_id=f"{run}-{thread}",
        state={},
        messages=[UserMessage(id=f"u-{run}-{thread}", content="hi")],
        tools=[],
        context=[],
        forwarded_props={},
    )


async def main(chunks: int, rounds: int) -> dict[str, float]:
    mine = runner(chunks)
    agent = ADKAgent.from_app(app(chunks), user_id="user")

    async def events(thread: str) -> None:
        async for _ in agent.run(asks(thread)):
            pass

    cpu = await compared({"raw": lambda it: raw(mine, it), "events": events}, rounds)
    sessions = CountedSessions()
    counted = ADKAgent.from_app(app(1), user_id="user", session_service=sessions)
    for turn in ("1", "2"):
        sessions.reads = 0
        async for _ in counted.run(asks("t", turn)):
            pass
    return {**cpu, "reads": float(sessions.reads)}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    print(json.dumps(asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))))
