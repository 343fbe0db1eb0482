"""The live page in a real browser: whatever happens to its line, it ends up where an undisturbed one does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from runcast.app import Cast
from runcast.broadcast import BroadcastConfig
from tests.app.agents import Gated, asker, parrot, tooled
from tests.app.serving import Served, over, post_run, serving
from tests.conftest import missing
from tests.e2e.browser import MISSING, Browser, Tab, browsing, program
from tests.e2e.wire import Wire

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="module")]

# All that a person sees, but for what says when and in how many pieces it came.
SEEN = "JSON.stringify([runcast.view.status, runcast.view.usage, runcast.view.items.map(({ key, ...rest }) => rest)])"
# The line is there, and what came by it is drawn: the view is changed before the page is.
DRAWN = "runcast.drawn === runcast.view.count"
AT_EASE = f"runcast.link.state === 'live' && {DRAWN}"


@pytest_asyncio.fixture(loop_scope="module")
async def host() -> AsyncIterator[Served]:
    cast = Cast.open("memory://", agents=[parrot, asker, tooled], config=BroadcastConfig.debug())
    async with serving(cast) as it:
        yield it


def at(host: Served, thread: str = "t1", url: str | None = None) -> str:
    return f"{url or host.url}/?thread={thread}"


async def seen(tab: Tab, status: str = "completed") -> Any:
    """What a page shows once its run has this status and nothing is missing."""
    await tab.until(f"runcast.view.status === '{status}' && {AT_EASE}")
    assert tab.errors == []
    return await tab.js(SEEN)


async def speak(gated: Gated, tokens: int) -> None:
    """Let the agent speak, a token every few milliseconds."""
    for _ in range(tokens):
        gated.open(1)
        await asyncio.sleep(0.01)


async def begin(host: Served, tokens: int) -> Gated:
    gated = Gated(tokens)
    host.cast.register(gated, name="gated")
    await host.cast.say("t1", "count", agent="gated")
    return gated


async def test_a_tab_that_is_reloaded_and_one_that_is_not_are_equal(host: Served, browser: Browser) -> None:
    gated = await begin(host, 60)
    steady, other = [await browser.tab(at(host)) for _ in range(2)]
    for _ in range(3):
        await speak(gated, 15)
        await other.reload()
    await speak(gated, 20)
    late = await browser.tab(at(host))
    shown = await seen(steady)
    assert "57 58 59 " in shown
    assert await seen(other) == shown
    assert await seen(late) == shown
    await steady.shot("two-tabs")


async def test_twenty_broken_lines_leave_no_trace(host: Served, browser: Browser) -> None:
    chance = random.Random(7)
    gated = await begin(host, 220)
    async with Wire(int(host.url.rpartition(":")[2])) as wire:
        steady = await browser.tab(at(host))
        torn = await browser.tab(at(host, url=f"http://127.0.0.1:{wire.port}"))
        await torn.until("runcast.view.status === 'in_progress'")
        for _ in range(20):
            await speak(gated, 10)
            wire.cut()
            await asyncio.sleep(chance.uniform(0, 0.15))
        await speak(gated, 20)
        shown = await seen(steady)
        assert "218 219 " in shown
        assert await seen(torn) == shown
        await torn.shows("runcast.view.missed", 0)


async def test_a_question_is_answered_on_the_page(host: Served, browser: Browser) -> None:
    await host.cast.say("t1", "ask me", agent="asker")
    tab = await browser.tab(at(host))
    await tab.until("document.querySelector('.question') !== null")
    await tab.shows("document.querySelector('.question p').textContent", "go on?")
    await tab.type(".question input", "surely")
    await tab.press("Answer")
    assert "resolved surely" in await seen(tab)
    assert await tab.js("document.querySelector('.question')") is None


async def test_a_branch_is_made_on_the_page(host: Served, browser: Browser) -> None:
    for n, text in enumerate(("about Paris", "about London")):
        await post_run(host.http, text=text, run=f"run-{n}")
    tab = await browser.tab(at(host))
    await tab.click("#tab-runs")
    await tab.until("document.querySelectorAll('.branch').length === 2")
    await tab.click(".branch")
    await tab.type("#ask", "about Tokyo")
    await tab.click("#send")
    await tab.until("document.querySelectorAll('.branch').length === 3")
    await over(host.cast)
    runs = await host.cast.log.runs("t1")
    assert [(run.edge, run.parent) for run in runs][-1] == ("branch", "run-0")
    columns = "[...document.querySelectorAll('#runs li')].map((each) => each.dataset.column).join()"
    assert await tab.until(f"{columns} === '0,0,1'")  # the branch stands beside what it branched off from
    assert "about Tokyo " in await seen(tab)


async def test_stop_is_pressed(host: Served, browser: Browser) -> None:
    gated = await begin(host, 50)
    tab = await browser.tab(at(host))
    await speak(gated, 5)
    await tab.click("#stop")
    await tab.until(f"['cancelled', 'failed'].includes(runcast.view.status) && {DRAWN}")
    assert await tab.js("document.getElementById('stop')") is None
    assert host.cast.active == []


async def test_a_run_is_started_in_a_new_thread(host: Served, browser: Browser) -> None:
    tab = await browser.tab(f"{host.url}/")
    await tab.until("document.getElementById('start') !== null")
    await tab.shot("empty")
    await tab.type("#ask", "hello you")
    await tab.click("#send")
    assert "hello you " in await seen(tab)
    assert len(await host.cast.log.threads()) == 1


async def test_a_full_result_is_behind_its_summary(host: Served, browser: Browser) -> None:
    await post_run(host.http, "tooled")
    tab = await browser.tab(at(host))
    await tab.press("Full result")
    assert await tab.until("document.getElementById('full-text').textContent.length") > 0
    await tab.until("document.getElementById('full-text').textContent.length === 35000")
    await tab.press_named("Close", within="#full")
    await tab.click("#tab-runs")
    await tab.until("document.getElementById('size').textContent.includes('6')")


async def test_a_private_thread_is_refused() -> None:
    if program() is None:
        missing(MISSING)
    cast = Cast.open("memory://", agents=[parrot])
    await (await cast.say("private", "a secret", agent="parrot")).result()
    allowed: dict[str, Any] = {
        "authorize": lambda user, thread_id: thread_id in ("", "open"),
        "identify": lambda headers: None,
    }
    async with browsing() as browser, serving(cast, **allowed) as host:
        tab = await browser.tab(at(host, "private"))
        await tab.until("document.querySelector('#link b').textContent === 'Not allowed'")
        assert "secret" not in await tab.js("document.body.innerText")
        assert "not yours" in await tab.js("document.getElementById('empty').textContent")
        await tab.shows("runcast.view.count", 0)


async def test_markup_in_what_an_agent_says_stays_text(host: Served, browser: Browser) -> None:
    evil = "<img/src=x/onerror=globalThis.owned=1><script>globalThis.owned=1</script>"
    await post_run(host.http, text=evil)
    tab = await browser.tab(at(host))
    assert evil in await tab.until("document.querySelector('.prose')?.textContent")
    assert await tab.js("globalThis.owned") is None
    assert await tab.js("document.querySelector('main img, main script')") is None


async def test_narrow_screens_do_not_scroll_sideways(host: Served, browser: Browser) -> None:
    await post_run(host.http, "tooled")
    await post_run(host.http, text="x" * 3_000, run="r2")
    for width in (320, 390, 768, 1280):
        tab = await browser.tab(at(host), width=width, height=800, dark=width == 390)
        await seen(tab)
        assert await tab.js("document.documentElement.scrollWidth") <= width
        await tab.shot(f"width-{width}")


async def test_it_can_be_used_by_keys_and_read_aloud(host: Served, browser: Browser) -> None:
    await post_run(host.http)
    tab = await browser.tab(at(host))
    await seen(tab)
    await tab.js("document.dispatchEvent(new KeyboardEvent('keydown', { key: 'n' }))")
    await tab.until("document.activeElement.id === 'ask'")
    await tab.js(
        "document.activeElement.blur(); document.dispatchEvent(new KeyboardEvent('keydown', { key: '/' }))"
    )
    await tab.until("document.activeElement.id === 'filter'")
    await tab.type("#filter", "agent.stream")
    told = "[...document.querySelectorAll('#log b')].map((each) => each.textContent)"
    await tab.until(f"{told}.length > 0 && {told}.every((each) => each === 'stream.chunk')")
    nameless = """[...document.querySelectorAll('button, input, select, textarea')].filter((each) =>
      !(each.textContent.trim() || each.getAttribute('aria-label') || document.querySelector(`label[for="${each.id}"]`))).length"""
    await tab.shows(nameless, 0)
    await tab.shows("document.getElementById('status').getAttribute('role')", "status")
