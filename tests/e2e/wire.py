"""A wire between a client and a server that tests can cut, freeze and slow down.

Knows bytes; does not know what they say.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress


class Wire:
    """A TCP relay on the loopback. Enter it with `async with`; connect to `port`."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._server: asyncio.Server | None = None
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._open = asyncio.Event()
        self._open.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.refusing = False  # new connections are dropped at once
        self.rate: int | None = None  # bytes a second from the server to the client
        self.port = 0
        self.down = 0  # bytes from the server so far

    async def __aenter__(self) -> Wire:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> int:
        """Reset every connection, without a word of the protocols above; how many there were."""
        pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            for writer in pair:
                writer.transport.abort()
        return len(pairs)

    def freeze(self) -> None:
        """Nothing gets through any more, and nobody is told: a peer behind a dead network."""
        self._open.clear()

    def thaw(self) -> None:
        """Let everything through again."""
        self._open.set()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            writer.transport.abort()
            return
        try:
            up, down = await asyncio.open_connection("127.0.0.1", self._target, limit=65_536)
        except OSError:
            writer.transport.abort()
            return
        pair = (writer, down)
        self._pairs.add(pair)
        both = [self._spawn(self._pump(reader, down)), self._spawn(self._pump(up, writer, counted=True))]
        with suppress(asyncio.CancelledError):
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(0)
        self._pairs.discard(pair)
        for each in pair:
            each.close()

    def _spawn(self, work: object) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(work)  # type: ignore[arg-type]  # a coroutine
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counted: bool = False
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(1024 if self.rate and counted else 65_536):
                await self._open.wait()
                if counted:
                    self.down += len(data)
                    if self.rate:
                        await asyncio.sleep(len(data) / self.rate)
                writer.write(data)
                await writer.drain()
