"""A letter goes to a public address alone, the one that was checked, and no receiver holds on to its sender."""

from __future__ import annotations

import asyncio
from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runcast.app.webhooks import posting
from runcast.app.webhooks.posting import NotSent, is_public, post
from tests.app.webhooks.test_webhooks import receiving

PUBLIC, OTHER = "9.9.9.9", "8.8.8.8"


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1",
     "192.0.0.192", "192.0.0.8", "168.63.129.16", "::1", "::", "fe80::1%eth0", "fc00::1", "ff02::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::",
     "255.255.255.255", "::7f00:1", "::ffff:0:7f00:1", "fec0::1", "64:ff9b:1::a00:1", "5f00::1", "3fff::1", "2001:2::1",
     "2001:0:4136:e378:8000:63bf:3fff:fdd2", "::ffff:192.0.0.192"],
)  # fmt: skip
def test_no_address_inside_is_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", [PUBLIC, "2606:4700::1111", f"::ffff:{PUBLIC}", "64:ff9b::909:909", "2002:909:909::"]
)
def test_an_address_that_everyone_reaches_is_public_also_where_it_is_wrapped(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses())
def test_what_is_public_is_global_whatever_wraps_it(address: Any) -> None:
    if is_public(str(address)):
        assert address.is_global
    if address.version == 4:
        assert is_public(f"::ffff:{address}") <= address.is_global
        assert is_public(str(ip_address(int(ip_address("64:ff9b::")) + int(address)))) <= address.is_global


async def test_a_private_address_is_refused_unless_it_is_allowed() -> None:
    async with receiving() as there:
        for host in ("127.0.0.1", "localhost"):
            with pytest.raises(NotSent, match="not public"):
                await post(f"http://{host}:{there.port}/", b"{}", {}, private=False)
        assert there.got == []
        assert await post(there.url, b"{}", {}, private=True) == 204
    with pytest.raises(NotSent, match="no answer"):
        await post(there.url, b"{}", {}, private=True)


@pytest.mark.parametrize(
    ("answers", "connected"),
    [
        ([[PUBLIC], ["127.0.0.1"]], [PUBLIC]),
        ([[PUBLIC, "10.0.0.1"]], []),
        ([[PUBLIC, OTHER]], [PUBLIC, OTHER]),
    ],
)
async def test_the_address_that_was_checked_is_connected_to(
    monkeypatch: pytest.MonkeyPatch, answers: list[list[str]], connected: list[str]
) -> None:
    """Also where the name resolves to another one a moment later."""
    tried: list[str] = []

    async def resolve(*_: Any, **__: Any) -> Any:
        return [(2, 1, 6, "", (each, 443)) for each in answers.pop(0)]

    async def connect(address: str, *_: Any, **__: Any) -> Any:
        tried.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    monkeypatch.setattr(asyncio, "open_connection", connect)
    with pytest.raises(NotSent):
        await post("https://name.example/", b"{}", {}, private=False)
    assert tried == connected


@pytest.mark.parametrize(
    "url",
    ["https://0x7f000001", "https://2130706433", "https://127.1", "https://0177.0.0.1", "https://[::ffff:127.0.0.1]",
     "https://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460", "https://0", "https://example.com@127.0.0.1",
     "https://127.0.0.1:443#@example.com", "https://[::1", "https://host:99999"],
)  # fmt: skip
async def test_no_spelling_leads_inside(url: str) -> None:
    with pytest.raises(NotSent, match=r"not public|no answer: ValueError"):
        await post(url, b"{}", {}, private=False)


async def test_a_receiver_that_does_not_read_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "TIMEOUT", 0.2)
    given_up, body, got = asyncio.Event(), bytes(16 << 20), asyncio.get_running_loop().create_future()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await given_up.wait()
        size = 0
        try:
            while piece := await reader.read(1 << 20):
                size += len(piece)
        except ConnectionError:
            pass
        writer.close()
        got.set_result(size)

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    with pytest.raises(NotSent, match="no answer within"):
        await post(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", body, {}, private=True)
    given_up.set()
    async with asyncio.timeout(60):
        assert await got < len(body), "the rest was thrown away, not kept for a receiver that may never read"
    server.close()


@pytest.mark.parametrize(
    ("url", "port"),
    [("http://example.com/", 80), ("https://example.com/", 443), ("https://example.com:8443/", 8443)],
)
async def test_the_port_is_that_of_the_scheme_unless_one_is_named(
    url: str, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[tuple[str, int]]()

    async def getaddrinfo(host: str, port: int, **more: Any) -> Any:
        asked.append((host, port))
        raise OSError("no such name")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    with pytest.raises(NotSent, match="no answer"):
        await post(url, b"", {}, private=True)
    assert asked == [("example.com", port)]


async def test_a_receiver_is_told_its_name_and_no_password() -> None:
    got = asyncio.get_running_loop().create_future()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await reader.read()  # the sender hangs up, whatever the receiver does
        writer.close()
        await asyncio.wait([asyncio.ensure_future(writer.wait_closed())])
        got.set_result(head)

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    place = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    assert await post(f"http://user:s3cret@{place}/in?x=1", b"", {"a": "b"}, private=True) == 204
    head = (await asyncio.wait_for(got, 20)).decode().split("\r\n")
    assert head[:2] == ["POST /in?x=1 HTTP/1.1", f"host: {place}"]
    assert "s3cret" not in "".join(head)
    server.close()
