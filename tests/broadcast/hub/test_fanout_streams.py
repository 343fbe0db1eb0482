"""What one node makes of the streams in a real Redis, without a log beside them: all of it, or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
import redis.asyncio
from redis.asyncio.connection import AbstractConnection

from runcast.broadcast import Envelope, Hub, Position
from runcast.broadcast.hub.fanout import RedisFanout, RedisHistory
from runcast.broadcast.publishers.redis import RedisPublisher
from tests.broadcast.hub.fakes import CHANNEL, Reader
from tests.broadcast.hub.test_fanout import nodes, settled
from tests.broadcast.redis_process import RedisProcess, redis_there
from tests.e2e.stage import everybody
from tests.servers import free_port, redis_server

__all__ = ["redis_server", "redis_there"]

pytestmark = pytest.mark.server
MARK, OTHER = "1.aaaa", "1.bbbb"


def told(seq: int, *, prev: int | None = None, mark: str = MARK, epoch: str = "e") -> Envelope:
    before = seq - 1 if prev is None else prev
    return Envelope("agent.custom", "s1", "r", "2026-01-16T10:05:00.123Z", seq, before, epoch, {}, mark=mark)


class Place:
    """A prefix of a Redis that several tests share."""

    def __init__(self, url: str) -> None:
        self.url, self.prefix = url, f"{uuid4().hex}:"
        self.publisher = RedisPublisher(url, prefix=self.prefix)
        self.client = redis.asyncio.Redis.from_url(url)
        self.stream = self.publisher.stream(CHANNEL)

    async def tell(self, *envelopes: Envelope) -> None:
        await self.publisher.publish(CHANNEL, envelopes)


@pytest.fixture
async def place(redis_server: str) -> AsyncIterator[Place]:
    it = Place(redis_server)
    yield it
    await it.publisher.aclose()
    await it.client.aclose()


async def test_a_stream_recovers_everything_behind_a_position_or_nothing(place: Place) -> None:
    history = RedisHistory(place.url, prefix=place.prefix)

    async def after(position: Position, *, most: int = 9, until: int | None = None) -> list[int] | None:
        replay = await history("s1", position, until=until, most=most)
        assert replay.recovered or not replay.envelopes
        return [each.seq for each in replay.envelopes] if replay.recovered else None

    await place.tell(*map(told, range(1, 7)))
    assert await after(Position("e", 2)) == [3, 4, 5, 6]
    assert await after(Position("", 5)) == [6]
    assert await after(Position("e", 2), until=4) == [3, 4]
    assert await after(Position("e", 2), most=4) == [3, 4, 5, 6]
    assert await after(Position("e", 2), most=3) is None, "more than may be replayed"
    assert await after(Position("e", 6)) == []
    assert await after(Position("e", 7)) is None, "beyond the end"
    assert await after(Position("other", 2)) is None
    for mark, kept in ((MARK, [5, 6]), (OTHER, None)):
        assert await after(Position("e", 4, mark)) == kept, "a position is bound to its history"
    await place.client.xdel(place.stream, "4-0")
    assert await after(Position("e", 2)) is None, "a hole"
    assert await after(Position("e", 4)) == [5, 6]
    await place.client.delete(place.stream)
    assert await after(Position("e", 4)) is None, "it has expired, and its position has not"
    assert await after(Position("e", 6)) == []
    await history.aclose()


async def stands(hub: Hub, place: Place, position: Position) -> None:
    """A node that begins to listen now comes to this position."""
    async with RedisFanout(hub, place.url, prefix=place.prefix, check=0.02), asyncio.timeout(20):
        while hub.position(CHANNEL) != position:  # noqa: ASYNC110  it is another task's
            await asyncio.sleep(0.005)
        assert len(hub.on_watch) == 1
    assert hub.on_watch == [], "it asks for no more channels"


def a_hub() -> Hub:
    return Hub("1001", "app-key", "app-secret", authorize=everybody)


async def test_a_node_whose_history_is_not_the_streams_begins_anew(place: Place) -> None:
    """Also where its own was longer: the log lost its tail, and went on."""
    hub, reader = a_hub(), Reader()
    await hub.publish(CHANNEL, [told(seq, mark=OTHER) for seq in range(1, 5)])
    await reader.come(hub)
    await place.tell(told(1), told(2))
    await stands(hub, place, Position("e", 2, MARK))
    assert not reader.greetings[-1]["recovered"]


async def test_a_hole_is_not_filled_from_another_log(place: Place) -> None:
    """A message of the ended one may come late; a reader that began in the middle of the next would lack its start."""
    hub, reader = a_hub(), Reader()
    await hub.publish(CHANNEL, [told(seq) for seq in range(1, 4)])
    await reader.come(hub)
    await place.tell(*map(told, range(1, 4)))
    async with RedisFanout(hub, place.url, prefix=place.prefix) as fanout:
        await asyncio.wait_for(fanout.connected.wait(), 20)
        topic = place.publisher.topic(CHANNEL)
        place.publisher.topic = lambda channel: "nowhere"  # type: ignore[method-assign]  # heard by nobody
        await place.tell(*(told(seq, epoch="e2", mark="1.cccc") for seq in range(1, 6)))
        await place.client.publish(topic, told(9, prev=8).encode())
        async with asyncio.timeout(20):
            while hub.position(CHANNEL).offset < 4:  # noqa: ASYNC110  as above
                await asyncio.sleep(0.005)
        assert hub.position(CHANNEL) == Position("e", 9, MARK)


async def test_a_newcomer_stands_at_the_last_whole_entry_and_at_no_half(place: Place) -> None:
    hub, reader = a_hub(), Reader()
    await reader.come(hub)
    await place.tell(told(1), replace(told(2), part=(1, 2)))
    async with RedisFanout(hub, place.url, prefix=place.prefix, check=0.01) as fanout:
        await asyncio.wait_for(fanout.connected.wait(), 20)
        await asyncio.sleep(0.05)
        assert hub.position(CHANNEL).epoch == ""
        await place.tell(replace(told(2), part=(2, 2)))
        async with asyncio.timeout(20):
            while hub.position(CHANNEL) != Position("e", 2, MARK):  # noqa: ASYNC110  as above
                await asyncio.sleep(0.005)
    assert reader.faults == []


async def test_a_reader_who_comes_while_the_node_connects_holds_up_nothing(place: Place) -> None:
    for turns in range(12):  # of the loop between the node's start and the reader
        hub = a_hub()
        async with RedisFanout(hub, place.url, prefix=place.prefix, timeout=3.0) as fanout:
            for _ in range(turns):
                await asyncio.sleep(0)
            await Reader().come(hub)
            await asyncio.wait_for(fanout.connected.wait(), 20)
            topic = f"{place.prefix}live:{CHANNEL}"
            async with asyncio.timeout(20):
                while await place.client.pubsub_numsub(topic) != [(topic.encode(), 1)]:  # noqa: ASYNC110  it has no event
                    await asyncio.sleep(0.005)
            assert fanout.stats()["faults"] == 0


async def test_a_redis_that_stays_away_is_asked_less_and_less() -> None:
    async with RedisFanout(a_hub(), f"redis://127.0.0.1:{free_port()}/0", backoff=(0.004, 9.0)) as fanout:
        await asyncio.sleep(0.2)
        assert fanout.stats()["faults"] < 12


@pytest.mark.usefixtures("redis_there")
async def test_a_subscription_that_finds_its_connection_closed_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send, failed = AbstractConnection.send_packed_command, list[str]()

    async def torn(self: Any, *asked: Any, **more: Any) -> Any:
        task = asyncio.current_task()
        if not failed and task is not None and task.get_name() == "hub fan-out subscribes":
            failed.append(task.get_name())
            raise AttributeError("'NoneType' object has no attribute 'writelines'")  # as redis says it
        return await send(self, *asked, **more)

    monkeypatch.setattr(AbstractConnection, "send_packed_command", torn)
    async with RedisProcess() as server, nodes(server.url) as (one, two):
        topic = f"runcast:live:{CHANNEL}"
        there = await two.reader("there", Position("", 0))
        await one.run("r1", 3)
        await settled(one.log, there)
        async with asyncio.timeout(30):
            while await server.ask("PUBSUB", "NUMSUB", topic) != [topic.encode(), 1]:  # noqa: ASYNC110  it has no event
                await asyncio.sleep(0.02)
    assert failed
