"""The ASGI app without a network: what begins and ends with it, which pages it has, and what it says of foreign ones."""

from __future__ import annotations

import logging
from typing import Any

import httpx
import pytest

from runcast.app import Cast
from runcast.app.http import site
from tests.app.agents import parrot
from tests.app.serving import anyone


def client(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://host")


async def test_a_server_that_starts_opens_its_host_and_one_that_ends_closes_it() -> None:
    cast = Cast.open("memory://", agents=[parrot])
    app: Any = cast.asgi(authorize=anyone)
    said: list[str] = []
    messages = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]

    async def receive() -> Any:
        if len(messages) == 1:
            assert not cast.closing
            await (await cast.say("t1", "a word")).result()
        return messages.pop(0)

    async def send(message: Any) -> None:
        said.append(message["type"])

    await app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, send)
    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert cast.closing


@pytest.mark.parametrize("page", [True, False])
async def test_a_host_without_a_page_has_no_file_of_it(page: bool) -> None:
    async with (
        Cast.open("memory://", agents=[parrot]) as cast,
        client(cast.asgi(authorize=anyone, page=page)) as http,
    ):
        for path in ("/", "/runcast.js"):
            answer = await http.get(path)
            assert (answer.status_code == 200) is page
        assert (await http.get("/threads")).status_code == 200


async def test_so_many_refused_origins_are_named_in_the_log_each_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(site, "REPORTED", 2)
    async with Cast.open("memory://", agents=[parrot]) as cast, client(cast.asgi(authorize=anyone)) as http:
        with caplog.at_level(logging.WARNING, "runcast.app"):
            for name in ("a", "b", "a", "c", "d"):
                await http.get("/threads", headers={"origin": f"https://{name}.example"})
        assert [f"https://{name}.example" in caplog.text for name in "abcd"] == [True, True, False, False]
        assert caplog.text.count("https://a.example") == 1


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_a_page_of_another_origin_changes_nothing(method: str) -> None:
    async with Cast.open("memory://", agents=[parrot]) as cast, client(cast.asgi(authorize=anyone)) as http:
        await (await cast.say("t1", "a word")).result()
        headers = {"origin": "https://evil.example", "content-type": "application/json"}
        path = "/threads/t1" if method == "DELETE" else "/threads/t1/runs"
        answer = await http.request(method, path, headers=headers)
        assert answer.status_code == 403
        assert len(await cast.log.runs("t1")) == 1
