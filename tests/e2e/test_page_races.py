"""The page while answers come late, in another order, or not at all: what it shows in the end is what is so."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from runcast.app import Cast
from runcast.broadcast import BroadcastConfig
from tests.app.agents import Gated, parrot
from tests.app.serving import Served, anyone, post_run, serving
from tests.e2e.browser import Browser, Tab
from tests.e2e.test_page import AT_EASE

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="module")]

RUNS = "document.querySelectorAll('#runs li').length"
SETTLED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"


class Line:
    """An ASGI app behind a bad line: answers are made at once, and may be held back or lost."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._held: dict[str, asyncio.Event] = {}  # by the end of a path
        self.broken: Counter[str] = Counter()  # how many answers are lost yet
        self.made: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()

    def hold(self, path: str) -> asyncio.Event:
        """Hold back the next answer of GET `path`, or the next socket there, until the event is set."""
        self._held[path] = asyncio.Event()
        return self._held[path]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = "/" + scope.get("path", "").rpartition("/")[2]
        if scope["type"] == "websocket" and (waits := self._held.pop(path, None)) is not None:
            await waits.wait()
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        held = self._held.pop(path, None)
        if self.broken[path]:
            self.broken[path] -= 1
            await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b"not now"})
            return
        messages: list[Any] = []

        async def keep(message: Any) -> None:
            messages.append(message)

        await self._app(scope, receive, keep)
        self.made[path] += 1
        if held is not None:
            await held.wait()
        for message in messages:
            await send(message)
        self.sent[path] += 1

    async def has(self, told: Counter[str], path: str, times: int = 1) -> None:
        """Wait until so many answers were made, or sent."""
        async with asyncio.timeout(60):
            while told[path] < times:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


@pytest_asyncio.fixture(loop_scope="module")
async def host() -> AsyncIterator[Served]:
    cast = Cast.open("memory://", agents=[parrot], config=BroadcastConfig.debug())
    line = Line(cast.asgi(authorize=anyone))
    async with serving(cast, app=line) as it:
        it.server.config.app = line
        yield it


def line_of(host: Served) -> Line:
    line = host.server.config.app
    assert isinstance(line, Line)
    return line


async def on_runs(browser: Browser, url: str) -> Tab:
    """The page with its list of runs open."""
    tab = await browser.tab(url)
    await tab.click("#tab-runs")
    return tab


async def test_an_older_list_of_runs_never_covers_a_newer_one(host: Served, browser: Browser) -> None:
    line = line_of(host)
    await post_run(host.http, run="run-0")
    late = line.hold("/runs")
    tab = await on_runs(browser, f"{host.url}/?thread=t1")
    await line.has(line.made, "/runs")
    await post_run(host.http, run="run-1")
    await tab.until(f"runcast.view.run === 'run-1' && runcast.view.status === 'completed' && {AT_EASE}")
    late.set()
    read = "performance.getEntriesByType('resource').filter((each) => each.name.endsWith('/runs')).length"
    await line.has(line.sent, "/runs", max(2, line.made["/runs"]))
    await tab.until(f"{read} >= {line.sent['/runs']}")
    await tab.js(SETTLED)
    await tab.until(f"{RUNS} === 2")
    await tab.js(SETTLED)
    await tab.shows(RUNS, 2)
    assert (
        await tab.js("[...document.querySelectorAll('#runs .state')].map((each) => each.textContent).join()")
        == "Done,Done"
    )


async def test_what_was_not_answered_is_asked_for_again(host: Served, browser: Browser) -> None:
    await post_run(host.http)
    line_of(host).broken.update({"/runs": 4, "/threads": 2, "/agents": 2, "/envelopes": 1})
    tab = await on_runs(browser, f"{host.url}/?thread=t1")
    await tab.until(f"runcast.view.status === 'completed' && {AT_EASE}")
    await tab.until(f"{RUNS} === 1")
    await tab.until("document.querySelectorAll('#threads li').length === 1")
    await tab.until("document.querySelectorAll('.branch').length === 1")
    assert tab.errors == []


SAID = "[...document.querySelectorAll('[aria-label=\"You said\"]')].map((each) => each.textContent)"
# what is drawn of a run while nothing of its user's words is
MISSED = """(() => {
  window.missed = 0;
  const look = () => (window.missed += document.querySelectorAll(".run-start").length > document.querySelectorAll('.said').length);
  new MutationObserver(look).observe(document, { childList: true, subtree: true });
  return true;
})()"""


async def test_the_words_of_the_newest_run_are_there_with_its_failure(browser: Browser) -> None:
    async def failing(input: Any) -> AsyncIterator[Any]:
        raise RuntimeError("the model is away")
        yield

    cast = Cast.open("memory://", agents=[failing])
    line = Line(cast.asgi(authorize=anyone))
    async with serving(cast, app=line) as it:
        await (await cast.say("t1", "hello you")).result()
        opened = line.hold("/ws")
        tab = await browser.tab(f"{it.url}/?thread=t1")
        await tab.js(MISSED)
        await line.has(line.sent, "/events", 2)  # for the title, and for the newest run
        await tab.js(SETTLED)
        opened.set()
        await tab.until("document.body.innerText.includes('the model is away')")
        await tab.shows(SAID, ["hello you"])
        assert await tab.js("window.missed") == 0


async def test_what_this_page_sent_is_shown_before_the_log_was_read(host: Served, browser: Browser) -> None:
    await post_run(host.http, text="one")
    tab = await browser.tab(f"{host.url}/?thread=t1")
    await tab.shows(SAID, ["one"])
    line_of(host).broken["/events"] = 1000
    await tab.type("textarea", "two")
    await tab.press_named("Send")
    await tab.until("document.querySelectorAll('.run-start').length === 2")
    await tab.shows(SAID, ["one", "two"])
    before = line_of(host).sent["/events"]
    line_of(host).broken["/events"] = 0
    await line_of(host).has(line_of(host).sent, "/events", before + 1)
    await tab.js(SETTLED)
    await tab.shows(SAID, ["one", "two"])
    assert not tab.errors


async def test_agents_that_come_late_can_be_branched_to(host: Served, browser: Browser) -> None:
    await post_run(host.http)
    late = line_of(host).hold("/agents")
    tab = await on_runs(browser, f"{host.url}/?thread=t1")
    await tab.until(f"{RUNS} === 1")
    await tab.shows("document.querySelectorAll('.branch').length", 0)
    late.set()
    await tab.until("document.querySelectorAll('.branch').length === 1")


async def test_another_thread_is_looked_at_before_the_first_has_answered(
    host: Served, browser: Browser
) -> None:
    await post_run(host.http, run="run-a", thread="a", text="of a")
    for n in range(2):
        await post_run(host.http, run=f"run-b{n}", thread="b", text="of b")
    line = line_of(host)
    late = [line.hold("/runs"), line.hold("/envelopes")]
    tab = await on_runs(browser, f"{host.url}/?thread=a")
    await line.has(line.made, "/runs")
    await line.has(line.made, "/envelopes")
    await tab.click("#threads [title=b]")
    for each in late:
        each.set()
    await tab.until(f"{RUNS} === 2 && runcast.view.thread === 'b' && {AT_EASE}")
    await tab.js(SETTLED)
    await tab.shows(RUNS, 2)
    assert "of a" not in await tab.js("document.querySelector('main').innerText")
    assert tab.errors == []


async def test_what_ends_between_the_first_reading_and_the_line_is_not_missed(
    host: Served, browser: Browser
) -> None:
    gated = Gated(3)
    host.cast.register(gated, name="gated")
    await host.cast.say("t1", "count", agent="gated")
    line = line_of(host)
    late = line.hold("/envelopes")
    tab = await browser.tab("about:blank")
    await tab.call("Page.addScriptToEvaluateOnNewDocument", source=SLOW_SOCKET)
    await tab.goto(f"{host.url}/?thread=t1")
    await line.has(line.made, "/envelopes")
    gated.open()
    async with asyncio.timeout(60):
        while host.cast.active:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await tab.js("globalThis.join()")
    await tab.until("globalThis.joined === true")
    late.set()
    await tab.until(f"runcast.view.status === 'completed' && {AT_EASE}")
    assert "0 1 2" in await tab.js("document.querySelector('main').innerText")


# A WebSocket that connects when it is told to.
SLOW_SOCKET = """
  const Real = WebSocket;
  globalThis.WebSocket = function (url) {
    const slow = { readyState: 0, close() {}, send() {} };
    globalThis.join = () => {
      const real = new Real(url);
      for (const name of ["onmessage", "onclose"]) real[name] = (event) => {
        slow.readyState = real.readyState;
        slow[name](event);
        if (name === "onmessage") globalThis.joined = true;
      };
      slow.send = (data) => real.send(data);
      slow.close = () => real.close();
    };
    return slow;
  };
"""
