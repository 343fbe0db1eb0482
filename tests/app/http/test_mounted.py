"""Below a path of another application: every route, the page and both kinds of sockets, with and without a last slash."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Mount
from websockets.asyncio.client import connect

from runcast.app import Cast
from runcast.app.http.route_table import ROUTES
from tests.app.agents import Gated, parrot
from tests.app.serving import anyone, post_run, run_input, serving


def mounted(kind: str, cast: Cast) -> Any:
    match kind:
        case "starlette":
            return Starlette(routes=[Mount("/live", cast.asgi(authorize=anyone))])
        case "twice":
            return Starlette(
                routes=[Mount("/a", Starlette(routes=[Mount("/live", cast.asgi(authorize=anyone))]))]
            )
        case _:
            app = FastAPI()
            app.mount("/live", cast.asgi(authorize=anyone))
            return app


async def test_a_mounted_host_logs_the_way_in_with_its_first_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cast, app = Cast.open("memory://", agents=[parrot]), FastAPI()
    app.mount("/live", cast.asgi())
    async with serving(cast, app=app, path="/live") as host, httpx.AsyncClient() as stranger:
        refused = await stranger.get(f"{host.url}/agents")
        assert refused.status_code == 403
        assert "in its log" in refused.json()["detail"]
        (line,) = [each for each in caplog.messages if "`authorize`" in each]
        way_in = line.rpartition("open ")[2]
        assert way_in.startswith("/live/?token=")
        opened = await stranger.get(f"{host.url}/agents?{way_in.partition('?')[2]}")
        assert opened.json()["agents"][0]["name"] == "parrot"


@pytest.mark.parametrize(
    ("kind", "path"), [("starlette", "/live"), ("twice", "/a/live"), ("fastapi", "/live")]
)
async def test_everything_is_there_below_a_path(kind: str, path: str) -> None:
    cast = Cast.open("memory://", agents=[parrot])
    async with serving(cast, app=mounted(kind, cast), path=path) as host:
        await post_run(host.http)
        for route in ROUTES:
            named = path + route.path.format(
                thread_id="t1",
                user_id="u1",
                run_id="r1",
                call_id="c",
                agent="parrot",
                app_id="runcast",
                channel="agent.t1",
                link="a",
                message_id="m",
            )
            wrong = await host.http.request("PATCH", f"{host.url.removesuffix(path)}{named}")
            assert wrong.status_code == 405, named  # it is there, and asked otherwise
        assert (await host.http.get("/threads/t1/runs/")).json()["runs"][0]["run_id"] == "r1"
        assert (await host.http.get("/runcast.js")).status_code == 200
        assert (await host.http.get("/openapi.json")).json()["servers"] == [{"url": path}]
        address = host.url.replace("http", "ws")
        async with connect(f"{address}/ws?session=t1&after=0") as socket:
            assert json.loads(await socket.recv())["recovered"]
        async with connect(f"{address}/app/runcast") as socket:
            assert json.loads(await socket.recv())["event"] == "pusher:connection_established"


async def test_a_compressing_middleware_leaves_streams_alone() -> None:
    gated = Gated()
    cast = Cast.open("memory://", agents=[gated])
    app = Starlette(routes=[Mount("/live", cast.asgi(authorize=anyone, keepalive=0.05))])
    app.add_middleware(GZipMiddleware, minimum_size=500)
    async with serving(cast, app=app, path="/live") as host:
        page = await host.http.get("/runcast.js", headers={"accept-encoding": "gzip"})
        assert page.headers["content-encoding"] == "gzip"
        asked = host.http.stream("POST", "/", json=run_input(), headers={"accept-encoding": "gzip"})
        async with asked as told:
            assert "content-encoding" not in told.headers
            lines = told.aiter_lines()
            while await anext(lines) != ": still here":
                pass
        gated.open()
