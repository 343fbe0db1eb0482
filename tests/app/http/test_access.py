"""Who may come in, and whose threads they see."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import pytest
from ag_ui.core import RunStartedEvent
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from runcast.app import AccessPolicy, App, Cast, NotAllowed, watch_token
from runcast.app.http import routes
from runcast.app.http.route_table import ROUTES
from runcast.broadcast import Broadcaster, MemoryPublisher, channel_for
from tests.app.agents import Gated, asker, parrot
from tests.app.serving import Served, over, post_run, run_input, sent, serving

THREAD_ROUTES = [(each.method, each.path) for each in ROUTES if "{thread_id}" in each.path]
IN_PATH = {"run_id": "r9", "message_id": "m", "call_id": "call", "agent": "parrot"}


def by_header(headers: Mapping[str, str]) -> str | None:
    return headers.get("x-user")


def own(user: Any, thread_id: str) -> bool:
    """Ann's threads are hers; what belongs to no thread is for anybody who is known."""
    return user is not None and (thread_id == "" or thread_id.startswith(f"{user}-"))


@pytest.fixture
async def guarded() -> AsyncIterator[Served]:
    async with serving(authorize=own, identify=by_header) as host:
        host.http.headers["x-user"] = "ann"
        await post_run(host.http, thread="ann-1", run="r1")
        yield host


async def ask(
    app: App, *, client: str = "127.0.0.1", path: str = "/agents", **options: Any
) -> httpx.Response:
    transport = httpx.ASGITransport(app, client=(client, 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8000") as http:
        return await http.request(options.pop("method", "GET"), path, **options)


@pytest.mark.parametrize(
    ("client", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("127.0.0.1", {"host": "127.0.0.1:8000"}, 200),
        ("::1", {"host": "[::1]:8000"}, 200),
        ("::ffff:127.0.0.1", {}, 200),
        ("127.0.0.1", {"host": "app.localhost"}, 200),
        ("192.168.1.7", {}, 403),
        ("127.0.0.1", {"host": "evil.example"}, 403),  # DNS rebinding
        ("127.0.0.1", {"host": "localhost.evil.example"}, 403),
        ("127.0.0.1", {"host": ""}, 403),
        ("127.0.0.1", {"host": "[oops"}, 403),
        ("127.0.0.1", {"x-forwarded-for": "127.0.0.1"}, 200),  # through a proxy, but with the token
        ("testclient", {}, 403),
    ],
)
async def test_without_authorize_this_machine_alone_is_served(
    client: str, headers: dict[str, str], status: int
) -> None:
    async with Cast.open("memory://", agents=[parrot]) as cast:
        bearer = {"authorization": f"Bearer {cast.access.token}"}
        for path in ("/agents", "/", "/health", "/threads/t1/envelopes"):
            answer = await ask(cast.asgi(), client=client, path=path, headers={**headers, **bearer})
            assert answer.status_code == status
            if (
                path != "/health"
            ):  # without the token nobody is served: a proxy may hide where a request is from
                answer = await ask(cast.asgi(), client=client, path=path, headers=headers)
                assert answer.status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"forwarded": "for=127.0.0.1"},
        {"x-forwarded-for": "127.0.0.1"},
        {"authorization": "Bearer "},
        {"authorization": "Bearer guessed-guessed-guessed"},
        {"cookie": "runcast-80=guessed; other=1"},
        {"cookie": "runcast-80="},
        {"authorization": "Basic TOKEN"},
        {"cookie": "other=TOKEN"},
    ],
)
async def test_without_the_token_nothing_of_a_local_host_is_open(headers: dict[str, str]) -> None:
    """As nginx's bare `proxy_pass` does it: a request of anywhere, with nothing that shows it."""
    async with Cast.open("memory://", agents=[parrot]) as cast:
        token = cast.access.token
        given = {name: value.replace("TOKEN", token) for name, value in headers.items()}
        for method, path in (
            *(("GET", path) for path in ("/", "/runcast.js", "/agents", "/threads", "/metrics")),
            *((method, path.format(thread_id="t1", **IN_PATH)) for method, path in THREAD_ROUTES),
            *(
                ("POST", path)
                for path in ("/", "/agents/parrot", "/runs", "/runs/r1/stop", "/broadcasting/token")
            ),
            *(
                ("POST", "/broadcasting/auth"),
                ("GET", "/agents?token=guessed"),
                ("GET", f"/agents?xtoken={token}"),
            ),
        ):
            answer = await ask(cast.asgi(), method=method, path=path, headers=given)
            assert answer.status_code == 403, path
            assert token not in answer.text


async def test_a_slash_after_the_url_that_was_given_is_no_part_of_the_token() -> None:
    """CopilotKit's starters make `${AGENT_URL}/` of what they are given."""
    async with Cast.open("memory://", agents=[parrot]) as cast:
        for path, status in (
            (f"/agents/parrot?token={cast.access.token}/", 200),
            (f"/agents/parrot?interrupts=on_interrupt&token={cast.access.token}/", 200),
            (f"/agents/parrot?token={cast.access.token}//", 403),
            (f"/agents/parrot?token={cast.access.token[:-1]}/", 403),
        ):
            answer = await ask(cast.asgi(), method="POST", path=path, json=run_input(thread=path))
            assert answer.status_code == status, path


async def test_a_browser_brings_the_token_once() -> None:
    async with serving(local=True) as host, httpx.AsyncClient(base_url=host.url) as browser:
        first = host.cast.access.first_url(host.url)
        opened = await browser.get(f"{first}&thread=t1")
        assert (opened.status_code, opened.headers["location"]) == (307, "./?thread=t1")
        cookie = opened.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert (await browser.get("/?thread=t1")).text.startswith("<!doctype html>")
        assert (await browser.get("/agents")).status_code == 200
        assert (await browser.post("/agents/parrot", json=run_input())).status_code == 200
        address = host.url.replace("http", "ws")
        jar = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        for headers, path in (
            ({"cookie": jar}, "/ws?session=t1&after=0"),
            ({}, f"/ws?session=t1&after=0&token={host.cast.access.token}"),
        ):
            async with connect(address + path, additional_headers=headers) as socket:
                assert json.loads(await socket.recv())["recovered"]
        form = {"socket_id": "1.1", "channel_name": "private-agent.t1"}
        assert "auth" in (await browser.post("/broadcasting/auth", data=form)).json()
    async with httpx.AsyncClient() as curl, serving(local=True) as host:
        token = host.cast.access.token
        assert (await curl.get(f"{host.url}/agents?token={token}")).status_code == 200
        assert (await curl.get(f"{host.url}/threads/t1/envelopes?after=0&token={token}")).status_code == 200


async def test_sockets_of_a_local_host_are_for_this_machine_and_its_token() -> None:
    async with Cast.open("memory://", agents=[parrot]) as cast:
        app, token = cast.asgi(), cast.access.token
        for client, headers, query in (
            ("192.168.1.7", {"authorization": f"Bearer {token}"}, ""),
            ("127.0.0.1", {"authorization": f"Bearer {token}", "host": "evil.example"}, ""),
            ("192.168.1.7", {}, f"token={watch_token(cast, 't1')}"),
            ("127.0.0.1", {}, ""),
            ("127.0.0.1", {"cookie": "runcast-80=guessed"}, ""),
        ):
            for path in ("/ws", "/app/runcast"):
                said = await handshake(app, path, query, client, {"host": "localhost", **headers})
                assert said[-1]["type"] == "websocket.close"
                assert not any(each["type"] == "websocket.send" for each in said)


async def handshake(app: App, path: str, query: str, client: str, headers: dict[str, str]) -> list[Any]:
    """What an app answers to the handshake of a socket."""
    said: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"} if not said else await asyncio.sleep(60)

    async def send(message: Any) -> None:
        said.append(message)

    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "websocket",
        "path": path,
        "query_string": query.encode(),
        "headers": pairs,
        "client": (client, 1),
    }
    async with asyncio.timeout(60):
        await app(scope, receive, send)
    return said


async def test_the_hub_of_a_local_host_is_closed_by_itself_too() -> None:
    async with Cast.open("memory://", agents=[parrot]) as cast:
        assert cast.hub is not None
        access, bearer = cast.hub.access, {"authorization": f"Bearer {cast.access.token}"}
        assert not await access.allows(await access.who({}), "t1")
        assert await access.allows(await access.who(bearer), "t1")


@pytest.mark.parametrize("token", ["", "short", "with spaces in it, and commas", "é" * 20])
def test_a_token_that_no_url_or_cookie_can_hold_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match="16 to 200"):
        AccessPolicy(token=token)


def test_the_environment_may_give_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    assert AccessPolicy().token != AccessPolicy().token
    monkeypatch.setenv("RUNCAST_TOKEN", "the-same-at-each-start")
    assert AccessPolicy().token == "the-same-at-each-start"
    assert AccessPolicy(token="an-argument-goes-first").token == "an-argument-goes-first"
    monkeypatch.setenv("RUNCAST_TOKEN", "short")
    with pytest.raises(ValueError, match="RUNCAST_TOKEN"):
        AccessPolicy()


async def test_it_says_once_that_nobody_decides(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "runcast.app"):
        async with serving(local=True) as host:
            await host.http.get("/agents")
            await host.http.get("/agents")
    assert [each.message for each in caplog.records if "authorize" in each.message] == [
        "no `authorize` was given: only this machine's own users are served; "
        f"open /?token={host.cast.access.token}"
    ]


@pytest.mark.parametrize(("method", "path"), THREAD_ROUTES)
async def test_a_thread_is_its_owners_alone(guarded: Served, method: str, path: str) -> None:
    body = {"message": "x", "from_run": "r1"} if method == "POST" else None
    for user, thread in (("bob", "ann-1"), ("bob", "ann-9"), (None, "ann-1")):
        headers = {} if user is None else {"x-user": user}
        async with httpx.AsyncClient(base_url=guarded.url, headers=headers) as other:
            answer = await other.request(method, path.format(thread_id=thread, **IN_PATH), json=body)
        assert (answer.status_code, answer.json()["detail"]) == (403, "this thread is not yours")


async def test_lists_and_stops_show_nothing_of_others(guarded: Served) -> None:
    gated = Gated()
    guarded.cast.register(gated, name="gated")
    async with guarded.http.stream("POST", "/agents/gated", json=run_input(thread="ann-2", run="r2")):
        bob = {"x-user": "bob"}
        assert (await guarded.http.get("/threads", headers=bob)).json()["threads"] == []
        stopped = await guarded.http.post("/runs/r2/stop", headers=bob, json={})
        assert (stopped.status_code, stopped.json()["detail"]) == (404, "no run 'r2' is active here")
        refused = await guarded.http.post("/agents/parrot", headers=bob, json=run_input(thread="ann-3"))
        assert refused.status_code == 403
        for path in ("/agents", "/metrics", "/agents/parrot/capabilities"):
            assert (await guarded.http.get(path, headers={"x-user": ""})).status_code in (200, 403)
    async with httpx.AsyncClient(base_url=guarded.url) as nobody:
        for path in ("/agents", "/metrics", "/agents/parrot/capabilities"):
            assert (await nobody.get(path)).status_code == 403
    gated.open()
    await over(guarded.cast, "ann-2")
    listed = (await guarded.http.get("/threads")).json()["threads"]
    assert [each["thread_id"] for each in listed] == ["ann-1", "ann-2"]


@pytest.mark.parametrize("hub", [True, False])
async def test_no_cursor_names_a_thread_of_others(monkeypatch: pytest.MonkeyPatch, hub: bool) -> None:
    monkeypatch.setattr(routes, "SCANNED", 150)
    cast = Cast.open("memory://", agents=[parrot], watch=hub)
    async with serving(cast, authorize=own, identify=by_header) as host:
        names = [f"ann-{n:03}" for n in range(430)] + [f"bob-{n}" for n in range(3)]
        for name in names:
            await cast.log.append(name, RunStartedEvent(thread_id=name, run_id="r"))
        listed: list[str] = []
        after, pages = "", 0
        while after is not None:
            page = await host.http.get(
                "/threads", params={"after": after, "limit": 2}, headers={"x-user": "bob"}
            )
            assert "ann" not in page.text
            listed += [each["thread_id"] for each in page.json()["threads"]]
            after, pages = page.json()["next"], pages + 1
        assert listed == ["bob-0", "bob-1", "bob-2"]
        assert pages == 4  # two without a thread, one that is full, one with the rest
        # Those who may see a thread may name it.
        first = (await host.http.get("/threads", params={"limit": 2}, headers={"x-user": "ann"})).json()
        assert first["next"] == "ann-001"
        for harmed in ("=c.x", "a\nb", "x" * 600):
            wrong = await host.http.get("/threads", params={"after": harmed}, headers={"x-user": "bob"})
            assert wrong.status_code == 400


async def test_the_hub_asks_the_same_two_functions(guarded: Served) -> None:
    address = guarded.url.replace("http", "ws")
    path = f"{address}/ws?channel=agent.ann-1&after=0"
    async with connect(path, additional_headers={"x-user": "ann"}) as socket:
        assert json.loads(await socket.recv())["type"] == "hub.subscribed"
    async with connect(path, additional_headers={"x-user": "bob"}) as socket:
        await socket.wait_closed()
        assert socket.close_code == 4009
    form = {"socket_id": "1.1", "channel_name": "private-agent.ann-1"}
    for user, status in (("ann", 200), ("bob", 403)):
        answer = await guarded.http.post("/broadcasting/auth", data=form, headers={"x-user": user})
        assert answer.status_code == status


async def test_a_function_that_breaks_is_no_yes() -> None:
    def broken(*_: Any) -> bool:
        raise RuntimeError("the database is gone, password=hunter2")

    async with serving(authorize=broken, identify=by_header) as host:
        for path in ("/agents", "/threads/t1/runs"):
            answer = await host.http.get(path)
            assert answer.status_code == 503
            assert "hunter2" not in answer.text
    async with serving(authorize=own, identify=broken) as host:
        assert (await host.http.get("/agents")).status_code == 503


async def test_an_asynchronous_door() -> None:
    async def who(headers: Mapping[str, str]) -> str:
        return headers["x-user"]

    async def may(user: str, thread_id: str) -> bool:
        return user == "ann"

    async with serving(authorize=may, identify=who) as host:
        assert (await host.http.get("/agents", headers={"x-user": "ann"})).status_code == 200
        assert (await host.http.get("/agents", headers={"x-user": "bob"})).status_code == 403


async def test_only_yes_is_yes() -> None:
    door = AccessPolicy()
    assert await door.allows(None, "t1")  # whoever came in while nobody decides
    door.use(authorize=lambda user, thread_id: "yes")  # type: ignore[arg-type, return-value]  # on purpose
    assert not await door.allows(None, "t1")
    door.use(tenant=lambda user: None)
    with pytest.raises(NotAllowed, match="no tenant"):
        door.tenant("ann")


@pytest.fixture
async def two_tenants() -> AsyncIterator[Served]:
    options = {
        "identify": by_header,
        "authorize": lambda user, _: user is not None,
        "tenant": lambda user: user,
    }
    async with serving(**options) as host:
        host.http.headers["x-user"] = "ann"
        yield host


async def test_tenants_may_use_the_same_ids_and_never_meet(two_tenants: Served) -> None:
    http, bob = two_tenants.http, {"x-user": "bob"}
    await post_run(http, text="ann's secret")
    for path in ("runs", "events", "envelopes"):
        empty = (await http.get(f"/threads/t1/{path}", headers=bob)).json()
        assert empty[path] == []
    for path in ("snapshot", "tools/c/result"):
        assert (await http.get(f"/threads/t1/{path}", headers=bob)).status_code == 404
    assert (await http.get("/threads", headers=bob)).json()["threads"] == []
    http.headers["x-user"] = "bob"
    told = await post_run(http, text="bob's own")
    assert told[0].event["threadId"] == "t1"
    assert told[0].event["input"]["runId"] == told[-1].event["runId"] == "r1"
    assert "ann" not in json.dumps([each.event for each in told])
    assert (await http.get("/threads/t1/snapshot")).json()["messages"][-1]["content"] == "bob's own "


async def test_tenants_have_channels_of_their_own(two_tenants: Served) -> None:
    address = two_tenants.url.replace("http", "ws")
    path = f"{address}/ws?channel=agent.t1&after=0"
    async with connect(path, additional_headers={"x-user": "bob"}) as socket:
        assert json.loads(await socket.recv())["offset"] == 0
        await post_run(two_tenants.http, text="ann's secret")
        assert await two_tenants.cast.for_tenant("bob").log.entries("t1") == []
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(socket.recv(), 0.2)


async def test_tenants_stop_their_own_runs_and_branch_behind_them(two_tenants: Served) -> None:
    http = two_tenants.http
    gated = Gated()
    two_tenants.cast.for_tenant("ann").register(gated, name="gated")
    async with http.stream("POST", "/agents/gated", json=run_input()) as running:
        stopped = await http.post("/runs/r1/stop", headers={"x-user": "bob"}, json={})
        assert stopped.status_code == 404
        assert (await http.post("/runs/r1/stop", json={})).status_code == 202
        assert [each async for each in sent(running)][-1].event["code"] == "cancelled"
    await post_run(http, run="r2")
    told = await post_run(http, run="r3", parentRunId="r1")
    assert told[0].event["parentRunId"] == "r1"


async def test_a_user_without_a_tenant_is_refused(two_tenants: Served) -> None:
    async with httpx.AsyncClient(base_url=two_tenants.url) as nobody:
        assert (await nobody.get("/threads")).status_code == 403
    with pytest.raises(InvalidStatus):
        async with connect(f"{two_tenants.url.replace('http', 'ws')}/ws?channel=agent.t1"):
            pass


async def test_tenants_share_no_target_outside() -> None:
    async with Cast.open("memory://") as cast:
        assert cast.for_tenant("") is cast
        assert cast.for_tenant("a") is cast.for_tenant("a")
        with pytest.raises(ValueError, match="tenants need the host's own cast"):
            cast.for_tenant("a").for_tenant("b")
    async with Cast(Cast.open("memory://").log, Broadcaster(MemoryPublisher())) as other:
        with pytest.raises(ValueError, match="hub as their only target"):
            other.for_tenant("a")


async def test_pages_of_other_origins_may_not_do_anything() -> None:
    async with serving() as host:
        for origin, status in (
            ("https://evil.example", 403),
            ("null", 403),
            ("http://[oops", 403),
            (host.url, 200),
        ):
            answer = await host.http.post(
                "/agents/parrot",
                json=run_input(run=f"r{status}{len(origin)}", thread=origin),
                headers={"origin": origin},
            )
            assert answer.status_code == status, origin
        for origin, status in (("https://evil.example", 403), (host.url, 200)):
            answer = await host.http.delete("/threads/null", headers={"origin": origin})
            assert answer.status_code == status, origin
        proof = {"socket_id": "1.2", "channel_name": channel_for("null")}
        for origin, status in (("http://localhost:1", 403), (host.url, 200)):
            answer = await host.http.post("/broadcasting/auth", data=proof, headers={"origin": origin})
            assert answer.status_code == status, origin
        simple = await host.http.post("/runs", content=b"{}", headers={"sec-fetch-site": "cross-site"})
        assert simple.status_code == 403
        text = await host.http.post("/runs", content=b"{}", headers={"content-type": "text/plain"})
        assert (text.status_code, text.json()["title"]) == (415, "Not JSON")
        untyped = await host.http.post("/runs", content=b'{"message": "x", "agent": "parrot"}')
        assert (untyped.status_code, untyped.json()["detail"]) == (415, "send a body as application/json")


async def test_named_origins_may() -> None:
    page = "https://page.example"
    async with serving(cors=[page]) as host:
        asked = await host.http.options("/agents/parrot", headers={"origin": page})
        assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (204, page)
        assert asked.headers["access-control-allow-credentials"] == "true"
        ran = await host.http.post("/agents/parrot", json=run_input(), headers={"origin": page})
        assert (ran.status_code, ran.headers["access-control-allow-origin"]) == (200, page)
        other = await host.http.get("/agents", headers={"origin": "https://other.example"})
        assert "access-control-allow-origin" not in other.headers
    async with serving(cors=["*"]) as host:
        any_page = await host.http.get("/agents", headers={"origin": page})
        assert any_page.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in any_page.headers


async def test_asker_is_wrapped_for_its_tenant_and_resumed(two_tenants: Served) -> None:
    assert asker.__name__ in two_tenants.cast.for_tenant("ann").agents
    await post_run(two_tenants.http, "asker")
    answers = [{"interruptId": "q1", "status": "resolved", "payload": 1}]
    answered = await two_tenants.http.post("/threads/t1/resume", json={"answers": answers})
    assert answered.status_code == 202
    await over(two_tenants.cast.for_tenant("ann"))
    runs = (await two_tenants.http.get("/threads/t1/runs")).json()["runs"]
    assert [run["status"] for run in runs] == ["interrupted", "completed"]


async def test_a_refused_origin_is_named_in_the_log_once_with_the_setting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    page = "https://shop.example"
    async with serving() as host:
        for path in ("/threads", "/agents"):
            answer = await host.http.get(path, headers={"origin": page})
            assert "access-control-allow-origin" not in answer.headers
        await host.http.get("/threads", headers={"origin": host.url})
        for n in range(50):
            await host.http.get("/threads", headers={"origin": f"https://{n}.example"})
    told = [each.getMessage() for each in caplog.records if "was refused" in each.getMessage()]
    assert (len(told), len(set(told))) == (20, 20)
    assert [each for each in told if page in each] == [
        f"a page of '{page}' was refused; if it is yours, allow it: `cors=` of asgi(), or RUNCAST_CORS"
    ]
    caplog.clear()
    async with serving(cors=[page]) as host:
        answer = await host.http.get("/threads", headers={"origin": page})
        assert answer.headers["access-control-allow-origin"] == page
    assert "was refused" not in caplog.text
