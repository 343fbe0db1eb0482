"""A run as long as wanted through a whole `Cast`, in a process of its own; prints its memory on the way as JSON.

Run as `python -m benchmarks._pipe_load FOLDER SIZE SIZE …`. One run, told by a plain generator, so that no framework's
own keeping is in the figure: what grows is runcast's. Messages are of 500 deltas; the log is SQLite, redaction is on.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from ag_ui.core import (
    Event,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)

from benchmarks._hub_peer import resident
from benchmarks.wire import WORDS
from runcast.app import Cast

DELTAS = 500


class Long:
    """Speaks for so many events, and keeps what the process weighs at each of the sizes."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self.weights: dict[int, int] = {}

    async def __call__(self, input: RunAgentInput) -> AsyncIterator[Event]:
        yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
        for at in range(max(self.sizes)):
            message, place = f"m{at // DELTAS}", at % DELTAS
            if place == 0:
                yield TextMessageStartEvent(message_id=message, role="assistant")
            if place < DELTAS - 1:
                yield TextMessageContentEvent(message_id=message, delta=f"{WORDS[at % len(WORDS)]} ")
            else:
                yield TextMessageEndEvent(message_id=message)
            await asyncio.sleep(0)
            if at + 1 in self.sizes:
                await asyncio.sleep(0.2)  # what is on its way to the disk gets there
                self.weights[at + 1] = resident()
        yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id)


async def main(folder: Path, sizes: Sequence[int]) -> dict[str, Any]:
    agent = Long(sizes)
    async with Cast.open(f"sqlite:///{folder}/long.db", agents=[agent]) as cast:
        began = time.process_time()
        given = RunAgentInput(thread_id="t", run_id="r", messages=[])
        result = await (await cast.start(agent, given)).result()
        taken = time.process_time() - began
        if result.status != "completed":
            raise RuntimeError(f"the long run ended as {result.status}: {result.error}")
        kept = (await cast.log.archive.size("t")).events
    return {
        "weights": agent.weights,
        "seconds": taken,
        "events": result.last_seq,
        "json": kept / result.last_seq,  # bytes an event in the log
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(Path(sys.argv[1]), [int(each) for each in sys.argv[2:]]))))
