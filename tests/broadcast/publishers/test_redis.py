"""Redis, a real one."""

# apt: redis-server redis-server

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from redis.exceptions import RedisError

from runcast.broadcast import Envelope, Publisher, PublishError, open_publisher
from runcast.broadcast.publishers.redis import RedisPublisher
from tests.broadcast.envelopes.test_rollup import chunk
from tests.broadcast.publishers.contract import CHANNEL, Place, PublisherContract
from tests.conftest import missing
from tests.servers import REDIS, free_port, redis_program, redis_server

__all__ = ["redis_server"]

ENGINES = Path(__file__).parents[3] / "docs" / "engines.md"


class TestRedis(PublisherContract):
    @pytest.fixture
    async def place(self, redis_server: str) -> AsyncIterator[Place]:
        client: Any = redis.asyncio.Redis.from_url(redis_server)
        await client.flushall()

        async def arrived(publisher: Publisher, channel: str) -> list[Envelope]:
            rows = await client.xrange(f"runcast:stream:{channel}")
            return [Envelope.from_dict(json.loads(fields[b"b"])) for _, fields in rows]

        wrong = redis_server.replace("redis://", "redis://ghost:wrong@")
        yield Place(redis_server, arrived, wrong)
        await client.aclose()

    async def test_a_new_epoch_begins_the_stream_anew(self, publisher: Publisher, place: Place) -> None:
        await publisher.publish(CHANNEL, [chunk(9, "old")])
        await publisher.publish(CHANNEL, [replace(chunk(1, "new"), epoch="other")])
        assert [each.payload["chunk"] for each in await place.arrived(publisher, CHANNEL)] == ["new"]

    async def test_another_history_begins_the_stream_anew(self, publisher: Publisher, place: Place) -> None:
        await publisher.publish(CHANNEL, [replace(chunk(n, f"old {n}"), mark="1.a") for n in (8, 9)])
        await publisher.publish(CHANNEL, [replace(chunk(9, "twice"), mark="1.a")])
        new = [replace(chunk(n, f"new {n}"), mark="9.b") for n in (9, 10)]
        await publisher.publish(CHANNEL, new)
        await publisher.publish(CHANNEL, [replace(chunk(11, "next"), mark="11.c")])
        texts = [each.payload["chunk"] for each in await place.arrived(publisher, CHANNEL)]
        assert texts == ["new 9", "new 10", "next"]


@contextmanager
def redis_process(folder: Path, *options: str) -> Iterator[int]:
    program = redis_program()
    if program is None:
        missing(REDIS)
    port = free_port()
    ports = (
        ["--port", "0", "--tls-port", str(port)] if "--tls-cert-file" in options else ["--port", str(port)]
    )
    command = [str(program), *ports, "--bind", "127.0.0.1", "--save", "", "--dir", str(folder), *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield port
    finally:
        process.terminate()
        process.wait()


async def answering(client: Any) -> Any:
    async with asyncio.timeout(60):
        while True:
            try:
                await client.ping()
            except (RedisError, OSError):
                await asyncio.sleep(0.02)
            else:
                return client


class TestRedisCluster(PublisherContract):
    """A cluster of one node, which refuses keys of different slots as every cluster does."""

    relayed = False  # a node tells its own address

    @pytest.fixture
    async def place(self, tmp_path: Path) -> AsyncIterator[Place]:
        bus = str(free_port())
        with redis_process(tmp_path, "--cluster-enabled", "yes", "--cluster-port", bus) as port:
            client: Any = redis.asyncio.Redis(port=port)
            await answering(client)
            await client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            while b"cluster_state:ok" not in await client.execute_command("CLUSTER", "INFO"):  # noqa: ASYNC110  it has no event
                await asyncio.sleep(0.02)

            async def arrived(publisher: Publisher, channel: str) -> list[Envelope]:
                assert isinstance(publisher, RedisPublisher)
                rows = await client.xrange(publisher.stream(channel))
                return [Envelope.from_dict(json.loads(fields[b"b"])) for _, fields in rows]

            yield Place(f"redis+cluster://127.0.0.1:{port}", arrived)
            await client.aclose()


async def test_tls_with_the_certificate_of_ones_own(tmp_path: Path) -> None:
    certificate, key = tmp_path / "tls.pem", tmp_path / "tls.key"
    self_signed(certificate, key)
    files = [
        "--tls-cert-file",
        str(certificate),
        "--tls-key-file",
        str(key),
        "--tls-ca-cert-file",
        str(certificate),
    ]
    with redis_process(tmp_path, *files, "--tls-auth-clients", "no") as port:
        url = f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={certificate}"
        client = await answering(redis.asyncio.Redis.from_url(url))
        target = open_publisher(url)
        await target.publish(CHANNEL, [chunk(1, "a")])
        assert await client.xlen(f"runcast:stream:{CHANNEL}") == 1
        await target.aclose()
        await client.aclose()


def self_signed(certificate: Path, key: Path) -> None:
    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(secret.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(secret, hashes.SHA256())
    )
    certificate.write_bytes(built.public_bytes(Encoding.PEM))
    key.write_bytes(secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


async def test_a_stream_has_a_length_and_an_age(redis_server: str) -> None:
    target = RedisPublisher(redis_server, prefix="bounded:", keep=50, ttl=30)
    await target.publish(CHANNEL, [chunk(n, "a") for n in range(1, 1_001)])
    client: Any = redis.asyncio.Redis.from_url(redis_server)
    stream = target.stream(CHANNEL)
    assert 50 <= await client.xlen(stream) <= 200  # MAXLEN ~ drops whole blocks of the stream
    assert 25 <= await client.ttl(stream) <= 30
    assert 25 <= await client.ttl(f"{stream}:top") <= 30
    await client.aclose()
    await target.aclose()


async def test_the_documents_consumer_reads_from_a_position_and_then_live(redis_server: str) -> None:
    """docs/engines.md: XREAD from `<seq>-<part>`, blocking."""
    (code,) = re.findall(
        r"^```py\n(.*?async def follow.*?)^```$",
        ENGINES.read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
    space: dict[str, Any] = {}
    exec(compile(code, "engines.md", "exec"), space)
    client: Any = redis.asyncio.Redis.from_url(redis_server)
    await client.delete(f"runcast:stream:{CHANNEL}", f"runcast:stream:{CHANNEL}:top")
    target = RedisPublisher(redis_server)
    await target.publish(CHANNEL, [chunk(n, "a") for n in range(1, 6)])
    got: list[int] = []
    async with asyncio.timeout(60):
        async for envelope in space["follow"](redis_server, "t", after=3):
            got.append(envelope.seq)
            if envelope.seq == 5:
                await target.publish(CHANNEL, [chunk(6, "live")])
            if envelope.seq == 6:
                break
    assert got == [4, 5, 6]
    await client.aclose()
    await target.aclose()


async def test_an_unreachable_redis_is_a_publish_error() -> None:
    """Case 20: a publish that did not arrive is a failure, never a success."""
    target = RedisPublisher(f"redis://127.0.0.1:{free_port()}/0", timeout=0.2)
    with pytest.raises(PublishError, match="Redis did not take it"):
        await target.publish(CHANNEL, [chunk(1, "a")])
    with pytest.raises(PublishError, match="Redis did not take it"):
        await target.probe()
    await target.aclose()


async def test_an_envelope_is_published_to_subscribers_too(redis_server: str) -> None:
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
