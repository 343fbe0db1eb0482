"""A message while a run is active: it waits for all to see, is edited and withdrawn, or stops the run and follows."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from ag_ui.core import CustomEvent, Event, RunAgentInput

from runcast.app import Cast
from tests.app.agents import Gated, asker, parrot
from tests.app.serving import Served, serving
from tests.e2e.browser import Browser, Tab
from tests.e2e.test_page import AT_EASE

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="module")]

WORKING = f"runcast.view.status === 'in_progress' && {AT_EASE} && document.querySelector('#stop')"
WAITING = "[...document.querySelectorAll('#waiting .waiting-text')].map((each) => each.textContent).join('|')"
SAID = "[...document.querySelectorAll('.said')].map((each) => each.textContent).join('|')"
DONE = f"runcast.view.status === 'completed' && {AT_EASE}"


@pytest_asyncio.fixture(loop_scope="module")
async def host() -> AsyncIterator[Served]:
    async with serving(Cast.open("memory://", agents=[parrot, asker])) as it:
        yield it


async def begun(host: Served, browser: Browser, tabs: int = 1) -> tuple[Gated, list[Tab]]:
    """An active run in a thread, and pages that watch it."""
    gated = Gated(3)
    host.cast.register(gated, name="gated")
    await host.cast.say("t1", "one", agent="gated")
    pages = [await browser.tab(f"{host.url}/?thread=t1") for _ in range(tabs)]
    for each in pages:
        await each.until(WORKING)
    return gated, pages


async def enter(tab: Tab, *, ctrl: bool = False) -> None:
    given = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "modifiers": 2 if ctrl else 0}
    await tab.call("Input.dispatchKeyEvent", type="keyDown", **given, **({} if ctrl else {"text": "\r"}))
    await tab.call("Input.dispatchKeyEvent", type="keyUp", **given)


async def write(tab: Tab, text: str, *, ctrl: bool = False) -> None:
    await tab.type("#ask", text)
    await tab.until("!document.querySelector('#send').disabled")
    await enter(tab, ctrl=ctrl)


async def choose(tab: Tab, policy: str) -> None:
    chosen = f"Object.assign(document.querySelector('#busy'), {{ value: {json.dumps(policy)} }})"
    await tab.js(f"{chosen}.dispatchEvent(new Event('change', {{ bubbles: true }}))")


async def pictures(tab: Tab) -> None:
    """Nothing overflows, on any screen; the pictures are kept where RUNCAST_SCREENSHOTS says."""
    foot = "document.querySelector('.composer-foot')"
    await tab.type("#ask", "And one more")
    await tab.press_named("Edit this message", "#waiting li:nth-child(2)")
    for width in (1360, 390):
        for dark in (False, True):
            await tab.size(width, 860, dark=dark)
            assert await tab.js("document.documentElement.scrollWidth") <= width
            await tab.until(f"{foot}.scrollWidth <= {foot}.clientWidth")
            await tab.shot(f"queue-{width}-{'dark' if dark else 'light'}")
    await tab.press("Cancel")


async def test_what_waits_is_seen_by_all_edited_and_withdrawn(host: Served, browser: Browser) -> None:
    gated, (tab, other) = await begun(host, browser, tabs=2)
    assert await tab.js("document.querySelector('#send')") is None, "an empty message has no button"
    await choose(tab, "steer")
    for text, all_of_it in (("two", "two"), ("three", "two|three"), ("four", "two|three|four")):
        await write(tab, text)
        for each in (tab, other):
            await each.until(f"{WAITING} === {all_of_it!r}")
    await other.press_named("Withdraw this message", "#waiting li:nth-child(2)")
    await other.press_named("Edit this message", "#waiting li:nth-child(1)")
    await other.until("document.activeElement.matches('.waiting-edit textarea')")
    await other.call("Input.insertText", text="zwei")
    await enter(other)
    for each in (tab, other):
        await each.until(f"{WAITING} === 'zwei|four'")
    await tab.reload()
    await tab.until(f"{WAITING} === 'zwei|four' && {AT_EASE}")
    await pictures(tab)
    gated.open()
    for each in (tab, other):
        await each.until(f"{DONE} && {SAID} === 'one|zwei|four'")
        await each.until("document.querySelector('#waiting') === null")
        assert each.errors == []


async def test_a_choice_is_for_one_message_and_the_keyboard_has_one(host: Served, browser: Browser) -> None:
    gated, (tab,) = await begun(host, browser)
    await tab.shows("document.querySelector('#busy').value", "queue")
    await write(tab, "patient")
    await tab.until(f"{WAITING} === 'patient'")
    await write(tab, "now", ctrl=True)
    await tab.until(f"{SAID} === 'one|now' && {WORKING} && {WAITING} === 'patient'")
    runs = await host.cast.log.runs("t1")
    assert (len(runs), runs[0].ended_at is not None, runs[1].status) == (2, True, "in_progress")
    await choose(tab, "rollback")
    await write(tab, "instead")
    await tab.until(f"{SAID}.endsWith('instead') && {WORKING}")
    runs = await host.cast.log.runs("t1")
    assert [(each.parent, each.edge) for each in runs][1:] == [
        (runs[0].run_id, "continue"),
        (runs[0].run_id, "branch"),
    ]
    await tab.until("document.querySelector('#busy').value === 'queue'")
    await tab.js("document.activeElement.blur()")
    await tab.call("Input.dispatchKeyEvent", type="keyDown", key="q", text="q")
    await tab.until("document.activeElement.matches('#waiting button')")
    gated.open()
    await tab.until(f"{DONE} && {SAID}.endsWith('instead|patient')")
    assert tab.errors == []


async def test_what_waits_for_an_answer_can_be_withdrawn_before_a_second_pair_of_eyes(
    host: Served, browser: Browser
) -> None:
    gated = Gated(1)

    async def asks(input: RunAgentInput) -> AsyncIterator[Event]:
        async for event in asker(input):
            yield event
            await gated.gate.acquire()

    host.cast.register(asks, name="asks")
    await host.cast.say("t1", "one", agent="asks")
    await host.cast.say("t1", "two", agent="parrot", on_busy="queue")
    gated.open()
    tab, other = [await browser.tab(f"{host.url}/?thread=t1") for _ in range(2)]
    for each in (tab, other):
        await each.until(
            "document.querySelector('#waiting h2')?.textContent === '1 message waits for the answer'"
        )
    await tab.press_named("Withdraw this message")
    for each in (tab, other):
        await each.until("document.querySelector('#waiting') === null")


async def test_a_message_that_was_steered_is_shown_in_its_run(host: Served, browser: Browser) -> None:
    gated = Gated(1)

    async def steered(input: RunAgentInput) -> AsyncIterator[Event]:
        async for event in gated(input):
            yield event
        waiting = await host.cast.queue.waiting("t1")
        await host.cast.queue.withdraw("t1", waiting[0].run_id)
        yield CustomEvent(
            name="runcast.steered", value={"run_id": waiting[0].run_id, "message_id": "m2", "text": "left"}
        )

    host.cast.register(steered, name="steered", on_busy="steer")
    await host.cast.say("t1", "one", agent="steered")
    tab = await browser.tab(f"{host.url}/?thread=t1")
    await tab.until(f"{WORKING} && document.querySelector('#busy').value === 'steer'")  # as the agent has it
    await write(tab, "left")
    await tab.until(f"{WAITING} === 'left'")
    gated.open()
    await tab.until(f"{DONE} && {SAID} === 'one|left'")
    await tab.reload()
    await tab.until(f"{DONE} && {SAID} === 'one|left'")
