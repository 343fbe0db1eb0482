"""The hub in Reverb's place: the requests of pusher-php-server 7.2 and Laravel's broadcaster, and whispers of Echo."""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
import pytest
from fastapi import FastAPI

from runcast.broadcast import channel_for, sign_channel
from runcast.broadcast.hub.signatures import sign_request, sign_user
from tests.e2e.stage import Stage, a_hub, by_uvicorn, envelope, frames, port_of, stage
from tests.e2e.test_hub_abuse import opened, proof, subscribe


async def php(
    origin: str, path: str, content: Any = None, *, setting: str = "", now: int | None = None
) -> httpx.Response:
    """A request as pusher-php-server makes it: the path is signed without the setting `path`, and Guzzle joins the two
    by RFC 3986, `base_uri` being origin and setting, the path without its first slash."""
    route = f"/apps/1001{path}"
    body = b"" if content is None else json.dumps(content).encode()
    method = "POST" if body else "GET"
    query = sign_request(method, route, body, key="app-key", secret="app-secret", now=now or int(time.time()))
    async with httpx.AsyncClient() as web:
        url = urljoin(origin + setting, route.lstrip("/"))
        return await web.request(method, f"{url}?{query}", content=body)


def event(channel: str, name: str = "order.paid", **more: Any) -> dict[str, Any]:
    return {"name": name, "data": '{"amount":3}', "channel": channel, **more}


@pytest.fixture
async def served() -> Any:
    async with stage("asgi", client_events=True) as it:
        yield it


async def test_info_on_trigger_answers_for_each_channel(served: Stage) -> None:
    channel = channel_for("s1")
    async with served.connect() as socket:
        await subscribe(socket, auth=proof(await opened(socket)))
        one = await php(served.url, "/events", event(channel, info="subscription_count"))
        assert one.json() == {"channels": {channel: {"subscription_count": 1}}}
        many = {"batch": [event(channel, info="subscription_count"), event("private-agent.s2")]}
        batch = await php(served.url, "/batch_events", many)
        assert batch.json() == {"batch": [{"subscription_count": 1}, {}]}
        assert (await php(served.url, "/events", event(channel, name="plain"))).json() == {}
        assert len(await frames(socket, 3)) == 3


async def test_the_connections_of_a_user_are_terminated_for_good(served: Stage) -> None:
    async with served.connect() as signed_in, served.connect() as member, served.connect() as other:
        auth = sign_user(await opened(signed_in), '{"id":"u7"}', key="app-key", secret="app-secret")
        await signed_in.send(
            json.dumps({"event": "pusher:signin", "data": {"auth": auth, "user_data": '{"id":"u7"}'}})
        )
        await frames(signed_in, 1)
        data = '{"user_id":"u7"}'
        presence = sign_channel(
            await opened(member), "presence-p", key="app-key", secret="app-secret", channel_data=data
        )
        await subscribe(member, channel="presence-p", auth=presence, channel_data=data)
        await subscribe(other, auth=proof(await opened(other)))
        made = int(time.time())
        assert (await php(served.url, "/users/u7/terminate_connections", {}, now=made)).json() == {}
        await signed_in.wait_closed()
        await member.wait_closed()
        assert (signed_in.close_code, member.close_code) == (4009, 4009)
        assert served.hub.stats()["connections"] == 1
        await other.send('{"event":"pusher:ping","data":{}}')
        assert "pong" in (await frames(other, 1))[0]


async def test_two_equal_events_within_a_second_are_two_events(served: Stage) -> None:
    async with served.connect() as socket:
        await subscribe(socket, auth=proof(await opened(socket)))
        now = int(time.time())
        for _ in range(2):
            assert (await php(served.url, "/events", event(channel_for("s1")), now=now)).status_code == 200
        got = [json.loads(each)["event"] for each in await frames(socket, 2)]
        assert got == ["order.paid", "order.paid"]


@pytest.mark.parametrize(
    ("setting", "mounts"),
    [
        ("", [""]),
        ("/live/", ["/live"]),
        ("/live", ["/apps"]),  # Guzzle drops the last segment, so the request is for /apps/… at the root
        ("/live", ["/live", "/apps"]),
        ("/live/", ["/live", "/apps"]),
        ("/deep/live/", ["/deep/live"]),
        ("/proxied/live/", [""]),  # a proxy that keeps its prefix
    ],
)
async def test_laravels_path_setting_with_and_without_a_last_slash(setting: str, mounts: list[str]) -> None:
    hub = a_hub()
    app = FastAPI()
    for mount in mounts:
        app.mount(mount, hub.asgi())
    async with by_uvicorn(app) as server:
        origin = f"http://127.0.0.1:{port_of(server)}"
        answer = await php(origin, "/events", event("private-agent.s1"), setting=setting)
        assert (answer.status_code, answer.json()) == (200, {})
        listing = await php(origin, "/channels", setting=setting)
        assert listing.json() == {"channels": {}}
    assert hub.stats()["published"] == 1


def test_guzzles_joining_rule() -> None:
    assert urlsplit(urljoin("http://h:1/live", "apps/1")).path == "/apps/1"
    assert urlsplit(urljoin("http://h:1/live/", "apps/1")).path == "/live/apps/1"


async def test_whispers_reach_the_others_on_private_and_presence_channels(served: Stage) -> None:
    async with served.connect() as one, served.connect() as two:
        for socket in (one, two):
            await subscribe(socket, auth=proof(await opened(socket)))
        await one.send(json.dumps({"event": "client-typing", "channel": channel_for("s1"), "data": {"a": 1}}))
        assert json.loads((await frames(two, 1))[0])["event"] == "client-typing"


async def test_an_older_name_reads_the_thread_live_and_after_a_return(served: Stage) -> None:
    """`echo.private("agent." + threadId)` with a dot in the id: the frames carry the name that the client knows."""
    before, today = "private-agent.a.b", "private-agent.a=2Eb"
    async with served.connect() as old, served.connect() as new:
        joined = await subscribe(old, channel=before, auth=proof(await opened(old), before))
        assert joined["channel"] == before
        await subscribe(new, channel=today, auth=proof(await opened(new), today))
        for n in (1, 2):
            await served.hub.publish(today, [envelope(n, session_id="a.b")])
        await php(served.url, "/events", event(before))
        for socket, name in ((old, before), (new, today)):
            got = [json.loads(each) for each in await frames(socket, 3)]
            assert [each["channel"] for each in got] == [name] * 3
            assert [each["event"] for each in got] == ["agent.custom", "agent.custom", "order.paid"]
        again = await subscribe(new, channel=before, auth=proof("1.1", before))
        assert again["event"] == "pusher:subscription_error"
        await old.send(json.dumps({"event": "client-x", "channel": before, "data": 1}))
        assert json.loads((await frames(new, 1))[0])["channel"] == today
        await old.send(json.dumps({"event": "pusher:unsubscribe", "data": {"channel": before}}))
        await served.until(lambda: served.hub.occupied() == {today: 1})
    async with served.connect() as old:
        data = '{"recover":{"epoch":"k3f9x2","offset":1}}'
        auth = proof(await opened(old), before, channel_data=data)
        back = await subscribe(old, channel=before, auth=auth, channel_data=data)
        assert json.loads(back["data"])["recovery"]["recovered"] is True
        (missed,) = [json.loads(each) for each in await frames(old, 1)]
        assert (missed["channel"], json.loads(missed["data"])["seq"]) == (before, 2)


async def test_one_socket_joins_a_thread_by_one_name(served: Stage) -> None:
    async with served.connect() as socket:
        socket_id = await opened(socket)
        for name in ("private-agent.a.b", "private-agent.a=2Eb"):
            answer = await subscribe(socket, channel=name, auth=proof(socket_id, name))
        assert answer["event"] == "pusher:error"
        assert "another name" in answer["data"]
        unsubscribe = {"event": "pusher:unsubscribe", "data": {"channel": "private-agent.a=2Eb"}}
        await socket.send(json.dumps(unsubscribe))
        await served.hub.publish("private-agent.a=2Eb", [envelope(1, session_id="a.b")])
        assert json.loads((await frames(socket, 1))[0])["channel"] == "private-agent.a.b"
    await served.quiet()
    assert served.hub.occupied() == {}


async def test_the_auth_endpoint_takes_a_name_of_before() -> None:
    asked: list[str] = []

    def authorize(user: Any, session_id: str) -> bool:
        asked.append(session_id)
        return True

    async with stage("asgi", a_hub(authorize=authorize)) as served, httpx.AsyncClient() as web:
        for name in ("private-agent.a.b", "private-agent.a=2Eb"):
            form = {"socket_id": "1.1", "channel_name": name}
            answer = await web.post(f"{served.url}/broadcasting/auth", data=form)
            assert answer.json() == {"auth": proof("1.1", name)}
    assert asked == ["a.b", "a.b"]
