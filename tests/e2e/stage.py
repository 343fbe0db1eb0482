"""A hub in front of its users: served by each skin, with a wire in between, and a log behind it.

Knows how to start the servers in this process; does not know what a right answer is.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount
from websockets.asyncio.client import ClientConnection, connect

from runcast.broadcast import Envelope, Hub, HubLimits, Position, Replay, channel_for
from tests.e2e.wire import Wire

SKINS = ("websockets", "asgi", "starlette", "fastapi")
APP = ("1001", "app-key", "app-secret")
EPOCH = "k3f9x2"


class Log:
    """A thread's history as the hub asks for it: one envelope an entry, or one for several where they may travel so."""

    def __init__(self, epoch: str = EPOCH, *, merge: int = 1, first: int = 1) -> None:
        self.epoch = epoch
        self.merge = merge  # entries that one envelope of a replay tells of
        self.first = first  # the oldest entry that is still there
        self.head = 0
        self.asked: list[tuple[Position, int | None]] = []
        self.delay = 0.0
        self.broken = False

    def next(self, session_id: str = "s1", *, entries: int = 1, **payload: Any) -> Envelope:
        """The next envelope of the live stream; the log has its entries from now on."""
        self.head += entries
        return envelope(self.head, self.head - entries, session_id=session_id, epoch=self.epoch, **payload)

    async def history(self, session_id: str, position: Position, *, until: int | None, most: int) -> Replay:
        self.asked.append((position, until))
        await asyncio.sleep(self.delay)
        if self.broken:
            raise OSError("the database is gone")
        other = position.epoch not in ("", self.epoch)
        if other or position.offset > self.head or position.offset < self.first - 1:
            return Replay(False, self.epoch, self.head)
        end = self.head if until is None else min(until, self.head)
        edges = [*range(position.offset, end, self.merge), max(position.offset, end)]
        pairs = list(pairwise(edges))
        if len(pairs) > most:
            return Replay(False, self.epoch, self.head)
        found = [
            envelope(seq, prev, session_id=session_id, epoch=self.epoch) for prev, seq in pairs if seq > prev
        ]
        return Replay(True, self.epoch, self.head, found)


def envelope(
    seq: int,
    prev: int | None = None,
    *,
    session_id: str = "s1",
    epoch: str = EPOCH,
    part: Any = None,
    **payload: Any,
) -> Envelope:
    """One envelope; it follows the entry before it unless told otherwise."""
    return Envelope(
        "agent.custom", session_id, "r1", "2026-01-16T10:05:00.123Z", seq, seq - 1 if prev is None else prev, epoch,
        {"n": seq, **payload}, part,
    )  # fmt: skip


class Stage:
    """A hub that is being served."""

    def __init__(self, hub: Hub, skin: str, wire: Wire, http: uvicorn.Server, path: str) -> None:
        self.hub = hub
        self.skin = skin
        self.wire = wire
        self.port = wire.port  # sockets, through the wire
        self.http = port_of(http)  # the HTTP API and the auth endpoint
        self.uvicorn = http
        self.path = path  # where a framework mounted the hub

    def connect(self, target: str = "/app/app-key?protocol=7", **options: Any) -> connect:
        return connect(f"ws://127.0.0.1:{self.port}{self.path}{target}", **options)

    def plain(self, session_id: str, *, after: int | None = None, epoch: str = "", **options: Any) -> connect:
        query = f"/ws?channel={quote(channel_for(session_id))}"
        query += "" if after is None else f"&after={after}&epoch={epoch}"
        return self.connect(query, **options)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http}{self.path}"

    @property
    def for_echo(self) -> dict[str, Any]:
        """Where Echo finds the hub."""
        return {"port": self.port, "http": self.http, "path": self.path}

    async def publish(self, envelopes: Sequence[Envelope]) -> None:
        for each in envelopes:
            await self.hub.publish(channel_for(each.session_id), [each])

    async def quiet(self, connections: int = 0) -> None:
        """Wait until the hub has so many connections."""
        await self.until(lambda: self.hub.stats()["connections"] == connections)

    async def until(self, so: Callable[[], bool], seconds: float = 20.0) -> None:
        """Wait until something is so."""
        for _ in range(int(seconds / 0.01)):
            if so():
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"it did not become so: {self.hub.stats()}")


def everybody(user: object, session_id: str) -> bool:
    return True


def a_hub(**options: Any) -> Hub:
    return Hub(*APP, **{"authorize": everybody, **options})


def limits(**changes: Any) -> HubLimits:
    return HubLimits(**changes)


@asynccontextmanager
async def stage(skin: str = "websockets", hub: Hub | None = None, **options: Any) -> AsyncIterator[Stage]:
    """Serve a hub by a skin. The websockets skin has no HTTP API, so the ASGI skin serves that beside it."""
    hub = hub or a_hub(**options)
    mounts = {"starlette": "/live", "fastapi": "/live"}
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(by_uvicorn(_app(skin, hub, mounts.get(skin, ""))))
        sockets = port_of(http)
        if skin == "websockets":
            server = await stack.enter_async_context(hub.serve(grace=1.0))
            sockets = server.port
        wire = await stack.enter_async_context(Wire(sockets))
        yield Stage(hub, skin, wire, http, mounts.get(skin, ""))


def _app(skin: str, hub: Hub, path: str) -> Any:
    if skin == "starlette":
        return Starlette(routes=[Mount(path, hub.asgi())])
    if skin == "fastapi":
        app = FastAPI()
        app.mount(path, hub.asgi())
        return app
    return hub.asgi(metrics=True)


def port_of(server: uvicorn.Server) -> int:
    """Where it listens."""
    port: int = server.servers[0].sockets[0].getsockname()[1]
    return port


class Quiet(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # the test runner's signals are its own


@asynccontextmanager
async def by_uvicorn(app: Any) -> AsyncIterator[uvicorn.Server]:
    """Serve any ASGI app on a free port of the loopback while the block runs."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, log_level=logging.CRITICAL, lifespan="auto", timeout_graceful_shutdown=1, access_log=False
    )
    server = Quiet(config)
    task = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started and not task.done():  # noqa: ASYNC110  uvicorn has a flag, no event
        await asyncio.sleep(0.005)
    try:
        yield server
    finally:
        server.should_exit = True
        await task


async def frames(websocket: ClientConnection, count: int, seconds: float = 60.0) -> list[str]:
    """The next so many text frames."""
    async with asyncio.timeout(seconds):
        return [str(await websocket.recv()) for _ in range(count)]
