"""Hub nodes joined by a real Redis cluster: each envelope goes to the shard of its channel and to who watches it there."""

# apt: redis-server redis-server

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from runcast.broadcast import Hub, Position
from runcast.broadcast.hub.fanout import RedisFanout, RedisHistory
from runcast.broadcast.hub.protocol import PlainRequest
from runcast.broadcast.publishers.redis import RedisPublisher
from tests.broadcast.hub.fakes import CHANNEL, Reader
from tests.broadcast.hub.test_fanout import APP, THREAD, Node, nodes, settled, text, until, words
from tests.broadcast.redis_process import RedisCluster, redis_there
from tests.e2e.stage import envelope

__all__ = ["redis_there"]

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("redis_there")]
THREADS = [f"s{number}" for number in range(12)]


async def watching(hub: Hub, thread: str) -> Reader:
    """A reader of a public channel, in plain JSON."""
    reader = Reader(thread)
    reader.connection = await hub.open_plain(  # type: ignore[assignment]
        reader, PlainRequest(f"agent.{thread}", None, None), address="a", headers={}
    )
    return reader


async def subscribed(redis: RedisCluster, count: int) -> None:
    """The nodes of the cluster have so many sharded subscriptions, all of them together."""
    async with asyncio.timeout(60):
        while sum([len(await node.ask("PUBSUB", "SHARDCHANNELS")) for node in redis.nodes]) != count:  # noqa: ASYNC110  a server offers nothing to wait for
            await asyncio.sleep(0.02)


async def begun(one: Node, two: Node) -> Reader:
    """A reader of the second node, which has what the first one has written."""
    await one.run("r0", 3)
    assert await one.out.flush(60)
    await settled(one.log, here := await one.reader("here"))
    there = await two.reader("there", here.position)
    await until(lambda: two.hub.position(CHANNEL) == here.position, two.fanout.stats)
    return there


async def test_readers_at_every_shard_have_everything_and_one_order(tmp_path: Path) -> None:
    async with RedisCluster(tmp_path) as redis, nodes(redis.url) as (one, two):
        there = await begun(one, two)
        for number in range(1, 5):
            worker = (one, two)[number % 2]
            await worker.run(f"r{number}")
            assert await worker.out.flush(60), (
                "what comes late, after the next worker's, has no place in the stream"
            )
        await settled(one.log, there)
        assert text(there) == words(*((f"r{number}", 20) for number in range(1, 5)))
        assert two.fanout.stats()["heard"] > 0
        history = RedisHistory(redis.url)
        replay = await history(THREAD, Position("", 0), until=None, most=1_000)
        assert replay.recovered
        await history.aclose()


async def test_a_shard_hands_an_envelope_to_the_node_that_watches_and_to_no_other(tmp_path: Path) -> None:
    async with RedisCluster(tmp_path) as redis:
        hub = Hub(*APP, public=True, prefix="agent.")
        publisher = RedisPublisher(redis.url, sharded=True)
        async with RedisFanout(hub, redis.url, check=0.2) as fanout:
            await asyncio.wait_for(fanout.connected.wait(), 60)
            readers = {thread: await watching(hub, thread) for thread in THREADS}
            await until(lambda: fanout.stats()["channels"] == len(THREADS), fanout.stats)
            await subscribed(redis, len(THREADS) + 1)  # one keeps an idle connection
            assert all([await node.ask("PUBSUB", "SHARDCHANNELS") for node in redis.nodes])
            for thread in THREADS:
                await publisher.publish(f"agent.{thread}", [replace(envelope(1), session_id=thread)])
            await until(lambda: all(reader.last == 1 for reader in readers.values()), fanout.stats)
            assert [await node.ask("PUBSUB", "CHANNELS") for node in redis.nodes] == [[], [], []]
            for reader in readers.values():
                reader.drop(hub)
            await until(lambda: fanout.stats()["channels"] == 0, fanout.stats)
            await subscribed(redis, 1)
        await publisher.aclose()


async def test_readers_of_ones_own_hear_the_common_topic_at_any_node(tmp_path: Path) -> None:
    async with RedisCluster(tmp_path) as redis:
        publisher = RedisPublisher(redis.url)
        for seq, node in enumerate(redis.nodes, start=1):
            own: Any = Redis.from_url(node.url)
            async with own.pubsub() as ear:
                await ear.subscribe(publisher.topic(CHANNEL))
                assert (await ear.get_message(timeout=60))["type"] == "subscribe"
                await publisher.publish(CHANNEL, [envelope(seq)])
                assert (await ear.get_message(timeout=60))["data"] == envelope(seq).encode()
            await own.aclose()
        await publisher.aclose()


async def test_a_connection_that_is_cut_again_and_again_loses_nothing(tmp_path: Path) -> None:
    async with RedisCluster(tmp_path) as redis, nodes(redis.url) as (one, two):
        there = await begun(one, two)
        owner = await redis.owner(f"{{{CHANNEL}}}")
        writing = asyncio.create_task(one.run("r1", 100, pause=0.005))
        while not writing.done():
            await asyncio.sleep(0.1)
            await owner.ask("CLIENT", "KILL", "TYPE", "pubsub")
        await settled(one.log, there)
        assert text(there) == words(("r1", 100))
        assert two.fanout.stats()["connects"] > 1


async def test_a_slot_that_moves_takes_its_subscriptions_along(tmp_path: Path) -> None:
    async with RedisCluster(tmp_path) as redis, nodes(redis.url) as (one, two):
        there = await begun(one, two)
        before = two.fanout.stats()["connects"]
        await moved(redis, f"{{{CHANNEL}}}")
        await until(lambda: two.fanout.stats()["connects"] > before, two.fanout.stats)
        await one.run("r2", 20)
        await settled(one.log, there)
        assert text(there) == words(("r2", 20))


async def moved(redis: RedisCluster, key: str) -> None:
    """Give the slot of a key, which has lost its streams, to another node."""
    here = await redis.owner(key)
    there = next(node for node in redis.nodes if node is not here)
    slot, name = await here.ask("CLUSTER", "KEYSLOT", key), await there.ask("CLUSTER", "MYID")
    for each in await here.ask("CLUSTER", "GETKEYSINSLOT", slot, 100):
        await here.ask("DEL", each)
    # Importing first: only then is the claim newer than the one of the node that had it, and no gossip takes it back.
    await there.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", await here.ask("CLUSTER", "MYID"))
    for node in (there, here, *redis.nodes):
        await node.ask("CLUSTER", "SETSLOT", slot, "NODE", name)
