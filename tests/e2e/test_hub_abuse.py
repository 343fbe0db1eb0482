"""Strangers: forged proofs, nonsense, crowds, wrong origins, and readers that do not read. Every skin."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from runcast.broadcast import issue_token, sign_channel
from tests.e2e.stage import SKINS, Stage, a_hub, envelope, frames, limits, stage

CHANNEL = "private-agent.s1"
SUBSCRIBE = json.dumps({"event": "pusher:subscribe", "data": {"channel": CHANNEL}})
every_skin = pytest.mark.parametrize("skin", SKINS)


@pytest.fixture(params=["websockets", "asgi"])
async def served(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    async with stage(request.param) as it:
        yield it


async def until_closed(websocket: ClientConnection, *said: str) -> list[str]:
    """Say this, whether or not the hub still listens; everything it said before it closed."""
    with suppress(ConnectionClosed):
        for text in said:
            await websocket.send(text)
    got: list[str] = []
    with suppress(ConnectionClosed):
        async with asyncio.timeout(60):
            while True:
                got.append(str(await websocket.recv()))
    return got


async def opened(websocket: ClientConnection) -> str:
    """The socket id the hub gave."""
    frame = json.loads((await frames(websocket, 1))[0])
    assert frame["event"] == "pusher:connection_established"
    return str(json.loads(frame["data"])["socket_id"])


def proof(socket_id: str, channel: str = CHANNEL, **more: Any) -> str:
    return sign_channel(socket_id, channel, **{"key": "app-key", "secret": "app-secret", **more})


async def subscribe(websocket: ClientConnection, **data: Any) -> dict[str, Any]:
    await websocket.send(json.dumps({"event": "pusher:subscribe", "data": {"channel": CHANNEL, **data}}))
    answer: dict[str, Any] = json.loads((await frames(websocket, 1))[0])
    return answer


REFUSED = {
    "event": "pusher:subscription_error",
    "channel": CHANNEL,
    "data": {"type": "AuthError", "error": "The connection is unauthorized.", "status": 401},
}


def forged(mine: str, theirs: str) -> list[dict[str, Any]]:
    good, data = proof(mine), '{"recover":{"epoch":"k3f9x2","offset":41}}'
    return [
        {"auth": proof(mine, secret="wrong")},
        {"auth": proof(theirs)},
        {"auth": proof(mine, "private-agent.s2")},
        {"auth": proof(mine, channel_data=data), "channel_data": data.replace("41", "40")},
        {"auth": proof(mine, channel_data=data)},
        {"auth": good, "channel_data": data},
        {"auth": good[:-1]},
        {"auth": good.upper()},
        {"auth": good.replace("app-key", "other")},
        {"auth": good.split(":")[1]},
        {"auth": 7},
        {"auth": None},
        {"auth": good, "channel_data": {"user_id": 1}},
        {},
    ]


async def test_a_proof_that_is_not_good_is_refused_by_name_and_the_socket_lives(served: Stage):
    for part in (slice(0, 7), slice(7, 14)):  # more than ten a minute close a socket
        async with served.connect() as websocket, served.connect() as other:
            mine, theirs = await opened(websocket), await opened(other)
            for each in forged(mine, theirs)[part]:
                assert await subscribe(websocket, **each) == REFUSED
            entered = await subscribe(websocket, auth=proof(mine))
            assert entered["event"] == "pusher_internal:subscription_succeeded"
    assert served.hub.stats()["auth_failures"] == 14


async def test_a_proof_for_one_thread_is_none_for_another(served: Stage):
    async with served.connect() as websocket:
        data = '{"recover":{"epoch":"k3f9x2","offset":41}}'
        auth = proof(await opened(websocket), "private-agent.s2", channel_data=data)
        assert await subscribe(websocket, auth=auth, channel_data=data) == REFUSED


async def test_public_channels_do_not_exist_unless_made(served: Stage):
    async with served.connect() as websocket:
        await opened(websocket)
        assert (await subscribe(websocket, channel="agent.s1"))["event"] == "pusher:subscription_error"
        await served.hub.publish("agent.s1", [envelope(1)])
        await websocket.send('{"event":"pusher:ping","data":{}}')
        assert await frames(websocket, 1) == ['{"event":"pusher:pong","data":{}}']


@every_skin
async def test_a_wrong_origin_is_told_and_closed(skin: str):
    hub = a_hub(limits=limits(origins=("https://app.example",)))
    async with stage(skin, hub) as served:
        async with served.connect(origin="https://evil.example") as websocket:
            (said,) = await until_closed(websocket, SUBSCRIBE)
            assert json.loads(json.loads(said)["data"])["code"] == 4009
            assert websocket.close_code == 4009
        async with served.connect("/ws?channel=agent.s1", origin="https://evil.example") as websocket:
            await websocket.wait_closed()
            assert websocket.close_code == 4009
        async with served.connect(origin="https://app.example") as websocket:
            await opened(websocket)
        async with served.connect() as websocket:  # not a browser
            await opened(websocket)
        assert hub.stats()["refused"] == 2


@every_skin
@pytest.mark.parametrize("bounds", [{"connections": 2}, {"connections_per_address": 2}])
async def test_beyond_the_limit_is_told_and_closed(skin: str, bounds: dict[str, int]):
    hub = a_hub(limits=limits(**bounds))
    async with stage(skin, hub) as served:
        async with served.connect() as one, served.connect() as two:
            await opened(one)
            await opened(two)
            async with served.connect() as third:
                # A client that ignores the error cannot subscribe.
                assert len(await until_closed(third, *[SUBSCRIBE] * 3)) == 1
                assert third.close_code == 4100
            assert hub.occupied() == {}
        await served.quiet()
        async with served.connect() as again:
            await opened(again)
        await served.quiet()
        assert hub.stats()["addresses"] == 0


@pytest.mark.parametrize("path", ["/app/other", "/app/app-key/x", "/app/"])
async def test_an_app_that_is_not_here(served: Stage, path: str):
    async with served.connect(path) as websocket:
        await websocket.wait_closed()
        assert websocket.close_code == 4001


async def test_a_plain_socket_needs_a_token_or_a_user(served: Stage):
    hub = a_hub(authorize=lambda user, session_id: user == session_id, identify=lambda h: h.get("cookie"))
    soon = int(time.time()) + 60
    async with stage(served.skin, hub) as closed:
        tokens = {
            "": 4009,
            f"&token={issue_token('app-secret', 's1', expires=soon)}": None,
            f"&token={issue_token('app-secret', 's2', expires=soon)}": 4009,
            f"&token={issue_token('wrong', 's1', expires=soon)}": 4009,
            f"&token={issue_token('app-secret', 's1', expires=soon - 70)}": 4009,
            "&token=x.y": 4009,
        }
        for query, code in tokens.items():
            async with closed.connect(f"/ws?channel=agent.s1{query}") as websocket:
                assert await outcome(websocket) == code, query
        for name in ("agent.s1 ", "other", "", "private-agent."):
            async with closed.connect(f"/ws?channel={name.replace(' ', '%20')}") as websocket:
                assert await outcome(websocket) == 4009


async def outcome(websocket: ClientConnection) -> int | None:
    """None when it was let in, else the close code."""
    try:
        said = json.loads(await asyncio.wait_for(websocket.recv(), 60))
    except ConnectionClosed:
        return websocket.close_code
    assert said["type"] == "hub.subscribed"
    return None


@pytest.mark.parametrize("skin", ["websockets", "fastapi"])
async def test_another_page_cannot_use_a_users_cookies(skin: str):
    """A browser sends them along with a WebSocket that any page opens."""
    hub = a_hub(authorize=lambda user, session_id: user == "sid=ann", identify=lambda h: h.get("cookie"))
    async with stage(skin, hub) as served:
        cookie = {"Cookie": "sid=ann"}
        own = f"http://127.0.0.1:{served.port}"
        for origin, code in ((own, None), (None, None), ("https://evil.example", 4009), ("null", 4009)):
            async with served.connect(
                "/ws?session=s1", origin=origin, additional_headers=cookie
            ) as websocket:
                assert await outcome(websocket) == code, origin


async def test_subscriptions_are_bounded(served: Stage):
    hub = a_hub(public=True, limits=limits(subscriptions=2))
    async with stage(served.skin, hub) as small, small.connect() as websocket:
        await opened(websocket)
        for n in (1, 2):
            await subscribe(websocket, channel=f"c{n}")
        answer = await subscribe(websocket, channel="c3")
        assert (answer["event"], answer["channel"], answer["data"]["status"]) == (
            "pusher:subscription_error", "c3", 429,
        )  # fmt: skip
        await websocket.send('{"event":"pusher:unsubscribe","data":{"channel":"c1"}}')
        assert (await subscribe(websocket, channel="c3"))["channel"] == "c3"
        assert small.hub.stats()["limited"] == 1


async def test_client_events_are_off_bounded_and_for_members_only(served: Stage):
    options = {"public": True, "client_events": True, "limits": limits(client_events=3, strikes=5)}
    async with stage(served.skin, a_hub(**options)) as it, it.connect() as one, it.connect() as two:
        auths = [proof(await opened(each)) for each in (one, two)]
        for websocket, auth in zip((one, two), auths, strict=True):
            await subscribe(websocket, auth=auth)
            await subscribe(websocket, channel="open")

        async def whisper(event: str, channel: str) -> None:
            await one.send(json.dumps({"event": event, "channel": channel, "data": {"a": 1}}))

        await whisper("client-typing", CHANNEL)
        assert json.loads((await frames(two, 1))[0]) == {
            "event": "client-typing", "channel": CHANNEL, "data": {"a": 1},
        }  # fmt: skip
        for event, channel in (("client-x", "open"), ("client-x", "private-other"), ("x", CHANNEL)):
            await whisper(event, channel)
            assert json.loads((await frames(one, 1))[0])["event"] == "pusher:error"
        for _ in range(20):
            await whisper("client-typing", CHANNEL)
        refused = [json.loads(each) for each in await frames(one, 16)]
        assert {each["event"] for each in refused} == {"pusher:error"}
        assert one.close_code is None  # it is never a strike
        assert 1 <= it.hub.stats()["whispers"] <= 4
        assert it.hub.stats()["limited"] >= 16
    async with served.connect() as websocket:
        await subscribe_after_opening(websocket)
        await websocket.send(json.dumps({"event": "client-x", "channel": CHANNEL, "data": {}}))
        assert "off" in (await frames(websocket, 1))[0]


async def subscribe_after_opening(websocket: ClientConnection) -> None:
    assert (await subscribe(websocket, auth=proof(await opened(websocket))))["channel"] == CHANNEL


@pytest.mark.parametrize(
    ("bounds", "code", "talks"),
    [
        ({"unsubscribed": 0.2}, 4202, False),
        ({"activity": 0.2, "pong": 0.2}, 4201, True),
    ],
)
async def test_the_idle_and_the_dead_are_sent_away(
    served: Stage, bounds: dict[str, float], code: int, talks: bool
):
    async with stage(served.skin, a_hub(limits=limits(**bounds))) as it, it.connect() as websocket:
        if talks:
            await subscribe_after_opening(websocket)
            assert json.loads((await frames(websocket, 1))[0]) == {"event": "pusher:ping", "data": {}}
        await websocket.wait_closed()
        assert websocket.close_code == code
        assert it.hub.stats()["timeouts"] == 1
        assert it.hub.stats()["closes"] == {code: 1}


async def test_a_dead_network_is_noticed(served: Stage):
    """A half-open TCP connection: no FIN, no RST, no answer."""
    hub = a_hub(limits=limits(activity=0.2, pong=0.2))
    async with stage(served.skin, hub) as it, it.connect() as websocket:
        await subscribe_after_opening(websocket)
        it.wire.freeze()
        await it.quiet()
        assert it.hub.occupied() == {}
        it.wire.cut()


# -------------------------------------------------------------------- nonsense

NONSENSE: list[str | bytes] = [
    "{}", "[]", "null", "{oops", "", "0", '"x"', '{"event":7}', '{"event":"pusher:subscribe"}',
    '{"event":"pusher:subscribe","data":"x"}', '{"event":"pusher:subscribe","data":[]}',
    '{"event":"pusher:subscribe","data":{"channel":7}}', '{"event":"pusher:subscribe","data":{"channel":""}}',
    json.dumps({"event": "pusher:subscribe", "data": {"channel": "c" * 201}}),
    '{"event":"pusher:subscribe","data":{"channel":"a b"}}', '{"event":"pusher:subscribe","data":{"channel":"c\\n"}}',
    '{"event":"pusher:signin"}', '{"event":"pusher:signin","data":{"user_data":"{}","auth":"x"}}',
    '{"event":"pusher:unsubscribe"}', '{"event":"pusher_internal:subscription_succeeded","channel":"c"}',
    '{"event":"client-x","channel":{},"data":{}}', b"\x00\xff", "\x00", '{"event":"\\ud800"}',
    "[" * 10_000, '{"a":' * 3_000, '{"event":"pusher:pong"}', "9" * 5_000, '{"event":"pusher:subscribe","data":null}',
]  # fmt: skip


def mutated(rng: random.Random) -> str | bytes:
    """A frame nobody would send on purpose."""
    base = rng.choice(NONSENSE)
    match rng.randrange(4):
        case 0:
            return base
        case 1:
            return base[: rng.randrange(len(base) + 1)]
        case 2:
            return rng.randbytes(rng.randrange(200))
        case _:
            text = base if isinstance(base, str) else base.decode("latin-1")
            at = rng.randrange(len(text) + 1)
            return text[:at] + chr(rng.randrange(1, 0xD800)) + text[at:]


@pytest.mark.parametrize(("skin", "count"), [("websockets", 20_000), ("asgi", 20_000)])
async def test_twenty_thousand_frames_of_nonsense_disturb_nobody(skin: str, count: int):
    async with stage(skin, a_hub(limits=limits(strikes=count))) as served:
        async with served.connect() as watcher:
            await subscribe_after_opening(watcher)
            sent = 0
            seq = 0
            rng = random.Random(1)
            async with asyncio.timeout(90):
                while sent < count:
                    async with served.connect(max_queue=None) as websocket:
                        with suppress(ConnectionClosed):
                            for _ in range(40):
                                await websocket.send(mutated(rng))
                                sent += 1
                    seq += 1
                    await served.publish([envelope(seq)])
            got = [json.loads(json.loads(text)["data"])["seq"] for text in await frames(watcher, seq)]
            assert got == list(range(1, seq + 1))
            await watcher.send('{"event":"pusher:ping","data":{}}')
            assert await frames(watcher, 1) == ['{"event":"pusher:pong","data":{}}']
        await served.quiet()
        assert served.hub.occupied() == {}
        assert served.hub.stats()["bad_frames"] > count * 0.8


async def test_who_makes_no_sense_is_answered_then_closed(served: Stage):
    async with served.connect() as websocket:
        await opened(websocket)
        for _ in range(10):
            await websocket.send("{oops")
        answers = [json.loads(text) for text in await frames(websocket, 10)]
        assert {answer["event"] for answer in answers} == {"pusher:error"}
        await websocket.send("{oops")
        await websocket.wait_closed()
        assert websocket.close_code == 4301
        assert served.hub.stats()["bad_frames"] == 11


@pytest.mark.parametrize("size", [16_385, 1_000_000])
async def test_a_frame_that_is_too_large_closes(served: Stage, size: int):
    async with served.connect() as websocket:
        await opened(websocket)
        await until_closed(websocket, "x" * size)
        assert websocket.close_code == 1009


async def test_the_plain_mode_is_asked_for_nothing_but_pings(served: Stage):
    async with served.plain("s1") as websocket:
        await frames(websocket, 1)
        await websocket.send('{"type":"ping"}')
        assert await frames(websocket, 1) == ['{"type":"pong"}']
        assert len(await until_closed(websocket, *["nonsense"] * 11)) == 10
        assert websocket.close_code == 4301
