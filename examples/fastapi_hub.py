"""A hub inside a FastAPI app: sockets, the auth endpoint that Echo asks, and a run that is watched.

python examples/fastapi_hub.py --assets FOLDER     with pusher.min.js and echo.iife.js in FOLDER, then open the page
python examples/fastapi_hub.py --once              watches its own run over a WebSocket, prints it, and ends

Install: `pip install "runcast[cli]" fastapi`.

Look at: the page's position, with which a reload continues where it was.
"""
# run: --once

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import uvicorn
from ag_ui.core import (
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)
from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from websockets.asyncio.client import connect

from runcast.broadcast import Broadcaster, Hub, issue_token

USERS = {"Bearer ann-token": "ann", "Bearer bob-token": "bob"}
THREADS = {"demo": "ann"}  # who may watch which thread
SECRET = "app-secret"  # from your settings, as REVERB_APP_SECRET is


def identify(headers: Mapping[str, str]) -> str | None:
    """Who asks. Here by a bearer token; a session cookie or a JWT will do as well."""
    return USERS.get(headers.get("authorization", ""))


def authorize(user: object, session_id: str) -> bool:
    """Whether this user may watch this thread. Closed by default: without it nobody may."""
    return user is not None and THREADS.get(session_id) == user


hub = Hub("1001", "app-key", SECRET, identify=identify, authorize=authorize)
broadcaster = Broadcaster(hub)


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    await broadcaster.aclose()
    await hub.aclose()


app = FastAPI(lifespan=lifespan)
app.mount("/live", hub.asgi())  # /live/app/{key}, /live/ws, /live/broadcasting/auth, /live/apps/{id}/events


@app.get("/")
async def page() -> FileResponse:
    return FileResponse(Path(__file__).with_name("echo.html"))


@app.post("/run")
async def run(words: str = "Hello from a run that is watched.") -> dict[str, str]:
    """Stands for your agent: whatever it emits goes to the watchers."""
    tell = broadcaster.sink("demo")
    tell(RunStartedEvent(thread_id="demo", run_id="r1"))
    tell(TextMessageStartEvent(message_id="m1"))
    for word in words.split():
        tell(TextMessageContentEvent(message_id="m1", delta=word + " "))
        await asyncio.sleep(0.02)
    tell(TextMessageEndEvent(message_id="m1"))
    tell(RunFinishedEvent(thread_id="demo", run_id="r1"))
    return {"status": "told"}


async def serve(assets: str | None, port: int, *, once: bool) -> None:
    if assets:
        app.mount("/assets", StaticFiles(directory=assets))
    listening = socket.create_server(("127.0.0.1", port))
    port = listening.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    print(f"http://127.0.0.1:{port}/?thread=demo&token=ann-token", flush=True)
    if once:
        token = issue_token(SECRET, "demo", expires=int(time.time()) + 60)
        async with connect(f"ws://127.0.0.1:{port}/live/ws?session=demo&token={token}") as watching:
            print(await watching.recv())
            running = asyncio.create_task(run())
            while json.loads(text := str(await watching.recv()))["payload"].get("status") != "completed":
                print(text)
            await running
        server.should_exit = True
    await serving


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--assets", help="the folder with pusher.min.js and echo.iife.js")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--once", action="store_true")
    asked = parser.parse_args()
    asyncio.run(serve(asked.assets, asked.port, once=asked.once))
