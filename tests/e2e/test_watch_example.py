"""The example of a page of one's own: `watch` shows a thread live, and again after the server was away."""

from __future__ import annotations

import runpy
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.app.serving import serving
from tests.conftest import missing
from tests.e2e.browser import MISSING, Browser, browsing, program
from tests.house.tree import ROOT

pytestmark = [pytest.mark.server, pytest.mark.slow]


@pytest_asyncio.fixture
async def browser() -> AsyncIterator[Browser]:
    if program() is None:
        missing(MISSING)
    async with browsing() as it:
        yield it


async def test_a_page_of_ones_own_shows_what_is_said(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    made = runpy.run_path(str(ROOT / "examples" / "app_watch.py"))
    made["cast"].access.use(authorize=lambda user, thread_id: True)
    async with serving(made["cast"], app=made["app"]) as host:
        tab = await browser.tab(f"{host.url}/")
        await tab.until("document.getElementById('line').textContent.startsWith('no run yet')")
        await tab.press("Say")
        await tab.until("document.getElementById('text').textContent === 'Hello from my own page '")
        late = await browser.tab(f"{host.url}/")
        await late.until("document.getElementById('text').textContent === 'Hello from my own page '")
        assert tab.errors == late.errors == []
