"""The demo on its page: a person kills the worker there and brings it back, sees what it costs, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from runcast.app.demo.controls import DemoSite
from runcast.app.demo.desk import Desk
from runcast.app.serve import serving
from tests.conftest import missing
from tests.e2e.browser import MISSING, browsing, program
from tests.e2e.test_page import AT_EASE
from tests.e2e.test_page_everywhere import findings

pytestmark = [pytest.mark.server, pytest.mark.slow]

GROWING = "runcast.view.items.some((each) => each.kind === 'text' && each.complete === false)"
# In the middle of the resumed run, or at its question where that was sooner than a look.
GROWN = "runcast.view.items.some((each) => each.kind === 'text' && each.run === runcast.view.run && each.complete === false && each.text.length > 60)"
RESUMED = (
    f"(runcast.view.runs[runcast.view.run].attempt > 1 && {GROWN}) || runcast.view.status === 'interrupted'"
)
STRUCK = "document.querySelectorAll('.broken s, .struck s').length"


async def test_a_person_kills_the_worker_on_the_page_and_resumes_there(tmp_path: Path) -> None:
    if program() is None:
        missing(MISSING)
    desk = Desk(tmp_path, pace=0.15)
    async with browsing() as browser, serving(desk.cast, DemoSite(desk)) as url:
        await desk.start()
        tab = await browser.tab(f"{desk.cast.access.first_url(url)}&thread=night")
        await desk.watched()
        await desk.ask("night")
        await tab.until("runcast.view.items.some((each) => each.kind === 'text' && each.text.length > 60)")
        await tab.press("Kill the worker")
        await tab.until("document.querySelector('#demo[data-dead=true]') !== null")
        assert not desk.worker.alive
        await tab.until("document.querySelector('.banner.loud') !== null")
        if await tab.js(GROWING):  # the worker died inside a message
            assert await tab.js(STRUCK) > 0
        assert (await tab.js("document.getElementById('lost').textContent")).startswith("0 of ")
        for width, dark in ((390, False), (390, True), (1360, True), (1360, False)):
            await tab.size(width, 900, dark=dark)
            assert await findings(tab) == []
            assert await tab.js("document.documentElement.scrollWidth") <= width
            await tab.shot(f"killed-{width}-{'dark' if dark else 'light'}")
        await tab.click("#demo-resume")
        await tab.until(
            "document.getElementById('demo-kill') !== null && !document.querySelector('.banner.loud')"
        )
        assert desk.worker.alive
        await tab.until(RESUMED)
        await tab.shot("page")  # the README's
        await tab.until(f"runcast.view.status === 'interrupted' && {AT_EASE}")
        await tab.press("Yes")
        await tab.until(f"runcast.view.status === 'completed' && {AT_EASE}")
        thread = await desk.log.thread("night")
        assert thread is not None
        await tab.until(
            f"document.getElementById('lost').textContent === '0 of {thread.last_seq} events lost'"
        )
        await tab.until("runcast.view.items.some((each) => each.state === 'cut short')")
        assert tab.errors == []
        await desk.worker.end()


async def test_the_controls_ask_for_the_token_and_for_the_right_method(tmp_path: Path) -> None:
    desk = Desk(tmp_path, pace=0.001)
    async with serving(desk.cast, DemoSite(desk)) as url:
        await desk.start()
        async with httpx.AsyncClient(base_url=url, timeout=60) as http:
            assert (await http.get("/demo")).status_code == 403
            assert (await http.post("/demo/kill")).status_code == 403
            http.headers["authorization"] = f"Bearer {desk.cast.access.token}"
            assert (await http.get("/demo")).json() == {"worker": desk.worker.pid}
            assert (await http.get("/page.json")).json()["demo"] is True
            elsewhere = await http.post("/demo/kill", headers={"origin": "https://elsewhere.example"})
            assert elsewhere.status_code == 403
            assert (await http.get("/demo/kill")).status_code == 405
            assert desk.worker.alive
            assert (await http.post("/demo/kill")).json() == {"worker": None}
            both = (await http.post("/demo/resume")).json()
            assert both == {"worker": desk.worker.pid}
        await desk.worker.end()
