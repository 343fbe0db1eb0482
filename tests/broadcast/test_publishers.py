"""One contract for every publisher that is found; what is behind each is real, but for Centrifugo's stand-in."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pusher
import pytest
import redis.asyncio
import uvicorn

from runcast.broadcast import (
    REVERB,
    CentrifugoPublisher,
    ConfigError,
    Envelope,
    Hub,
    Publisher,
    PublishError,
    PusherPublisher,
    TooLarge,
    open_publisher,
    publishers,
)
from runcast.broadcast.hub.auth import sign_request
from runcast.broadcast.publishers.redis import RedisPublisher
from tests.broadcast.test_coalesce import chunk, other
from tests.servers import free_port, redis_server

__all__ = ["redis_server"]

CHANNEL = "private-agent.t"


@dataclass(frozen=True)
class Place:
    """A running target: its URL, and what arrived there on a channel, in order."""

    url: str
    arrived: Callable[[str], Any]


# ------------------------------------------------------------------- targets


@asynccontextmanager
async def hub_over_http() -> AsyncIterator[Place]:
    hub = Hub("1001", "app-key", "app-secret")
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(hub.asgi(), port=port, log_level="warning", ws="none"))
    task = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110  uvicorn offers nothing to wait for
        await asyncio.sleep(0.01)

    async def arrived(channel: str) -> list[Envelope]:
        ring = hub._memory.find(channel)
        return [] if ring is None else [kept.envelope for kept in ring._kept]

    try:
        yield Place(f"hub://app-key:app-secret@127.0.0.1:{port}/1001", arrived)
    finally:
        server.should_exit = True
        await task


class Requests(BaseHTTPRequestHandler):
    """Takes POSTs, remembers them, and answers as the test says."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server: Any = self.server
        server.requests.append((self.path, dict(self.headers), body))
        status, answer, headers = server.answer(self.path, self.headers, body)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class's name for it
        pass


@contextmanager
def listening(answer: Callable[..., tuple[int, bytes, dict[str, str]]]) -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    server.requests = []
    server.answer = answer
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@asynccontextmanager
async def centrifugo_stand_in() -> AsyncIterator[Place]:
    """Centrifugo's batch API as its documents have it: commands in order, one reply each, keys remembered."""
    seen: dict[str, list[Envelope]] = {}
    keys: set[str] = set()

    def answer(path: str, headers: Any, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        if headers["X-API-Key"] != "secret":
            return 401, b"", {}
        assert path == "/api/batch"
        commands = json.loads(body)["commands"]
        for command in (each["publish"] for each in commands):
            if command["idempotency_key"] not in keys:
                keys.add(command["idempotency_key"])
                seen.setdefault(command["channel"], []).append(Envelope.from_dict(command["data"]))
        return 200, json.dumps({"replies": [{"publish": {}} for _ in commands]}).encode(), {}

    async def arrived(channel: str) -> list[Envelope]:
        return seen.get(channel, [])

    with listening(answer) as server:
        yield Place(f"centrifugo://:secret@127.0.0.1:{server.server_port}", arrived)


@asynccontextmanager
async def real_redis(url: str) -> AsyncIterator[Place]:
    client: Any = redis.asyncio.Redis.from_url(url)
    await client.flushall()

    async def arrived(channel: str) -> list[Envelope]:
        rows = await client.xrange(f"runcast:stream:{channel}")
        return [Envelope.from_dict(json.loads(fields[b"b"])) for _, fields in rows]

    try:
        yield Place(url, arrived)
    finally:
        await client.aclose()


def found() -> list[str]:
    """The targets there are: files in the folder that say which URLs they take."""
    names = [module.name for module in iter_modules(publishers.__path__)]
    return [n for n in names if hasattr(import_module(f"runcast.broadcast.publishers.{n}"), "SCHEMES")]


@pytest.fixture(params=found())
async def publisher_and_place(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Publisher, Place]]:
    if request.param == "memory":
        memory = open_publisher("memory://")

        async def arrived(channel: str) -> list[Envelope]:
            return memory.envelopes(channel)  # type: ignore[attr-defined,no-any-return]  it is the memory one

        yield memory, Place("memory://", arrived)
        return
    places: dict[str, Callable[[], Any]] = {
        "pusher": hub_over_http,
        "centrifugo": centrifugo_stand_in,
        "redis": lambda: real_redis(request.getfixturevalue("redis_server")),
    }
    async with places[request.param]() as place:
        publisher = open_publisher(place.url)
        yield publisher, place
        await publisher.aclose()


# ------------------------------------------------------------------ contract


async def test_envelopes_arrive_whole_and_in_order(publisher_and_place: tuple[Publisher, Place]) -> None:
    publisher, place = publisher_and_place
    sent = [chunk(n, "漢😀\n") for n in range(1, 26)]
    await publisher.publish(CHANNEL, sent[:1])
    await publisher.publish(CHANNEL, sent[1:])
    assert await place.arrived(CHANNEL) == sent
    assert isinstance(publisher, Publisher)


async def test_what_is_sent_again_arrives_once(publisher_and_place: tuple[Publisher, Place]) -> None:
    publisher, place = publisher_and_place
    parts = [replace(other(3, "agent.custom"), part=(n, 2)) for n in (1, 2)]
    sent = [chunk(1, "a"), chunk(2, "b"), *parts]
    await publisher.publish(CHANNEL, sent[:3])
    await publisher.publish(CHANNEL, sent)
    assert await place.arrived(CHANNEL) == sent


async def test_channels_are_kept_apart(publisher_and_place: tuple[Publisher, Place]) -> None:
    publisher, place = publisher_and_place
    await publisher.publish(CHANNEL, [chunk(1, "a")])
    await publisher.publish(CHANNEL + "2", [replace(chunk(1, "b"), session_id="t2")])
    assert [each.payload["chunk"] for each in await place.arrived(CHANNEL + "2")] == ["b"]


async def test_nothing_to_send_is_fine(publisher_and_place: tuple[Publisher, Place]) -> None:
    publisher, place = publisher_and_place
    await publisher.publish(CHANNEL, [])
    assert await place.arrived(CHANNEL) == []


# -------------------------------------------------------------------- pusher


@pytest.mark.parametrize(
    ("status", "body", "retry", "kind"),
    [
        (200, b'{"error":"unknown app","code":404}', False, PublishError),  # soketi's way of saying no
        (200, b'{"error":"odd"}', False, PublishError),
        (401, b"{}", False, PublishError),
        (413, b"too large", False, TooLarge),
        (429, b"{}", True, PublishError),
        (500, b"oops", True, PublishError),
    ],
)
async def test_a_refusal_is_told_whatever_its_clothes(
    status: int, body: bytes, retry: bool, kind: type
) -> None:
    """Case 29: soketi's 200 with an error, a limit on the request, and the honest ones."""
    with listening(lambda *request: (status, body, {"Retry-After": "7"})) as server:
        target = open_publisher(f"reverb://k:s@127.0.0.1:{server.server_port}/1")
        with pytest.raises(kind) as told:
            await target.publish(CHANNEL, [chunk(1, "a")])
        assert (told.value.retry, told.value.after) in [(retry, 7.0), (False, None)]
        await target.aclose()


@pytest.mark.parametrize("body", [b"", b"ok", b"{}", b'{"ok":true}', b"[1]"])
async def test_whatever_else_a_200_says_is_a_yes(body: bytes) -> None:
    with listening(lambda *request: (200, body, {})) as server:
        target = open_publisher(f"reverb://k:s@127.0.0.1:{server.server_port}/1")
        await target.publish(CHANNEL, [chunk(1, "a")])
        await target.aclose()


async def test_requests_are_signed_as_the_official_library_signs_them() -> None:
    with listening(lambda *request: (200, b"{}", {})) as server:
        target = PusherPublisher(
            f"http://127.0.0.1:{server.server_port}", "3", "key", "secret", event_name="agent.event"
        )
        await target.publish(CHANNEL, [chunk(1, "ż")])
        await target.aclose()
        path, headers, body = server.requests[0]
    assert headers["Content-Type"] == "application/json"
    content = json.loads(body)
    assert (content["name"], content["channels"]) == ("agent.event", [CHANNEL])
    bare, query = path.split("?")
    given = dict(pair.split("=") for pair in query.split("&"))
    now = int(given["auth_timestamp"])
    assert sign_request("POST", bare, body, key="key", secret="secret", now=now) == query
    theirs = pusher.signature.sign(
        "secret",
        f"POST\n{bare}\n"
        + "&".join(sorted(query.split("&"))).replace(f"auth_signature={given['auth_signature']}&", ""),
    )
    assert theirs == given["auth_signature"]


async def test_no_request_to_reverb_exceeds_its_limit() -> None:
    """Case 28, on the finished request with its headers."""
    sizes: list[int] = []

    def weigh(path: str, headers: Any, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        sizes.append(len(body) + len(path) + sum(len(k) + len(v) + 4 for k, v in headers.items()))
        return 200, b"{}", {}

    from runcast.broadcast import fit

    with listening(weigh) as server:
        target = open_publisher(f"reverb://k:s@127.0.0.1:{server.server_port}/1")
        for sample in ['"', "\n", "a", "ż", "漢", "😀", "\x01"]:
            big = replace(other(1, "agent.custom"), payload={"value": [sample * 900] * 60})
            await target.publish("private-agent." + "c" * 180, [fit(big, REVERB)])
        await target.aclose()
    assert max(sizes) <= 10_000


async def test_a_connection_the_other_side_closed_is_opened_again() -> None:
    with listening(lambda *request: (200, b"{}", {"Connection": "close"})) as server:
        target = open_publisher(f"reverb://k:s@127.0.0.1:{server.server_port}/1")
        for n in (1, 2, 3):
            await target.publish(CHANNEL, [chunk(n, "a")])
        assert len(server.requests) == 3
        await target.aclose()


async def test_nobody_there_is_worth_another_try() -> None:
    target = open_publisher(f"reverb://k:s@127.0.0.1:{free_port()}/1")
    with pytest.raises(PublishError, match="did not answer") as told:
        await target.publish(CHANNEL, [chunk(1, "a")])
    assert told.value.retry
    await target.aclose()


async def test_a_target_that_hangs_is_left_after_its_time() -> None:
    hold = threading.Event()

    def wait(*request: Any) -> tuple[int, bytes, dict[str, str]]:
        hold.wait(5)
        return 200, b"{}", {}

    with listening(wait) as server:
        target = PusherPublisher(f"http://127.0.0.1:{server.server_port}", "1", "k", "s", timeout=0.1)
        with pytest.raises(PublishError, match="did not answer"):
            await target.publish(CHANNEL, [chunk(1, "a")])
        hold.set()
        await target.aclose()


# ---------------------------------------------------------------- centrifugo


@pytest.mark.parametrize(
    ("status", "body", "retry"),
    [
        (401, b"", False),
        (503, b"", True),
        (200, b"<html>", True),
        (200, b"[]", True),
        (200, b'{"replies":[{"error":{"code":102,"message":"unknown channel"}}]}', False),
        (200, b'{"replies":[{"error":{"code":100,"message":"internal"}}]}', True),
    ],
)
async def test_centrifugos_errors_are_told(status: int, body: bytes, retry: bool) -> None:
    with listening(lambda *request: (status, body, {})) as server:
        target = CentrifugoPublisher(f"http://127.0.0.1:{server.server_port}", "k")
        with pytest.raises(PublishError) as told:
            await target.publish(CHANNEL, [chunk(1, "a")])
        assert told.value.retry is retry
        await target.aclose()


# --------------------------------------------------------------------- redis


async def test_a_new_epoch_begins_the_stream_anew(redis_server: str) -> None:
    async with real_redis(redis_server) as place:
        target = open_publisher(place.url)
        await target.publish(CHANNEL, [chunk(9, "old")])
        await target.publish(CHANNEL, [replace(chunk(1, "new"), epoch="other")])
        assert [each.payload["chunk"] for each in await place.arrived(CHANNEL)] == ["new"]
        await target.aclose()


async def test_redis_gone_is_told(redis_server: str) -> None:
    """Case 20: a publish that did not arrive is a failure, never a success."""
    target = RedisPublisher(f"redis://127.0.0.1:{free_port()}/0", timeout=0.2)
    with pytest.raises(PublishError, match="Redis did not take it"):
        await target.publish(CHANNEL, [chunk(1, "a")])
    await target.aclose()


async def test_what_is_published_is_heard_at_once(redis_server: str) -> None:
    target = RedisPublisher(redis_server, prefix="heard:")
    client: Any = redis.asyncio.Redis.from_url(redis_server)
    ear = client.pubsub()
    await ear.subscribe(target.topic(CHANNEL))
    await target.publish(CHANNEL, [chunk(1, "a")])
    heard = None
    while heard is None:
        heard = await ear.get_message(ignore_subscribe_messages=True, timeout=2)
    assert Envelope.from_dict(json.loads(heard["data"])) == chunk(1, "a")
    assert await client.xlen(target.stream(CHANNEL)) == 1
    await ear.aclose()
    await client.aclose()
    await target.aclose()


# ---------------------------------------------------------------------- urls


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("kafka://x", "no publisher takes kafka://; there are centrifugo, hub, memory, pusher, redis"),
        ("reverb://host/1", "give reverb://key:secret@host:port/app_id"),
        ("centrifugo://host", "give centrifugo://:api_key@host:port"),
        ("pusher+ftp://k:s@host/1", "is not a target"),
    ],
)
def test_a_url_that_cannot_work_says_which_would(url: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        open_publisher(url)


def test_tls_is_asked_for_in_the_scheme() -> None:
    for url in ("pusher+https://k:s@host/1", "centrifugo+https://:k@host", "soketi+https://k:s@host:1/1"):
        assert isinstance(open_publisher(url), Publisher)
