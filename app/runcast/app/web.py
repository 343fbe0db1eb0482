"""HTTP as the routes see it: what was asked, and what is answered. Plain ASGI, no web framework.

Knows paths, bodies and streams; does not know threads or runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import parse_qsl, unquote

import orjson

from runcast.app.errors import BadRequest, TooLarge, WrongMedia
from runcast.app.shapes import LONGEST_ID
from runcast.broadcast.plain import dumps

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

LARGEST = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: its path below the mount point in decoded segments, its query, its headers, and a way to its body."""

    method: str
    path: tuple[str, ...]
    query: Mapping[str, str]
    headers: Mapping[str, str]  # lower case
    receive: Receive
    max_body: int
    root: str = ""  # where this is mounted

    async def body(self) -> bytes:
        """All of it. JSON alone is taken: a page elsewhere cannot send that without being asked for its origin."""
        kind = self.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise WrongMedia(f"send application/json, not {kind[:80]!r}")
        parts: list[bytes] = []
        size = 0
        while True:
            message = await self.receive()
            if message["type"] != "http.request":
                raise BadRequest("the request ended before its body did")
            part = message.get("body", b"")
            size += len(part)
            if size > self.max_body:
                raise TooLarge(f"a body has at most {self.max_body} bytes here")
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)

    async def json(self) -> dict[str, Any]:
        """The body as an object; an empty one is {}."""
        body = await self.body()
        try:
            found: Any = orjson.loads(body) if body.strip() else {}
        except orjson.JSONDecodeError as error:
            raise BadRequest(f"the body is not JSON: {error}") from None
        if not isinstance(found, dict):
            raise BadRequest("the body must be a JSON object")
        return cast("dict[str, Any]", found)

    def number(self, name: str, default: int, *, most: int = LARGEST) -> int:
        """A whole number of the query, 0 or more."""
        text = self.query.get(name, "")
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= 16):
            raise BadRequest(f"{name} must be a whole number, 0 or more")
        return min(int(text), most)


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and its content: JSON, or bytes of a kind."""

    content: Any = None
    status: int = 200
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    async def send(self, asked: Asked, send: Send) -> None:
        """Say it."""
        body = self.content if isinstance(self.content, bytes) else dumps(self.content)
        described = (
            {} if self.status == 204 else {"content-type": self.kind, "content-length": str(len(body))}
        )
        await _start(send, self.status, {"cache-control": "no-store", **described, **self.headers})
        await send({"type": "http.response.body", "body": b"" if asked.method == "HEAD" else body})


@dataclass(frozen=True, slots=True)
class EventStream:
    """Server-sent events until they end or nobody listens; a comment now and then keeps proxies from hanging up."""

    events: AsyncGenerator[bytes]
    keepalive: float

    async def send(self, asked: Asked, send: Send) -> None:
        """Send until the end. What makes the events is closed with it."""
        headers = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store"}
        gone = asyncio.create_task(_disconnected(asked.receive))
        try:
            async with aclosing(self.events) as events:
                # The proxies that buffer by default are told not to.
                await _start(send, 200, {**headers, "x-accel-buffering": "no"})
                await self._stream(events, gone, send)
            await send({"type": "http.response.body", "body": b""})
        except OSError:
            pass  # the reader is gone; the run is not
        finally:
            gone.cancel()

    async def _stream(self, events: AsyncGenerator[bytes], gone: asyncio.Task[None], send: Send) -> None:
        coming: asyncio.Task[bytes | None] | None = None
        try:
            while not gone.done():
                coming = coming or asyncio.create_task(_next(events))
                await asyncio.wait(
                    {coming, gone}, timeout=self.keepalive, return_when=asyncio.FIRST_COMPLETED
                )
                if not coming.done():
                    part: bytes | None = b": still here\n\n"
                else:
                    part, coming = coming.result(), None
                if part is None:
                    return
                await send({"type": "http.response.body", "body": part, "more_body": True})
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)


async def _next(events: AsyncGenerator[bytes]) -> bytes | None:
    return await anext(events, None)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _start(send: Send, status: int, headers: Mapping[str, str]) -> None:
    pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})


def headers_of(scope: Scope) -> dict[str, str]:
    """A request's headers by lower-case name; of doubled ones the last."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def path_of(scope: Scope) -> tuple[str, ...]:
    """The segments below the mount point, each decoded by itself, so that an id may hold a slash."""
    raw: bytes | None = scope.get("raw_path")
    if raw is None:
        segments = str(scope["path"]).split("/")[1:]
        return tuple(segments[_mounted(scope, segments) :])
    try:
        decoded = [
            unquote(each.decode("ascii"), errors="strict") for each in raw.partition(b"?")[0].split(b"/")[1:]
        ]
    except UnicodeDecodeError:
        raise BadRequest("the path is not UTF-8") from None
    return tuple(decoded[_mounted(scope, decoded) :])


def _mounted(scope: Scope, segments: Sequence[str]) -> int:
    """How many segments belong to the mount point.

    Servers and frameworks put `root_path` before the path. Behind a proxy that strips its own part of it, the path
    begins with the rest only.
    """
    root = [each for each in str(scope.get("root_path", "")).split("/") if each]
    for skipped in range(len(root)):
        rest = root[skipped:]
        if list(segments[: len(rest)]) == rest:
            return len(rest)
    return 0


def query_of(scope: Scope) -> dict[str, str]:
    """The query's values by name; of doubled ones the last."""
    try:
        text = scope.get("query_string", b"").decode("ascii")
        return dict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=50))
    except ValueError:  # too many fields, or not UTF-8
        raise BadRequest("the query cannot be read: send UTF-8 and at most 50 fields") from None


def identifier(what: str, value: Any) -> str:
    """An id that somebody sent: 1 to 512 characters that can be written down."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_ID or not writable(value):
        raise BadRequest(f"{what} must be 1 to {LONGEST_ID} characters without control characters")
    return value


def writable(text: str) -> bool:
    """Whether a text has neither control characters nor halves of surrogate pairs."""
    return not any(ord(each) < 32 or ord(each) == 127 or 0xD800 <= ord(each) <= 0xDFFF for each in text)
