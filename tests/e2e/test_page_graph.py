"""What an agent is made of and what it costs, on the page: its own graph with the active node lit, bars, prices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from ag_ui.core import Event, RunAgentInput, RunFinishedEvent, RunStartedEvent, TokenUsage
from langgraph.graph import START, MessagesState, StateGraph

from runcast.app import Cast, PageOptions
from runcast.broadcast import BroadcastConfig
from tests.app.agents import parrot, said
from tests.app.serving import serving
from tests.conftest import missing
from tests.e2e.browser import MISSING, browsing, program
from tests.e2e.test_page import AT_EASE

pytestmark = [pytest.mark.server]

STATE = "document.querySelector('.drawing [data-node={}]').dataset.state"


async def test_the_graph_is_drawn_and_the_node_at_work_is_lit() -> None:
    if program() is None:
        missing(MISSING)
    gate = asyncio.Event()

    async def plan(state: MessagesState) -> dict[str, Any]:
        return {}

    async def write(state: MessagesState) -> dict[str, Any]:
        await gate.wait()
        return {"messages": [("ai", "written")]}

    graph = StateGraph(MessagesState).add_node("plan", plan).add_node("write", write)
    graph.add_edge(START, "plan").add_edge("plan", "write").add_edge("write", "__end__")
    cast = Cast.open("memory://", agents=[parrot], config=BroadcastConfig.debug())
    cast.register(graph.compile(), name="desk")
    async with browsing() as browser, serving(cast) as host:
        answer = (await host.http.get("/agents/desk/graph")).json()
        assert [each["name"] for each in answer["nodes"]] == ["start", "plan", "write", "end"]
        assert (await host.http.get("/agents/parrot/graph")).json() == {"nodes": [], "edges": []}
        assert (await host.http.get("/agents/ghost/graph")).status_code == 404
        run = await host.cast.say("t1", "go", agent="desk")
        tab = await browser.tab(f"{host.url}/?thread=t1")
        await tab.click("#tab-graph")
        await tab.until(f"{STATE.format('write')} === 'running'")
        await tab.shows(STATE.format("plan"), "done")
        assert "At work: write." in await tab.js("document.getElementById('panel').textContent")
        await tab.shot("graph")
        gate.set()
        await run.result()
        await tab.until(f"{STATE.format('write')} === 'done' && {AT_EASE}")
        assert tab.errors == []


async def spender(input: RunAgentInput) -> AsyncIterator[Event]:
    """Says something, and reports what it used."""
    yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
    for event in said(input.run_id, "thought ", "through"):
        yield event
    usage = [
        TokenUsage(model="gpt-5-2026", input_tokens=100_000, output_tokens=10_000, total_tokens=110_000),
        TokenUsage(model="home-made", input_tokens=5, output_tokens=5, total_tokens=10),
    ]
    yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id, usage=usage)


async def test_a_run_costs_what_the_prices_say_and_without_prices_nothing_is_said() -> None:
    if program() is None:
        missing(MISSING)
    priced = PageOptions({"gpt-5": {"input": 1.25, "output": 10.0}}, "€")
    async with browsing() as browser:
        for options, wanted in ((priced, ", €0.23 without home-made, which has no price here"), (True, None)):
            async with serving(Cast.open("memory://", agents=[spender]), page=options) as host:
                await (await host.cast.say("t1", "go")).result()
                tab = await browser.tab(f"{host.url}/?thread=t1")
                await tab.until(f"runcast.view.status === 'completed' && {AT_EASE}")
                await tab.until("document.querySelector('.waterfall [data-kind=model]')")
                if wanted is not None:
                    await tab.until(f"document.getElementById('cost')?.textContent === '{wanted}'")
                await tab.click("#tab-runs")
                await tab.until("document.querySelector('.run-more')?.textContent.includes('tokens')")
                assert ("€0.23" in await tab.js("document.querySelector('.run-more').textContent")) == (
                    wanted is not None
                )
                assert tab.errors == []
