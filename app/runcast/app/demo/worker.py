"""The process that owns the runs: it does what its desk asks for, and may be killed at any moment.

Started by `desk.py` as `python -m runcast.app.demo.worker FOLDER KIND PACE`. One JSON object a line comes in, one goes
out for each. Knows the agent and the log; does not know HTTP.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import warnings
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from runcast.app.cast import Cast
from runcast.app.demo.shared import LEASE_MS, log_url
from runcast.app.errors import AppError
from runcast.slim import Redactor, RunLog, SlimError, open_store


@asynccontextmanager
async def agent(kind: str, folder: Path, pace: float) -> AsyncGenerator[Any]:
    """The agent of this framework, with its own memory in the folder."""
    if kind == "adk":
        from runcast.app.demo.adk import build as build_adk

        yield build_adk(folder, pace=pace)
        return
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    from runcast.app.demo.graph import build

    async with AsyncSqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
        yield build(saver, pace=pace)


async def do(cast: Cast, asked: dict[str, Any]) -> dict[str, Any]:
    """One order."""
    given = asked["given"]
    match asked["do"]:
        case "say":
            run = await cast.say(given["thread_id"], given["text"], from_run=given.get("from_run"))
        case "resume":
            run = await cast.resume(given["thread_id"], given.get("answers"))
        case "stop":
            await cast.stop(given["run_id"], given.get("hard", False))
            return {}
        case "recover":
            found = await cast.recover("continue")
            return {"found": [run.run_id for _, run in found]}
        case other:
            raise AppError(f"the worker cannot {other}")
    return {"thread_id": run.thread_id, "run_id": run.run_id}


async def answer(cast: Cast, line: bytes) -> None:
    """Do what a line says, and say what came of it."""
    asked = json.loads(line)
    try:
        told: dict[str, Any] = {"ok": await do(cast, asked)}
    except (AppError, SlimError) as error:
        told = {"error": type(error).__name__, "text": str(error)}
    sys.stdout.write(json.dumps({"id": asked["id"], **told}) + "\n")
    sys.stdout.flush()


async def main(folder: Path, kind: str, pace: float) -> None:
    """Work until nobody gives orders any more."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    redactor = Redactor()
    log = RunLog(open_store(log_url(folder)), redactor=redactor, lease_ms=LEASE_MS)
    async with agent(kind, folder, pace) as adapter, Cast(log, redactor=redactor, agents=[adapter]) as cast:
        sys.stdout.write('{"ready": true}\n')
        sys.stdout.flush()
        tasks: set[asyncio.Task[None]] = set()
        while line := await reader.readline():
            task = asyncio.create_task(answer(cast, line))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await cast.aclose(grace=1.0)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # what frameworks think of their own experiments is no part of the show
    logging.getLogger("runcast").setLevel(logging.CRITICAL)
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
