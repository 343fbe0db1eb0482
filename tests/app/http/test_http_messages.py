"""A request's body as it comes in: how long it may take, how large it is, and what it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from typing import Any

import pytest

from runcast.app import BadRequest, Cast, TooLarge
from runcast.app.errors import NotAllowed, TooSlow, WrongMedia
from runcast.app.http import http_messages
from runcast.app.http.http_messages import ApiRequest, EventStream, HttpOptions, path_of, query_of

JSON = {"content-type": "application/json"}


def request(
    parts: Iterable[bytes],
    *,
    pause: float = 0.0,
    headers: dict[str, str] = JSON,
    cast: Any = None,
    thread: str | None = None,
    query: str = "",
    **options: Any,
) -> ApiRequest:
    """A request whose body comes in these parts."""
    waiting = [*parts]

    async def receive() -> Any:
        await asyncio.sleep(pause)
        body = waiting.pop(0) if waiting else b""
        return {"type": "http.request", "body": body, "more_body": bool(waiting)}

    scope = {
        "type": "http",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "query_string": query.encode(),
    }
    return ApiRequest(scope, receive, cast, HttpOptions(**options), thread=thread)


@pytest.fixture
async def cast() -> AsyncIterator[Cast]:
    async with Cast.open("memory://", watch=False) as it:
        yield it


async def test_a_body_that_trickles_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_messages, "BODY_TIMEOUT", 0.1)
    with pytest.raises(TooSlow, match="send a body within"):
        await request([b" "] * 60, pause=0.01).read(1_000)


async def test_a_large_body_has_the_time_that_its_bytes_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_messages, "BODY_TIMEOUT", 0.1)
    monkeypatch.setattr(http_messages, "SLOWEST_BODY", 10)
    part = b"0" * 1_000  # each brings a hundred seconds
    assert await request([part] * 10, pause=0.03).read(10_000) == part * 10


@pytest.mark.parametrize("sizes", [(10,), (4, 6), (0, 10, 0), (11,), (6, 5), (10, 1), (1,) * 11])
async def test_a_body_has_at_most_so_many_bytes(sizes: tuple[int, ...]) -> None:
    parts = [b"x" * each for each in sizes]
    if sum(sizes) <= 10:
        assert await request(parts).read(10) == b"".join(parts)
    else:
        with pytest.raises(TooLarge, match="at most 10 bytes"):
            await request(parts).read(10)


async def test_a_body_that_breaks_off_is_a_bad_request() -> None:
    async def receive() -> Any:
        return {"type": "http.disconnect"}

    with pytest.raises(BadRequest, match="ended before its body"):
        await ApiRequest({"type": "http", "headers": []}, receive, None, HttpOptions()).read(10)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("headers", "body", "error"),
    [
        ({"content-type": "Application/JSON; charset=utf-8"}, b"{}", None),
        ({}, b"", None),
        ({}, b"{}", WrongMedia),
        ({"content-type": "text/plain"}, b"", WrongMedia),
        ({"content-type": "application/json2"}, b"{}", WrongMedia),
        (JSON, b"[]", BadRequest),
        (JSON, b"{", BadRequest),
        (JSON, b" ", None),
    ],
)
async def test_only_an_object_that_says_it_is_json_is_read(
    headers: dict[str, str], body: bytes, error: type[Exception] | None
) -> None:
    if error is None:
        assert await request([body], headers=headers).json() == {}
    else:
        with pytest.raises(error):
            await request([body], headers=headers).json()


async def test_a_token_of_one_thread_opens_no_other(cast: Cast) -> None:
    given = request([], cast=cast, thread="t1")
    assert await given.allow_thread("t1") == "t1"
    with pytest.raises(NotAllowed, match="another thread"):
        await given.allow_thread("t2")
    with pytest.raises(BadRequest):
        await given.allow_thread("t\n1")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 7),
        ("0", 0),
        ("12", 12),
        ("99", 50),
        ("-1", None),
        ("1.0", None),
        ("\u0661", None),
        ("1" * 17, None),
    ],
)
async def test_a_number_is_a_whole_one_up_to_a_bound(text: str, number: int | None) -> None:
    given = request([], query="")
    given.query = {"n": text}
    if number is not None:
        assert given.number("n", 7, most=50) == number
    else:
        with pytest.raises(BadRequest, match="whole number"):
            given.number("n", 7, most=50)


@pytest.mark.parametrize(
    ("scope", "path"),
    [
        ({"raw_path": b"/threads/a%2Fb?x=1", "path": "/threads/a/b"}, ("threads", "a/b")),
        ({"raw_path": None, "path": "/threads/a"}, ("threads", "a")),
        ({"raw_path": b"/api/v1/threads", "path": "/x", "root_path": "/api/v1"}, ("threads",)),
        ({"raw_path": b"/v1/threads", "path": "/x", "root_path": "/api/v1"}, ("threads",)),
        ({"raw_path": b"/threads/v1", "path": "/x", "root_path": "/api/v1"}, ("threads", "v1")),
        ({"raw_path": b"/%ff", "path": "/x"}, None),
    ],
)
def test_a_path_is_what_stands_below_the_mount_point(
    scope: dict[str, Any], path: tuple[str, ...] | None
) -> None:
    if path is not None:
        assert path_of(scope) == path
    else:
        with pytest.raises(BadRequest, match="not UTF-8"):
            path_of(scope)


def test_a_query_is_read_by_its_last_values_and_has_an_end() -> None:
    assert query_of({"query_string": b"a=1&a=2&b="}) == {"a": "2", "b": ""}
    assert len(query_of({"query_string": b"&".join(b"n%d=1" % n for n in range(50))})) == 50
    for bad in (b"&".join(b"n%d=1" % n for n in range(51)), b"a=%ff", b"\xff"):
        with pytest.raises(BadRequest):
            query_of({"query_string": bad})


async def test_two_messages_are_never_sent_at_once() -> None:
    """Not every middleware takes a comment while it passes an event on."""
    sending, sent = False, list[bytes]()

    async def send(message: Any) -> None:
        nonlocal sending
        assert not sending
        sending = True
        await asyncio.sleep(0.004)
        sending = False
        sent.append(message.get("body", b""))

    async def events() -> AsyncGenerator[bytes]:
        for n in range(5):
            await asyncio.sleep(0.004)
            yield b"%d" % n

    async def receive() -> Any:
        await asyncio.Event().wait()

    scope: Any = {"type": "http", "asgi": {"spec_version": "2.4"}}
    await EventStream(events(), 0.001)(scope, receive, send)
    assert [each for each in sent if each.isdigit()] == [b"0", b"1", b"2", b"3", b"4"]
    assert b": still here\n\n" in sent
