"""A network that misbehaves: a TCP relay in front of anything that listens.

It stalls, delays, trickles, cuts in the middle of a frame, refuses, and swallows without a word; a relay that is told
to shuffle gives each piece a delay of its own, per connection, so that what was sent on two connections arrives in
another order. On one connection bytes stay in order, as TCP has it. Knows bytes; does not know what they say.
"""

from __future__ import annotations

import asyncio
import random
import socket
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

PIECE = 65_536


class _Pipe:
    """One connection through the relay."""

    def __init__(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self.ends = (near, far)
        self.dead = False  # something of it was swallowed: it can only stay silent

    def cut(self) -> None:
        """Reset both ends; nobody says goodbye."""
        for end in self.ends:
            end.transport.abort()

    def close(self) -> None:
        for end in self.ends:
            end.close()


class Network:
    """Use it as `async with`; connect to `port` instead of the target's."""

    def __init__(self, port: int, *, seed: int = 1) -> None:
        self.port = 0
        self.connections = 0  # so far
        self.cuts = 0
        self.refusing = False
        self.swallowing = False  # what comes from either side vanishes: the host behind the line is gone
        self.delay = 0.0  # seconds each piece waits
        self.shuffle = 0.0  # seconds each piece waits at the most, drawn for each piece
        self._target = port
        self._rng = random.Random(seed)
        self._budget: int | None = None  # bytes that still get through before the next cut
        self._open = asyncio.Event()
        self._open.set()
        self._pipes: set[_Pipe] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", 0, limit=PIECE)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        self._open.set()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> int:
        """Reset every connection; answers how many there were."""
        pipes, self._pipes = self._pipes, set()
        for pipe in pipes:
            pipe.cut()
        self.cuts += len(pipes)
        return len(pipes)

    def cut_after(self, size: int) -> None:
        """Let so many bytes through, then reset the connection that carries them: most likely within a frame."""
        self._budget = size

    def swallow_no_more(self) -> None:
        """New connections get through again; those whose bytes are gone stay dead, and silent."""
        self.swallowing = False

    def stall(self) -> None:
        """Nothing gets through any more, and nobody is told."""
        self._open.clear()

    def go_on(self) -> None:
        """Let everything through that waited."""
        self._open.set()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self.refusing:
            writer.transport.abort()
            return
        try:
            back, far = await asyncio.open_connection(sock=await self._dial(), limit=PIECE)
        except OSError:
            writer.transport.abort()
            return
        pipe = _Pipe(writer, far)
        self._pipes.add(pipe)
        both = {self._spawn(self._pump(pipe, reader, far)), self._spawn(self._pump(pipe, back, writer))}
        with suppress(asyncio.CancelledError):
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(0)
        if pipe in self._pipes:
            self._pipes.discard(pipe)
            pipe.close()

    async def _dial(self) -> socket.socket:
        line = socket.socket()
        line.setblocking(False)
        # A line that stalls is to be felt at the other end, not hidden by megabytes that the kernel takes in.
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PIECE)
        try:
            await asyncio.get_running_loop().sock_connect(line, ("127.0.0.1", self._target))
        except BaseException:
            line.close()
            raise
        return line

    def _spawn(self, work: object) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(work)  # type: ignore[arg-type]  # a coroutine
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _pump(self, pipe: _Pipe, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(PIECE):
                await self._open.wait()
                wait = self.delay + self._rng.random() * self.shuffle
                if wait:
                    await asyncio.sleep(wait)
                pipe.dead = pipe.dead or self.swallowing
                if pipe.dead:
                    continue
                if self._budget is not None:
                    data, whole = data[: self._budget], len(data)
                    self._budget = self._budget - whole if whole <= self._budget else 0
                    if self._budget == 0:
                        await self._cut_here(pipe, writer, data)
                        return
                writer.write(data)
                await writer.drain()
        # A side that ended while the line swallows is not heard of on the other.
        while pipe.dead and pipe in self._pipes:  # noqa: ASYNC110  until the test is over, or one side resets
            await asyncio.sleep(0.05)

    async def _cut_here(self, pipe: _Pipe, writer: asyncio.StreamWriter, data: bytes) -> None:
        self._budget = None
        self.cuts += 1
        writer.write(data)
        await writer.drain()
        await asyncio.sleep(0.01)  # a reset takes back what was not read yet; half a frame is to arrive
        self._pipes.discard(pipe)
        pipe.cut()


async def misbehave(line: Network, turn: int) -> None:
    """Everything that a line does."""
    await asyncio.sleep(0.3)
    line.cut()
    await asyncio.sleep(0.3)
    line.cut_after(700 + 97 * turn)
    await asyncio.sleep(0.3)
    line.delay, line.shuffle = 0.01, 0.04
    await asyncio.sleep(0.5)
    line.delay = line.shuffle = 0.0
    line.stall()
    await asyncio.sleep(0.5)
    line.go_on()
    line.refusing = True
    line.cut()
    await asyncio.sleep(0.5)
    line.refusing = False


def port_of(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port
