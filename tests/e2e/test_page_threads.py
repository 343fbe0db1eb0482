"""The list of threads: a person names a thread and everybody sees it; threads that are not opened show how they stand."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from runcast.app import Cast
from runcast.broadcast import BroadcastConfig
from tests.app.agents import Gated, asker, parrot
from tests.app.serving import Served, over, serving
from tests.e2e.browser import Browser
from tests.e2e.test_page import AT_EASE

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(loop_scope="module")
async def host() -> AsyncIterator[Served]:
    cast = Cast.open("memory://", agents=[parrot, asker], config=BroadcastConfig.debug())
    async with serving(cast) as it:
        yield it


def listed(thread: str) -> str:
    return f"document.querySelector('#threads [title={thread}]').textContent"


async def test_a_thread_is_named_on_one_page_and_every_page_shows_the_name(
    host: Served, browser: Browser
) -> None:
    await (await host.cast.say("t1", "about trains", agent="parrot")).result()
    await (await host.cast.say("t2", "about ships", agent="parrot")).result()
    writer = await browser.tab(f"{host.url}/?thread=t1")
    watcher = await browser.tab(f"{host.url}/?thread=t2")
    for tab in (writer, watcher):
        await tab.until(f"{AT_EASE} && {listed('t1')}.startsWith('about trains')")
    await writer.press_named("Rename this thread")
    await writer.until("document.activeElement.id === 'title-text'")
    await writer.type("#title-text", "Night trains & <b>snow</b>")
    await writer.js("document.querySelector('.rename').requestSubmit()")
    for tab in (writer, watcher):
        await tab.until(f"{listed('t1')}.startsWith('Night trains & <b>snow</b>')")
    await writer.shows("document.getElementById('title').textContent", "Night trains & <b>snow</b>")
    thread = await host.cast.log.thread("t1")
    assert thread is not None
    assert thread.title == "Night trains & <b>snow</b>"
    await writer.press_named("Rename this thread")
    await writer.until("document.activeElement.id === 'title-text'")
    await writer.js("document.activeElement.value = ''; document.querySelector('.rename').requestSubmit()")
    for tab in (writer, watcher):
        await tab.until(f"{listed('t1')}.startsWith('about trains')")
    assert writer.errors == watcher.errors == []


async def test_a_long_title_gives_way_and_nothing_of_the_header_breaks(
    host: Served, browser: Browser
) -> None:
    await (await host.cast.say("t1", "w" * 200, agent="parrot")).result()
    tab = await browser.tab(f"{host.url}/?thread=t1")
    await tab.until(f"{AT_EASE} && document.querySelector('#elapsed') !== null")
    elapsed = "(() => { const range = document.createRange(); range.selectNodeContents(document.querySelector('#elapsed'))"
    await tab.shows(
        f"{elapsed}; return new Set([...range.getClientRects()].map((each) => each.top)).size }})()", 1
    )
    assert tab.errors == []


async def test_threads_that_are_not_opened_show_how_they_stand(host: Served, browser: Browser) -> None:
    gated = Gated(8)
    host.cast.register(gated, name="gated")
    await (await host.cast.say("open", "hello", agent="parrot")).result()
    await (await host.cast.say("asks", "ask me", agent="asker")).result()
    await host.cast.say("works", "count", agent="gated")
    tab = await browser.tab(f"{host.url}/?thread=open")
    await tab.until(f"{AT_EASE} && {listed('asks')}.includes('Waiting for you')")
    await tab.until(f"{listed('works')}.includes('Working')")
    assert "Done" not in await tab.js(listed("open"))
    gated.open()
    await over(host.cast, "works")
    await tab.until(f"!{listed('works')}.includes('Working')")
    assert tab.errors == []
