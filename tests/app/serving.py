"""An app in front of its users: served by uvicorn in this process, asked over real sockets."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn

from runcast.app import Cast
from runcast.app.http.openapi import ApiRoute
from tests.app.agents import asker, parrot, tooled


class _Quiet(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # the test runner's signals are its own


@dataclass
class Served:
    """Where it is, and what it serves."""

    url: str
    cast: Cast
    http: httpx.AsyncClient
    server: uvicorn.Server


def anyone(user: Any, thread_id: str) -> bool:
    """An `authorize` for tests that are about something else."""
    return True


@asynccontextmanager
async def serving(
    cast: Cast | None = None, *, app: Any = None, path: str = "", local: bool = False, **options: Any
) -> AsyncIterator[Served]:
    """Serve a cast, for `anyone` where nothing else is given; a local host's token is among the client's headers."""
    if not local:
        options.setdefault("authorize", anyone)
    cast = cast or Cast.open("memory://", agents=[parrot, asker, tooled])
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    config = uvicorn.Config(
        app or cast.asgi(**options), log_level=logging.CRITICAL, timeout_graceful_shutdown=1, access_log=False
    )
    server = _Quiet(config)
    task = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started and not task.done():  # noqa: ASYNC110  uvicorn has a flag, no event
        await asyncio.sleep(0.005)
    url = f"http://127.0.0.1:{port}{path}"
    try:
        headers = {"authorization": f"Bearer {cast.access.token}"} if cast.access.local else {}
        async with httpx.AsyncClient(base_url=url, timeout=20, headers=headers) as http:
            yield Served(url, cast, http, server)
    finally:
        server.should_exit = True
        await task
        await cast.aclose(grace=0.2)


def run_input(text: str = "hello you", *, thread: str = "t1", run: str = "r1", **more: Any) -> dict[str, Any]:
    """RunAgentInput as a client writes it."""
    return {
        "threadId": thread,
        "runId": run,
        "state": {},
        "messages": [{"id": f"u-{run}", "role": "user", "content": text}],
        "tools": [],
        "context": [],
        "forwardedProps": {},
        **more,
    }


def segments_of(route: ApiRoute) -> list[str]:
    """A route's path by its segments."""
    return [] if route.path == "/" else route.path.strip("/").split("/")


@dataclass
class Sent:
    """A server-sent event."""

    id: str
    event: dict[str, Any]


async def sent(response: httpx.Response) -> AsyncIterator[Sent]:
    """The events of a stream; comments are passed over."""
    found = ""
    async for line in response.aiter_lines():
        if line.startswith("id: "):
            found = line[4:]
        elif line.startswith("data: "):
            yield Sent(found, json.loads(line[6:]))
            found = ""


async def joined_id(host: Served, thread_id: str = "t1") -> str:
    """The position of a client that joins the thread now."""
    stream = {"accept": "text/event-stream"}
    async with host.http.stream("GET", f"/threads/{thread_id}/join", headers=stream) as response:
        return await anext(line[4:] async for line in response.aiter_lines() if line.startswith("id: "))


async def post_run(http: httpx.AsyncClient, agent: str = "parrot", **given: Any) -> list[Sent]:
    """Run an agent over HTTP and take all it says."""
    async with http.stream("POST", f"/agents/{agent}", json=run_input(**given)) as response:
        assert response.status_code == 200, await response.aread()
        return [each async for each in sent(response)]


async def over(cast: Cast, thread_id: str = "t1") -> None:
    """Wait until the thread's newest run has ended."""
    async with asyncio.timeout(60):
        while (await cast.log.runs(thread_id))[-1].status == "in_progress" or cast.active:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
