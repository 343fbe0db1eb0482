"""A page of one's own, on another origin, whose user is known by an Authorization header alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from runcast.app import Cast, watch_token
from tests.app.serving import Served, post_run, serving
from tests.conftest import missing
from tests.e2e.browser import MISSING, Tab, browsing, program

pytestmark = pytest.mark.server


def who(headers: Mapping[str, str]) -> str | None:
    return headers.get("authorization", "").removeprefix("Bearer ") or None


async def watching(tab: Tab, host: Served, options: str) -> None:
    """Watch the thread from the page, and wait until the line has been joined, or refused."""
    await tab.js(
        f"import('{host.url}/runcast.js').then(({{ watch }}) => {{ globalThis.stop?.(); globalThis.now = null; "
        f"globalThis.stop = watch({{ base: {json.dumps(host.url)}, thread: 't1', {options}, "
        "onChange: (view, link) => { globalThis.now = { view, link: { ...link } } } }) })"
    )
    await tab.until("now.link.state === 'live' || now.link.error === 'refused'")


async def test_a_page_elsewhere_watches_with_a_bearer_token_and_a_token_alone() -> None:
    if program() is None:
        missing(MISSING)
    app = FastAPI()

    @app.get("/", response_class=HTMLResponse)
    def page() -> str:
        return "<!doctype html><title>mine</title>"

    async with serving(Cast.open("memory://"), app=app) as mine:
        options: dict[str, Any] = {
            "identify": who, "authorize": lambda user, _: user in ("ann", "bob"), "tenant": lambda user: user, "cors": [mine.url],
        }  # fmt: skip
        async with serving(**options) as host, browsing() as browser:
            host.http.headers["authorization"] = "Bearer ann"
            await post_run(host.http, text="before")
            tab = await browser.tab(mine.url)
            await tab.until("document.title === 'mine'")
            await watching(tab, host, "headers: async () => ({ authorization: 'Bearer ann' })")
            await post_run(host.http, text="live", run="r2")
            await tab.until("now.view.items.filter((each) => each.kind === 'text').at(-1)?.text === 'live '")
            token = watch_token(host.cast.for_tenant("ann"), "t1")
            await watching(tab, host, f"token: () => '{token}'")
            await tab.until("now.view.count > 0 && now.view.status === 'completed'")
            await watching(tab, host, "headers: { authorization: 'Bearer bob' }")  # another tenant's t1
            await tab.shows("now.view.count", 0)
            for refused in ("headers: { authorization: 'Bearer mallory' }", "token: 'forged'"):
                await watching(tab, host, refused)
                await tab.shows("[now.link.error, now.view.count]", ["refused", 0])
            assert tab.errors == []
