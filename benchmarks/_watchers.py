"""Many WebSocket clients in one process that note when things come in. Told what to do on stdin, a line each.

open HOST PORT PATH COUNT    answers "open"
wait MARK COUNT              answers when every client has had so many frames with the mark: their moments, as JSON,
                             a list a client, in nanoseconds of CLOCK_MONOTONIC; then the clients leave

A moment is taken when the event loop hands the bytes over; nothing is read then, so that a client does not keep the
next one waiting. What the kernel and this loop add is in the figure: a browser has them too.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any


class Client(asyncio.Protocol):
    def __init__(self, request: bytes) -> None:
        self.request = request
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.head = b""
        self.had: list[tuple[int, bytes]] = []
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        if self.ready.done():
            self.had.append((now, data))
            return
        self.head += data
        if b"\r\n\r\n" in self.head:
            if not self.head.startswith(b"HTTP/1.1 101"):
                self.ready.set_exception(RuntimeError(self.head.decode(errors="replace")[:200]))
            else:
                self.ready.set_result(None)

    def moments(self, mark: bytes) -> list[int]:
        """When each frame with the mark came; one that is torn counts where the mark is whole."""
        found: list[int] = []
        tail = b""
        for at, data in self.had:
            joined = tail + data
            found += [at] * joined.count(mark)
            tail = joined[joined.rfind(mark) + len(mark) :][-len(mark) + 1 :]
        return found


async def opened(host: str, port: str, path: str, count: str) -> list[Client]:
    request = (
        f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ).encode()
    clients: list[Client] = []
    for _ in range(int(count)):
        _, client = await asyncio.get_running_loop().create_connection(
            lambda: Client(request), host, int(port)
        )
        await client.ready
        clients.append(client)
    return clients


async def waited(clients: list[Client], mark: bytes, count: int) -> list[list[int]]:
    """Looks seldom: looking takes time from the sockets."""
    async with asyncio.timeout(60):
        while True:
            found = [client.moments(mark) for client in clients]
            if all(len(each) >= count for each in found):
                return found
            await asyncio.sleep(0.5)


async def obey() -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    clients: list[Client] = []
    async for line in reader:
        match line.decode().split():
            case ["open", host, port, path, count]:
                clients = await opened(host, port, path, count)
                print("open", flush=True)
            case ["wait", mark, count]:
                print(json.dumps(await waited(clients, mark.encode(), int(count))), flush=True)
                for client in clients:
                    client.transport.abort()
            case _:
                return


if __name__ == "__main__":
    asyncio.run(obey())
