"""The demo's worker node: runs the agent, and may be killed at any moment.

Started by `desk.py` as `python -m runcast.app.demo.worker FOLDER KIND PACE`; ends when its standard input closes.
Knows the agent and the log; does not know HTTP.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import warnings
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from runcast.app.demo.shared import LEASE_MS, log_url
from runcast.app.host.cast import Cast


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


async def main(folder: Path, kind: str, pace: float) -> None:
    """Work until the process that started this one closes the pipe, or ends."""
    pipe = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(pipe), sys.stdin)
    async with (
        agent(kind, folder, pace) as it,
        Cast.open(
            log_url(folder),
            agents=[it],
            watch=False,
            lease_ms=LEASE_MS,
        ) as cast,
    ):
        print("ready", flush=True)
        await pipe.read()
        await cast.aclose(grace=1.0)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the frameworks' warnings about their own experiments
    logging.getLogger("runcast").setLevel(logging.CRITICAL)
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
