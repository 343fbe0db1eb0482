"""The HTTP API of the Pusher protocol, with PyPI `pusher` as the publisher of record, and the auth endpoint."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import httpx
import pusher
import pytest

from runcast.broadcast import PusherPublisher, channel_for, issue_token, sign_channel
from runcast.broadcast.hub.signatures import sign, sign_request
from tests.e2e.pusher import Clients
from tests.e2e.stage import Stage, a_hub, envelope, frames, limits, stage

CHANNEL = "private-agent.s1"
BODY = json.dumps({"name": "foo", "channels": ["agent.s1"], "data": '{"some":"data"}'}).encode()


@pytest.fixture(params=["asgi", "fastapi"])
async def served(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    hub = a_hub(public=True, identify=lambda headers: headers.get("x-user"))
    async with stage(request.param, hub) as it:
        yield it


@contextmanager
def official(served: Stage) -> Iterator[pusher.Pusher]:
    it = pusher.Pusher("1001", "app-key", "app-secret", host="127.0.0.1", port=served.http, ssl=False)
    yield it
    it._pusher_client.http.session.close()  # it has no close of its own


async def post(
    served: Stage, query: str, body: bytes = BODY, path: str = "/apps/1001/events"
) -> httpx.Response:
    async with httpx.AsyncClient() as web:
        return await web.post(f"{served.url}{path}?{query}", content=body)


def signed(
    served: Stage, body: bytes = BODY, *, now: int | None = None, key: str = "app-key", **more: Any
) -> str:
    path = more.pop("path", "/apps/1001/events")
    at = int(time.time()) if now is None else now
    return sign_request("POST", path, body, key=key, secret="app-secret", now=at)


async def test_the_official_publisher_publishes(clients: Clients):
    async with stage("asgi", public=True) as served:
        clients.ask("open", "a", **served.for_echo)
        clients.ask("join", "a", channel="agent.s1")
        await clients.until("a", "subscribed")
        first = envelope(1, text="ż漢🙂").to_dict()
        batch = [{"channel": CHANNEL, "name": "agent.custom", "data": envelope(n).to_dict()} for n in (2, 3)]
        with official(served) as it:
            assert await asyncio.to_thread(it.trigger, CHANNEL, "agent.custom", first) == {}
            assert await asyncio.to_thread(it.trigger_batch, batch) == {}
            await asyncio.to_thread(it.trigger, [CHANNEL], "order.paid", {"n": 7})
        reports = await clients.until("a", "event", 4)
        assert [report["name"] for report in reports] == [".agent.custom"] * 3 + [".order.paid"]
        assert reports[0]["data"] == first
        assert served.hub.stats()["published"] == 4


async def test_what_came_over_http_is_replayed_too():
    async with stage("asgi") as served:
        with official(served) as it:
            for n in (1, 2):
                await asyncio.to_thread(it.trigger, CHANNEL, "agent.custom", envelope(n).to_dict())
        proof = issue_token("app-secret", "s1", expires=int(time.time()) + 60)
        async with served.connect(f"/ws?channel=agent.s1&after=0&token={proof}") as websocket:
            said = [json.loads(text) for text in await frames(websocket, 3)]
        assert [each.get("seq") for each in said] == [None, 1, 2]


async def test_the_official_publisher_asks_who_is_there(clients: Clients):
    async with stage("asgi", identify=lambda headers: headers.get("x-user")) as served:
        for each in ("ann", "bob"):
            clients.ask("open", each, **served.for_echo, headers={"X-User": each})
            clients.ask("join", each, channel="agent.s1", kind="presence")
            await clients.until(each, "subscribed")
        name = "presence-agent.s1"
        with official(served) as it:
            assert await asyncio.to_thread(it.channels_info, "presence-", ["user_count"]) == {
                "channels": {name: {"user_count": 2}}
            }
            one = await asyncio.to_thread(it.channel_info, name, ["user_count", "subscription_count"])
            assert one == {"occupied": True, "user_count": 2, "subscription_count": 2}
            users = await asyncio.to_thread(it.users_info, name)
            assert users == {"users": [{"id": "ann"}, {"id": "bob"}]}


async def test_our_own_publisher_publishes(clients: Clients, served: Stage):
    clients.ask("open", "a", **served.for_echo)
    clients.ask("join", "a", channel="agent.s1")
    await clients.until("a", "subscribed")
    publisher = PusherPublisher(served.url, *("1001", "app-key", "app-secret"))
    await publisher.publish("private-agent.s1", [envelope(n) for n in range(1, 30)])
    await publisher.publish("private-agent.s1", [envelope(29)])  # a retry that was not needed
    await clients.until("a", "event", 29)
    await publisher.aclose()
    assert [data["seq"] for data in clients.data("a", "private-agent.s1")] == list(range(1, 30))
    assert served.hub.stats()["published"] == 29


async def test_a_request_is_served_once(served: Stage):
    """Envelopes are numbered: asking again for them is harmless, and how a lost answer is mended."""
    data = json.dumps(envelope(1).to_dict())
    body = json.dumps({"name": "agent.custom", "channel": "private-agent.s1", "data": data}).encode()
    query = signed(served, body)
    assert [(await post(served, query, body)).status_code for _ in range(2)] == [200, 200]
    assert served.hub.stats()["published"] == 1
    query = signed(served)
    assert [(await post(served, query)).status_code for _ in range(2)] == [
        200,
        200,
    ]  # Laravel's second equal event
    assert served.hub.stats()["published"] == 3
    await asyncio.sleep(3.1)
    again = await post(served, query)
    assert (again.status_code, again.json()["error"]) == (
        401,
        "this request was served before; sign a new one",
    )


@pytest.mark.parametrize("off", [-602, 610, -10_000_000])
async def test_a_stale_or_future_request_is_refused(served: Stage, off: int):
    answer = await post(served, signed(served, now=int(time.time()) + off))
    assert (answer.status_code, "set the clock" in answer.json()["error"]) == (401, True)


async def test_what_was_tampered_with_is_refused(served: Stage):
    async def refused(query: str, body: bytes = BODY, path: str = "/apps/1001/events") -> str:
        answer = await post(served, query, body, path)
        assert 400 <= answer.status_code < 500, answer.text
        return str(answer.json()["error"])

    assert "digest" in await refused(signed(served), BODY.replace(b"foo", b"bar"))
    assert "digest" in await refused(without_md5(served))
    assert "twice" in await refused(signed(served) + "&auth_key=app-key")
    assert "match" in await refused(signed(served), path="/apps/1002/events")
    assert "no such app" in await refused(signed(served, path="/apps/1002/events"), path="/apps/1002/events")
    assert "key" in await refused(signed(served, key="other-key"))
    assert "match" in await refused(signed(served).replace("auth_signature=", "auth_signature=0"))
    assert "key" in await refused("")
    assert served.hub.stats()["published"] == 0


def without_md5(served: Stage) -> str:
    """The body is not signed for; the signature itself is good."""
    query = {"auth_key": "app-key", "auth_timestamp": str(int(time.time())), "auth_version": "1.0"}
    text = "&".join(f"{name}={query[name]}" for name in sorted(query))
    query["auth_signature"] = sign("app-secret", f"POST\n/apps/1001/events\n{text}")
    return urlencode(query)


@pytest.mark.parametrize("digest", [True, False])
async def test_reading_needs_no_digest_of_an_empty_body(served: Stage, digest: bool):
    path = "/apps/1001/channels"
    query = {"auth_key": "app-key", "auth_timestamp": str(int(time.time())), "auth_version": "1.0"}
    if digest:
        query["body_md5"] = hashlib.md5(b"", usedforsecurity=False).hexdigest()
    text = "&".join(f"{name}={query[name]}" for name in sorted(query))
    query["auth_signature"] = sign("app-secret", f"GET\n{path}\n{text}")
    async with httpx.AsyncClient() as web:
        for _ in range(2):  # reading twice is harmless
            answer = await web.get(f"{served.url}/apps/1001/channels", params=query)
            assert (answer.status_code, answer.json()) == (200, {"channels": {}})


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"{oops", 400),
        (b"[]", 422),
        (b'{"name":"","channel":"c","data":"{}"}', 422),
        (b'{"name":"e","channel":"c","data":{}}', 422),
        (b'{"name":"e","channel":"c c","data":"{}"}', 422),
        (b'{"name":"e","channels":[],"data":"{}"}', 400),
        (b'{"name":"e","channels":[7],"data":"{}"}', 422),
        (b'{"name":"e","data":"{}"}', 422),
        (json.dumps({"name": "e", "channels": ["c"] * 101, "data": "{}"}).encode(), 400),
        (json.dumps({"name": "e" * 201, "channels": ["c"], "data": "{}"}).encode(), 422),
        (json.dumps({"name": "e", "channels": ["c"], "data": "x" * 102_401}).encode(), 413),
        (b"x" * 1_048_577, 413),
    ],
)
async def test_nonsense_gets_a_real_status(served: Stage, content: bytes, status: int):
    answer = await post(served, signed(served, content), content)
    assert (answer.status_code, bool(answer.json()["error"])) == (status, True)


@pytest.mark.parametrize(("events", "status"), [(10, 200), (11, 400), (None, 400)])
async def test_a_batch_is_bounded(served: Stage, events: int | None, status: int):
    batch = None if events is None else [{"name": "e", "channel": "c", "data": "{}"}] * events
    body = json.dumps({"batch": batch}).encode()
    path = "/apps/1001/batch_events"
    answer = await post(served, signed(served, body, path=path), body, path)
    assert answer.status_code == status


async def test_an_envelope_of_another_thread_is_an_event_like_any_other(served: Stage):
    """It must not enter the memory of a channel that is not its own."""
    data = json.dumps(envelope(5, session_id="s2").to_dict())
    for content in (data, data.replace('"seq": 5', '"seq": "5"'), data.replace('"prev": 4', '"prev": true')):
        body = json.dumps({"name": "agent.custom", "channel": "private-agent.s1", "data": content}).encode()
        assert (await post(served, signed(served, body), body)).status_code == 200
    assert served.hub.stats()["remembered"] == 0


async def test_a_publisher_may_leave_itself_out(served: Stage):
    async with served.connect() as one, served.connect() as other:
        ids = [
            json.loads(json.loads((await frames(each, 1))[0])["data"])["socket_id"] for each in (one, other)
        ]
        for each in (one, other):
            await each.send('{"event":"pusher:subscribe","data":{"channel":"agent.s1"}}')
            await frames(each, 1)
        body = json.dumps({"name": "e", "channel": "agent.s1", "data": "1", "socket_id": ids[0]}).encode()
        assert (await post(served, signed(served, body), body)).status_code == 200
        (frame,) = await frames(other, 1)
        assert json.loads(frame) == {"event": "e", "channel": "agent.s1", "data": "1"}
        await one.send('{"event":"pusher:ping"}')
        assert (await frames(one, 1)) == ['{"event":"pusher:pong","data":{}}']


async def test_the_last_event_of_a_cache_channel_waits_for_whoever_comes(clients: Clients, served: Stage):
    clients.ask("open", "a", **served.for_echo)
    clients.ask("join", "a", channel="cache-news", kind="channel")
    await clients.until("a", "cache_miss")
    body = json.dumps({"name": "e", "channel": "cache-news", "data": '{"n":1}'}).encode()
    await post(served, signed(served, body), body)
    await served.hub.publish("private-cache-agent.s1", [envelope(1), envelope(2)])
    clients.ask("open", "b", **served.for_echo)
    clients.ask("join", "b", channel="cache-news", kind="channel")
    clients.ask("join", "b", channel="cache-agent.s1")
    assert (await clients.until("b", "event", channel="cache-news"))[0]["data"] == {"n": 1}
    assert (await clients.until("b", "event", channel="private-cache-agent.s1"))[0]["data"]["seq"] == 2


# ---------------------------------------------------------------- auth endpoint


async def ask(served: Stage, content: Any, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient() as web:
        form = {"json": content} if headers.pop("json", "") else {"data": content}
        return await web.post(f"{served.url}/broadcasting/auth", headers=headers, **form)


async def test_a_position_is_signed_into_the_answer(served: Stage):
    asked = {"socket_id": "1234.1234", "channel_name": "private-agent.s1", "epoch": "k3f9x2", "offset": "41"}
    for kind in ("", "yes"):
        answer = (await ask(served, asked, json=kind)).json()
        assert answer["channel_data"] == '{"recover":{"epoch":"k3f9x2","offset":41}}'
        assert answer["auth"] == sign_channel(
            "1234.1234", "private-agent.s1", key="app-key", secret="app-secret", channel_data=answer["channel_data"]
        )  # fmt: skip


@pytest.mark.parametrize("offset", ["-1", "x", "9" * 17, "٣", ""])
async def test_a_position_that_makes_no_sense_is_not_signed(served: Stage, offset: str):
    asked = {"socket_id": "1.1", "channel_name": "private-agent.s1", "epoch": "k", "offset": offset}
    assert list((await ask(served, asked)).json()) == ["auth"]


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"socket_id": "1.1", "channel_name": "private-other"}, 403),
        ({"socket_id": "1.1", "channel_name": "private-agent.a b"}, 400),
        ({"socket_id": "1.1:private-agent.s1", "channel_name": "private-agent.s1"}, 400),
        ({"socket_id": "", "channel_name": "private-agent.s1"}, 400),
        ({"socket_id": "1.1", "channel_name": "presence-agent.s1"}, 403),  # nobody knows who this is
        ({}, 400),
    ],
)
async def test_what_is_no_question_gets_no_signature(served: Stage, asked: dict[str, str], status: int):
    answer = await ask(served, asked)
    assert (answer.status_code, "auth" in answer.json()) == (status, False)


async def test_a_question_is_posted(served: Stage):
    async with httpx.AsyncClient() as web:
        assert (await web.get(f"{served.url}/broadcasting/auth")).status_code == 405
        assert (await web.get(f"{served.url}/up")).status_code == 200
        assert (await web.get(f"{served.url}/elsewhere")).status_code == 404


async def test_a_thread_whose_name_holds_only_a_digest_is_claimed_by_its_id(served: Stage):
    long = "ż" * 500
    asked = {"socket_id": "1.1", "channel_name": channel_for(long)}
    assert (await ask(served, asked)).status_code == 403
    assert (await ask(served, {**asked, "session_id": long})).status_code == 200
    assert (await ask(served, {**asked, "session_id": "another"})).status_code == 403
    await served.hub.publish(channel_for(long), [envelope(1, session_id=long)])
    assert (await ask(served, asked)).status_code == 200  # the hub has heard of it


async def test_owners_code_that_breaks_says_nothing_and_refuses():
    async def breaks(headers: object) -> None:
        raise RuntimeError("planted-secret")

    for options in ({"identify": breaks}, {"authorize": lambda user, session_id: 1 // 0}):
        async with stage("asgi", **options) as served:
            answer = await ask(served, {"socket_id": "1.1", "channel_name": "private-agent.s1"})
            assert answer.status_code == 503
            assert "planted" not in answer.text


async def test_a_presence_channel_tells_what_identify_told():
    async def ann(headers: object) -> dict[str, Any]:
        return {"user_id": 7, "user_info": {"name": "Ann"}, "password": "planted-secret"}

    async with stage("asgi", identify=ann, authorize=allowed) as served:
        answer = (await ask(served, {"socket_id": "1.1", "channel_name": "presence-agent.s1"})).json()
        assert json.loads(answer["channel_data"]) == {"user_id": "7", "user_info": {"name": "Ann"}}


async def allowed(user: object, session_id: str) -> bool:
    return session_id == "s1"


async def test_too_much_to_tell_is_refused():
    async with stage("asgi", identify=lambda headers: {"user_id": "u" * 3_000}) as served:
        assert (
            await ask(served, {"socket_id": "1.1", "channel_name": "presence-agent.s1"})
        ).status_code == 400


async def test_numbers_are_served_where_they_are_wanted():
    async with stage("asgi", limits=limits(connections=7)) as served, httpx.AsyncClient() as web:
        async with served.connect("/app/wrong") as websocket:
            await websocket.wait_closed()
        answer = await web.get(f"{served.url}/metrics")
        assert answer.headers["content-type"].startswith("text/plain")
        assert "runcast_hub_connections 0\n" in answer.text
        assert "# TYPE runcast_hub_published_total counter" in answer.text
