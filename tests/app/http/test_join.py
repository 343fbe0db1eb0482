"""A client that comes late over HTTP: what it needs of the past, then the rest, without a hole or a double after a cut."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from runcast.slim import decode
from runcast.slim.folding.conversation import Conversation
from tests.app.agents import Gated
from tests.app.serving import Served, over, post_run, run_input, serving

STREAM = {"accept": "text/event-stream"}


@pytest.fixture
async def host() -> AsyncIterator[Served]:
    async with serving() as it:
        yield it


async def portions(response: httpx.Response) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """Each portion of a joined thread: its position, and its events."""
    events: list[dict[str, Any]] = []
    place = ""
    async for line in response.aiter_lines():
        if line.startswith("id: "):
            place = line[4:]
        elif line.startswith("data: "):
            events.append(json.loads(line[6:]))
        elif not line and place:
            yield place, events
            place, events = "", []


def folded(events: list[dict[str, Any]]) -> list[Any]:
    conversation = Conversation()
    for each in events:
        conversation.feed(decode(json.dumps(each)))
    return conversation.wire_messages()


async def test_the_past_is_one_answer(host: Served) -> None:
    told = await post_run(host.http)
    page = (await host.http.get("/threads/t1/join")).json()
    assert page["head"] == len(told)
    assert folded(page["events"]) == folded([each.event for each in told])
    assert [each["type"] for each in page["events"]] == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    empty = (await host.http.get("/threads/new/join")).json()
    assert empty == {"epoch": "", "head": 0, "events": []}


async def test_a_late_client_goes_on_with_the_run_and_comes_back_at_every_event(host: Served) -> None:
    gated = Gated(6)
    host.cast.register(gated, name="gated")
    gated.open(3)
    async with host.http.stream("POST", "/agents/gated", json=run_input()) as asked:
        await anext(asked.aiter_lines())
        seen: list[dict[str, Any]] = []
        place = ""
        while not seen or seen[-1]["type"] != "RUN_FINISHED":
            headers = STREAM | ({"last-event-id": place} if place else {})
            async with host.http.stream("GET", "/threads/t1/join", headers=headers) as response:
                place, events = await anext(portions(response))  # and the line is cut
            seen += events
            gated.open(1)
    await over(host.cast)
    whole = (await host.http.get("/threads/t1/events")).json()["events"]
    assert folded(seen) == folded([each["event"] for each in whole])
    assert [each["type"] for each in seen].count("RUN_STARTED") == 1
    assert sum(each["type"] == "TEXT_MESSAGE_END" for each in seen) == 1


async def test_a_thread_without_a_past_has_a_position_and_then_what_others_start(host: Served) -> None:
    async with host.http.stream("GET", "/threads/t1/join", headers=STREAM) as response:
        found = portions(response)
        assert await anext(found) == (":0.0", [])
        await host.cast.say("t1", "hello", agent="parrot")
        place, (event,) = await anext(found)
    assert place.endswith(":0.1")
    assert event["type"] == "RUN_STARTED"


async def test_a_position_that_is_no_longer_valid_is_refused_with_what_to_do(host: Served) -> None:
    await post_run(host.http)
    epoch = (await host.http.get("/threads/t1/join")).json()["epoch"]
    for place, status in (
        ("other:8.8", 410), (f"{epoch}:9.9", 410), (f"{epoch}:8.7", 410), (f"{epoch}:8", 400), ("a:b.c", 400),
    ):  # fmt: skip
        answer = await host.http.get("/threads/t1/join", headers=STREAM | {"last-event-id": place})
        assert answer.status_code == status, place
        assert "Last-Event-ID" in answer.json()["detail"]


async def test_a_joined_place_inside_a_pruned_run_is_refused(host: Served) -> None:
    await post_run(host.http)
    epoch = (await host.http.get("/threads/t1/join")).json()["epoch"]
    await post_run(host.http, run="r2")
    await host.cast.log.archive.compact("t1")
    assert (await host.cast.log.archive.prune(keep_bytes=0)).runs > 0
    headers = STREAM | {"last-event-id": f"{epoch}:3.4"}
    assert (await host.http.get("/threads/t1/join", headers=headers)).status_code == 410
