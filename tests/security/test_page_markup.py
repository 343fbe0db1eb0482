"""Markup in every field that an agent, a tool or a user can fill stays text on the page, and nothing of it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from ag_ui.core import (
    ActivitySnapshotEvent,
    CustomEvent,
    Event,
    Interrupt,
    ReasoningMessageChunkEvent,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentStartedEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.app import Cast
from runcast.broadcast import BroadcastConfig
from tests.app.serving import serving
from tests.conftest import missing
from tests.e2e.browser import MISSING, browsing, program

EVIL = "<img/src=x/onerror=globalThis.owned=1><svg/onload=globalThis.owned=1>\"'><a/href=javascript:owned=1>x"
# What a reader of Markdown may take for an address that runs, in every way to write a link.
RUNS = ("javascript:owned=1", "JaVa\tScript:owned=1", "\x01javascript:owned=1", "vbscript:owned=1", "&#106;avascript:owned=1",
        "javascript&colon;owned=1", "data:text/html,<script>opener.owned=1</script>", "view-source:javascript:owned=1",
        "blob:x", "file:///etc/passwd", "//evil.example/x", "\\\\evil.example\\x")  # fmt: skip
LINKS = "\n\n".join(
    f"[a]({each}) ![b]({each}) <{each}> [c][{at}] [d](<{each}> 'onclick=owned=1')\n\n[{at}]: {each}"
    for at, each in enumerate(RUNS)
)
SURFACE = {"surfaceId": EVIL, "components": [
    {"id": "root", "component": {"Image": {"url": {"literalString": "javascript:owned=1"}}}},
    {"id": EVIL, "component": {"Text": {"text": {"literalString": EVIL}}}},
]}  # fmt: skip
SCHEMA = {
    "type": "object",
    "title": EVIL,
    "properties": {EVIL: {"type": "string", "title": EVIL, "enum": [EVIL, "b"]}},
}


async def hostile(input: RunAgentInput) -> AsyncIterator[Event]:
    """Says the same in every field there is, then asks a question."""
    yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
    yield StepStartedEvent(step_name=EVIL)
    yield SubagentStartedEvent(subagent_run_id=f"s{EVIL}", name=EVIL, description=EVIL)
    yield TextMessageStartEvent(message_id=f"m{EVIL}", name=EVIL)
    yield TextMessageContentEvent(message_id=f"m{EVIL}", delta=EVIL)
    yield TextMessageEndEvent(message_id=f"m{EVIL}")
    yield TextMessageChunkEvent(message_id="links", role="assistant", delta=LINKS)
    yield ReasoningMessageChunkEvent(message_id="thought", delta=f"{EVIL}\n\n{LINKS}")
    yield ToolCallStartEvent(tool_call_id=f"c{EVIL}", tool_call_name=EVIL)
    yield ToolCallArgsEvent(tool_call_id=f"c{EVIL}", delta='{"a": "<img/src=x/onerror=globalThis.owned=1>"}')
    yield ToolCallEndEvent(tool_call_id=f"c{EVIL}")
    yield ToolCallResultEvent(message_id="r", tool_call_id=f"c{EVIL}", content=EVIL)
    yield StateSnapshotEvent(snapshot={EVIL: EVIL})
    yield StateDeltaEvent(delta=[{"op": "add", "path": f"/{EVIL.replace('/', '~1')}", "value": [EVIL]}])
    yield ActivitySnapshotEvent(message_id="a", activity_type=EVIL, content={EVIL: EVIL})
    yield ActivitySnapshotEvent(
        message_id="b", activity_type="a2ui-surface", content={"operations": [{"surfaceUpdate": SURFACE}]}
    )
    yield ActivitySnapshotEvent(
        message_id="c", activity_type="mcp-apps", content={"html": f"<script>owned=1</script>{EVIL}"}
    )
    yield CustomEvent(name=EVIL, value={EVIL: EVIL})
    yield StepFinishedEvent(step_name=EVIL)
    asked = Interrupt(id=f"q{EVIL}", reason=EVIL, message=EVIL, response_schema=SCHEMA)
    outcome = RunFinishedInterruptOutcome(interrupts=[asked])
    yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id, outcome=outcome)


async def test_markup_in_any_field_stays_text():
    if program() is None:
        missing(MISSING)
    cast = Cast.open("memory://", agents=[hostile], config=BroadcastConfig.debug())
    async with browsing() as browser, serving(cast) as host:
        thread = "t<img src=x onerror=globalThis.owned=1>"
        await (await cast.say(thread, EVIL)).result()
        await cast.log.archive.rename(thread, EVIL)
        await cast.annotations.add(thread, "tag", {EVIL: EVIL, "value": EVIL}, id=EVIL[:50], by=EVIL)
        tab = await browser.tab(
            f"{host.url}/?thread={thread.replace('<', '%3C').replace('>', '%3E').replace(' ', '%20')}"
        )
        await tab.until("runcast.view.status === 'interrupted' && runcast.drawn === runcast.view.count")
        assert "onerror" in await tab.js("document.body.innerText"), "it is shown, as text"
        assert await tab.js("globalThis.owned ?? null") is None
        made = "[...document.querySelectorAll('img[src=x], svg[onload], [onerror], a[href^=javascript], script:not([src])')].length"
        assert await tab.js(made) == 0
        links = await tab.js(
            "[...document.querySelectorAll('a[href], img[src], iframe, form')].map(each => each.href ?? each.src)"
        )
        kinds = {urlsplit(each).scheme for each in links if each is not None}
        assert kinds <= {"http", "https", "mailto", "data"}, kinds
        pictures = await tab.js("[...document.images].map(each => each.src)")
        assert {urlsplit(each).netloc for each in pictures} <= {urlsplit(host.url).netloc, ""}
        assert tab.errors == []
