"""The React example in Chromium: `useChat` of npm against a LangGraph agent, reloaded, stopped and approved."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.browser import Tab
from tests.e2e.react import Scene, staged

pytestmark = pytest.mark.server

ANSWER = "document.querySelector('.assistant .text')?.textContent ?? ''"
WHOLE = "You said: " + " ".join(["hello there"] * 12)
READY = "document.querySelector('output').textContent === 'ready'"


@pytest.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    async with staged("ai-sdk", tmp_path, monkeypatch) as it:
        yield it


async def send(tab: Tab, text: str) -> None:
    await tab.until("document.querySelector('input') !== null")
    await tab.type("input", text)
    await tab.press("Send")


async def test_a_reload_and_a_second_browser_lose_nothing(scene: Scene) -> None:
    tab = await scene.tab("reload")
    await send(tab, "hello there")
    await tab.until(f"({ANSWER}).split(' ').length > 6")
    other = await scene.tab("reload")
    for _ in range(3):
        await tab.reload()
        await tab.until(f"({ANSWER}).startsWith('You said: hello')")
    for each in (tab, other):
        await each.until(f"({ANSWER}).trim() === {WHOLE!r}")
        await each.until(READY)
        await each.shows("document.querySelectorAll('section').length", 2)
        assert each.errors == []


async def test_stop_ends_the_run_and_a_reload_keeps_what_was_said(scene: Scene) -> None:
    tab = await scene.tab("stop")
    await send(tab, "hello there")
    await tab.until(f"({ANSWER}).split(' ').length > 6")
    await tab.press("Stop")
    await tab.until(READY)
    shown = await tab.js(ANSWER)
    assert WHOLE.startswith(shown.strip())
    await tab.reload()
    await tab.until(f"({ANSWER}).trim() === {shown.strip()!r}")
    (run,) = (await scene.host.http.get("/threads/stop/runs")).json()["runs"]
    assert run["status"] == "cancelled"


@pytest.mark.parametrize(("button", "told"), [("Approve", "sent to ada"), ("Reject", "rejected")])
async def test_a_tool_waits_for_its_approval_over_a_reload(scene: Scene, button: str, told: str) -> None:
    tab = await scene.tab(button)
    await send(tab, "write a mail")
    await tab.until("document.querySelector('.tool')?.textContent.includes('approval-requested')")
    await tab.reload()
    await tab.until("performance.getEntriesByType('resource').some((each) => each.name.endsWith('/stream'))")
    await tab.until(READY)
    await tab.until("document.querySelector('.tool')?.textContent.includes('approval-requested')")
    await tab.press(button)
    await tab.until(f"({ANSWER}).includes({told!r})")
    await tab.until("document.querySelector('.tool').textContent.includes('output-available')")
    await tab.until(READY)
    await tab.shows("document.querySelectorAll('section').length", 2)
    assert tab.errors == []
