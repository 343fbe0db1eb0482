"""The page on large threads: 50,000 events, in ten runs or in one, open about as fast as 500 and scroll without a halt."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from runcast.app import Cast
from tests.app.serving import Served, serving
from tests.e2e.browser import Browser, Tab
from tests.e2e.page_agents import Lengthy

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

RATIO = 6.0  # of the time until the newest message is drawn, to a thread of a hundredth
LONGEST = 4.0  # of the longest task while scrolling, to the same on the small thread; with a floor for a busy machine
FLOOR_MS = 250
NEWEST = "document.querySelector('#timeline > li:last-child')?.textContent.includes('word97')"
LONG_TASKS = """globalThis.tasks = []; new PerformanceObserver((list) => {
  for (const each of list.getEntries()) tasks.push(each.duration) }).observe({ type: 'longtask', buffered: true });"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host() -> AsyncIterator[Served]:
    """A thread of 500 events, one of 50,000 in ten runs, one of 50,000 in a single run, one of 10,000 messages."""
    cast = Cast.open("memory://")
    cast.register(Lengthy(5, 98), name="short")
    cast.register(Lengthy(50, 98), name="long")
    cast.register(Lengthy(500, 98), name="endless")
    cast.register(Lengthy(10_000, 2), name="many")
    async with serving(cast) as it:
        await (await cast.say("small", "go", agent="short")).result()
        for _ in range(10):
            await (await cast.say("large", "go", agent="long")).result()
        await (await cast.say("single", "go", agent="endless")).result()
        await (await cast.say("many", "go", agent="many")).result()
        yield it


async def opening(browser: Browser, host: Served, thread: str) -> tuple[Tab, float]:
    """The page on a thread, and the milliseconds until its newest message was drawn."""
    tab = await browser.tab("about:blank", height=800)
    await tab.call("Page.addScriptToEvaluateOnNewDocument", source=LONG_TASKS + DRAWN + SOON)
    await tab.goto(f"{host.url}/?thread={thread}")
    return tab, await tab.until("globalThis.drawnAt")


DRAWN = f"""globalThis.drawnAt = 0; addEventListener('DOMContentLoaded', () => {{
  const look = new MutationObserver(() => {{ if (!drawnAt && {NEWEST} && document.querySelector('#status')?.textContent === 'Done') drawnAt = performance.now() }});
  look.observe(document.body, {{ childList: true, subtree: true, characterData: true }}); }});"""

SHORT = "document.querySelector('#preview > li:last-child, #timeline > li:last-child')?.textContent.includes('word97')"
SOON = DRAWN.replace("drawnAt", "shortAt").replace(NEWEST, SHORT)
SCROLL = """(async () => {
  await new Promise((done) => setTimeout(done, 300));
  tasks.length = 0;
  const box = document.querySelector('[data-scroller]');
  for (let n = 0; n < 60; n += 1) {
    box.scrollTop = (box.scrollHeight - box.clientHeight) * (n % 2 ? n / 60 : 1 - n / 60);
    await new Promise(requestAnimationFrame);
  }
  await new Promise((done) => setTimeout(done, 300));
  return JSON.stringify(tasks);
})()"""


async def longest_task(tab: Tab) -> float:
    """The longest task while scrolling, in milliseconds: the best of three, since the machine has other work too."""
    return min([max([0.0, *json.loads(await tab.js(SCROLL))]) for _ in range(3)])


async def test_a_large_thread_opens_and_scrolls_like_a_small_one(host: Served, browser: Browser) -> None:
    small, soon = await opening(browser, host, "small")
    large, late = await opening(browser, host, "large")
    print(f"opened after {soon:.0f} and {late:.0f} ms")
    assert late < max(RATIO * soon, 3_000)
    calm, busy = [await longest_task(tab) for tab in (small, large)]
    print(f"longest task while scrolling {calm:.0f} and {busy:.0f} ms")
    assert busy < max(LONGEST * calm, FLOOR_MS)
    assert await large.js("document.querySelectorAll('#timeline > li').length") < 400, (
        "what is out of sight is not drawn"
    )
    await large.js("document.querySelector('.earlier button').click()")
    await large.until("runcast.view.items.length > 500 && runcast.link.state === 'live'")
    assert await large.js("document.querySelector('.earlier')") is None
    assert await large.js("document.querySelectorAll('#timeline > li').length") < 400
    calm, busy = [await longest_task(tab) for tab in (small, large)]
    print(f"and of the whole thread {calm:.0f} and {busy:.0f} ms")
    assert busy < max(LONGEST * calm, FLOOR_MS)
    assert small.errors == large.errors == []


async def test_a_run_of_50_000_events_shows_its_newest_message_before_all_of_it_was_read(
    host: Served, browser: Browser
) -> None:
    small, soon = await opening(browser, host, "small")
    large, whole = await opening(browser, host, "single")
    short = await large.js("globalThis.shortAt")
    print(
        f"500 events after {soon:.0f} ms; 50,000 in one run: the newest after {short:.0f}, all after {whole:.0f} ms"
    )
    assert short < max(RATIO * soon, 3_000)
    # Pieces of a text come together: the work on the page does not grow with the number of tokens.
    assert await large.js("runcast.view.count") < 2_000
    assert await large.js("runcast.view.items.filter((each) => each.kind === 'text').length") == 500
    assert await large.js("document.getElementById('preview')") is None
    assert await large.js("document.querySelectorAll('#timeline > li').length") < 400
    calm, busy = [await longest_task(tab) for tab in (small, large)]
    print(f"longest task while scrolling {calm:.0f} and {busy:.0f} ms")
    assert busy < max(LONGEST * calm, FLOOR_MS)
    assert small.errors == large.errors == []


async def test_ten_thousand_messages_are_all_there_and_few_of_them_are_drawn(
    host: Served, browser: Browser
) -> None:
    tab = await browser.tab(f"{host.url}/?thread=many")
    await tab.until("runcast.view.status === 'completed' && runcast.drawn === runcast.view.count")
    assert await tab.js("runcast.view.items.filter((each) => each.kind === 'text').length") == 10_000
    assert await tab.js("document.querySelectorAll('#timeline > li').length") < 1_000
    await tab.js("document.querySelector('[data-scroller]').scrollTop = 0")
    await tab.until("document.querySelector('#timeline > li[data-kind=run]') !== null")
    assert await tab.js("document.querySelectorAll('#timeline > li').length") < 1_000
    await tab.press("Jump to latest")
    await tab.until("document.querySelector('#timeline > li:last-child')?.textContent.includes('word1')")
    assert tab.errors == []
