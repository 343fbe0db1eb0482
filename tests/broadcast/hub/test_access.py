"""The hub's two questions: who asks, and may they; and what happens while the answer is awaited."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from runcast.broadcast import Hub, HubError, HubLimits, issue_token
from runcast.broadcast.hub.access import Access
from runcast.broadcast.hub.connection import Connection
from runcast.broadcast.hub.gate import Gate
from runcast.broadcast.hub.protocol import CANNOT_TELL, MAY_NOT, OVER_CAPACITY, Close, PlainRequest
from tests.broadcast.hub.fakes import Reader

SECRET = "app-secret"
NOW = int(time.time())


def access(**options: Any) -> Access:
    return Access(SECRET, Gate(HubLimits()), **{"authorize": None, "identify": None, **options})


def hub(**options: Any) -> Hub:
    return Hub("app", "app-key", SECRET, **{"authorize": None, **options})


async def admitted(it: Access, token: str | None = None, **headers: str) -> bool:
    return await it.admits("s1", token=token, headers=headers, now=NOW)


async def test_without_authorize_nobody_may_watch() -> None:
    assert not await access().allows(None, "s1")
    assert not await access(identify=lambda headers: "ann").allows("ann", "s1")
    assert not await admitted(access())


@pytest.mark.parametrize("answer", ["yes", 1, [True], {"allowed": True}, None, 0, object()])
async def test_what_is_not_true_is_no(answer: Any) -> None:
    async def later(user: Any, session_id: str) -> Any:
        return answer

    assert not await access(authorize=lambda user, session_id: answer).allows("ann", "s1")
    assert not await access(authorize=later).allows("ann", "s1")


async def test_true_is_yes_now_or_later() -> None:
    async def later(user: Any, session_id: str) -> bool:
        return (user, session_id) == ("ann", "s1")

    it = access(authorize=later, identify=lambda headers: headers["x-user"])
    assert await admitted(it, **{"x-user": "ann"})
    assert not await admitted(it, **{"x-user": "bob"})


async def test_a_token_is_asked_instead_of_authorize() -> None:
    it = access(authorize=lambda user, session_id: True)
    good = issue_token(SECRET, "s1", expires=NOW + 60)
    assert await admitted(access(), good)
    for wrong in (
        issue_token(SECRET, "s2", expires=NOW + 60),
        issue_token(SECRET, "s1", expires=NOW),
        "",
        "x",
    ):
        assert not await admitted(it, wrong)


async def test_another_page_is_not_asked_for() -> None:
    it = access(authorize=lambda user, session_id: True)
    assert await admitted(it, origin="https://own.example", host="own.example")
    assert not await admitted(it, origin="https://evil.example", host="own.example")


async def test_owners_code_that_breaks_is_an_error_and_no_yes() -> None:
    def broken(*_: Any) -> bool:
        raise RuntimeError("down")

    with pytest.raises(HubError, match="authorize failed"):
        await access(authorize=broken).allows("ann", "s1")
    with pytest.raises(HubError, match="identify failed"):
        await access(identify=broken).who({})


async def opened(it: Hub, wanted: PlainRequest) -> Connection | Close:
    return await it.open_plain(Reader(), wanted, address="10.0.0.7", headers={})


async def test_a_private_channel_of_a_public_hub_stays_closed() -> None:
    it = hub(public=True)
    for channel in ("private-agent.s1", "presence-agent.s1", "private-news", "presence-news"):
        refused = await opened(it, PlainRequest(channel))
        assert isinstance(refused, Close)
        assert refused.code == MAY_NOT
    assert isinstance(await opened(it, PlainRequest("news")), Connection)
    closed = await opened(hub(), PlainRequest("news"))
    assert isinstance(closed, Close)  # without `public` every channel is
    await it.aclose()


async def test_limits_that_are_reached_while_authorize_waits_hold() -> None:
    go_on, asked = asyncio.Event(), 0

    async def slow(user: Any, session_id: str) -> bool:
        nonlocal asked
        asked += 1
        await go_on.wait()
        return True

    it = hub(authorize=slow, limits=HubLimits(connections_per_address=2))
    waiting = [asyncio.create_task(opened(it, PlainRequest("agent.s1", session_id="s1"))) for _ in range(5)]
    while asked < 5:  # noqa: ASYNC110  all are past the gate before anybody is in
        await asyncio.sleep(0)
    go_on.set()
    found = await asyncio.gather(*waiting)
    assert [isinstance(each, Connection) for each in found] == [True, True, False, False, False]
    assert {each.code for each in found if isinstance(each, Close)} == {OVER_CAPACITY}
    assert it.stats()["refused"] == 3
    await it.aclose()


async def test_an_authorize_that_breaks_refuses_a_socket() -> None:
    def broken(*_: Any) -> bool:
        raise RuntimeError("down")

    refused = await opened(hub(authorize=broken), PlainRequest("agent.s1", session_id="s1"))
    assert isinstance(refused, Close)
    assert refused.code == CANNOT_TELL
