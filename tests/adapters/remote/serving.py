"""A raw HTTP server on the loopback that answers exactly as a test says, byte for byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Server:
    """Where it listens, and the requests that came."""

    url: str
    requests: list[bytes] = field(default_factory=list)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """A client left while the answer was under way."""


@asynccontextmanager
async def serving(answer: Answer | bytes) -> AsyncIterator[Server]:
    """The server, with one way to answer every request."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (
                    int(line[15:])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length:")
                ),
                0,
            )
            server.requests.append(head + await reader.readexactly(length))
            if isinstance(answer, bytes):
                writer.write(answer)
            else:
                await answer(writer)
            await writer.drain()
        except ConnectionError:
            server.closed.set()
        finally:
            writer.close()

    listener = await asyncio.start_server(respond, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    server = Server(f"http://127.0.0.1:{port}/agents/helper")
    try:
        yield server
    finally:
        listener.close()
        await listener.wait_closed()


def sse(*events: bytes) -> bytes:
    return b"".join(b"data: " + event + b"\n\n" for event in events)
