"""What is written of the routes, in docs/protocol.md and in /openapi.json, is what the table has, and the other way round."""

from __future__ import annotations

import re
from urllib.parse import unquote

from starlette.routing import Match, Route

from runcast.app import Cast
from runcast.app.http.http_messages import HttpOptions
from runcast.app.http.openapi import STREAM, describe
from runcast.app.http.route_table import ROUTES, SOCKETS
from runcast.app.http.site import Resource, Site, routable
from tests.app.serving import segments_of, serving
from tests.house.tree import ROOT

ROW = re.compile(r"^\| `(GET|POST|DELETE) (/\S*)` \|(.+)\|$", re.MULTILINE)


def test_the_protocol_page_has_every_route_with_its_errors_and_no_other() -> None:
    text = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    rows = {(method, path): cells.split("|") for method, path, cells in ROW.findall(text)}
    routes = {(route.method, route.path): route for route in ROUTES}
    assert rows.keys() == routes.keys()
    for asked, route in routes.items():
        told = {int(each) for each in re.findall(r"\d{3}", rows[asked][-1])}
        assert told == {*route.statuses} - {400, 403, 408, 503}, asked
        for name in route.reads:
            assert {"behind": "after"}.get(name, name) in rows[asked][1] or name == "Last-Event-ID", (
                asked,
                name,
            )
    assert all(f"`{path}`" in text for path in SOCKETS)


def test_the_description_has_every_route_once_and_holds_together() -> None:
    told = describe(ROUTES, version="1", root="/live")
    listed = [(method.upper(), path) for path, methods in told["paths"].items() for method in methods]
    assert sorted(listed) == sorted((route.method, route.path) for route in ROUTES)
    assert len({route.name for route in ROUTES}) == len(ROUTES)
    assert told["servers"] == [{"url": "/live"}]
    referred = set(re.findall(r"'#/components/schemas/(\w+)'", repr(told)))
    assert referred <= told["components"]["schemas"].keys()
    assert all(each["summary"] for methods in told["paths"].values() for each in methods.values())


def test_a_stream_has_no_schema_which_readers_of_the_document_would_hold_against_each_event() -> None:
    paths = describe(ROUTES, version="1")["paths"]
    operations = [each for methods in paths.values() for each in methods.values()]
    answers = [answer.get("content", {}) for each in operations for answer in each["responses"].values()]
    assert [each[STREAM] for each in answers if STREAM in each] == [{}] * 8
    assert all("schema" in each for answer in answers for kind, each in answer.items() if kind != STREAM)


async def test_every_path_of_the_table_leads_to_its_row_with_and_without_a_last_slash() -> None:
    async with Cast.open("memory://") as cast:
        routes = Site(cast, HttpOptions()).router.routes
    for row in ROUTES:
        names = [each.startswith("{") for each in segments_of(row)]
        path = [
            f"x/{n}" if name else each
            for n, (name, each) in enumerate(zip(names, segments_of(row), strict=True))
        ]
        for segments in (path, [*path, ""]):
            scope = {"type": "http", "method": row.method, "path": routable(segments)}
            route, params = next(
                (each, found["path_params"])
                for each in routes
                for match, found in [each.matches(scope)]
                if match is Match.FULL
            )
            assert isinstance(route, Route)
            assert isinstance(route.endpoint, Resource)
            assert route.endpoint.rows[row.method] is row
            assert [unquote(each) for each in params.values()] == [
                each for name, each in zip(names, path, strict=True) if name
            ]


async def test_other_methods_are_told_how_to_ask() -> None:
    async with serving() as host:
        wrong = await host.http.request("DELETE", "/threads/t1/runs")
        assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, HEAD, OPTIONS, POST")
        asked = await host.http.options("/threads/t1/runs/")
        assert (asked.status_code, asked.headers["allow"]) == (204, "GET, HEAD, OPTIONS, POST")
        assert "content-length" not in asked.headers
        page = await host.http.options("/runcast.js")
        assert page.headers["allow"] == "GET, HEAD, OPTIONS"
        assert (await host.http.options("/nowhere")).status_code == 404
        described = await host.http.get("/openapi.json")
        head = await host.http.head("/openapi.json")
        assert (head.content, head.headers["content-length"]) == (b"", described.headers["content-length"])
        assert described.json()["openapi"] == "3.1.0"
