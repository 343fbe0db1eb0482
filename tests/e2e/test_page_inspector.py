"""The inspector: the timeline, the thread after any of its events, the graph of runs, the raw log."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from runcast.app import Cast
from runcast.broadcast import BroadcastConfig
from runcast.slim import fold
from tests.app.agents import Gated, parrot
from tests.app.serving import Served, over, post_run, serving
from tests.e2e.browser import Browser, Tab
from tests.e2e.page_agents import twice, writer
from tests.e2e.test_page import AT_EASE

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="module")]

DONE = f"runcast.view.status === 'completed' && {AT_EASE}"
MOMENT = "document.querySelector('.moment')?.textContent ?? ''"


@pytest_asyncio.fixture(loop_scope="module")
async def host() -> AsyncIterator[Served]:
    cast = Cast.open("memory://", agents=[parrot], config=BroadcastConfig.debug())
    for name, agent in {"writer": writer, "twice": twice}.items():
        cast.register(agent, name=name)
    async with serving(cast) as it:
        yield it


async def opened(host: Served, browser: Browser, tab_name: str) -> Tab:
    await (await host.cast.say("t1", "go", agent="writer")).result()
    tab = await browser.tab(f"{host.url}/?thread=t1")
    await tab.until(DONE)
    await tab.click(f"#tab-{tab_name}")
    return tab


async def look_at(tab: Tab, seq: int) -> None:
    """Move the scrubber to an event."""
    await tab.until(f"Number(document.getElementById('seq').max) >= {seq}")
    await tab.js(
        f"(() => {{ const it = document.getElementById('seq'); it.value = '{seq}';"
        " it.dispatchEvent(new Event('input', { bubbles: true })) })()"
    )
    await tab.until(f"({MOMENT}).startsWith('{seq} ')")


async def test_the_timeline_has_a_bar_for_all_that_took_time(host: Served, browser: Browser) -> None:
    tab = await opened(host, browser, "timeline")
    names = "[...document.querySelectorAll('.waterfall button')].map((each) => each.dataset.kind).join()"
    await tab.until(f"{names} === 'run,step,tool,model'")
    labels = await tab.js("[...document.querySelectorAll('.waterfall button')].map((each) => each.title)")
    assert labels[2].startswith("search_archive, ")
    assert labels[2].endswith(", Done")
    widths = "document.querySelector('.waterfall ol').style.width"
    await tab.js(
        "(() => { const it = document.querySelector('[aria-label=Zoom]'); it.value = '5';"
        " it.dispatchEvent(new Event('input', { bubbles: true })) })()"
    )
    await tab.until(f"{widths} === '500%'")
    await tab.js("document.querySelectorAll('.waterfall button')[2].click()")
    await tab.until("document.activeElement.dataset.kind === 'tool'")


async def test_a_wait_for_a_person_is_in_the_timeline(host: Served, browser: Browser) -> None:
    await (await host.cast.say("t1", "go", agent="twice")).result()
    await (await host.cast.resume("t1", {"q1": True, "q2": "first"})).result()
    tab = await browser.tab(f"{host.url}/?thread=t1")
    await tab.until("document.querySelector('.waterfall button[data-kind=wait]')")


async def test_the_thread_is_seen_after_any_of_its_events(host: Served, browser: Browser) -> None:
    tab = await opened(host, browser, "past")
    entries = await host.cast.log.entries("t1")
    shown = "[...document.querySelectorAll('#moment > li')].map((each) => each.dataset.kind)"
    for cut in (1, 4, 7, 9, 10, 11, 14, len(entries) - 3):
        await look_at(tab, cut)
        held = fold(entry.event for entry in entries[:cut])
        roles = json.dumps([each.role for each in held.messages], separators=(",", ":"))
        await tab.until(f"JSON.stringify({shown}) === {json.dumps(roles)}")
        state: Any = await tab.js("document.querySelector('#panel .json').textContent")
        assert ("words: 120" in state) == (held.state.get("draft", {}).get("words") == 120)
        spoken = held.messages[-1].content if held.messages[-1].role == "assistant" else None
        if isinstance(spoken, str) and "Report" in spoken:
            assert "Report" in await tab.js("document.querySelector('#moment').textContent")
    await tab.press("Back to now")
    await tab.until("document.querySelector('#moment') === null")
    await tab.until(f"{len(entries)} === Number(document.getElementById('seq').value)")


async def test_a_change_of_state_is_shown_as_a_difference(host: Served, browser: Browser) -> None:
    tab = await opened(host, browser, "past")
    entries = await host.cast.log.entries("t1")
    delta = next(each.seq for each in entries if each.event.type.value == "STATE_DELTA")
    await look_at(tab, delta)
    changes = "[...document.querySelectorAll('.changes li')].map((each) => each.textContent).join('; ')"
    await tab.until(f"{changes} === '/draft/words changed0120; /sources/0 added\"archive\"'")
    await tab.shows("document.querySelectorAll('.json [data-mark]').length", 2)
    await look_at(tab, delta - 1)
    await tab.until("document.querySelector('#panel').textContent.includes('None.')")
    await tab.type("#against", "1")
    await tab.until("document.querySelectorAll('.changes li').length === 2")


async def test_the_past_is_played_and_stepped_through(host: Served, browser: Browser) -> None:
    tab = await opened(host, browser, "past")
    await look_at(tab, 3)
    await tab.press_named("One event on")
    await tab.until(f"({MOMENT}).startsWith('4 ')")
    await tab.press_named("One event back")
    await tab.until(f"({MOMENT}).startsWith('3 ')")
    await tab.press_named("First event")
    await tab.until(f"({MOMENT}).startsWith('1 ')")
    await tab.js(
        "(() => { const it = document.getElementById('speed'); it.value = '64'; it.dispatchEvent(new Event('change', { bubbles: true })) })()"
    )
    await tab.press_named("Play")
    await tab.until("document.querySelector('#moment') === null")  # it has arrived at now
    await tab.js("document.activeElement.blur()")
    await tab.js("document.dispatchEvent(new KeyboardEvent('keydown', { key: '[' }))")
    await tab.until("document.querySelector('#moment') !== null")
    await tab.js("document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))")
    await tab.until("document.querySelector('#moment') === null")


async def test_a_branch_is_made_from_the_past(host: Served, browser: Browser) -> None:
    await post_run(host.http, run="run-0", text="one")
    await post_run(host.http, run="run-1", text="two")
    await over(host.cast)
    tab = await browser.tab(f"{host.url}/?thread=t1")
    await tab.click("#tab-past")
    await look_at(tab, (await host.cast.log.runs("t1"))[0].last_seq)
    await tab.press("Branch from here")
    await tab.until("document.getElementById('branching').textContent.includes('run-0')")
    await tab.type("#ask", "another way")
    await tab.click("#send")
    await tab.until(f"runcast.view.run !== 'run-1' && {DONE}")
    await over(host.cast)
    newest = (await host.cast.log.runs("t1"))[-1]
    assert (newest.edge, newest.parent) == ("branch", "run-0")


async def test_the_past_keeps_up_with_a_run(host: Served, browser: Browser) -> None:
    gated = Gated(30)
    host.cast.register(gated, name="gated")
    await host.cast.say("t1", "count", agent="gated")
    gated.open(5)
    tab = await browser.tab(f"{host.url}/?thread=t1")
    await tab.click("#tab-past")
    await look_at(tab, 3)
    gated.open()
    await over(host.cast)
    head = (await host.cast.log.entries("t1"))[-1].seq
    await tab.until(f"Number(document.getElementById('seq').max) === {head}")
    await tab.shows("document.getElementById('seq').value", "3")  # who looks at the past stays there


async def test_events_are_listed_and_lead_to_their_moment(host: Served, browser: Browser) -> None:
    tab = await opened(host, browser, "raw")
    await tab.js(
        "(() => { const it = document.getElementById('kind'); it.value = 'events'; it.dispatchEvent(new Event('change', { bubbles: true })) })()"
    )
    await tab.type("#filter", "STATE_DELTA")
    await tab.until("document.querySelectorAll('#log li').length === 1")
    assert "/draft/words" in await tab.js("document.querySelector('#log li').textContent")
    await tab.click("#log li button")
    await tab.until("document.querySelector('#moment') !== null")


async def test_a_run_in_the_graph_leads_to_its_place(host: Served, browser: Browser) -> None:
    for n in range(8):
        await post_run(host.http, "parrot", text="words " * 40, run=f"run-{n}")
    tab = await browser.tab(f"{host.url}/?thread=t1", height=500)
    await tab.until(DONE)
    await tab.click("#tab-runs")
    await tab.until("document.querySelectorAll('#runs .run-name').length === 8")
    await tab.shows("document.querySelectorAll('.graph path').length", 7)
    await tab.shows("document.querySelectorAll('.graph circle[data-status=completed]').length", 8)
    await tab.js("document.querySelectorAll('#runs .run-name')[1].click()")
    seen = """(() => { const box = document.querySelector('[data-scroller]').getBoundingClientRect();
      const at = document.querySelector('[data-run="run-1"]')?.getBoundingClientRect(); return at && at.top >= box.top && at.bottom <= box.bottom })()"""
    await tab.until(seen)
