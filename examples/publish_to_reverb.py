"""Publishing a run to Laravel Reverb, Pusher or soketi: the same signed HTTP API for all three.

    REVERB_URL=http://127.0.0.1:8080 python examples/publish_to_reverb.py      your Reverb; settings as in Laravel's .env

Without REVERB_URL it starts a hub of its own, which takes the same requests.

Install: `pip install "runcast[cli]"`.

Look at: `stats()`, which counts what was sent, merged and refused.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from ag_ui.core import (
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)

from runcast.broadcast import Broadcaster, Hub, PusherPublisher

APP_ID = os.environ.get("REVERB_APP_ID", "1001")
KEY = os.environ.get("REVERB_APP_KEY", "app-key")
SECRET = os.environ.get("REVERB_APP_SECRET", "app-secret")


async def main(url: str) -> None:
    publisher = PusherPublisher(
        url, APP_ID, KEY, SECRET
    )  # Reverb's limit of 10,000 bytes a request is the default
    broadcaster = Broadcaster(publisher)
    tell = broadcaster.sink("demo")  # a callable for events; browsers listen on private-agent.demo
    tell(RunStartedEvent(thread_id="demo", run_id="r1"))
    tell(TextMessageStartEvent(message_id="m1"))
    for word in ("Hello", "from", "Python."):
        tell(TextMessageContentEvent(message_id="m1", delta=word + " "))
    tell(TextMessageEndEvent(message_id="m1"))
    tell(RunFinishedEvent(thread_id="demo", run_id="r1"))
    await broadcaster.flush(10)
    print(broadcaster.stats())
    await broadcaster.aclose()


@asynccontextmanager
async def own_hub() -> AsyncIterator[str]:
    server = uvicorn.Server(uvicorn.Config(Hub(APP_ID, KEY, SECRET).asgi(), port=0, log_level="warning"))
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110  uvicorn has a flag, no event
        await asyncio.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    await serving


async def somewhere() -> None:
    url = os.environ.get("REVERB_URL")
    if url:
        await main(url)
        return
    async with own_hub() as url:
        await main(url)


if __name__ == "__main__":
    asyncio.run(somewhere())
