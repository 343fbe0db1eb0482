"""The Pusher HTTP API: our hub, which is real, and a stand-in that answers as Reverb 1.10.2 did."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pusher
import pytest
import uvicorn

from runcast.broadcast import (
    REVERB,
    ConfigError,
    Envelope,
    Hub,
    Publisher,
    PublishError,
    PusherPublisher,
    TooLarge,
    WrongSettings,
    fit,
    open_publisher,
)
from runcast.broadcast.hub.signatures import sign_request
from tests.broadcast.envelopes.test_rollup import chunk, other
from tests.broadcast.publishers.contract import (
    CHANNEL,
    Faults,
    FaultyContract,
    Place,
    PublisherContract,
    Refusals,
    behave,
    data_of,
    request_size,
)
from tests.broadcast.publishers.http_stand_in import Answer, listening
from tests.servers import free_port


class TestHub(PublisherContract):
    @pytest.fixture
    async def place(self) -> AsyncIterator[Place]:
        hub = Hub("1001", "app-key", "app/sec+ret")
        port = free_port()
        server = uvicorn.Server(uvicorn.Config(hub.asgi(), port=port, log_level="warning", ws="none"))
        task = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110  uvicorn offers nothing to wait for
            await asyncio.sleep(0.01)

        async def arrived(publisher: Publisher, channel: str) -> list[Envelope]:
            ring = hub._memory.find(channel)
            return [] if ring is None else [kept.envelope for kept in ring._kept]

        where = f"127.0.0.1:{port}/1001"
        yield Place(f"hub://app-key:app%2Fsec%2Bret@{where}", arrived, f"hub://app-key:wrong@{where}")
        server.should_exit = True
        await task


REVERB_CLOSES = {"Connection": "close"}  # after each request
REFUSALS: Refusals = {
    "401": (401, b"Authentication signature invalid.", REVERB_CLOSES),
    "403": (403, b"", REVERB_CLOSES),
    "404": (404, b"No matching application for ID [9999].", REVERB_CLOSES),
    "413": (413, b"Payload too large.", REVERB_CLOSES),
    "422": (422, b'{"batch.0.data":["The batch.0.data field is required."]}', REVERB_CLOSES),
    "429": (429, b"", {**REVERB_CLOSES, "Retry-After": "0"}),
    "500": (500, b"Internal server error.", REVERB_CLOSES),
    "503": (503, b"", REVERB_CLOSES),
}


class TestReverb(FaultyContract):
    largest = 10_000
    idempotent = False
    path = ""
    key, secret = "app-key", "app-secret"

    @pytest.fixture
    def faults(self) -> Faults:
        return Faults()

    @pytest.fixture
    def place(self, faults: Faults) -> Iterator[Place]:
        channels: dict[str, list[Envelope]] = {}

        def answer(path: str, headers: Any, body: bytes) -> Answer:
            whole, _, query = path.partition("?")
            route = whole.removeprefix(self.path)
            if not whole.startswith(f"{self.path}/apps/1001/"):
                return REFUSALS["404"]
            if query != self.signed("POST" if body else "GET", route, body, query):
                return REFUSALS["401"]
            if not body:
                return 200, b'{"channels":{}}', REVERB_CLOSES
            content = json.loads(body)
            events = content["batch"] if route.endswith("/batch_events") else [content]
            envelopes = [data_of(event) for event in events]
            if any(each.seq in faults.refused and each.type != "agent.gap" for each in envelopes):
                faults.requests += 1
                return REFUSALS["422"]

            def run() -> list[Envelope]:
                for event, envelope in zip(events, envelopes, strict=True):
                    for channel in event.get("channels") or [event["channel"]]:
                        channels.setdefault(channel, []).append(envelope)
                return envelopes

            reply = b'{"batch":{}}' if "batch" in content else b"{}"
            size = request_size(path, headers, body)
            return behave(faults, body, size, REFUSALS, run, lambda: (200, reply, REVERB_CLOSES))

        async def arrived(publisher: Publisher, channel: str) -> list[Envelope]:
            return channels.get(channel, [])

        with listening(answer) as server:
            where = f"127.0.0.1:{server.server_port}{self.path}/1001"
            yield Place(
                f"reverb://{self.key}:{self.secret}@{where}", arrived, f"reverb://{self.key}:wrong@{where}"
            )

    def signed(self, method: str, route: str, body: bytes, query: str) -> str:
        given = dict(pair.split("=") for pair in query.split("&"))
        now = int(given["auth_timestamp"])
        return sign_request(method, route, body, key=self.key, secret=self.secret, now=now)

    async def test_what_is_sent_again_arrives_once(self, publisher: Publisher, place: Place) -> None:
        """Reverb has no key to know it by: it arrives twice, and a reader drops the second by its `seq`."""
        sent = [chunk(1, "a"), chunk(2, "b"), replace(other(3, "agent.custom"), part=(1, 2))]
        await publisher.publish(CHANNEL, sent)
        await publisher.publish(CHANNEL, sent)
        assert await place.arrived(publisher, CHANNEL) == sent + sent

    async def test_a_wrong_app_id_is_reverbs_own_sentence(self, place: Place) -> None:
        target = open_publisher(place.url.replace("/1001", "/9999"))
        with pytest.raises(
            WrongSettings, match=r"No matching application for ID \[9999\].; check the app id"
        ):
            await target.publish(CHANNEL, [chunk(1, "a")])
        await target.aclose()


class TestReverbUnderAPath(TestReverb):
    """`REVERB_SERVER_PATH`: requests carry the path, signatures do not."""

    path = "/live/ws"


@pytest.mark.parametrize(
    ("status", "body", "retry", "kind"),
    [
        (200, b'{"error":"unknown app","code":404}', True, WrongSettings),  # soketi's way to refuse
        (200, b'{"error":"odd"}', False, PublishError),
        (200, b'{"err', True, PublishError),  # half an answer
        (302, b"", True, WrongSettings),
        (401, b"{}", True, WrongSettings),
        (403, b"{}", True, WrongSettings),
        (404, b"{}", True, WrongSettings),
        (400, b"{}", False, PublishError),
        (422, b"{}", False, PublishError),
        (413, b"too large", False, TooLarge),
        (429, b"{}", True, PublishError),
        (500, b"oops", True, PublishError),
    ],
)
async def test_a_refusal_is_an_error_in_whatever_form(
    status: int, body: bytes, retry: bool, kind: type[PublishError]
) -> None:
    """Case 29: soketi's 200 with an error, a limit on the request, and the honest ones."""
    with listening(lambda *request: (status, body, {"Retry-After": "7"})) as server:
        target = open_publisher(f"reverb://k:s@127.0.0.1:{server.server_port}/1")
        with pytest.raises(kind) as refused:
            await target.publish(CHANNEL, [chunk(1, "a")])
        assert type(refused.value) is kind
        assert refused.value.retry is retry
        assert refused.value.after in (7.0, None)
        if status in (429, 500):
            assert refused.value.after == 7.0
        await target.aclose()


@pytest.mark.parametrize("body", [b"", b"ok", b"{}", b'{"ok":true}', b"[1]"])
async def test_any_other_200_is_a_success(body: bytes) -> None:
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
    """Case 28, on the finished request with its headers; alone and in lots."""
    sizes: list[int] = []

    def weigh(path: str, headers: Any, body: bytes) -> Answer:
        sizes.append(request_size(path, headers, body))
        return 200, b"{}", {}

    with listening(weigh) as server:
        key = "k" * 60
        target = open_publisher(f"reverb://{key}:s@127.0.0.1:{server.server_port}/a/path/1")
        for sample in ['"', "\n", "a", "ż", "漢", "😀", "\x01"]:
            big = replace(other(1, "agent.custom"), payload={"value": [sample * 900] * 60})
            small = [chunk(n, sample * 300) for n in range(1, 40)]
            channel = "private-agent." + "c" * 180
            await target.publish(channel, [fit(big, REVERB), *small])
        await target.aclose()
    assert 9_000 < max(sizes) <= 10_000
    assert len(sizes) < 7 * 20


async def test_a_connection_the_other_side_closed_is_opened_again() -> None:
    with listening(lambda *request: (200, b"{}", {"Connection": "close"})) as server:
        target = open_publisher(f"reverb://k:s@127.0.0.1:{server.server_port}/1")
        for n in (1, 2, 3):
            await target.publish(CHANNEL, [chunk(n, "a")])
        assert len(server.requests) == 3
        await target.aclose()


async def test_a_request_that_outlives_its_publisher_leaves_no_connection_open() -> None:
    hold = threading.Event()

    def wait(*request: Any) -> Answer:
        hold.wait(5)
        return 200, b"{}", {}

    with listening(wait) as server:
        target = PusherPublisher(f"http://127.0.0.1:{server.server_port}", "1", "k", "s")
        sending = asyncio.create_task(target.publish(CHANNEL, [chunk(1, "a")]))
        while not server.requests:  # noqa: ASYNC110  the server has no event
            await asyncio.sleep(0.01)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await target.aclose()
        hold.set()
        await asyncio.sleep(0.1)
        gc.collect()  # a socket that nobody closed would warn, which is an error


async def test_an_unreachable_target_is_worth_another_try() -> None:
    port = free_port()
    target = open_publisher(f"reverb://k:s@127.0.0.1:{port}/1")
    with pytest.raises(PublishError, match=f"^127.0.0.1:{port} did not answer") as refused:
        await target.publish(CHANNEL, [chunk(1, "a")])
    assert refused.value.retry
    await target.aclose()


async def test_a_target_that_hangs_is_left_after_its_time() -> None:
    hold = threading.Event()

    def wait(*request: Any) -> Answer:
        hold.wait(5)
        return 200, b"{}", {}

    with listening(wait) as server:
        target = PusherPublisher(f"http://127.0.0.1:{server.server_port}", "1", "k", "s", timeout=0.1)
        with pytest.raises(PublishError, match="did not answer"):
            await target.publish(CHANNEL, [chunk(1, "a")])
        hold.set()
        await target.aclose()


@pytest.mark.parametrize("url", ["reverb://k:s@host", "reverb://k@host/1", "hub://k:s@host/prefix/"])
def test_a_url_without_an_app_is_refused_with_the_right_form(url: str) -> None:
    if url.endswith("/"):
        assert open_publisher(url)  # the last segment is the app id
        return
    with pytest.raises(ConfigError, match="key:secret@host:port/app_id"):
        open_publisher(url)
