"""The page while processes die under it: the worker by kill -9, the whole host by a restart."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from runcast.app import AccessPolicy, Cast
from runcast.app.demo.desk import Desk
from runcast.app.demo.headless import history, spoken
from runcast.app.demo.watch import in_order
from runcast.app.serve import serving
from runcast.broadcast import BroadcastConfig
from tests.app.agents import Gated
from tests.conftest import missing
from tests.e2e.browser import MISSING, Browser, browsing, program
from tests.e2e.test_page import AT_EASE, SEEN

# Nothing moves any more, but for what turns for ever.
SETTLED = "Promise.all(document.getAnimations().filter((each) => each.effect.getTiming().iterations === 1).map((each) => each.finished)).then(() => true)"

pytestmark = [pytest.mark.server, pytest.mark.slow]


@pytest_asyncio.fixture
async def browser() -> AsyncIterator[Browser]:
    if program() is None:
        missing(MISSING)
    async with browsing() as it:
        yield it


async def test_the_worker_is_killed_and_the_page_goes_on(browser: Browser, tmp_path: Path) -> None:
    desk = Desk(tmp_path, pace=0.01)
    async with serving(desk.cast, desk.cast.asgi()) as url:
        await desk.start()
        tab = await browser.tab(f"{desk.cast.access.first_url(url)}&thread=night")
        await tab.shows("location.search", "?thread=night")  # the token is in a cookie now
        await desk.ask("night")
        await tab.until("runcast.view.items.some((each) => each.kind === 'tool')")
        await tab.shot("live")
        await desk.worker.kill()
        await tab.until("document.getElementById('resume') !== null")  # the log knows when the lease is over
        await tab.shows("document.getElementById('status').textContent", "Cut short")
        await desk.worker.start()
        await tab.press("Resume")
        await tab.until("runcast.view.status === 'interrupted'", 30)
        await tab.click("#tab-runs")
        await tab.until(f"document.querySelectorAll('#runs .branch').length === 2 && {AT_EASE}")
        await tab.click("#tab-timeline")
        await tab.size(1360, 900)
        await tab.js(SETTLED)
        await tab.shot("resumed")
        await tab.press("Yes")
        await tab.until(f"runcast.view.status === 'completed' && {AT_EASE}")
        late = await browser.tab(f"{desk.cast.access.first_url(url)}&thread=night")
        await late.until(f"runcast.view.status === 'completed' && {AT_EASE}")
        assert await tab.js(SEEN) == await late.js(SEEN)
        assert tab.errors == late.errors == []
        # What counts on the page is what the thread says, each thing once.
        shown = await tab.js(
            "runcast.view.items.filter((each) => each.kind === 'text' && !each.superseded).map((each) => each.text)"
        )
        thread = await spoken(desk.cast, "night")
        assert shown == [text for role, text in thread if role == "assistant" and text != "None"]
        assert len(in_order(await history(desk.cast, "night"))) > 20
        assert await tab.js("runcast.view.items.filter((each) => each.state === 'cut short').length") > 0
        await desk.worker.end()


async def test_the_host_restarts_and_the_page_is_back(browser: Browser, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    gated = Gated(30)
    access = AccessPolicy(token="the-same-for-both-hosts")
    first = Cast.open(url, agents=[gated], config=BroadcastConfig.debug(), access=access)
    async with serving(first, first.asgi(), port=port) as address:
        tab = await browser.tab(f"{access.first_url(address)}&thread=t1")
        await first.say("t1", "count")
        gated.open(10)
        await tab.until("runcast.view.items.some((each) => each.text?.includes('9 '))")
    await tab.until("runcast.link.state === 'connecting'")
    gated.open()
    second = Cast.open(url, agents=[gated], config=BroadcastConfig.debug(), access=access)
    async with serving(second, second.asgi(), port=port):
        await tab.until(AT_EASE)
        await asyncio.sleep(0)
        run = await second.say("t1", "again")
        await run.result()
        await tab.until(f"runcast.view.status === 'completed' && {AT_EASE}")
        late = await browser.tab(f"{access.first_url(address)}&thread=t1")
        await late.until(f"runcast.view.status === 'completed' && {AT_EASE}")
        assert await tab.js(SEEN) == await late.js(SEEN)
        await tab.shows("runcast.view.missed", 0)
