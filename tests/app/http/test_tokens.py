"""Tokens for sockets that send no headers: for one thread of one tenant, for a minute, and for watching alone."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from runcast.app import Cast, NotFound, watch_token
from runcast.broadcast import issue_token, sign_channel
from runcast.broadcast.hub.signatures import read_token
from tests.app.agents import parrot
from tests.app.serving import Served, post_run, serving


def bearer(headers: Mapping[str, str]) -> str:
    """The user of an Authorization header; who has none is refused by a KeyError."""
    return headers["authorization"].removeprefix("Bearer ")


def own(user: Any, thread_id: str) -> bool:
    return thread_id == "" or not thread_id.startswith("private-") or thread_id == f"private-{user}"


@pytest.fixture
async def host() -> AsyncIterator[Served]:
    """Each user is a tenant, and known by a bearer token alone."""
    async with serving(authorize=own, identify=bearer, tenant=lambda user: user) as it:
        it.http.headers["authorization"] = "Bearer ann"
        await post_run(it.http, text="ann's secret")
        yield it


async def issued(host: Served, thread: str = "t1", user: str = "ann") -> str:
    answer = await host.http.post(
        "/broadcasting/token", json={"thread_id": thread}, headers={"authorization": f"Bearer {user}"}
    )
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    told = answer.json()
    assert (told["thread_id"], told["expires_in"]) == (thread, 60)
    return str(told["token"])


async def first(host: Served, query: str) -> Any:
    """The first frame of a socket without headers, or the code it was closed with."""
    async with connect(f"{host.url.replace('http', 'ws')}/ws?after=0&{query}") as socket:
        try:
            return json.loads(await socket.recv())
        except ConnectionClosed:  # before it said anything
            return socket.close_code


async def refused(host: Served, query: str) -> bool:
    """Whether a socket without headers does not get in, at its handshake or right behind it."""
    try:
        return await first(host, query) == 4009
    except InvalidStatus as error:
        return error.response.status_code == 403


async def test_a_token_opens_a_socket_without_headers(host: Served) -> None:
    token = await issued(host)
    for named in ("channel=agent.t1", "session=t1"):
        told = await first(host, f"{named}&token={token}")
        assert (told["type"], told["offset"]) == ("hub.subscribed", 8)


async def test_a_token_is_for_a_minute(host: Served) -> None:
    ann = host.cast.for_tenant("ann")
    begun, token = int(time.time()), watch_token(ann, "t1")
    assert ann.hub is not None
    assert read_token(ann.hub.secret, token, now=begun + 59) == "t1"
    assert read_token(ann.hub.secret, token, now=int(time.time()) + 60) is None


async def test_a_token_is_for_one_thread(host: Served) -> None:
    token = await issued(host)
    assert await first(host, f"session=t2&token={token}") == 4009
    other = await host.http.get("/threads/t2/envelopes", params={"token": token})
    assert (other.status_code, other.json()["detail"]) == (403, "this token is for another thread")


async def test_a_token_is_for_one_tenant(host: Served) -> None:
    told = await first(host, f"session=t1&token={await issued(host, user='bob')}")
    assert (told["type"], told["offset"]) == ("hub.subscribed", 0)  # bob's t1, which nobody wrote
    assert host.cast.hub is not None
    now = int(time.time())
    for secret in (host.cast.hub.secret, "guessed"):  # the host's own secret opens no tenant's door
        assert (
            await first(host, f"session=t1&token={issue_token(secret, 't1', expires=now + 60, realm='ann')}")
            == 4009
        )
    forged = issue_token("guessed", "t1", expires=now + 60, realm="mallory")
    assert await first(host, f"session=t1&token={forged}") == 4009
    assert {each.tenant for each in host.cast._views} == {"ann", "bob"}  # naming a tenant makes none


@pytest.mark.parametrize("harm", ["expired", "cut", "changed", "empty", "é", "W10.x", "a.b.c"])
async def test_what_is_no_token_opens_nothing(host: Served, harm: str) -> None:
    ann = host.cast.for_tenant("ann")
    token = watch_token(ann, "t1")
    harmed = {
        "expired": watch_token(ann, "t1", seconds=0),
        "cut": token[:-1],
        "changed": f"{'x' if token[0] != 'x' else 'y'}{token[1:]}",
        "empty": "",
    }.get(harm, harm)
    assert await refused(host, f"session=t1&token={harmed}")
    answer = await host.http.get("/threads/t1/envelopes", params={"token": harmed})
    assert answer.status_code == 403
    assert "secret" not in answer.text


@pytest.mark.parametrize("realm", ["t1\ud800", "\0", "a" * 1_000, "é"])
async def test_a_realm_that_nothing_can_hold_is_no_token(host: Served, realm: str) -> None:
    token = issue_token("guessed", "t1", expires=int(time.time()) + 60, realm=realm)
    answer = await host.http.get("/threads/t1/envelopes", params={"token": token})
    assert answer.status_code == 403
    assert await first(host, f"session=t1&token={token}") == 4009
    assert {each.tenant for each in host.cast._views} == {"ann"}


async def test_a_signature_for_another_purpose_is_no_token(host: Served) -> None:
    hub = host.cast.for_tenant("ann").hub
    assert hub is not None
    claim, _ = watch_token(host.cast.for_tenant("ann"), "t1").split(".")
    _, signature = sign_channel("token", claim + "x", key=hub.key, secret=hub.secret).split(":")
    assert await first(host, f"session=t1&token={claim}.{signature}") == 4009


async def test_a_token_reads_envelopes_and_nothing_else(host: Served) -> None:
    token = await issued(host)
    del host.http.headers["authorization"]
    page = await host.http.get("/threads/t1/envelopes", params={"token": token})
    assert page.json()["head"] == 8
    for path in ("events", "snapshot", "runs"):
        answer = await host.http.get(f"/threads/t1/{path}", params={"token": token})
        assert answer.status_code == 503  # `identify` finds no header
    for path in ("runs", "resume", "branch"):
        answer = await host.http.post(f"/threads/t1/{path}", params={"token": token}, json={"message": "x"})
        assert answer.status_code == 503


async def test_a_token_is_for_who_may_see_the_thread(host: Served) -> None:
    refused = await host.http.post("/broadcasting/token", json={"thread_id": "private-bob"})
    assert (refused.status_code, refused.json()["detail"]) == (403, "this thread is not yours")
    for body in ({}, {"thread_id": 7}, {"thread_id": ""}, {"thread_id": "a\nb"}):
        assert (await host.http.post("/broadcasting/token", json=body)).status_code == 400
    foreign = await host.http.post(
        "/broadcasting/token", json={"thread_id": "t1"}, headers={"origin": "https://evil.example"}
    )
    assert foreign.status_code == 403


async def test_nodes_with_one_secret_take_each_others_tokens() -> None:
    one = Cast.open("memory://", agents=[parrot], secret="shared")
    other = Cast.open("memory://", agents=[parrot], secret="shared")
    stranger = Cast.open("memory://", agents=[parrot])
    options = {"authorize": own, "identify": bearer, "tenant": lambda user: user}
    token = watch_token(one.for_tenant("ann"), "t1")
    for cast, expected in ((other, "hub.subscribed"), (stranger, 4009)):
        async with serving(cast, **options) as node:
            told = await first(node, f"session=t1&token={token}")
            assert (told if isinstance(told, int) else told["type"]) == expected


async def test_without_a_hub_there_is_no_token() -> None:
    bare = Cast(Cast.open("memory://").log, agents=[parrot])
    with pytest.raises(NotFound, match="no hub"):
        watch_token(bare, "t1")
    async with serving(bare) as host:
        assert (await host.http.post("/broadcasting/token", json={"thread_id": "t1"})).status_code == 404
        assert (await host.http.get("/threads/t1/envelopes", params={"token": "x"})).status_code == 403


async def test_what_is_the_same_for_all_is_told_to_whoever_comes(host: Served) -> None:
    del host.http.headers["authorization"]
    for path in ("/", "/runcast.js", "/health", "/up", "/openapi.json"):
        assert (await host.http.get(path)).status_code == 200, path
