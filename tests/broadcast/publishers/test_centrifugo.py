"""Centrifugo, against a stand-in that answers as 6.9.1 did: it runs every command of a lot and replies to each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from runcast.broadcast import (
    CentrifugoPublisher,
    Envelope,
    Publisher,
    PublishError,
    WrongSettings,
    open_publisher,
)
from tests.broadcast.envelopes.test_rollup import chunk
from tests.broadcast.publishers.contract import (
    CHANNEL,
    Faults,
    FaultyContract,
    Place,
    Refusals,
    behave,
    request_size,
)
from tests.broadcast.publishers.http_stand_in import Answer, listening

REFUSALS: Refusals = {
    "401": (401, b"", {}),
    "403": (403, b"", {}),
    "404": (404, b"404 page not found\n", {}),
    "413": (413, b"", {}),
    "429": (429, b"", {"Retry-After": "0"}),
    "500": (500, b"Internal Server Error", {}),
    "503": (503, b"", {}),
}


class TestCentrifugo(FaultyContract):
    idempotent = True
    lot = 100

    @pytest.fixture
    def faults(self) -> Faults:
        return Faults()

    @pytest.fixture
    def place(self, faults: Faults) -> Iterator[Place]:
        keys: set[str] = set()
        channels: dict[str, list[Envelope]] = {}

        def publish(command: dict[str, Any]) -> tuple[dict[str, Any], Envelope | None]:
            envelope = Envelope.from_dict(command["data"])
            if envelope.seq in faults.refused and envelope.type != "agent.gap":
                return {"error": {"code": 102, "message": "unknown channel"}}, None
            if command["idempotency_key"] in keys:
                return {"publish": {}}, None
            keys.add(command["idempotency_key"])
            channels.setdefault(command["channel"], []).append(envelope)
            return {"publish": {}}, envelope

        def answer(path: str, headers: Any, body: bytes) -> Answer:
            if headers["X-API-Key"] != "se/cr+et":
                return REFUSALS["401"]
            if path == "/api/info":
                return 200, b'{"result":{"nodes":[{"version":"6.9.1","num_clients":0}]}}', {}
            if path == "/api/history":
                return 200, b'{"error":{"code":108,"message":"not available"}}', {}
            assert path == "/api/batch"
            replies: list[dict[str, Any]] = []

            def run() -> list[Envelope]:
                results = [publish(command["publish"]) for command in json.loads(body)["commands"]]
                replies.extend(reply for reply, _ in results)
                return [envelope for _, envelope in results if envelope is not None]

            size = request_size(path, headers, body)
            return behave(
                faults,
                body,
                size,
                REFUSALS,
                run,
                lambda: (200, json.dumps({"replies": replies}).encode(), {}),
            )

        async def arrived(publisher: Publisher, channel: str) -> list[Envelope]:
            return channels.get(channel, [])

        with listening(answer) as server:
            where = f"127.0.0.1:{server.server_port}"
            yield Place(f"centrifugo://:se%2Fcr%2Bet@{where}", arrived, f"centrifugo://:wrong@{where}")

    async def test_an_error_between_two_successes_is_about_one_envelope(
        self, place: Place, faults: Faults
    ) -> None:
        """[ok, 102, ok]: Centrifugo publishes the third, and the error says so."""
        faults.refused = {2}
        target = open_publisher(place.url)
        with pytest.raises(PublishError, match="unknown channel") as refused:
            await target.publish(CHANNEL, [chunk(n, "a") for n in (1, 2, 3)])
        assert (set(refused.value.delivered or ()), refused.value.retry) == ({0, 2}, False)
        assert faults.seqs() == [1, 3]
        await target.aclose()

    async def test_the_doctor_reads_whether_channels_keep_a_history(self, place: Place) -> None:
        target = open_publisher(place.url)
        assert isinstance(target, CentrifugoPublisher)
        found = await target.probe()
        assert "Centrifugo 6.9.1 accepts the API key" in found
        assert "set history_size and history_ttl" in found
        await target.aclose()


async def test_the_path_before_the_api_is_kept() -> None:
    with listening(lambda *request: (200, b'{"replies":[{"publish":{}}]}', {})) as server:
        target = open_publisher(f"centrifugo://:k@127.0.0.1:{server.server_port}/live")
        await target.publish(CHANNEL, [chunk(1, "a")])
        await target.aclose()
    assert server.requests[0][0] == "/live/api/batch"


@pytest.mark.parametrize(
    ("status", "body", "retry", "kind"),
    [
        (401, b"", True, WrongSettings),
        (503, b"", True, PublishError),
        (200, b"<html>", True, PublishError),
        (200, b"[]", True, PublishError),
        (200, b'{"replies":[]}', True, PublishError),
        (200, b'{"replies":[{"error":{"code":101,"message":"unauthorized"}}]}', True, WrongSettings),
        (200, b'{"replies":[{"error":{"code":102,"message":"unknown channel"}}]}', False, PublishError),
        (200, b'{"replies":[{"error":{"code":100,"message":"internal"}}]}', True, PublishError),
        (200, b'{"replies":[{"error":{"code":111,"message":"too many requests"}}]}', True, PublishError),
    ],
)
async def test_an_error_of_centrifugo_is_a_publish_error(
    status: int, body: bytes, retry: bool, kind: type[PublishError]
) -> None:
    with listening(lambda *request: (status, body, {})) as server:
        target = CentrifugoPublisher(f"http://127.0.0.1:{server.server_port}", "k")
        with pytest.raises(PublishError) as refused:
            await target.publish(CHANNEL, [chunk(1, "a")])
        assert (type(refused.value), refused.value.retry) == (kind, retry)
        await target.aclose()


async def test_a_history_is_reported_when_there_is_one() -> None:
    with listening(lambda *request: (200, b'{"result":{"nodes":[],"epoch":"xyz","offset":0}}', {})) as server:
        target = CentrifugoPublisher(f"http://127.0.0.1:{server.server_port}", "k")
        assert "keep a history" in await target.probe()
        await target.aclose()
