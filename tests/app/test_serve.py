"""The server's own rules: connections that stay silent or send slowly are dropped, and others are served."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx
import pytest
import uvicorn
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from runcast.app import Cast, TooSlow
from runcast.app.http import http_messages
from runcast.app.serve import Server, listen, open_browser, serving
from runcast.broadcast.hub.skins import asgi as hub_asgi
from tests.app.agents import parrot
from tests.app.serving import anyone, post_run

POST = (
    b"POST /runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\r\n"
)
FORM = POST.replace(b"/runs", b"/broadcasting/auth")


@asynccontextmanager
async def hasty() -> AsyncIterator[int]:
    """A host whose clients have half a second for their headers."""
    cast = Cast.open("memory://", agents=[parrot])
    listening = listen("127.0.0.1", 0)
    config = uvicorn.Config(cast.asgi(authorize=anyone), log_level="critical", access_log=False)
    it = Server(config, cast, grace=0.1, header_timeout=0.5)
    task = asyncio.create_task(it._serve([listening]))
    while not it.started:  # noqa: ASYNC110  uvicorn has a flag, no event
        await asyncio.sleep(0.005)
    try:
        yield listening.getsockname()[1]
    finally:
        it.should_exit = True
        await task


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"G",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nx-slow: ",
        b"GET /health HTTP/1.1\r\nhost: x\r\n\r\nGET",
    ],
    ids=["nothing", "a byte", "half a header", "a second request by halves"],
)
async def test_whoever_sends_no_whole_headers_is_dropped(sent: bytes) -> None:
    async with hasty() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        async with asyncio.timeout(60):
            with suppress(ConnectionResetError):
                await reader.read()
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
            assert (await post_run(http))[-1].event["type"] == "RUN_FINISHED"
        writer.close()


@pytest.mark.parametrize("request_line", [POST, FORM], ids=["api", "hub"])
async def test_a_body_has_a_deadline(request_line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_messages, "BODY_TIMEOUT", 0.5)
    monkeypatch.setattr(hub_asgi, "BODY_TIMEOUT", 0.5)
    async with hasty() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request_line + b'{"a"')
        async with asyncio.timeout(60):
            assert f" {TooSlow.status} ".encode() in await reader.readline()
            try:
                while await reader.read(1_000):
                    writer.write(b" ")  # one byte now and then buys no time
                    await asyncio.sleep(0.05)
            except ConnectionError:
                pass
        writer.close()


@pytest.mark.parametrize("parts", [["{" + " " * 16_000_000 + "}"], ["{", *[" " * 50_000] * 40]])
async def test_a_frame_that_unpacks_to_much_or_never_ends_is_not_kept(parts: list[str]) -> None:
    """Browsers and attackers ask for compression: 16 KB would become 16 MB, for each of 10,000 sockets."""
    cast = Cast.open("memory://", agents=[parrot])
    async with serving(cast, cast.asgi(authorize=anyone)) as url:
        key = cast.hub.key if cast.hub is not None else ""
        async with connect(f"{url.replace('http', 'ws')}/app/{key}?protocol=7") as socket:
            with suppress(ConnectionClosed):
                await socket.send(iter(parts))
            await asyncio.wait_for(socket.wait_closed(), 60)
            assert socket.close_code == 1009
            assert "exceeds limit of 65536 bytes" in str(socket.close_reason)  # before the hub has seen it
        async with connect(f"{url.replace('http', 'ws')}/app/{key}?protocol=7") as socket:
            await socket.recv()
            await socket.send(json.dumps({"event": "pusher:ping", "data": "é" * 16_000}, ensure_ascii=False))
            assert json.loads(await socket.recv())["event"] == "pusher:pong"


async def test_a_slow_stream_is_no_late_request() -> None:
    async with hasty() as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
        stream = http.stream("GET", "/threads/t1/events", headers={"accept": "text/event-stream"})
        async with stream as response:
            lines = response.aiter_lines()
            await asyncio.sleep(1.5)
            await post_run(http)
            assert (await anext(lines)).startswith("id: ")


def test_a_browser_is_opened_where_there_is_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("sys.platform", "linux")
    for terminal, screen in ((True, ":0"), (True, None), (False, ":0")):
        monkeypatch.setattr("sys.stdout.isatty", lambda it=terminal: it)
        monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
        if screen is None:
            monkeypatch.delenv("DISPLAY", raising=False)
        else:
            monkeypatch.setenv("DISPLAY", screen)
        open_browser("http://localhost/?token=x")
    assert opened == ["http://localhost/?token=x"]
