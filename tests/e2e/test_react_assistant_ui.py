"""The assistant-ui example in Chromium: its AG-UI runtime of npm over a `RuncastAgent`, reloaded and stopped."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.browser import Tab
from tests.e2e.react import Scene, staged

pytestmark = pytest.mark.server

ANSWERS = "[...document.querySelectorAll('.assistant .text')].map((each) => each.textContent.trim())"
WHOLE = "You said: " + " ".join(["hello there"] * 12)
IDLE = "[...document.querySelectorAll('button')].some((each) => each.textContent === 'Stop' && each.disabled)"


@pytest.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    async with staged("assistant-ui", tmp_path, monkeypatch) as it:
        yield it


async def send(tab: Tab, text: str) -> None:
    await tab.until("document.querySelector('textarea') !== null")
    await tab.until(IDLE)
    await tab.type("textarea", text)
    await tab.press("Send")


async def test_a_reload_a_second_browser_and_a_second_question_lose_nothing(scene: Scene) -> None:
    tab = await scene.tab("reload")
    await send(tab, "hello there")
    await tab.until(f"{ANSWERS}.at(-1).split(' ').length > 6")
    other = await scene.tab("reload")
    for _ in range(3):
        await tab.reload()
        await tab.until(f"{ANSWERS}.at(-1).startsWith('You said: hello')")
    for each in (tab, other):
        await each.until(f"{ANSWERS}.join() === {WHOLE!r}")
        await each.until(IDLE)
    await send(other, "hello there")
    await other.until(f"{ANSWERS}.join() === {f'{WHOLE},{WHOLE}'!r}")
    await tab.reload()
    await tab.until(f"{ANSWERS}.join() === {f'{WHOLE},{WHOLE}'!r}")
    await tab.shows("document.querySelectorAll('.user').length", 2)
    assert tab.errors == other.errors == []


async def test_stop_ends_the_run_and_a_reload_keeps_what_was_said(scene: Scene) -> None:
    tab = await scene.tab("stop")
    await send(tab, "hello there")
    await tab.until(f"{ANSWERS}.at(-1).split(' ').length > 6")
    await tab.press("Stop")
    await tab.until(IDLE)
    await tab.reload()
    await tab.until(f"{ANSWERS}.at(-1).startsWith('You said: hello')")
    (run,) = (await scene.host.http.get("/threads/stop/runs")).json()["runs"]
    assert run["status"] == "cancelled"
    assert len(await tab.js(f"{ANSWERS}.join()")) < len(WHOLE)
