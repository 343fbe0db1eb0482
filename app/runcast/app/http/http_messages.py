"""Requests and answers of the HTTP API, on Starlette's. Knows paths, bodies and streams; does not know routes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, cast
from urllib.parse import parse_qsl, unquote

import orjson
from ag_ui.core import RunAgentInput

from runcast.app.errors import BadRequest, NotAllowed, TooLarge, TooSlow, WrongMedia
from runcast.app.host.cast import Cast
from runcast.app.http.page import PageOptions
from runcast.broadcast.json_bytes import dumps
from runcast.slim import decode_input
from runcast.slim.tasks import HEAVY, beside, end
from runcast.slim.values.exact_json import parse
from runcast.slim.values.identifiers import identifier as checked_identifier
from runcast.slim.values.type_guards import as_list, as_object

try:
    from starlette.datastructures import Headers
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response, StreamingResponse
    from starlette.types import Message, Receive, Scope, Send
except ImportError as error:
    raise ImportError("to serve over HTTP, install runcast[server]") from error

LARGEST = 2**53 - 1
COMMENT = b": still here\n\n"
BODY_TIMEOUT = 20.0  # seconds, and so many more as its bytes take at SLOWEST_BODY
SLOWEST_BODY = 16_384  # bytes a second
MOST_MESSAGES, MOST_VALUES = 10_000, 200_000  # of one body
LISTS = ("messages", "message", "answers")  # of a body: their items become models, each
BUDGET = f"a body has at most {MOST_MESSAGES} messages and {MOST_VALUES} JSON values here"
SLICE = 100  # events of one stream in a row


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How the host answers over HTTP."""

    cors: tuple[str, ...] = ()
    page: bool | PageOptions = True
    max_body: int = 8_388_608
    keepalive: float = 15.0


class ApiRequest(Request):
    """A request that was let in: its `user`, the host as the user sees it, and a body within the limit."""

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        host: Cast,
        options: HttpOptions,
        *,
        user: Any = None,
        thread: str | None = None,
    ) -> None:
        super().__init__({**scope, "user": user}, receive)
        self.cast = host
        self.options = options
        self.query = query_of(scope)
        self._thread = thread  # the only thread that the bearer of a watcher's token may see

    async def allow_thread(self, thread_id: str) -> str:
        """The thread's id. Raises when the user may not use the thread."""
        identifier("a thread id", thread_id)
        if self._thread is not None:
            if thread_id != self._thread:
                raise NotAllowed("this token is for another thread")
        elif not await self.cast.access.allows(self.user, thread_id):
            raise NotAllowed("this thread is not yours")
        return thread_id

    async def allow_host(self) -> None:
        """Raise when the user may not see what belongs to no thread."""
        if not await self.cast.access.allows(self.user, ""):
            raise NotAllowed("that is not yours to see")

    async def body(self) -> bytes:
        """The whole body. Only JSON is accepted: another origin's page cannot send it without a preflight.

        An empty body needs no type; any other does, because a page may send one without.
        """
        kind = self.kind
        if kind not in ("", "application/json"):
            raise WrongMedia(f"send application/json, not {kind[:80]!r}")
        body = await self.read(self.options.max_body)
        if body and not kind:
            raise WrongMedia("send a body as application/json")
        return body

    @property
    def kind(self) -> str:
        """The body's media type, without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def read(self, most: int) -> bytes:
        """A body of any kind, of at most so many bytes, within its time."""
        parts: list[bytes] = []
        size = 0
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(BODY_TIMEOUT) as deadline:
                async for part in self.stream():
                    size += len(part)
                    deadline.reschedule(began + BODY_TIMEOUT + size / SLOWEST_BODY)
                    if size > most:
                        raise TooLarge(f"a body has at most {most} bytes here")
                    parts.append(part)
        except ClientDisconnect:
            raise BadRequest("the request ended before its body did") from None
        except TimeoutError:
            raise TooSlow(f"send a body within {BODY_TIMEOUT:.0f} s, or faster") from None
        return b"".join(parts)

    async def json(self) -> dict[str, Any]:
        """The body as an object within the budget; an empty one is {}."""
        body = await self.body()
        heavy = len(body) >= HEAVY
        try:
            found: Any = await beside(lambda: budgeted(body)) if heavy else budgeted(body.strip() or b"{}")
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


class Answer(Response):
    """A status and its content: JSON, or bytes of another kind."""

    def __init__(
        self,
        content: Any = None,
        status: int = 200,
        kind: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        described = {} if status == 204 else {"content-type": kind}
        super().__init__(content, status, {"cache-control": "no-store", **described, **(headers or {})})

    def render(self, content: Any) -> bytes:
        """The content as bytes."""
        return content if isinstance(content, bytes) else dumps(content)


class EventStream(StreamingResponse):
    """Server-sent events until they end or the reader leaves; comments in silent times keep proxies from hanging up."""

    def __init__(
        self, events: AsyncGenerator[bytes], keepalive: float, more: Mapping[str, str] | None = None
    ) -> None:
        # Some proxies buffer by default; this header switches it off.
        headers = {"cache-control": "no-store", "x-accel-buffering": "no", **(more or {})}
        super().__init__(events, headers=headers, media_type="text/event-stream")
        self._events = events
        self._keepalive = keepalive
        self._last = 0.0  # when something was sent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream. Starlette cancels its own stream again and again, also while a generator cleans up; this one does not."""
        streaming = asyncio.create_task(self._stream(send))
        left = asyncio.create_task(self.listen_for_disconnect(receive))
        try:
            await asyncio.wait({streaming, left}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            left.cancel()
            await end([streaming])
        if not streaming.cancelled():
            streaming.result()

    async def _stream(self, send: Send) -> None:
        turn = asyncio.Lock()  # not every middleware takes two messages at once
        sent = 0

        async def in_turn(message: Message) -> None:
            nonlocal sent
            async with turn:
                await send(message)
            self._last, sent = monotonic(), sent + 1
            if sent % SLICE == 0:  # a long history read by a fast reader must not hold up the others
                await asyncio.sleep(0)

        self._last = monotonic()
        comments = asyncio.create_task(self._comment(in_turn))
        async with aclosing(self._events):
            try:
                await self.stream_response(in_turn)
            except OSError:
                pass  # the reader left; the run goes on
            finally:
                comments.cancel()

    async def _comment(self, send: Send) -> None:
        with suppress(OSError):
            while True:
                silent = monotonic() - self._last
                if silent >= self._keepalive:
                    await send({"type": "http.response.body", "body": COMMENT, "more_body": True})
                    silent = 0.0
                await asyncio.sleep(self._keepalive - silent)


def headers_of(scope: Scope) -> dict[str, str]:
    """A request's headers by lower-case name; of repeated ones the last, as the hub reads them."""
    return dict(Headers(scope=scope).items())


def path_of(scope: Scope) -> tuple[str, ...]:
    """The segments below the mount point, each decoded by itself, so that an id may hold a slash."""
    raw: bytes | None = scope.get("raw_path")
    try:
        if raw is None:
            segments = str(scope["path"]).split("/")[1:]
        else:
            encoded = raw.partition(b"?")[0].decode("ascii").split("/")[1:]
            segments = [unquote(each, errors="strict") for each in encoded]
    except UnicodeDecodeError:
        raise BadRequest("the path is not UTF-8") from None
    root = [each for each in str(scope.get("root_path", "")).split("/") if each]
    # Servers put `root_path` before the path; a proxy that strips its own part leaves the rest of it.
    for skipped in range(len(root)):
        if segments[: len(root) - skipped] == root[skipped:]:
            return tuple(segments[len(root) - skipped :])
    return tuple(segments)


def query_of(scope: Scope) -> dict[str, str]:
    """The query's values by name; of repeated ones the last."""
    try:
        text = scope.get("query_string", b"").decode("ascii")
        return dict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=50))
    except ValueError:  # too many fields, or not UTF-8
        raise BadRequest("the query cannot be read: send UTF-8 and at most 50 fields") from None


def identifier(what: str, value: Any) -> str:
    """An id that a client sent, as one that can be stored and logged."""
    return checked_identifier(what, value, error=BadRequest)


def check_ids(given: RunAgentInput) -> None:
    """Raise unless the ids of a run's input can be stored and logged."""
    identifier("threadId", given.thread_id)
    identifier("runId", given.run_id)
    if given.parent_run_id is not None:
        identifier("parentRunId", given.parent_run_id)


def budgeted(body: bytes) -> Any:
    """The JSON in a body; `TooLarge` when it holds more items or values than this host reads, before models are built."""
    found: Any = orjson.loads(body)
    _refuse_beyond_budget(found)
    return found


def _refuse_beyond_budget(found: Any) -> None:
    given = as_object(found)
    if any(len(as_list(given.get(name)) or as_object(given.get(name))) > MOST_MESSAGES for name in LISTS):
        raise TooLarge(BUDGET)
    count, waiting = 0, [found]
    while waiting and count <= MOST_VALUES:
        value = waiting.pop()
        inner = [*as_list(value), *as_object(value).values()]
        count += len(inner)
        waiting += inner
    if count > MOST_VALUES:
        raise TooLarge(BUDGET)


def only(given: dict[str, Any], shape: type) -> dict[str, Any]:
    """The body, if it has no field but those of its shape."""
    known = [name for name in shape.__annotations__ if not name.startswith("__")]
    for name in given:
        if name not in known:
            raise BadRequest(f"there is no field {name!r}; the fields are {', '.join(known)}")
    return given


def optional(given: Mapping[str, Any], name: str) -> str | None:
    """An id of the body, or None."""
    value = given.get(name)
    return None if value is None else identifier(name, value)


def heavy_input(body: bytes, dropped: list[str]) -> RunAgentInput:
    """The run's input in a large body; raises `TooLarge` beyond the budget."""
    try:
        budgeted(body)
    except orjson.JSONDecodeError:  # the reader of inputs takes more: half characters, a byte order mark
        _refuse_beyond_budget(parse(body))
    return decode_input(body, dropped=dropped)
