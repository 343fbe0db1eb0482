"""Many readers in one process, as cheap as they can be: they count bytes. Told what to do on stdin, a line each.

open HOST PORT PATH COUNT SUBSCRIBE    answers "open"
expect BYTES                           answers "done" when every reader has had so many more
seen                                   answers with the bytes the first reader has had since the last question
close
"""

from __future__ import annotations

import asyncio
import os
import sys
from urllib.parse import unquote


class Reader(asyncio.Protocol):
    def __init__(self, load: Load, request: bytes, hello: bytes) -> None:
        self.load = load
        self.request = request
        self.hello = hello
        self.ready = asyncio.get_running_loop().create_future()
        self.head = b""
        self.bytes = 0
        self.wanted = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        assert isinstance(transport, asyncio.Transport)
        transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        if not self.ready.done():
            self.head += data
            if b"\r\n\r\n" in self.head:
                assert isinstance(self.transport, asyncio.Transport)
                self.transport.write(self.hello)
                self.ready.set_result(None)
            return
        self.bytes += len(data)
        if self.wanted and self.bytes >= self.wanted:
            self.wanted = 0
            self.load.one_done()


def masked(text: bytes) -> bytes:
    """A text frame as a client sends it."""
    if not text:
        return b""
    mask = os.urandom(4)
    head = bytes([0x81, 0x80 | len(text)]) if len(text) < 126 else b"\x81\xfe" + len(text).to_bytes(2, "big")
    return head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(text))


class Load:
    def __init__(self) -> None:
        self.readers: list[Reader] = []
        self.left = 0

    def one_done(self) -> None:
        self.left -= 1
        if self.left == 0:
            print("done", flush=True)

    async def open(self, host: str, port: str, path: str, count: str, hello: str) -> None:
        loop = asyncio.get_running_loop()
        request = (
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        ).encode()
        say = masked(unquote(hello).encode())
        for _ in range(int(count)):
            _, reader = await loop.create_connection(lambda: Reader(self, request, say), host, int(port))
            await reader.ready
            self.readers.append(reader)
        await asyncio.sleep(0.5)
        print("open", flush=True)

    def expect(self, count: str) -> None:
        self.left = len(self.readers)
        for reader in self.readers:
            reader.bytes, reader.wanted = 0, int(count)
        print("ready", flush=True)

    def seen(self) -> None:
        print(self.readers[0].bytes, flush=True)
        self.readers[0].bytes = 0

    async def obey(self) -> None:
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
        )
        async for line in reader:
            match line.decode().split():
                case ["open", *rest]:
                    await self.open(*rest, *[""] * (5 - len(rest)))
                case ["expect", count]:
                    self.expect(count)
                case ["seen"]:
                    self.seen()
                case _:
                    return


if __name__ == "__main__":
    asyncio.run(Load().obey())
