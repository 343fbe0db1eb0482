"""<runcast-thread>: one thread in somebody else's page, on another origin, with that page's own way to sign in."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from runcast.app import Cast
from tests.app.agents import parrot
from tests.app.serving import post_run, serving
from tests.conftest import missing
from tests.e2e.browser import MISSING, browsing, program
from tests.e2e.test_page_bearer import who

pytestmark = pytest.mark.server

INSIDE = "document.querySelector('runcast-thread').shadowRoot"


async def test_a_thread_is_shown_and_written_in_inside_another_page() -> None:
    if program() is None:
        missing(MISSING)
    app = FastAPI()

    @app.get("/", response_class=HTMLResponse)
    def page() -> str:
        return "<!doctype html><title>mine</title><style>* { color: rgb(1, 2, 3) }</style>"

    async with serving(Cast.open("memory://"), app=app) as mine:
        options: dict[str, Any] = {
            "identify": who, "authorize": lambda user, _: user in ("ann", "bob"), "tenant": lambda user: user, "cors": [mine.url],
        }  # fmt: skip
        async with serving(**options) as host, browsing() as browser:
            host.http.headers["authorization"] = "Bearer ann"
            await post_run(host.http, text="**before**")
            tab = await browser.tab(mine.url, width=500)
            await tab.until("document.title === 'mine'")
            await tab.js(
                f"import('{host.url}/runcast-thread.js').then(() => {{ const it = document.createElement('runcast-thread');"
                f" it.setAttribute('base', '{host.url}'); it.setAttribute('thread', 't1');"
                " it.headers = () => ({ authorization: 'Bearer ann' }); document.body.append(it) })"
            )
            await tab.until(f"{INSIDE}.querySelector('.prose strong').textContent === 'before'")
            await tab.until(f"{INSIDE}.querySelector('.said').textContent === '**before**'")
            await tab.until(f"{INSIDE}.querySelector('#ask') !== null")
            await tab.js(f"{INSIDE}.querySelector('#ask').focus()")
            await tab.call("Input.insertText", text="and live")
            await tab.js(f"{INSIDE}.querySelector('#send').click()")
            await tab.until(f"{INSIDE}.querySelectorAll('.prose').length === 2")
            await tab.until(f"{INSIDE}.querySelectorAll('.prose')[1].textContent.includes('and live')")
            ink = f"getComputedStyle({INSIDE}.querySelector('.prose')).color"
            assert await tab.js(ink) != "rgb(1, 2, 3)", "neither page's style touches the other"
            await tab.shows("location.search", "")
            await tab.js(
                "document.querySelector('runcast-thread').headers = { authorization: 'Bearer mallory' }"
            )
            await tab.until(f"{INSIDE}.querySelector('#empty h2').textContent === 'Not allowed'")
            assert "before" not in await tab.js(f"{INSIDE}.textContent")
            await tab.js("document.querySelector('runcast-thread').remove()")
            assert tab.errors == []


async def test_the_page_stands_in_a_frame_of_its_own_origin_and_shows_what_its_user_may_see() -> None:
    if program() is None:
        missing(MISSING)
    app = FastAPI()

    def user(headers: Any) -> str | None:
        return "ann" if "user=ann" in headers.get("cookie", "") else None

    cast = Cast.open("memory://", agents=[parrot])
    app.mount(
        "/live", cast.asgi(identify=user, authorize=lambda user, thread: (user, thread) == ("ann", "t1"))
    )

    @app.get("/{thread}", response_class=HTMLResponse)
    def page(thread: str) -> HTMLResponse:
        frame = f"<iframe src='/live/?thread={thread}' width=700 height=600></iframe>"
        answer = HTMLResponse(f"<!doctype html><title>mine</title>{frame}")
        answer.set_cookie("user", "ann")
        return answer

    inside = "document.querySelector('iframe').contentDocument"
    async with serving(cast, app=app) as host, browsing() as browser:
        for thread in ("t1", "t2"):
            await (await cast.say(thread, f"about {thread}")).result()
        tab = await browser.tab(f"{host.url}/t1", width=800)
        await tab.until(f"{inside}.querySelector('.said')?.textContent === 'about t1'")
        await tab.until(f"{inside}.querySelector('.prose')?.textContent.includes('about t1')")
        other = await browser.tab(f"{host.url}/t2", width=800)
        await other.until(f"{inside}.querySelector('#empty h2')?.textContent === 'Not allowed'")
        assert "about t2" not in await other.js(f"{inside}.body.textContent")
        elsewhere = await browser.tab(host.url.replace("127.0.0.1", "localhost") + "/t1", width=800)
        await elsewhere.until("document.querySelector('iframe')")
        await elsewhere.js(f"document.querySelector('iframe').src = '{host.url}/live/?thread=t1'")
        await elsewhere.until(f"{inside} === null")  # another origin's page is not let in
        assert tab.errors == other.errors == []
