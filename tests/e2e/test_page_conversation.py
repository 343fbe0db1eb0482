"""The conversation as a person uses it: Markdown, tools, questions as forms, the composer, the list of threads."""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from ag_ui.core import (
    Event,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)

from runcast.app import Cast
from runcast.broadcast import BroadcastConfig
from tests.app.agents import Gated, parrot, tooled
from tests.app.serving import Served, over, post_run, serving
from tests.e2e.browser import Browser, Tab
from tests.e2e.page_agents import RESULT, approver, booker, twice, writer
from tests.e2e.test_page import AT_EASE

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="module")]

SAID = "[...document.querySelectorAll('.said')].map((each) => each.textContent)"
DONE = f"runcast.view.status === 'completed' && {AT_EASE}"
AWAY = "document.querySelector('[data-scroller]')"
KEY_CODES = {"Enter": 13, "ArrowUp": 38, "ArrowDown": 40, "Escape": 27}


@pytest_asyncio.fixture(loop_scope="module")
async def host() -> AsyncIterator[Served]:
    agents = {"writer": writer, "booker": booker, "twice": twice, "approver": approver}
    cast = Cast.open("memory://", agents=[parrot, tooled], config=BroadcastConfig.debug())
    for name, agent in agents.items():
        cast.register(agent, name=name)
    async with serving(cast) as it:
        yield it


async def opened(host: Served, browser: Browser, agent: str, text: str = "go", **options: Any) -> Tab:
    """A page on a thread in which this agent has run."""
    await (await host.cast.say("t1", text, agent=agent)).result()
    tab = await browser.tab(f"{host.url}/?thread=t1", **options)
    await tab.until(f"runcast.view.items.length > 1 && {AT_EASE}")
    return tab


async def key(tab: Tab, name: str, *, shift: bool = False) -> None:
    given: dict[str, Any] = {
        "key": name,
        "code": name,
        "modifiers": 8 if shift else 0,
        "windowsVirtualKeyCode": KEY_CODES[name],
    }
    if name == "Enter":
        given["text"] = "\r"
    await tab.call("Input.dispatchKeyEvent", type="keyDown", **given)
    await tab.call("Input.dispatchKeyEvent", type="keyUp", **given)


async def answered(tab: Tab, answers: dict[str, Any]) -> None:
    """Wait until the agent has these answers."""
    await tab.until(DONE)
    spoken = await tab.js("runcast.view.items.findLast((each) => each.kind === 'text').text")
    assert ast.literal_eval(spoken.removeprefix("answered ")) == answers


async def test_markdown_is_drawn_as_it_is_meant(host: Served, browser: Browser) -> None:
    tab = await opened(host, browser, "writer")
    drawn = """(() => { const at = document.querySelector('.prose .markdown'); return [
      at.querySelector('h2').textContent, at.querySelector('strong').textContent, at.querySelector('em').textContent,
      at.querySelectorAll('td').length, at.querySelector('ol ul li').textContent.trim(), at.querySelector('blockquote').textContent,
      at.querySelector('a').href, at.querySelector('a').rel, at.querySelectorAll('img').length,
      at.querySelector('pre').textContent.includes('def greet')] })()"""
    assert await tab.js(drawn) == [
        "Report on night trains", "bold", "italic", 3, "nested", "A quotation.",
        "https://example.com/", "noopener noreferrer nofollow", 1, True,
    ]  # fmt: skip
    await tab.until("document.querySelector('pre .hljs-keyword')?.textContent === 'def'")
    asked = "performance.getEntriesByType('resource').map((each) => new URL(each.name).origin)"
    assert set(await tab.js(asked)) == {host.url}, "no other server is asked"
    assert tab.errors == []


async def test_code_is_copied_as_it_was_written(host: Served, browser: Browser) -> None:
    tab = await opened(host, browser, "writer")
    await tab.js("navigator.clipboard.writeText = async (text) => { globalThis.copied = text }")
    await tab.press_named("Copy code")
    await tab.until("globalThis.copied")
    await tab.shows("globalThis.copied", 'def greet(name: str) -> str:\n    return f"hello {name}"')


async def test_a_tool_shows_its_arguments_and_its_result_beside(host: Served, browser: Browser) -> None:
    tab = await opened(host, browser, "writer")
    assert "Done" in await tab.js("document.querySelector('.card').textContent")
    await tab.press("Arguments")
    await tab.until("document.querySelector('.card .json')?.textContent.includes('Warsaw-Vienna')")
    await tab.press("Full result")
    await tab.until("document.querySelector('#full .json')?.textContent.includes('EN 406')")
    await tab.js("navigator.clipboard.writeText = async (text) => { globalThis.copied = text }")
    await tab.press_named("Copy result")
    assert await tab.until("globalThis.copied") == RESULT
    await tab.type("#search-result", "vienna")
    await tab.until("document.querySelector('#full [role=status]').textContent === '0 found'")
    await tab.js("document.getElementById('search-result').select()")
    await tab.call("Input.insertText", text="en 406")
    await tab.until("document.querySelector('#full [data-mark]').textContent === 'train: EN 406'")
    await tab.press_named("Close", within="#full")
    await tab.until("document.querySelector('#full') === null")


async def test_arguments_are_shown_while_they_are_written(host: Served, browser: Browser) -> None:
    gate = asyncio.Event()

    async def slow(input: RunAgentInput) -> AsyncIterator[Event]:
        yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
        yield ToolCallStartEvent(tool_call_id="c1", tool_call_name="compose")
        yield ToolCallArgsEvent(tool_call_id="c1", delta='{"title": "Half of')
        await gate.wait()
        yield ToolCallArgsEvent(tool_call_id="c1", delta=' it"}')
        yield ToolCallEndEvent(tool_call_id="c1")
        yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id)

    host.cast.register(slow, name="slow")
    await host.cast.say("t1", "go", agent="slow")
    tab = await browser.tab(f"{host.url}/?thread=t1")
    await tab.until("document.querySelector('#pending')?.textContent.includes('Half of')")
    gate.set()
    await tab.until(DONE)
    await tab.until("document.querySelector('#pending') === null")
    assert "compose" in await tab.js("document.querySelector('#timeline .card').textContent")


async def test_a_form_is_checked_before_it_is_sent(host: Served, browser: Browser) -> None:
    tab = await opened(host, browser, "booker")
    await tab.press("Answer")
    await tab.until("document.querySelectorAll('.question [aria-invalid=true]').length >= 2")
    await tab.until("document.activeElement.matches('.question input')")
    assert len(await host.cast.log.runs("t1")) == 1, "nothing was sent"
    field = (
        "[...document.querySelectorAll('.question label')].find((each) => each.textContent.trim() === '{}')"
    )
    for label, text in (("Passenger", "Ann"), ("Seats", "9")):
        await tab.js(f"document.getElementById({field.format(label)}.htmlFor).focus()")
        await tab.call("Input.insertText", text=text)
    await tab.js(
        f"(() => {{ const it = document.getElementById({field.format('Class')}.htmlFor); it.value = '1';"
        " it.dispatchEvent(new Event('change', { bubbles: true })) })()"
    )
    await tab.press("Answer")
    await tab.until("document.querySelectorAll('.question [aria-invalid=true]').length === 1")
    await tab.js(f"document.getElementById({field.format('Seats')}.htmlFor).select()")
    await tab.call("Input.insertText", text="2")
    await tab.js(f"{field.format('With breakfast')}.querySelector('input').click()")
    await tab.press("Add")
    await tab.js("document.querySelector('.list-row input').focus()")
    await tab.call("Input.insertText", text="Brno")
    await tab.press("Answer")
    booked = {"name": "Ann", "seats": 2, "class": "second", "meal": True, "stops": ["Brno"]}
    await answered(tab, {"q1": booked})
    assert await tab.js("document.querySelector('.question')") is None


async def test_several_questions_are_answered_together(host: Served, browser: Browser) -> None:
    tab = await opened(host, browser, "twice")
    await tab.shows("document.querySelectorAll('.question').length", 2)
    below = """(() => { const draft = [...document.querySelectorAll('.prose')].at(-1).getBoundingClientRect();
      return document.querySelector('.question').getBoundingClientRect().top >= draft.bottom })()"""
    await tab.until(below)  # under the draft, not over it
    await tab.press("second")
    await tab.until("document.querySelector('.question.answered')")
    assert len(await host.cast.log.runs("t1")) == 1, "the other one is waited for"
    await tab.press("Change it")
    await tab.press("first")
    await tab.press("Yes")
    await answered(tab, {"q1": True, "q2": "first"})
    await tab.until(f"{SAID}.includes('first')")  # what was answered stays in sight


@pytest.mark.parametrize("decision", ["Approve", "Reject", "Edit"])
async def test_a_call_is_approved_edited_or_rejected(host: Served, browser: Browser, decision: str) -> None:
    tab = await opened(host, browser, "approver")
    if decision == "Approve":
        await tab.click(".question .answers button")
        await answered(tab, {"q1": {"decisions": [{"type": "approve"}]}})
        return
    await tab.js(
        f"[...document.querySelectorAll('.question .choices button')].find((each) => each.textContent === {decision!r}).click()"
    )
    if decision == "Reject":
        await tab.until("document.querySelector('.question input[type=text]')")
        await tab.js("document.querySelector('.question input[type=text]').focus()")
        await tab.call("Input.insertText", text="too dear")
        await tab.press("Answer")
        await answered(tab, {"q1": {"decisions": [{"type": "reject", "message": "too dear"}]}})
        return
    await tab.until("document.querySelector('.question textarea')?.value.includes('80')")
    await tab.js("document.querySelector('.question textarea').select()")
    await tab.call("Input.insertText", text='{"amount": ')
    await tab.press("Answer")
    await tab.until("document.querySelector('.field-error')?.textContent === 'That is not valid JSON.'")
    await tab.call("Input.insertText", text="60}")
    await tab.press("Answer")
    edited = {"type": "edit", "edited_action": {"name": "pay", "args": {"amount": 60}}}
    await answered(tab, {"q1": {"decisions": [edited]}})


async def test_enter_sends_and_shift_enter_breaks_the_line(host: Served, browser: Browser) -> None:
    tab = await browser.tab(f"{host.url}/")
    await tab.until("document.getElementById('ask') !== null")
    await tab.type("#ask", "one")
    await key(tab, "Enter", shift=True)
    await tab.call("Input.insertText", text="two")
    await tab.shows("document.getElementById('ask').value", "one\ntwo")
    await key(tab, "Enter")
    await tab.until(f"{SAID}.includes('one\\ntwo') && {DONE}")
    await tab.until("document.getElementById('ask').value === ''")
    await tab.type("#ask", "three")
    await key(tab, "Enter")
    await tab.until(f"{SAID}.length === 2 && {DONE}")
    await tab.js("document.getElementById('ask').focus()")
    for expected in ("three", "one\ntwo"):
        await key(tab, "ArrowUp")
        await tab.until(f"document.getElementById('ask').value === {json.dumps(expected)}")
        await tab.js("document.getElementById('ask').setSelectionRange(0, 0)")
    assert tab.errors == []


async def test_the_newest_stays_in_view_unless_a_person_scrolled_up(host: Served, browser: Browser) -> None:
    gated = Gated(400)
    host.cast.register(gated, name="gated")
    for _ in range(3):
        await (await host.cast.say("t1", "go", agent="writer")).result()
    tab = await browser.tab(f"{host.url}/?thread=t1", height=600)
    await tab.until(DONE)
    await host.cast.say("t1", "count", agent="gated")
    gated.open(150)
    at_end = f"{AWAY}.scrollHeight - {AWAY}.scrollTop - {AWAY}.clientHeight < 3"
    await tab.until("runcast.view.items.at(-1).text?.includes('149 ')")
    await tab.until(at_end)
    # A turn of the wheel may meet a row that is just drawn, so a person turns it again.
    await tab.until(f"({AWAY}.scrollTop = 200, document.querySelector('.to-end') !== null)")
    # A person sees where things stand. The offset itself moves when rows above the view are measured and drawn.
    await asyncio.sleep(0.3)
    seen = f"(window.seen ??= document.elementFromPoint(innerWidth / 2, {AWAY}.getBoundingClientRect().top + 150))"
    before = await tab.js(f"{seen}.getBoundingClientRect().top")
    gated.open(250)
    await over(host.cast)
    await tab.until(DONE)
    assert abs(await tab.js(f"{seen}.getBoundingClientRect().top") - before) < 3, "nothing jumps"
    await tab.click(".to-end")
    await tab.until(at_end)
    await tab.until("document.querySelector('.to-end') === null")


async def test_a_message_is_edited_on_a_branch_and_asked_again(host: Served, browser: Browser) -> None:
    for n, text in enumerate(("first words", "about Paris")):
        await post_run(host.http, text=text, run=f"run-{n}")
    await over(host.cast)
    tab = await browser.tab(f"{host.url}/?thread=t1")
    await tab.until(DONE)
    edit = "[...document.querySelectorAll('[aria-label=\"Edit and branch\"]')]"
    await tab.until(f"{edit}.length === 1")
    await tab.js(f"{edit}[0].click()")
    await tab.until("document.getElementById('ask').value === 'about Paris'")
    await tab.js("document.getElementById('ask').select()")
    await tab.call("Input.insertText", text="about Rome")
    await tab.click("#send")
    await tab.until(f"{SAID}.includes('about Rome') && runcast.view.run !== 'run-1' && {DONE}")
    await over(host.cast)
    again = "[...document.querySelectorAll('[aria-label=\"Ask again on a branch\"]')]"
    await tab.until(f"{again}.length === 2")
    await tab.js(f"{again}.at(-1).click()")
    await tab.until(f"{SAID}.filter((each) => each === 'about Rome').length === 2 && {DONE}")
    await over(host.cast)
    runs = await host.cast.log.runs("t1")
    assert [(run.edge, run.parent) for run in runs[2:]] == [("branch", "run-0")] * 2


async def test_threads_are_named_by_their_first_message_and_searched(host: Served, browser: Browser) -> None:
    for thread, text in (("a1", "A trip to Vienna"), ("b2", "The weather in Brno")):
        await post_run(host.http, thread=thread, text=text, run=f"run-{thread}")
    tab = await browser.tab(f"{host.url}/")
    titles = "[...document.querySelectorAll('.thread-title')].map((each) => each.textContent).join('|')"
    await tab.until(f"{titles} === 'The weather in Brno|A trip to Vienna'")
    await tab.until("document.querySelector('#title').textContent === 'The weather in Brno'")
    await tab.type("#search", "vienna")
    await tab.until(f"{titles} === 'A trip to Vienna'")
    await tab.click("#threads button")
    await tab.until("runcast.view.thread === 'a1' && document.title.startsWith('A trip to Vienna')")
    await tab.until("[...document.querySelectorAll('#threads time')].every((each) => each.title !== '')")


async def test_words_are_found_in_a_thread(host: Served, browser: Browser) -> None:
    for n in range(30):
        await post_run(host.http, text=f"question {n} {'needle' if n % 10 == 3 else ''}", run=f"run-{n}")
    tab = await browser.tab(f"{host.url}/?thread=t1")
    await tab.until(f"{SAID}.length > 3 && {DONE}")
    await tab.press_named("Find in this thread")
    await tab.type("#find", "needle")
    await tab.until("document.querySelector('.find [role=status]').textContent === '1 of 6'")
    await key(tab, "Enter")
    visible = """(() => { const box = document.querySelector('[data-scroller]').getBoundingClientRect();
      const row = [...document.querySelectorAll('#timeline > li')].find((each) => each.textContent.includes('question 3 needle'));
      const at = row?.getBoundingClientRect(); return at && at.top >= box.top && at.bottom <= box.bottom })()"""
    await tab.until(visible)
    await key(tab, "Escape")
    await tab.until("document.querySelector('.find') === null")


async def test_a_link_to_a_message_leads_to_it(host: Served, browser: Browser) -> None:
    for n in range(12):
        await post_run(host.http, "tooled", text=f"question {n}", run=f"run-{n}")
    tab = await browser.tab(f"{host.url}/?thread=t1#{'run%20run-2'}", height=500)
    await tab.until(DONE)
    seen = """(() => { const box = document.querySelector('[data-scroller]').getBoundingClientRect();
      const at = document.querySelector('[data-run="run-2"]')?.getBoundingClientRect(); return at && at.top >= box.top && at.bottom <= box.bottom })()"""
    await tab.until(seen)


async def test_a_thumb_is_seen_by_everybody_and_stays(host: Served, browser: Browser) -> None:
    tab = await opened(host, browser, "writer")
    other = await browser.tab(f"{host.url}/?thread=t1")
    thumb = "document.querySelector('[data-kind=text] [aria-label^=\"Good answer\"]')"
    mine, others = (
        f"{thumb}.ariaPressed === '{own}' && {thumb}.textContent === '1'" for own in ("true", "false")
    )
    await tab.until(thumb)
    await tab.js(f"{thumb}.click()")
    await tab.until(mine)
    await other.until(others)
    await tab.reload()
    await tab.until(mine)
    await tab.js(f"{thumb}.click()")
    for each in (tab, other):
        await each.until(f"{thumb}.textContent === ''")
    assert not tab.errors


async def test_the_thread_is_taken_away_in_three_forms(host: Served, browser: Browser) -> None:
    tab = await opened(host, browser, "writer")
    await tab.js("URL.createObjectURL = (blob) => { globalThis.saved = blob; return 'data:,' }")
    await tab.js("HTMLAnchorElement.prototype.click = function () { globalThis.named = this.download }")
    await tab.click("#tab-runs")
    texts: dict[str, str] = {}
    for label in ("Events (JSONL)", "Markdown", "Snapshot"):
        await tab.js("globalThis.saved = null")
        await tab.press(label)
        await tab.until("globalThis.saved")
        texts[await tab.js("globalThis.named")] = await tab.js("globalThis.saved.text()")
    events = [json.loads(line)["event"] for line in texts["t1.jsonl"].splitlines()]
    assert (events[0]["type"], events[-1]["type"]) == ("RUN_STARTED", "RUN_FINISHED")
    assert "# Report on night trains" in texts["t1.md"]
    assert "Warsaw-Vienna" in texts["t1.md"]
    assert json.loads(texts["t1.json"])["resume"]["seq"] == len(events)


async def test_an_order_that_is_refused_says_why(host: Served, browser: Browser) -> None:
    tab = await opened(host, browser, "parrot", "hello")
    await tab.until("document.getElementById('ask') !== null")
    await tab.type("#ask", "at the same time")
    await tab.js(
        "globalThis.fetch = ((real) => (url, given) => given?.method === 'POST' ? new Promise((go) => (globalThis.go = go)).then(() => real(url, given)) : real(url, given))(fetch)"
    )
    await tab.click("#send")
    await tab.until("globalThis.go !== undefined")
    await host.cast.forget("t1")
    await tab.js("globalThis.go()")
    await tab.until("document.querySelector('.banner[role=alert]')?.textContent.includes('name the agent')")
    assert await tab.js("document.getElementById('ask').value") == "at the same time", (
        "nothing written is lost"
    )
