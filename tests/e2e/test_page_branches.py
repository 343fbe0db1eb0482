"""From any moment a person goes on: on a branch behind the end of a run, in a new thread from inside one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from ag_ui.core import (
    Event,
    RunAgentInput,
    StateSnapshotEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.app import Cast
from tests.app.agents import said
from tests.app.serving import serving
from tests.conftest import missing
from tests.e2e.browser import MISSING, Tab, browsing, program
from tests.e2e.test_page import AT_EASE

pytestmark = [pytest.mark.server]

SEEK = """(() => {{ const seq = document.getElementById('seq'); seq.value = {};
  seq.dispatchEvent(new Event('input', {{ bubbles: true }})); return seq.value }})()"""


async def look_at(tab: Tab, seq: int) -> None:
    """Move the scrubber to an event."""
    await tab.click("#tab-past")
    await tab.until("document.getElementById('seq')?.max > 1")
    await tab.js(SEEK.format(seq))
    await tab.until(f"document.querySelector('.moment b').textContent === '{seq}'")


async def test_a_moment_inside_a_run_is_gone_on_from_in_a_new_thread() -> None:
    if program() is None:
        missing(MISSING)
    given: list[RunAgentInput] = []

    async def writer(input: RunAgentInput) -> AsyncIterator[Event]:
        given.append(input)
        for event in said(f"{input.run_id}-a", "First part."):
            yield event
        yield StateSnapshotEvent(snapshot={"parts": 1})
        for call in ("done", "open"):
            yield ToolCallStartEvent(tool_call_id=f"{call}-{input.run_id}", tool_call_name="look")
            yield ToolCallArgsEvent(tool_call_id=f"{call}-{input.run_id}", delta="{}")
            yield ToolCallEndEvent(tool_call_id=f"{call}-{input.run_id}")
            yield ToolCallResultEvent(
                message_id=f"r-{call}-{input.run_id}", tool_call_id=f"{call}-{input.run_id}", content=call
            )
        for event in said(f"{input.run_id}-b", "Second part."):
            yield event

    async with browsing() as browser, serving(Cast.open("memory://", agents=[writer])) as host:
        await (await host.cast.say("t1", "write")).result()
        entries = await host.cast.log.entries("t1")
        started = [each.seq for each in entries if each.event.type == "TOOL_CALL_START"]
        tab = await browser.tab(f"{host.url}/?thread=t1")
        await tab.until(AT_EASE)
        await look_at(tab, started[1])  # the second call has begun, and has no result
        await tab.until("document.getElementById('from-here').textContent.includes('new thread')")
        await tab.press("Branch from here")
        await tab.until("document.getElementById('origin') !== null")
        assert f"event {started[1]} of" in await tab.js("document.getElementById('origin').textContent")
        await tab.type("#ask", "go on from there")
        await tab.click("#send")
        await tab.until("location.search.startsWith('?thread=') && location.search !== '?thread=t1'")
        await tab.until(f"runcast.view.status === 'completed' && {AT_EASE}")
        fork = given[1]
        told: list[Any] = [
            (
                each.role,
                getattr(each, "content", None),
                [call.id for call in getattr(each, "tool_calls", None) or ()],
            )
            for each in fork.messages
        ]
        first = given[0].run_id
        assert told == [
            ("user", "write", []),
            ("assistant", "First part.", []),
            ("assistant", None, [f"done-{first}"]),
            ("tool", "done", []),
            ("user", "go on from there", []),
        ]
        assert fork.state == {"parts": 1}
        assert fork.thread_id != "t1"
        last = entries[-1].seq
        await tab.goto(f"{host.url}/?thread=t1")
        await tab.until(AT_EASE)
        await look_at(tab, last)
        await tab.until("document.getElementById('from-here').textContent.includes('stays in this thread')")
        await tab.press("Branch from here")
        await tab.until("document.getElementById('branching') !== null")
        await tab.type("#ask", "a branch")
        await tab.click("#send")
        await tab.until(
            "runcast.view.items.filter((each) => each.kind === 'run').length === 2 "
            f"&& runcast.view.status === 'completed' && {AT_EASE}"
        )
        runs = await host.cast.log.runs("t1")
        assert [(run.edge, run.parent) for run in runs] == [("continue", None), ("branch", runs[0].run_id)]
        assert tab.errors == []


async def test_a_message_that_came_while_a_run_was_active_is_edited_too() -> None:
    if program() is None:
        missing(MISSING)

    async def steered(input: RunAgentInput) -> AsyncIterator[Event]:
        for event in said(f"{input.run_id}-a", "Working."):
            yield event
        for event in said(f"{input.run_id}-user", "no, shorter"):
            yield event.model_copy(update={"role": "user"}) if event.type == "TEXT_MESSAGE_START" else event
        for event in said(f"{input.run_id}-b", "Shorter."):
            yield event

    async with browsing() as browser, serving(Cast.open("memory://", agents=[steered])) as host:
        await (await host.cast.say("t1", "write")).result()
        tab = await browser.tab(f"{host.url}/?thread=t1")
        await tab.until(AT_EASE)
        await tab.press_named("Edit in a new thread", "[data-kind=text]")
        await tab.until("document.getElementById('ask').value === 'no, shorter'")
        assert "in a new thread" in await tab.js("document.getElementById('origin').textContent")
        await tab.click("#send")
        await tab.until("location.search.startsWith('?thread=') && location.search !== '?thread=t1'")
        await tab.until(f"runcast.view.status === 'completed' && {AT_EASE}")
        texts = "[...document.querySelectorAll('.said')].map((each) => each.textContent).slice(0, 2)"
        await tab.until(f'JSON.stringify({texts}) === \'["write","no, shorter"]\'')
        assert tab.errors == []
