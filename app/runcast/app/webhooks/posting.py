"""POST to an address that somebody else chose: resolved once, refused when it is not public, connected to as resolved.

A name that resolves to another address a moment later cannot lead inside, and a redirect is an answer like any other.
Knows sockets; does not know webhooks.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

TIMEOUT = 15.0  # seconds for one attempt
MOST = 8_192  # bytes of an answer that are read
NAT64 = IPv6Network("64:ff9b::/96")
GLOBAL = IPv6Network("2000::/3")
# Python's own table of what is global depends on its version, and knows nothing of clouds.
INSIDE = tuple(
    map(
        ip_network,
        (
            "192.0.0.0/24",  # protocol assignments; a cloud's metadata was at 192.0.0.192
            "192.88.99.0/24",  # relays of 6to4
            "168.63.129.16/32",  # what a cloud tells its own machines
            "2001::/23",  # protocol assignments, and what Teredo wraps
            "3fff::/20",  # documentation
        ),
    )
)


class NotSent(Exception):
    """An attempt that did not arrive, in a sentence without the address."""


def is_public(address: str) -> bool:
    """Whether everyone reaches this address, also when IPv6 wraps it. Of IPv6 only what is given out as global unicast is
    public: other blocks wrap addresses of IPv4 in ways of their own, or mean a site."""
    found = ip_address(address.partition("%")[0])
    wrapped = _inside(found)
    if isinstance(found, IPv6Address) and found not in GLOBAL and not wrapped:
        return False
    return all(map(_is_global, (found, *wrapped)))


def _is_global(found: IPv4Address | IPv6Address) -> bool:
    return found.is_global and not found.is_multicast and not any(found in each for each in INSIDE)


def _inside(found: IPv4Address | IPv6Address) -> list[IPv4Address | IPv6Address]:
    if isinstance(found, IPv4Address):
        return []
    wrapped: list[IPv4Address | IPv6Address | None] = [found.ipv4_mapped, found.sixtofour]
    if found in NAT64:
        wrapped.append(IPv4Address(int(found) & 0xFFFFFFFF))
    return [each for each in wrapped if each is not None]


async def post(url: str, body: bytes, headers: Mapping[str, str], *, private: bool) -> int:
    """The status of the answer; `NotSent` when there is none."""
    try:
        async with asyncio.timeout(TIMEOUT):
            return await _post(url, body, headers, private=private)
    except TimeoutError:
        raise NotSent(f"no answer within {TIMEOUT:.0f} s") from None
    except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise NotSent(f"no answer: {type(error).__name__}") from None


async def _post(url: str, body: bytes, headers: Mapping[str, str], *, private: bool) -> int:
    parts = urlsplit(url)
    host, secure = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    if not private and not all(map(is_public, addresses)):
        raise NotSent("its address is not public: set `private` where that is meant")
    reader, writer = await _connected(addresses, port, host if secure else None)
    try:
        place = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        name = parts.netloc.rpartition("@")[2]
        lines = [
            f"POST {place} HTTP/1.1",
            f"host: {name}",
            "connection: close",
            f"content-length: {len(body)}",
        ]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        await writer.drain()
        version, _, rest = (await reader.readuntil(b"\n"))[:MOST].partition(b" ")
        status = rest[:3]
        if not version.startswith(b"HTTP/1.") or not status.isdigit():
            raise NotSent("the answer is not HTTP")
        return int(status)
    finally:
        writer.transport.abort()  # nothing more is wanted; a close waits for a receiver that does not read


async def _connected(
    addresses: list[str], port: int, name: str | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the first address that takes it; TLS is checked against the name."""
    tls = None if name is None else ssl.create_default_context()
    for number, address in enumerate(addresses, 1):
        try:
            return await asyncio.open_connection(address, port, ssl=tls, server_hostname=name, limit=MOST)
        except OSError:
            if number == len(addresses):
                raise
    raise NotSent("its name has no address")
