"""The hub on the `websockets` library: the fast skin.

A round of texts is framed once and written to every socket of a channel at once. Ping timeouts do not protect a server from clients
that stop reading (the ping waits behind the full buffer), so the hub checks each buffer before it writes, and has its
own heartbeat. Knows sockets; does not know channels.
"""

from __future__ import annotations

import asyncio
import http
import logging
import signal
import ssl
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from runcast.broadcast.hub.connection import Connection, Skin
from runcast.broadcast.hub.hub import Hub
from runcast.broadcast.hub.protocol import NO_APP, Close, frame, plain_request
from runcast.broadcast.hub.skins.metrics import exposition
from runcast.broadcast.hub.skins.server_socket import OPEN, ServerSocket, framed


class _Socket:
    """One `websockets` connection, as a `Transport`."""

    __slots__ = ("buffered", "closing", "connection", "protocol", "put", "skin", "tasks", "write")

    def __init__(self, connection: ServerConnection, skin: Skin, tasks: set[asyncio.Task[None]]) -> None:
        self.connection = connection
        self.skin = skin
        self.tasks = tasks
        self.protocol = connection.protocol
        self.write = ServerSocket(connection.transport, connection.protocol).write
        # The transport's own methods: they are called for every reader of every envelope.
        self.buffered = connection.transport.get_write_buffer_size
        self.closing = connection.transport.is_closing
        self.put = connection.transport.write

    def abort(self) -> None:
        self.connection.transport.abort()

    def close(self, code: int, reason: str) -> None:
        task = asyncio.create_task(self.connection.close(code, reason))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


class _Broadcast:
    """Writes texts to many, each encoded and framed once."""

    def send(self, transports: Sequence[_Socket], texts: Sequence[str]) -> None:
        bodies = [text.encode() for text in texts]
        frames = b"".join(map(framed, bodies))
        for transport in transports:
            protocol = transport.protocol
            if protocol.extensions:
                transport.write(frames, bodies)
            elif protocol.state is OPEN and not transport.closing():  # as in `write`, without its call
                transport.put(frames)


class HubServer:
    """A running server; enter it with `async with`, read `port`, leave it to drain and close."""

    def __init__(
        self,
        hub: Hub,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        deflate: bool = False,
        metrics: bool = False,
        grace: float = 5.0,
    ) -> None:
        self.hub = hub
        self.host = host
        self.port = port  # the bound one once it runs
        self._tls = tls
        self._deflate = deflate
        self._metrics = metrics
        self._grace = grace  # seconds for closing handshakes
        self._skin = _Broadcast()
        self._server: Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> HubServer:
        self._server = await serve(
            self._handle,
            self.host,
            self.port,
            process_request=self._admit,
            max_size=self.hub.limits.frame,
            compression="deflate" if self._deflate else None,
            ping_interval=None,  # the hub keeps its own heartbeat
            close_timeout=self._grace,
            ssl=self._tls,
            server_header=None,
            logger=logging.getLogger("runcast.hub.server"),
        )
        self.port = next(iter(self._server.sockets)).getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        server = self._server
        if server is None:
            return
        server.close(close_connections=False)
        await self.hub.aclose()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._grace)
        for connection in list(server.connections):
            connection.transport.abort()
        await server.wait_closed()

    async def until_stopped(self) -> None:
        """Serve until SIGTERM or SIGINT; leave the `async with` then, and everybody is sent away with 4200.

        A second signal ends the process at once, as if nobody listened for it.
        """
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        signals = (signal.SIGTERM, signal.SIGINT)
        for each in signals:
            loop.add_signal_handler(each, stopped.set)
        try:
            await stopped.wait()
        finally:
            for each in signals:
                loop.remove_signal_handler(each)

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        """Anything but the two socket paths is not here; the HTTP API lives in the ASGI skin."""
        path = urlsplit(request.path).path
        if "/app/" in path or path == "/ws":
            return None
        if path == "/up":
            return connection.respond(http.HTTPStatus.OK, "ok\n")
        if path == "/metrics" and self._metrics:
            return connection.respond(http.HTTPStatus.OK, exposition(self.hub.stats()))
        return connection.respond(http.HTTPStatus.NOT_FOUND, "sockets are at /app/{key} and /ws\n")

    async def _handle(self, websocket: ServerConnection) -> None:
        request = websocket.request
        if request is None:  # pragma: no cover  the library sets it before the handler runs
            return
        opened = await self._open(websocket, request)
        if isinstance(opened, Close):
            await _refuse(websocket, request, opened)
            return
        try:
            async for message in websocket:
                if not opened.gone:
                    self.hub.received(opened, message)
        except ConnectionClosed:
            pass
        finally:
            self.hub.gone(opened)

    async def _open(self, websocket: ServerConnection, request: Request) -> Connection | Close:
        address = str(websocket.remote_address[0]) if websocket.remote_address else ""
        refusal = self.hub.refuses(origin=request.headers.get("Origin"), address=address)
        if refusal is not None:
            return refusal
        transport = _Socket(websocket, self._skin, self._tasks)
        url = urlsplit(request.path)
        if url.path.endswith(f"/app/{self.hub.key}"):  # below whatever a proxy or `wsPath` puts before it
            return self.hub.open_pusher(transport, address=address)
        if url.path != "/ws":
            return Close(NO_APP, "no such app")
        headers = {name.lower(): value for name, value in request.headers.raw_items()}
        wanted = plain_request(url.query)
        return await self.hub.open_plain(transport, wanted, address=address, headers=headers)


async def _refuse(websocket: ServerConnection, request: Request, refusal: Close) -> None:
    """Send the reason, then close."""
    with suppress(ConnectionClosed):
        if "/app/" in request.path:
            error = {"code": refusal.code, "message": refusal.reason}
            await websocket.send(frame("pusher:error", data=error))
        await websocket.close(refusal.code, refusal.reason)
