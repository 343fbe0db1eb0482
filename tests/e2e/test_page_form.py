"""What an agent asks for beside the message is a form: nothing is sent that must fail, and what is sent arrives."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime

from runcast.adapters.langgraph import LangGraphAdapter, LangGraphOptions
from runcast.app import Cast
from runcast.broadcast import BroadcastConfig
from tests.app.agents import parrot
from tests.app.serving import serving
from tests.conftest import missing
from tests.e2e.browser import MISSING, browsing, program
from tests.e2e.test_page import AT_EASE
from tests.e2e.test_page_everywhere import findings
from tests.e2e.test_page_files import add

pytestmark = [pytest.mark.server]


@dataclass
class Context:
    """What the graph is given from outside."""

    user_id: str
    tone: str = "friendly"


async def greet(state: MessagesState, runtime: Runtime[Context]) -> dict[str, Any]:
    given = runtime.context
    return {"messages": [("ai", f"{given.tone} {given.user_id}")]}


def greeter() -> LangGraphAdapter:
    graph = (
        StateGraph(MessagesState, context_schema=Context).add_node("greet", greet).add_edge(START, "greet")
    )
    options = LangGraphOptions(client_config=True, files=("image",))
    return LangGraphAdapter(graph.compile(), name="greeter", options=options)


FIELD = "[...document.querySelectorAll('#agent-form label')].find((each) => each.textContent.includes({}))"


async def test_an_agents_context_is_filled_in_before_the_first_message(tmp_path: Path) -> None:
    if program() is None:
        missing(MISSING)
    picture = tmp_path / "dot.png"
    picture.write_bytes(b"\x89PNG\r\n")
    cast = Cast.open("memory://", agents=[greeter(), parrot], config=BroadcastConfig.debug())
    async with browsing() as browser, serving(cast) as host:
        tab = await browser.tab(f"{host.url}/")
        await tab.until("document.getElementById('agent-form')?.open")
        await tab.type("#ask", "hello")
        await tab.click("#send")
        await tab.until("document.querySelector('#agent-form [aria-invalid=true]') !== null")
        assert await host.cast.log.threads() == [], "what must fail is not sent"
        await add(tab, picture)
        await tab.until("document.querySelectorAll('#files li').length === 1")
        for dark in (False, True):
            for width in (390, 1360):
                await tab.size(width, 900, dark=dark)
                assert await findings(tab) == [], f"{width} {dark}"
                assert await tab.js("document.documentElement.scrollWidth") <= width
                await tab.shot(f"form-{width}-{'dark' if dark else 'light'}")
        await tab.press_named("Leave out dot.png")
        await tab.js(f"{FIELD.format(json.dumps('User'))}.control.focus()")
        await tab.call("Input.insertText", text="ada")
        await tab.click("#send")
        await tab.until(f"runcast.view.status === 'completed' && {AT_EASE}")
        await tab.shows("document.querySelector('.prose .markdown').textContent.trim()", "friendly ada")
        await tab.type("#ask", "again")  # a thread that has begun keeps what it was given
        await tab.click("#send")
        await tab.until(
            f"document.querySelectorAll('.prose').length === 2 && runcast.view.status === 'completed' && {AT_EASE}"
        )
        await tab.press("New thread")
        await tab.js("document.getElementById('agent').value = 'parrot'")
        await tab.js("document.getElementById('agent').dispatchEvent(new Event('change', { bubbles: true }))")
        await tab.until("document.getElementById('agent-form') === null")  # it asks for nothing
        assert tab.errors == []


async def test_the_graph_and_a_title_that_is_written_are_for_everybody() -> None:
    if program() is None:
        missing(MISSING)
    async with browsing() as browser, serving(Cast.open("memory://", agents=[greeter()])) as host:
        await (await host.cast.say("t1", "hi", forwarded_props={"context": {"user_id": "ada"}})).result()
        for dark in (False, True):
            tab = await browser.tab(f"{host.url}/?thread=t1", width=1360, dark=dark)
            await tab.until(f"runcast.view.status === 'completed' && {AT_EASE}")
            await tab.click("#tab-graph")
            await tab.until("document.querySelector('.drawing [data-node=greet]')")
            assert await findings(tab) == []
            await tab.press_named("Rename this thread")
            await tab.until("document.getElementById('title-text') !== null")
            assert await findings(tab) == []
            await tab.size(390, 900, dark=dark)
            assert await tab.js("document.documentElement.scrollWidth") <= 390
            assert tab.errors == []
