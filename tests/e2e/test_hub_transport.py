"""What carries the frames: TLS, compression, numbers for Prometheus, and soketi beside the hub for comparison."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import json
import ssl
import zlib
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from websockets.asyncio.client import connect

from runcast.broadcast import PusherPublisher, channel_for
from tests.e2e.pusher import Clients
from tests.e2e.stage import APP, a_hub, envelope, frames, limits, stage


def certificate(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's and a client's context for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "runcast test")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    made = builder.add_extension(address, critical=False).sign(key, hashes.SHA256())
    pem, private = folder / "cert.pem", folder / "key.pem"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem, private)
    return server, ssl.create_default_context(cafile=str(pem))


async def test_tls_and_its_slow_readers(tmp_path: Path):
    server, client = certificate(tmp_path)
    hub = a_hub(limits=limits(buffer=200_000, replay_bytes=60_000))
    async with hub.serve(tls=server, grace=1.0) as served:
        url = f"wss://127.0.0.1:{served.port}/ws?session=s1"
        async with connect(url, ssl=client) as good, connect(url, ssl=client, max_queue=1) as dead:
            await frames(good, 1)
            await asyncio.sleep(0.05)
            dead.transport.pause_reading()
            for n in range(1, 301):
                await hub.publish(channel_for("s1"), [envelope(n, text="x" * 30_000)])
                assert json.loads((await frames(good, 1))[0])["seq"] == n
            assert hub.stats()["slow_cuts"] == 1
            assert hub.stats()["connections"] == 1
            dead.transport.abort()


@pytest.mark.parametrize("deflate", [True, False])
async def test_deflate_is_a_choice(deflate: bool):
    hub = a_hub()
    sent = [envelope(n, text="the same again " * 50) for n in (1, 2)]
    async with (
        hub.serve(deflate=deflate, grace=1.0) as served,
        connect(f"ws://127.0.0.1:{served.port}/ws?session=s1") as websocket,
    ):
        assert bool(websocket.protocol.extensions) is deflate
        await frames(websocket, 1)
        await hub.publish(channel_for("s1"), sent)
        assert [json.loads(text) for text in await frames(websocket, 2)] == [each.to_dict() for each in sent]


async def test_a_compression_bomb_is_refused():
    """A few kilobytes that unpack to megabytes: the limit holds for what comes out."""
    hub = a_hub()
    async with hub.serve(deflate=True, grace=1.0) as served:
        async with connect(f"ws://127.0.0.1:{served.port}/app/app-key?protocol=7") as websocket:
            await frames(websocket, 1)
            bomb = "9" * 20_000_000
            assert len(zlib.compress(bomb.encode())) < 20_000
            await websocket.send(bomb)
            await websocket.wait_closed()
            assert websocket.close_code == 1009
        async with connect(f"ws://127.0.0.1:{served.port}/app/app-key?protocol=7") as websocket:
            await frames(websocket, 1)


async def test_paths_that_are_no_sockets():
    hub = a_hub()
    async with hub.serve(metrics=True) as served, hub.serve() as without, httpx.AsyncClient() as web:
        url = f"http://127.0.0.1:{served.port}"
        assert (await web.get(f"{url}/up")).text == "ok\n"
        assert "runcast_hub_connections 0\n" in (await web.get(f"{url}/metrics")).text
        assert (await web.get(f"{url}/elsewhere")).status_code == 404
        assert (await web.get(f"http://127.0.0.1:{without.port}/metrics")).status_code == 404


async def test_a_hub_and_soketi_give_pusher_js_the_same(clients: Clients, soketi_port: int):
    """One scenario through both: first visit, live events, an event of somebody else, a forged proof."""
    sent = [envelope(n, text='quotes " and \n lines, ż漢🙂') for n in (1, 2, 3)]
    async with stage("asgi", public=True) as served:
        servers = {"ours": served.for_echo, "soketi": {"port": soketi_port, "http": served.http}}
        for name, where in servers.items():
            clients.ask("open", name, **where)
            clients.ask("join", name, channel="agent.s1")
            clients.ask("join", name, channel="news", kind="channel")
            await clients.until(name, "subscribed", 2)
            target = f"http://127.0.0.1:{served.http if name == 'ours' else soketi_port}"
            publisher = PusherPublisher(target, *APP)
            await publisher.publish("private-agent.s1", sent)
            await publisher.publish("news", sent[:1])
            await publisher.aclose()
            await clients.until(name, "event", 4)
    heard = {
        name: [(each["channel"], each["name"], each["data"]) for each in clients.seen(name, "event")]
        for name in servers
    }
    assert heard["ours"] == heard["soketi"]


async def test_what_kills_soketi_does_not_hurt_the_hub():
    async with stage() as served:
        for text in ('{"event":"pusher:subscribe"}', '{"event":"pusher:subscribe","data":"x"}'):
            async with served.connect() as websocket:
                await frames(websocket, 1)
                await websocket.send(text)
                assert json.loads((await frames(websocket, 1))[0])["event"] == "pusher:error"
