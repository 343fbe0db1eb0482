"""The Echo page of the examples in a real browser: a private channel, a cut line, and everything that was missed."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from runcast.broadcast import Hub
from tests.conftest import missing
from tests.e2e.browser import MISSING, browsing, program
from tests.e2e.pusher import HERE, node
from tests.e2e.stage import a_hub, by_uvicorn, envelope, port_of
from tests.e2e.wire import Wire
from tests.house.tree import ROOT

SEQS = "[...document.querySelectorAll('#log li')].map((each) => each.value)"
LINE = "document.getElementById('line').textContent"


def app(hub: Hub, folder: Path) -> FastAPI:
    """The example's app, with the libraries that npm installed."""
    for name in ("pusher-js/dist/web/pusher.min.js", "laravel-echo/dist/echo.iife.js"):
        shutil.copy(HERE / "node_modules" / name, folder)
    it = FastAPI()
    it.mount("/live", hub.asgi())
    it.mount("/assets", StaticFiles(directory=folder))

    @it.get("/")
    async def page() -> FileResponse:
        return FileResponse(ROOT / "examples" / "echo.html")

    return it


async def publish(hub: Hub, first: int, last: int) -> None:
    await hub.publish("private-agent.demo", [envelope(n, session_id="demo") for n in range(first, last + 1)])


async def test_echo_in_a_browser_misses_nothing(tmp_path: Path):
    node()
    if program() is None:
        missing(MISSING)
    hub = a_hub(
        authorize=lambda user, session_id: (user, session_id) == ("Bearer ann-token", "demo"),
        identify=lambda headers: headers.get("authorization"),
    )
    async with by_uvicorn(app(hub, tmp_path)) as server, Wire(port_of(server)) as wire, browsing() as browser:
        url = f"http://127.0.0.1:{wire.port}/"
        tab = await browser.tab(url)
        stranger = await browser.tab(url + "?token=bob-token")
        await tab.until(f"{LINE} === 'connected'")
        await until(lambda: hub.occupied() == {"private-agent.demo": 1})
        await stranger.until(f"{LINE}.startsWith('refused')")
        await publish(hub, 1, 3)
        await tab.until(f"{SEQS}.length === 3")

        wire.refusing = True
        wire.cut()
        await until(lambda: hub.stats()["connections"] == 0)
        await publish(hub, 4, 9)
        wire.refusing = False
        await tab.until(f"{SEQS}.length === 9")
        await publish(hub, 10, 10)
        await tab.until(f"{SEQS}.length === 10")
        await tab.shows(SEQS, list(range(1, 11)))
        await stranger.shows(SEQS, [])
        assert hub.stats()["recovered"] == 1
        assert tab.errors == []


async def until(so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not so():  # noqa: ASYNC110  the hub has numbers, no events
            await asyncio.sleep(0.02)
