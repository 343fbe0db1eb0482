"""The hub as an ASGI app: sockets, the auth endpoint of Echo, and the HTTP API of the Pusher protocol.

Mount it anywhere (Starlette, FastAPI, or alone under uvicorn). Every socket has a sender beside its receive loop: a
loop that only sends does not notice a lost connection. Under uvicorn the sender has only the close to send. Knows ASGI; does not know channels.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from runcast.broadcast.hub.connection import Connection, Skin
from runcast.broadcast.hub.hub import Hub
from runcast.broadcast.hub.protocol import NO_APP, TOO_LARGE, Close, frame, plain_request
from runcast.broadcast.hub.skins.pusher_api import Api, Request
from runcast.broadcast.hub.skins.server_socket import drop, framed, server_socket
from runcast.broadcast.json_bytes import dumps
from runcast.slim.tasks import end

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
SendEvent = Callable[[MutableMapping[str, Any]], Awaitable[None]]

LARGEST_BODY = 1_048_576
BODY_TIMEOUT = 30.0  # seconds
GOODBYE = 5.0  # seconds for a closing handshake before the connection is dropped


class _Socket:
    """One ASGI WebSocket: the server's own socket where it is at hand, else a queue and a sender that empties it."""

    def __init__(self, send: SendEvent, skin: Skin) -> None:
        self.skin = skin
        self.ended = asyncio.Event()  # the connection is over, as far as the hub is concerned
        self._send = send
        self._socket = server_socket(send)
        self._queue: deque[tuple[str, int]] = deque()
        self._size = 0
        self._wake = asyncio.Event()
        self._closing: tuple[int, str] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self.buffered = self._queued if self._socket is None else self._socket.buffered

    def put(self, texts: Sequence[str], bodies: Sequence[bytes], frames: bytes) -> None:
        if self._closing is not None or self.ended.is_set():
            return
        if self._socket is not None:
            self._socket.write(frames, bodies)
            return
        self._queue += zip(texts, map(len, bodies), strict=True)
        self._size += sum(map(len, bodies))
        self._wake.set()

    def _queued(self) -> int:
        return self._size

    def abort(self) -> None:
        self._queue.clear()
        self._size = 0
        self.ended.set()
        drop(self._send)

    def close(self, code: int, reason: str) -> None:
        if self._closing is None:
            self._closing = (code, reason)
            self._wake.set()
            self._deadline = asyncio.get_running_loop().call_later(GOODBYE, self.abort)

    async def empty(self) -> None:
        """Send what is queued until the connection ends."""
        try:
            while not await self._send_queued():
                self._wake.clear()
                await self._wake.wait()
        except OSError:
            pass  # the client is gone; the receive loop gets the disconnect
        finally:
            self.ended.set()
            if self._deadline is not None:
                self._deadline.cancel()

    async def _send_queued(self) -> bool:
        while self._queue:
            text, size = self._queue[0]
            await self._send({"type": "websocket.send", "text": text})
            if self._queue:  # empty when it was aborted meanwhile
                self._queue.popleft()
                self._size -= size
        if self._closing is None:
            return False
        code, reason = self._closing
        await self._send({"type": "websocket.close", "code": code, "reason": reason})
        return True


class _Sockets:
    """Writes texts to many, each encoded and framed once."""

    def send(self, transports: Sequence[_Socket], texts: Sequence[str]) -> None:
        bodies = [text.encode() for text in texts]
        frames = b"".join(map(framed, bodies))
        for transport in transports:
            transport.put(texts, bodies, frames)


class HubApp:
    """An ASGI app: `/app/{key}` and `/ws` sockets, `/broadcasting/auth`, `/apps/{id}/…`, `/up`, on request `/metrics`."""

    def __init__(self, hub: Hub, *, metrics: bool = False) -> None:
        self.hub = hub
        self._skin = _Sockets()
        self._api = Api(hub, metrics=metrics)

    async def __call__(self, scope: Scope, receive: Receive, send: SendEvent) -> None:
        """Serve one connection or request."""
        if scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)

    async def _lifespan(self, receive: Receive, send: SendEvent) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.hub.aclose()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    # --------------------------------------------------------------- sockets

    async def _websocket(self, scope: Scope, receive: Receive, send: SendEvent) -> None:
        await receive()  # websocket.connect
        await send({"type": "websocket.accept"})
        transport = _Socket(send, self._skin)
        sender = asyncio.create_task(transport.empty())
        ended = asyncio.create_task(transport.ended.wait())
        opened = None
        try:
            opened = await self._admit(scope, transport)
            if isinstance(opened, Close):
                _refuse(transport, _path(scope), opened)
                await ended
            else:
                await self._converse(opened, receive, ended)
        finally:
            if isinstance(opened, Connection):
                self.hub.gone(opened)
            await end([sender, ended])

    async def _converse(self, connection: Connection, receive: Receive, ended: asyncio.Task[Any]) -> None:
        while True:
            incoming = asyncio.ensure_future(receive())
            await asyncio.wait({incoming, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not incoming.done():
                await end([incoming])
                return
            message = incoming.result()
            if message["type"] == "websocket.disconnect":
                return
            if connection.gone:
                continue  # it is being closed; its last frames are ignored
            text: str | bytes = message["text"] if message.get("text") is not None else message["bytes"]
            if len(text) > self.hub.limits.frame:
                self.hub.dismiss(connection, TOO_LARGE, "that frame is too large")
            else:
                self.hub.received(connection, text)

    async def _admit(self, scope: Scope, transport: _Socket) -> Connection | Close:
        headers = _headers(scope)
        address = str((scope.get("client") or ("",))[0])
        path = _path(scope)
        refusal = self.hub.refuses(origin=headers.get("origin"), address=address)
        if refusal is not None:
            return refusal
        if path.endswith(f"/app/{self.hub.key}"):  # below whatever a proxy or `wsPath` puts before it
            return self.hub.open_pusher(transport, address=address)
        if path != "/ws":
            return Close(NO_APP, "no such app")
        wanted = plain_request(scope["query_string"].decode("latin-1"))
        return await self.hub.open_plain(transport, wanted, address=address, headers=headers)

    # ------------------------------------------------------------------ HTTP

    async def _http(self, scope: Scope, receive: Receive, send: SendEvent) -> None:
        try:
            async with asyncio.timeout(BODY_TIMEOUT):
                body = await _body(receive)
        except TimeoutError:
            await _reply(send, 408, {"error": f"send a body within {BODY_TIMEOUT:.0f} s"})
            return
        if body is None:
            await _reply(send, 413, {"error": f"a body has at most {LARGEST_BODY} bytes"})
            return
        request = Request(
            method=scope["method"],
            path=_path(scope),
            query=scope["query_string"].decode("latin-1"),
            headers=_headers(scope),
            body=body,
        )
        await _reply(send, *await self._api.answer(request))


def _refuse(transport: _Socket, path: str, refusal: Close) -> None:
    """Send the reason, then close."""
    if "/app/" in path:
        error = {"code": refusal.code, "message": refusal.reason}
        transport.skin.send([transport], [frame("pusher:error", data=error)])
    transport.close(refusal.code, refusal.reason)


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def _path(scope: Scope) -> str:
    """The path below the mount point: frameworks leave the prefix in `path` and name it in `root_path`."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    below = path[len(root) :] if root and path.startswith(root) else path
    return f"/apps{below}" if root.endswith("/apps") else below  # mounted for publishers that cannot say more


async def _body(receive: Receive) -> bytes | None:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(parts)
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > LARGEST_BODY:
            return None
        parts.append(chunk)
        if not message.get("more_body", False):
            return b"".join(parts)


async def _reply(send: SendEvent, status: int, content: Any) -> None:
    text = isinstance(content, str)
    body = content.encode() if text else dumps(content)
    kind = b"text/plain; version=0.0.4; charset=utf-8" if text else b"application/json"
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
