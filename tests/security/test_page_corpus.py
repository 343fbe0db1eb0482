"""A corpus of markup that runs where a page lets it: in Markdown, HTML, SVG, links, tool names, ids, JSON keys."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from ag_ui.core import (
    CustomEvent,
    Event,
    Interrupt,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    StateSnapshotEvent,
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

RUN = "globalThis.owned=1"
CORPUS = [
    f"<script>{RUN}</script>",
    f"<img src=x onerror={RUN}>",
    f"<svg onload={RUN}>",
    f"<svg><script>{RUN}</script></svg>",
    f'<svg><animate onbegin="{RUN}" attributeName=x dur=1s>',
    f'<iframe srcdoc="<script>parent.{RUN}</script>"></iframe>',
    f'<iframe src="javascript:parent.{RUN}"></iframe>',
    f'<object data="javascript:{RUN}"></object>',
    f'<embed src="javascript:{RUN}">',
    f'<form action="javascript:{RUN}"><button>x</button></form>',
    f'<details open ontoggle="{RUN}">x</details>',
    f'<video><source onerror="{RUN}"></video>',
    f'<body onload="{RUN}">',
    f'<math><mtext></mtext><mglyph><style><img src=x onerror="{RUN}"></style></mglyph></math>',
    f'<noscript><p title="</noscript><img src=x onerror={RUN}>">',
    f'<a href="javascript:{RUN}">x</a>',
    '<base href="https://elsewhere.test/">',
    '<meta http-equiv="refresh" content="0;url=https://elsewhere.test/">',
    '<link rel="stylesheet" href="https://elsewhere.test/x.css">',
    "<style>* { display: none }</style>",
    f"[x](javascript:{RUN})",
    f"[x](JaVaScRiPt:{RUN})",
    f"[x](java\tscript:{RUN})",
    f"[x](&#106;avascript:{RUN})",
    f"[x](<javascript:{RUN}>)",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    f"[x](vbscript:{RUN})",
    f'[x](https://example.com "t" onclick="{RUN}")',
    f"[x]: javascript:{RUN}\n\n[x]",
    f"<javascript:{RUN}>",
    f"![x](javascript:{RUN})",
    f'![x](x" onerror="{RUN})',
    "![x](https://elsewhere.test/seen.png)",
    "![x](//elsewhere.test/seen.png)",
    f"![x](data:image/svg+xml,<svg onload={RUN}>)",
    f"| <img src=x onerror={RUN}> | b |\n|---|---|\n| [x](javascript:{RUN}) | <svg onload={RUN}> |",
    f"# <img src=x onerror={RUN}>",
    f"- <img src=x onerror={RUN}>\n- [ ] <svg onload={RUN}>",
    f"> <img src=x onerror={RUN}>",
    f"`<img src=x onerror={RUN}>`",
    f"```html\n<script>{RUN}</script>\n<img src=x onerror={RUN}>\n```",
    f'```"><img src=x onerror={RUN}>\ncode\n```',
    f"&lt;img src=x onerror={RUN}&gt;",
    f"<!--><img src=x onerror={RUN}>-->",
    f"<![CDATA[<img src=x onerror={RUN}>]]>",
    "__proto__",
    "constructor",
]


async def hostile(input: RunAgentInput) -> AsyncIterator[Event]:
    """Says every one of them as a message, and uses it as a tool's name, argument, key and result."""
    yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
    for n, evil in enumerate(CORPUS):
        yield TextMessageStartEvent(message_id=f"m{n}{evil}")
        for piece in (evil[: len(evil) // 2], evil[len(evil) // 2 :]):
            yield TextMessageContentEvent(message_id=f"m{n}{evil}", delta=piece)
        yield TextMessageEndEvent(message_id=f"m{n}{evil}")
        yield ToolCallStartEvent(tool_call_id=f"c{n}{evil}", tool_call_name=evil)
        yield ToolCallArgsEvent(tool_call_id=f"c{n}{evil}", delta=json.dumps({evil: {evil: [evil]}}))
        yield ToolCallEndEvent(tool_call_id=f"c{n}{evil}")
        yield ToolCallResultEvent(
            message_id=f"r{n}", tool_call_id=f"c{n}{evil}", content=json.dumps({evil: evil})
        )
        yield CustomEvent(name=evil, value={evil: evil})
    yield StateSnapshotEvent(snapshot={evil: {evil: evil} for evil in CORPUS})
    asked = [
        Interrupt(id=f"q{n}{evil}", reason=evil, message=evil, response_schema=schema(evil))
        for n, evil in enumerate(CORPUS)
    ]
    outcome = RunFinishedInterruptOutcome(interrupts=asked)
    yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id, outcome=outcome)


def schema(evil: str) -> dict[str, object]:
    field = {"type": "string", "title": evil, "description": evil, "default": evil}
    return {
        "type": "object",
        "title": evil,
        "properties": {evil: field, "b": {"enum": [evil, 1]}},
        "required": [evil, "b"],
    }


# What the page has drawn that could run, or that asks a foreign server.
LIVE = """(() => {
  const found = [];
  for (const each of document.querySelectorAll('body *')) {
    for (const { name, value } of each.attributes) {
      if (name.startsWith('on')) found.push([each.tagName, name]);
      if (['href', 'src', 'action', 'data', 'srcdoc', 'xlink:href'].includes(name) && !/^(https?:|mailto:|#|data:image\\/(png|gif|jpeg|webp))/.test(value)) found.push([each.tagName, name, value]);
    }
    if (['SCRIPT', 'IFRAME', 'OBJECT', 'EMBED', 'STYLE', 'BASE', 'META', 'LINK', 'MATH', 'VIDEO'].includes(each.tagName.toUpperCase())) found.push([each.tagName]);
    if (each.closest('.markdown') && each.tagName === 'svg' && !each.closest('button')) found.push([each.tagName]);
  }
  return JSON.stringify(found);
})()"""
ALL_OPEN = """(() => { for (const each of document.querySelectorAll('details')) each.open = true;
  for (const each of document.querySelectorAll('.card-foot button:first-child[aria-expanded=false], .fold[aria-expanded=false]')) each.click(); })()"""


async def test_nothing_of_the_corpus_runs_or_asks_a_foreign_server():
    if program() is None:
        missing(MISSING)
    cast = Cast.open("memory://", agents=[hostile], config=BroadcastConfig.debug())
    async with browsing() as browser, serving(cast) as host:
        await (await cast.say("t1", CORPUS[1])).result()
        tab = await browser.tab(f"{host.url}/?thread=t1")
        await tab.until("runcast.view.status === 'interrupted' && runcast.drawn === runcast.view.count")
        box = "document.querySelector('[data-scroller]')"
        assert "onerror" in await tab.js("document.querySelector('main').innerText"), "it is shown, as text"
        for part in ("timeline", "runs", "past", "raw"):
            await tab.click(f"#tab-{part}")
            for at in (0, 0.25, 0.5, 0.75, 1):
                await tab.js(f"{box}.scrollTop = {at} * {box}.scrollHeight")
                await tab.js("new Promise((done) => setTimeout(done, 120))")
                await tab.js(ALL_OPEN)
                assert json.loads(await tab.js(LIVE)) == []
        await tab.click("#tab-past")
        await tab.press_named("One event back")
        await tab.until("document.querySelector('#moment')")
        assert json.loads(await tab.js(LIVE)) == []
        assert await tab.js("globalThis.owned ?? null") is None
        assert await tab.js("Object.keys(Object.prototype).length") == 0
        asked = await tab.js(
            "performance.getEntriesByType('resource').map((each) => new URL(each.name).origin)"
        )
        assert set(asked) == {host.url}
        assert tab.errors == []
