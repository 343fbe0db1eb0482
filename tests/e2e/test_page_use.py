"""The page in use: what a person said is there, a copy is a copy, every control has a name, nothing is taken away."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from runcast.app import Cast
from runcast.broadcast import BroadcastConfig
from tests.app.agents import Gated, asker, parrot, tooled
from tests.app.serving import Served, over, post_run, serving
from tests.e2e.browser import Browser, Tab
from tests.e2e.test_page import AT_EASE

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="module")]

SAID = "JSON.stringify([...document.querySelectorAll('.said')].map((each) => each.textContent))"


@pytest_asyncio.fixture(loop_scope="module")
async def host() -> AsyncIterator[Served]:
    cast = Cast.open("memory://", agents=[parrot, asker, tooled], config=BroadcastConfig.debug())
    async with serving(cast) as it:
        yield it


async def at_ease(host: Served, browser: Browser, **options: Any) -> Tab:
    tab = await browser.tab(f"{host.url}/?thread=t1", **options)
    await tab.until(AT_EASE)
    return tab


async def said(tab: Tab, *texts: str) -> None:
    """Wait until these are the things that a person said, in this order."""
    await tab.until(f"{SAID} === {json.dumps(json.dumps(texts, separators=(',', ':'), ensure_ascii=False))}")
    assert tab.errors == []


async def test_what_a_person_said_is_shown_wherever_it_was_said(host: Served, browser: Browser) -> None:
    writer = await browser.tab(f"{host.url}/")
    await writer.until("document.getElementById('start') !== null")
    await writer.type("#ask", "grüß <b>dich</b>")
    await writer.click("#send")
    await said(writer, "grüß <b>dich</b>")
    (thread,) = await host.cast.log.threads()
    await over(host.cast, thread.thread_id)
    watcher = await browser.tab(f"{host.url}/?thread={thread.thread_id}")
    await said(watcher, "grüß <b>dich</b>")
    await host.cast.say(thread.thread_id, "and again")
    for tab in (writer, watcher):
        await said(tab, "grüß <b>dich</b>", "and again")
    await writer.reload()
    await said(writer, "grüß <b>dich</b>", "and again")
    order = await writer.js(
        "[...document.querySelectorAll('.said, .prose')].map((each) => each.className.split(' ')[0]).join()"
    )
    assert order == "said,prose,said,prose"


async def test_a_branch_shows_its_own_words_and_an_answer_is_one(host: Served, browser: Browser) -> None:
    for n, text in enumerate(("about Paris", "about London")):
        await post_run(host.http, text=text, run=f"run-{n}")
    await over(host.cast)
    await (await host.cast.say("t1", "ask me", agent="asker", from_run="run-0")).result()
    tab = await at_ease(host, browser)
    await said(tab, "about Paris", "about London", "ask me")
    await tab.type(".question input", "surely")
    await tab.press("Answer")
    await said(tab, "about Paris", "about London", "ask me", "surely")


async def test_a_branch_is_thought_better_of(host: Served, browser: Browser) -> None:
    await post_run(host.http)
    await over(host.cast)
    tab = await at_ease(host, browser)
    await tab.click("#tab-runs")
    await tab.click(".branch")
    await tab.until("document.getElementById('branching') !== null")
    await tab.press("From the end instead")
    await tab.until("document.getElementById('branching') === null")
    await tab.click(".branch")
    await tab.until("document.getElementById('branching') !== null")
    await tab.press("New thread")
    await tab.until("document.getElementById('branching') === null")


async def test_envelopes_are_copied_as_they_are_filtered(host: Served, browser: Browser) -> None:
    await post_run(host.http)
    tab = await at_ease(host, browser)
    granted = await tab.call("Target.getTargetInfo")
    await browser.call(
        "Browser.grantPermissions",
        {
            "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"],
            "origin": host.url,
            "browserContextId": granted["targetInfo"]["browserContextId"],
        },
    )
    await tab.call("Page.bringToFront")
    await tab.click("#tab-raw")
    await tab.until("document.getElementById('filter') !== null")
    await tab.type("#filter", "agent.stream")
    await tab.press("Copy")
    await tab.until("document.getElementById('copied').textContent.endsWith('copied')")
    lines = [json.loads(line) for line in (await tab.js("navigator.clipboard.readText()")).splitlines()]
    assert {each["type"] for each in lines} == {"agent.stream.chunk"}
    assert "".join(each["payload"]["chunk"] for each in lines) == "hello you "


async def test_every_control_has_a_name_that_is_read_aloud(host: Served, browser: Browser) -> None:
    await post_run(host.http, "tooled")
    await host.cast.say("t1", "ask me", agent="asker")
    tab = await at_ease(host, browser)
    await tab.until("document.querySelector('.question') !== null")
    await tab.click("#tab-runs")
    await tab.until("document.querySelectorAll('.branch').length === 2")
    await tab.click("#tab-raw")
    await said(tab, "hello you", "ask me")
    await tab.js("for (const each of document.querySelectorAll('details')) each.open = true")
    found = (await tab.call("Accessibility.getFullAXTree"))["nodes"]
    nodes = [
        (each["role"]["value"], each.get("name", {}).get("value", ""))
        for each in found
        if not each.get("ignored") and "role" in each
    ]
    controls = {"button", "textbox", "combobox", "searchbox", "checkbox", "link", "dialog"}
    assert [node for node in nodes if node[0] in controls and not node[1].strip()] == []
    assert {
        ("navigation", "Threads"),
        ("complementary", "Details"),
        ("list", "What the agent did"),
        ("group", "You said"),
        ("textbox", "Message"),
        ("combobox", "Agent"),
        ("textbox", "Your answer"),
        ("button", "Answer"),
        ("searchbox", "Filter envelopes"),
    } <= set(nodes)
    assert {name for role, name in nodes if role == "region"} >= {"Questions that wait for you"}


async def test_keys_alone_are_enough(host: Served, browser: Browser) -> None:
    tab = await browser.tab(f"{host.url}/")
    await tab.until("document.getElementById('start') !== null")
    await key(tab, "n")
    await tab.until("document.activeElement.id === 'ask'")
    await tab.call("Input.insertText", text="by keys")
    await key(tab, "Enter")
    await said(tab, "by keys")
    await tab.until(f"runcast.view.status === 'completed' && {AT_EASE}")
    await key(tab, "c")
    await tab.until("document.getElementById('status').textContent === 'No run yet'")
    await tab.shows("document.getElementById('ask').value", "")


async def key(tab: Tab, name: str, *, ctrl: bool = False) -> None:
    if name != "Enter":
        await tab.js("document.activeElement.blur()")
    codes = {"Enter": 13}
    told = {
        "key": name,
        "modifiers": 2 if ctrl else 0,
        "windowsVirtualKeyCode": codes.get(name, ord(name[0].upper())),
    }
    await tab.call("Input.dispatchKeyEvent", type="rawKeyDown", **told)
    await tab.call("Input.dispatchKeyEvent", type="keyUp", **told)


async def test_what_grows_is_not_taken_from_under_a_hand(host: Served, browser: Browser) -> None:
    gated = Gated(8)
    host.cast.register(gated, name="gated")
    await post_run(host.http)
    await over(host.cast)
    await host.cast.say("t1", "count", agent="gated")
    gated.open(4)
    tab = await at_ease(host, browser)
    await tab.until("[...document.querySelectorAll('.prose')].at(-1).textContent.trim() === '0 1 2 3'")
    await tab.click("#tab-runs")
    await tab.until("document.querySelectorAll('.branch').length === 1")
    await tab.js("""(() => {
      const grows = [...document.querySelectorAll('.prose')].at(-1);
      const words = document.createTreeWalker(grows, NodeFilter.SHOW_TEXT).nextNode();
      getSelection().setBaseAndExtent(words, 2, words, 5);
      document.querySelector('.branch').focus();
    })()""")
    gated.open()
    await tab.until(f"runcast.view.status === 'completed' && {AT_EASE}")
    await tab.until("document.querySelectorAll('.branch').length === 2")
    await tab.shows("getSelection().toString()", "1 2")
    await tab.shows("document.activeElement.className", "link branch")
    assert (
        await tab.js("[...document.querySelectorAll('.prose')].at(-1).textContent.trim()")
        == "0 1 2 3 4 5 6 7"
    )


async def test_a_narrower_window_keeps_the_newest_in_view(host: Served, browser: Browser) -> None:
    for n in range(3):
        await host.cast.say("t1", f"{n} " + "some words " * 300, agent="parrot")
        await over(host.cast)
    tab = await browser.tab(f"{host.url}/?thread=t1")
    await tab.size(1200, 900)
    left = "(() => { const box = document.querySelector('[data-scroller]'); return box.scrollHeight - box.scrollTop - box.clientHeight })()"
    await tab.until(f"runcast.view.status === 'completed' && {AT_EASE} && {left} < 2")
    for width in (360, 1200, 500):
        await tab.size(width, 900)
        await tab.until(f"innerWidth === {width}")
        await tab.until(f"{left} < 2")
    await tab.js("document.querySelector('[data-scroller]').scrollTop -= 400")
    await tab.until("document.querySelector('.to-end') !== null")
    await tab.size(360, 900)
    await tab.until("innerWidth === 360")
    await tab.until(f"{left} > 200")
