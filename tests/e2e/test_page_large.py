"""The page on large threads: of 50,000 events, in ten runs or in one, it reads and draws what is looked at."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from runcast.app import Cast
from tests.app.serving import Served, serving
from tests.e2e.browser import Browser, Tab
from tests.e2e.page_agents import Lengthy

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

READ = 2_000  # envelopes at most, for a newest run of 5,000 tokens or one of 50,000
DRAWN_ROWS = 400  # at most, at any moment
NEWEST = "document.querySelector('#timeline > li:last-child')?.textContent.includes('word97')"


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
    await tab.call("Page.addScriptToEvaluateOnNewDocument", source=DRAWN + SOON)
    await tab.goto(f"{host.url}/?thread={thread}")
    return tab, await tab.until("globalThis.drawnAt")


DRAWN = f"""globalThis.drawnAt = 0; addEventListener('DOMContentLoaded', () => {{
  const look = new MutationObserver(() => {{ if (!drawnAt && {NEWEST} && document.querySelector('#status')?.textContent === 'Done') drawnAt = performance.now() }});
  look.observe(document.body, {{ childList: true, subtree: true, characterData: true }}); }});"""

SHORT = "document.querySelector('#preview > li:last-child, #timeline > li:last-child')?.textContent.includes('word97')"
SOON = DRAWN.replace("drawnAt", "shortAt").replace(NEWEST, SHORT)
SCROLL = """(async () => {
  const box = document.querySelector('[data-scroller]');
  let most = 0;
  for (let n = 0; n < 60; n += 1) {
    box.scrollTop = (box.scrollHeight - box.clientHeight) * (n % 2 ? n / 60 : 1 - n / 60);
    await new Promise(requestAnimationFrame);
    most = Math.max(most, document.querySelectorAll('#timeline > li').length);
  }
  return most;
})()"""


async def test_a_large_thread_opens_and_scrolls_like_a_small_one(host: Served, browser: Browser) -> None:
    small, soon = await opening(browser, host, "small")
    large, late = await opening(browser, host, "large")
    print(f"opened after {soon:.0f} and {late:.0f} ms")
    assert await large.js("runcast.view.count") < READ
    assert await large.js(SCROLL) < DRAWN_ROWS, "what is out of sight is not drawn"
    await large.js("document.querySelector('.earlier button').click()")
    await large.until("runcast.view.items.length > 500 && runcast.link.state === 'live'")
    assert await large.js("document.querySelector('.earlier')") is None
    assert await large.js(SCROLL) < DRAWN_ROWS
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
    assert short < whole
    # Pieces of a text come together: the work on the page does not grow with the number of tokens.
    assert await large.js("runcast.view.count") < READ
    await large.shows("runcast.view.items.filter((each) => each.kind === 'text').length", 500)
    assert await large.js("document.getElementById('preview')") is None
    assert await large.js(SCROLL) < DRAWN_ROWS
    assert small.errors == large.errors == []


async def test_ten_thousand_messages_are_all_there_and_few_of_them_are_drawn(
    host: Served, browser: Browser
) -> None:
    tab = await browser.tab(f"{host.url}/?thread=many")
    await tab.until("runcast.view.status === 'completed' && runcast.drawn === runcast.view.count")
    await tab.shows("runcast.view.items.filter((each) => each.kind === 'text').length", 10_000)
    assert await tab.js("document.querySelectorAll('#timeline > li').length") < 1_000
    await tab.js("document.querySelector('[data-scroller]').scrollTop = 0")
    await tab.until("document.querySelector('#timeline > li[data-kind=run]') !== null")
    assert await tab.js("document.querySelectorAll('#timeline > li').length") < 1_000
    await tab.press("Jump to latest")
    await tab.until("document.querySelector('#timeline > li:last-child')?.textContent.includes('word1')")
    assert tab.errors == []
