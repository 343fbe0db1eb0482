"""The page as it looks while it shows the demo of either framework, to its question and to its end.

Pictures are kept where RUNCAST_SCREENSHOTS says; what is on them is checked in any case.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from runcast.app.demo import script
from runcast.app.demo.desk import Desk
from runcast.app.serve import serving
from tests.app.serving import anyone
from tests.conftest import missing
from tests.e2e.browser import MISSING, Browser, browsing, program
from tests.e2e.test_page import AT_EASE
from tests.e2e.test_page_restarts import SETTLED

pytestmark = [pytest.mark.server, pytest.mark.slow]


KINDS = "[...new Set(runcast.view.items.map((each) => each.kind))].sort().join()"


@pytest_asyncio.fixture
async def browser() -> AsyncIterator[Browser]:
    if program() is None:
        missing(MISSING)
    async with browsing() as it:
        yield it


@pytest.mark.parametrize("kind", ["langgraph", "adk"])
async def test_the_demo_is_shown_whole(kind: str, browser: Browser, tmp_path: Path) -> None:
    desk = Desk(tmp_path, kind, pace=0.005)
    async with serving(desk.cast, desk.cast.asgi(authorize=anyone)) as url:
        await desk.start()
        tab = await browser.tab(f"{url}/?thread=night-train", width=1360, height=860)
        await desk.ask("night-train")
        await tab.until(f"runcast.view.status === 'interrupted' && {AT_EASE}")
        await tab.until(f"document.querySelector('.said')?.textContent === {script.QUESTION!r}")
        await tab.click("#tab-runs")
        await tab.until("document.querySelectorAll('#runs li').length === 1")
        await tab.click("#tab-timeline")
        told = await tab.js(KINDS)
        assert set(told.split(",")) >= {"run", "step", "text", "reasoning", "tool", "interrupt"}
        await tab.js(SETTLED)
        for name, width, dark in (("light", 1360, False), ("dark", 1360, True), ("narrow", 390, False)):
            await tab.size(width, 860, dark=dark)
            assert await tab.js("document.documentElement.scrollWidth") <= width
            await tab.shot(f"{name}-{kind}")
        await tab.press("Yes")
        await tab.until(f"runcast.view.status === 'completed' && {AT_EASE}")
        await tab.until("[...document.querySelectorAll('.said')].at(-1).textContent === 'Yes'")
        await tab.size(1360, 2400)
        await tab.js(SETTLED)
        await tab.shot(f"done-{kind}")
        assert tab.errors == []
        await desk.worker.end()
