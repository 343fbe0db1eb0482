"""The page for everybody: axe finds nothing, keys and screen readers are served, every state has its own face."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from ag_ui.core import (
    Event,
    RunAgentInput,
    RunErrorEvent,
    RunStartedEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.app import Cast
from runcast.broadcast import BroadcastConfig
from tests.app.agents import Gated, parrot, said
from tests.app.serving import Served, post_run, serving
from tests.e2e.browser import Browser, Tab
from tests.e2e.page_agents import approver, booker, twice, writer
from tests.e2e.test_page import AT_EASE
from tests.house.tree import ROOT

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="module")]

AXE = ROOT / "app" / "web" / "node_modules" / "axe-core" / "axe.min.js"
WIDTHS = (320, 390, 820, 1360, 2560)
SCENES = ("report", "booking", "questions", "approval", "failed", "nothing")
HUGE = 5_000_000


async def failing(input: RunAgentInput) -> AsyncIterator[Event]:
    yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
    for event in said(input.run_id, "I try."):
        yield event
    yield RunErrorEvent(message="The model did not answer.", code="TIMEOUT")


async def heavy(input: RunAgentInput) -> AsyncIterator[Event]:
    """A tool whose result is 5 MB."""
    yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
    yield ToolCallStartEvent(tool_call_id="c1", tool_call_name="dump")
    yield ToolCallArgsEvent(tool_call_id="c1", delta="{}")
    yield ToolCallEndEvent(tool_call_id="c1")
    yield ToolCallResultEvent(message_id="r1", tool_call_id="c1", content="0123456789" * (HUGE // 10))
    for event in said(input.run_id, "Done."):
        yield event


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host() -> AsyncIterator[Served]:
    """A host with a thread for each scene."""
    agents = {
        "report": writer, "booking": booker, "questions": twice, "approval": approver, "failed": failing, "heavy": heavy,
    }  # fmt: skip
    cast = Cast.open("memory://", agents=[parrot], config=BroadcastConfig.debug())
    for name, agent in agents.items():
        cast.register(agent, name=name)
    async with serving(cast) as it:
        for name in agents:
            await (await cast.say(name, f"about {name}", agent=name)).result()
        yield it


async def looked_at(tab: Tab, host: Served, thread: str) -> None:
    await tab.goto(f"{host.url}/?thread={thread}")
    await tab.until(f"document.querySelector('#title') && {AT_EASE} && runcast.view.thread === '{thread}'")


async def findings(tab: Tab) -> list[Any]:
    """What axe has to say of the page as it stands."""
    if await tab.js("typeof globalThis.axe") == "undefined":
        await tab.js(AXE.read_text() + "; 0")
    ran = "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => JSON.stringify(violations.map(({ id, nodes }) => [id, nodes.map((each) => [each.html.slice(0, 200), each.failureSummary])])))"
    found: list[Any] = json.loads(await tab.js(ran))
    return found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_axe_has_no_finding_at_any_width(host: Served, browser: Browser, dark: bool) -> None:
    tab = await browser.tab("about:blank", dark=dark)
    for scene in SCENES:
        await looked_at(tab, host, scene)
        for width in WIDTHS if scene in ("report", "booking") else (390, 1360):
            await tab.size(width, 900, dark=dark)
            assert await findings(tab) == [], f"{scene} at {width}"
            assert await tab.js("document.documentElement.scrollWidth") <= width
        await tab.size(1360, 900, dark=dark)
        await tab.shot(f"scene-{scene}-{'dark' if dark else 'light'}")
    assert tab.errors == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_axe_has_no_finding_in_any_part_of_the_inspector(
    host: Served, browser: Browser, dark: bool
) -> None:
    tab = await browser.tab("about:blank", dark=dark, width=1360)
    await looked_at(tab, host, "report")
    for name in ("timeline", "runs", "past", "raw"):
        await tab.js(
            f"document.querySelector('#tab-{name}') ?? document.querySelector('[aria-label=Details]').click()"
        )
        await tab.click(f"#tab-{name}")
        await tab.until("document.querySelector('#panel').textContent.length > 10")
        if name == "past":
            await tab.until("document.getElementById('seq') !== null")
            await tab.js(
                "(() => { const it = document.getElementById('seq'); it.value = '10';"
                " it.dispatchEvent(new Event('input', { bubbles: true })) })()"
            )
            await tab.until("document.querySelector('#moment')")
        assert await findings(tab) == [], name
        await tab.shot(f"inspector-{name}-{'dark' if dark else 'light'}")
    await tab.js("document.dispatchEvent(new KeyboardEvent('keydown', { key: '?' }))")
    await tab.until("document.getElementById('help').open")
    assert await findings(tab) == []
    await tab.js("document.getElementById('help').close()")
    await tab.js("document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))")
    await tab.press("Full result")
    await tab.until("document.getElementById('full')")
    assert await findings(tab) == []


async def test_keys_reach_every_part(host: Served, browser: Browser) -> None:
    tab = await browser.tab("about:blank", width=1360)
    await looked_at(tab, host, "report")

    async def key(name: str) -> None:
        await tab.js("document.activeElement.blur()")
        await tab.js(f"document.dispatchEvent(new KeyboardEvent('keydown', {{ key: {json.dumps(name)} }}))")

    for name, reached in {
        "n": "document.activeElement.id === 'ask'",
        "t": "document.activeElement.id === 'search'",
        "f": "document.activeElement.id === 'find'",
        "/": "document.activeElement.id === 'filter'",
        "1": "document.querySelector('.waterfall')",
        "2": "document.getElementById('runs')",
        "3": "document.getElementById('seq')",
        "4": "document.getElementById('log')",
        "?": "document.getElementById('help').open",
    }.items():
        await key(name)
        await tab.until(reached)
    listed = await tab.js("[...document.querySelectorAll('.keys dt')].map((each) => each.textContent.trim())")
    assert {
        "n",
        "t",
        "f",
        "/",
        "1",
        "2",
        "3",
        "4",
        "?",
        "j",
        "k",
        "g",
        "i",
        "s",
        "c",
        "[",
        "]",
        "Esc",
    } <= set(listed)
    await tab.js("document.getElementById('help').close()")
    await key("i")
    await tab.until("document.getElementById('inspector') === null")
    await key("j")
    await tab.until("document.activeElement.dataset.kind === 'run'")
    await tab.js("document.dispatchEvent(new KeyboardEvent('keydown', { key: 'j' }))")
    await tab.until("document.activeElement.dataset.kind === 'ask'")


async def test_a_screen_reader_hears_a_new_message_once(host: Served, browser: Browser) -> None:
    gated = Gated(3)
    host.cast.register(gated, name="gated")
    await post_run(host.http, thread="heard", text="before")
    tab = await browser.tab("about:blank")
    await looked_at(tab, host, "heard")
    await tab.shows("document.getElementById('announced').textContent", "")  # what was there is no news
    await tab.js(
        "globalThis.heard = []; new MutationObserver(() => heard.push(document.getElementById('announced').textContent))"
        ".observe(document.getElementById('announced'), { childList: true, characterData: true, subtree: true })"
    )
    await host.cast.say("heard", "count", agent="gated")
    gated.open()
    await tab.until(f"runcast.view.status === 'completed' && {AT_EASE} && heard.length > 0")
    await tab.shows("heard", ["0 1 2 "])


async def test_motion_stops_for_who_asked_for_less(host: Served, browser: Browser) -> None:
    gated = Gated(3)
    host.cast.register(gated, name="still")
    await host.cast.say("moving", "count", agent="still")
    gated.open(1)
    tab = await browser.tab("about:blank")
    await looked_at(tab, host, "moving")
    await tab.until("document.getAnimations().length > 0")
    await tab.call(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}]
    )
    await tab.until("document.getAnimations().length === 0")
    gated.open()


async def test_a_line_that_is_gone_is_told_and_comes_back(host: Served, browser: Browser) -> None:
    tab = await browser.tab("about:blank")
    await looked_at(tab, host, "report")
    await tab.offline(True)
    await tab.js("document.getElementById('ask').focus()")
    await tab.call("Input.insertText", text="are you there?")
    await tab.click("#send")
    await tab.until(
        "document.querySelector('.banner[role=alert]')?.textContent.includes('cannot be reached')"
    )
    await tab.shows("document.getElementById('ask').value", "are you there?")
    await tab.offline(False)
    await tab.click("#send")
    await tab.until(
        f"runcast.view.status === 'completed' && {AT_EASE} && document.querySelectorAll('.said').length === 2"
    )


async def test_a_thread_that_does_not_exist_and_one_that_is_read(host: Served, browser: Browser) -> None:
    tab = await browser.tab(f"{host.url}/?thread=nowhere")
    await tab.until("document.querySelector('#empty h2')?.textContent === 'Nothing is here'")
    await tab.call(
        "Page.addScriptToEvaluateOnNewDocument", source="globalThis.fetch = () => new Promise(() => {})"
    )
    await tab.goto(f"{host.url}/?thread=report")
    await tab.until("document.querySelector('main .reading') && document.querySelector('nav .reading')")


async def test_a_result_of_five_megabytes_is_shown_in_parts(host: Served, browser: Browser) -> None:
    tab = await browser.tab("about:blank")
    await looked_at(tab, host, "heavy")
    await tab.press("Full result")
    await tab.until("document.getElementById('full-text')?.textContent.length === 100000")
    await tab.js("[...document.querySelectorAll('#full button')].at(-1).click()")
    await tab.until("document.getElementById('full-text').textContent.length === 200000")


async def test_a_failure_says_what_failed(host: Served, browser: Browser) -> None:
    tab = await browser.tab("about:blank")
    await looked_at(tab, host, "failed")
    shown = await tab.js("document.querySelector('.banner[role=alert]').textContent")
    assert shown == "The run failed. TIMEOUT: The model did not answer."
    await tab.size(390, 860)
    sizes = "(it => [it.clientWidth, it.querySelector('b').offsetHeight])(document.querySelector('.banner[role=alert]'))"
    width, height = await tab.js(sizes)
    assert width > 300
    assert height < 40  # its first words stand on one line, and are no column of their own
    await tab.shows("document.getElementById('status').textContent", "Failed")


async def test_the_first_load_is_small_and_comes_from_here_alone(host: Served, browser: Browser) -> None:
    page = Path(ROOT / "app" / "runcast" / "app" / "page")
    index = (page / "index.html").read_text()
    assert "http" not in index.replace("http-equiv", "")
    names = [each.name for each in (page / "assets").iterdir() if each.name in index]
    assert len(names) == 2
    weight = sum(len(gzipped((page / "assets" / name).read_bytes())) for name in names)
    assert weight < 200_000


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data)
