"""Hub nodes joined by a real Redis that loses messages, connections and its life; readers that forgive nothing."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from weakref import WeakSet

import pytest
from ag_ui.core import (
    Event,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)
from redis.asyncio.connection import AbstractConnection

from runcast.broadcast import (
    BroadcastConfig,
    Broadcaster,
    Envelope,
    Hub,
    LogHistory,
    MemoryPublisher,
    Position,
)
from runcast.broadcast.hub.fanout import RedisFanout
from runcast.broadcast.publishers.redis import RedisPublisher
from runcast.slim import RunLog, open_store
from tests.broadcast.hub.fakes import CHANNEL, Reader
from tests.broadcast.redis_process import RedisProcess, redis_there
from tests.e2e.stage import everybody

__all__ = ["redis_there"]

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("redis_there")]
THREAD = "s1"
APP = ("1001", "app-key", "app-secret")


class Node:
    """A worker and the hub beside it."""

    def __init__(self, log: RunLog, url: str, *, history: bool = True, **options: Any) -> None:
        self.log = log
        self.hub = Hub(*APP, authorize=everybody, history=LogHistory(log) if history else None)
        self.out = Broadcaster(
            [self.hub, RedisPublisher(url, timeout=0.5)],
            config=BroadcastConfig(rollup_ms=2),
            backoff=(0.01, 0.1),
        )
        self.fanout = RedisFanout(
            self.hub, url, **{"check": 0.2, "backoff": (0.02, 0.1), "timeout": 0.5, "aside": 0.1, **options}
        )

    async def run(self, run_id: str, tokens: int = 20, *, pause: float = 0.0005) -> None:
        for event in a_run(run_id, tokens):
            await self.append(event)
            await asyncio.sleep(pause)

    async def append(self, event: Event) -> None:
        entry = await self.log.append(THREAD, event)
        assert entry is not None
        await self.log.flush()
        await self.out.publish(entry)

    async def reader(self, name: str, position: Position | None = None) -> Reader:
        reader = Reader(name)
        await reader.come(self.hub, position)
        return reader


def a_run(run_id: str, tokens: int) -> list[Event]:
    message = f"m-{run_id}"
    said = [TextMessageContentEvent(message_id=message, delta=f"{run_id}.{n} ") for n in range(tokens)]
    return [
        RunStartedEvent(thread_id=THREAD, run_id=run_id),
        TextMessageStartEvent(message_id=message),
        *said,
        TextMessageEndEvent(message_id=message),
        RunFinishedEvent(thread_id=THREAD, run_id=run_id),
    ]


@asynccontextmanager
async def nodes(
    url: str, count: int = 2, *, listening: bool = True, **options: Any
) -> AsyncIterator[list[Node]]:
    async with RunLog(open_store("memory://")) as log:
        found = [Node(log, url, **options) for _ in range(count)]
        try:
            for node in found if listening else []:
                await node.fanout.__aenter__()
                await asyncio.wait_for(node.fanout.connected.wait(), 60)
            yield found
        finally:
            for node in found:
                await node.fanout.aclose()
                await node.out.aclose(0.2)


async def until(so: Callable[[], bool], what: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not so():
        assert time.monotonic() < end, what()
        await asyncio.sleep(0.005)


def text(reader: Reader) -> str:
    said = [json.loads(frame["data"]) for frame in reader.frames if isinstance(frame.get("data"), str)]
    return "".join(each["payload"]["chunk"] for each in said if each.get("type") == "agent.stream.chunk")


def words(*runs: tuple[str, int]) -> str:
    return "".join(f"{run}.{n} " for run, tokens in runs for n in range(tokens))


async def settled(log: RunLog, *readers: Reader) -> None:
    """Every reader stands at the log's head, and no promise was broken on the way."""
    thread = await log.thread(THREAD)
    assert thread is not None
    head = (thread.epoch, thread.last_seq)
    await until(
        lambda: all(
            (reader.epoch, reader.last) == head and reader.part[0] == reader.part[1] for reader in readers
        ),
        lambda: [(reader.name, reader.last, head, reader.faults) for reader in readers],
    )
    assert [fault for reader in readers for fault in reader.faults] == []


@pytest.mark.parametrize("hasty", [False, True])
async def test_case_21_two_workers_on_one_thread_have_one_order_for_the_readers_of_both_nodes(
    hasty: bool,
) -> None:
    async with RedisProcess() as redis, nodes(redis.url) as (one, two):
        await one.run("r0", 3)
        await settled(one.log, here := await one.reader("here"))
        there = await two.reader("there", here.position)
        await until(lambda: two.hub.position(CHANNEL) == here.position, two.fanout.stats)
        late = await two.reader("from the start", Position("", 0))
        for number in range(1, 9):
            await (one, two)[number % 2].run(f"r{number}")
            if not hasty:
                await settled(one.log, here, there)
        await settled(one.log, here, there, late)
        runs = [(f"r{number}", 20) for number in range(1, 9)]
        assert text(here) == text(there) == words(*runs)
        assert text(late) == words(("r0", 3), *runs)
        # Who goes on before the other's end has come by Redis sees a hole, and its readers get it from the log.
        assert hasty or two.hub.stats()["holes"] == one.hub.stats()["holes"] == 0
        assert one.fanout.stats()["heard"] > 0


async def test_case_19_a_node_whose_connection_is_cut_again_and_again_loses_nothing() -> None:
    async with RedisProcess() as redis, nodes(redis.url) as (one, two):
        there = await two.reader("there", Position("", 0))
        writing = asyncio.create_task(one.run("r1", 300, pause=0.002))
        while not writing.done():
            await asyncio.sleep(0.05)
            await redis.ask("CLIENT", "KILL", "TYPE", "pubsub")
        await settled(one.log, there)
        assert text(there) == words(("r1", 300))
        assert two.fanout.stats()["connects"] > 2


async def test_case_19_a_lost_message_without_later_traffic_is_found_within_the_check_interval() -> None:
    async with RedisProcess() as redis, nodes(redis.url) as (one, two):
        await one.run("r1", 5)
        there = await two.reader("there", Position("", 0))
        await settled(one.log, there)
        # Taken by the stream and heard by nobody: what Redis does to a subscriber that it has just dropped.
        entries = [await one.log.append(THREAD, event) for event in a_run("r2", 3)]
        await one.log.flush()
        quiet = RedisPublisher(redis.url)
        quiet.topic = lambda channel: "nowhere"  # type: ignore[method-assign]  # PUBLISH reaches no node
        sink = Broadcaster(quiet, config=BroadcastConfig(rollup_ms=0))
        for entry in entries:
            assert entry is not None
            await sink.publish(entry)
        await sink.aclose()
        await settled(one.log, there)
        assert text(there) == words(("r1", 5), ("r2", 3))
        assert two.fanout.stats()["mended"] > 0


async def test_case_20_redis_killed_in_mid_run_local_goes_on_and_remote_catches_up() -> None:
    async with RedisProcess() as redis, nodes(redis.url) as (one, two):
        here = await one.reader("here", Position("", 0))
        there = await two.reader("there", Position("", 0))
        await one.run("r1", 10)
        await settled(one.log, here, there)
        redis.kill()
        await one.run("r2", 50)
        await settled(one.log, here)
        await until(lambda: two.fanout.stats()["connected"] == 0, two.fanout.stats)
        assert there.last is not None
        assert here.last is not None
        assert there.last < here.last
        await redis.start()
        await settled(one.log, here, there)
        await two.run("r3", 10)
        await settled(one.log, here, there)
        assert text(here) == text(there) == words(("r1", 10), ("r2", 50), ("r3", 10))


async def test_that_redis_is_away_is_logged_once_with_its_address_and_so_is_its_return(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with RedisProcess() as redis, nodes(redis.url) as both:
        one = both[0]
        for each in both:
            await asyncio.wait_for(each.fanout.connected.wait(), 60)
        redis.kill()
        before = one.fanout.stats()["faults"]
        async with asyncio.timeout(60):
            while one.fanout.stats()["faults"] < before + 4:  # noqa: ASYNC110  attempts are nothing to wait for
                await asyncio.sleep(0.01)
        await redis.start()
        for each in both:
            await asyncio.wait_for(each.fanout.connected.wait(), 60)
        where = f"fan-out: Redis at 127.0.0.1:{redis.port} is"
        lines = [each.partition(";")[0] for each in caplog.messages if each.startswith("fan-out")]
        assert [lines.count(f"{where} {how}") for how in ("gone", "back")] == [2, 2]  # there are two nodes


async def test_a_redis_that_refuses_is_not_called_gone(caplog: pytest.LogCaptureFixture) -> None:
    async with RedisProcess() as redis:
        await redis.ask("CONFIG", "SET", "requirepass", "right")
        url = redis.url.replace("//", "//:wrong@")
        async with RedisFanout(Hub(*APP, authorize=everybody), url, backoff=(0.01, 0.02)) as fanout:
            async with asyncio.timeout(60):
                while fanout.stats()["faults"] < 3:  # noqa: ASYNC110  attempts are nothing to wait for
                    await asyncio.sleep(0.01)
    (line,) = caplog.messages
    assert f"Redis at 127.0.0.1:{redis.port} refuses this node" in line
    assert "wrong@" not in line


async def test_case_20_what_only_a_dead_redis_knew_is_read_from_history() -> None:
    async with RedisProcess() as redis, nodes(redis.url) as (one, two):
        there = await two.reader("there", Position("", 0))
        await one.run("r1", 5)
        await settled(one.log, there)
        await two.fanout.aclose()
        await one.run("r2", 5)
        assert await one.out.flush(5)
        redis.kill()
        await redis.start()
        again = RedisFanout(two.hub, redis.url, backoff=(0.02, 0.1))
        async with again:
            await settled(one.log, there)
        assert text(there) == words(("r1", 5), ("r2", 5))


# Where two tasks find the line cut, redis connects twice and drops a socket, which the collector closes.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_whichever_call_of_redis_fails_nothing_is_lost_and_nothing_comes_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Redis cuts the connection before the call is sent, or before its answer is read."""
    calls = fails = cut = 0
    connected = WeakSet[AbstractConnection]()  # one that is cut as it connects is redis' own business

    def torn(name: str) -> None:
        call = getattr(AbstractConnection, name)

        async def made(self: Any, *asked: Any, **more: Any) -> Any:
            nonlocal calls, cut
            task = asyncio.current_task()
            if self in connected and task is not None and task.get_name().startswith("hub fan-out"):
                calls += 1
                if calls == fails:
                    cut += 1
                    host, port = self._writer.get_extra_info("sockname")
                    await redis.ask("CLIENT", "KILL", "ADDR", f"{host}:{port}")
            answer = await call(self, *asked, **more)
            if name == "connect":
                connected.add(self)
            return answer

        monkeypatch.setattr(AbstractConnection, name, made)

    async with RedisProcess() as redis, nodes(redis.url, check=0.02) as (one, two):
        for name in ("connect", "send_packed_command", "read_response"):
            torn(name)
        there = await two.reader("there", Position("", 0))
        runs: list[tuple[str, int]] = []
        while cut < 12:
            calls, fails = 0, cut + 1
            come = await two.reader("one more")
            runs.append((f"r{len(runs)}", 2))
            await one.run(*runs[-1], pause=0)
            await settled(one.log, there, come)
            come.drop(two.hub)
        assert text(there) == words(*runs)
        fails = 0
        async with asyncio.timeout(60):
            while (await redis.ask("CLIENT", "LIST", "TYPE", "pubsub")).count(b"\n") != 2:  # noqa: ASYNC110  one each
                await asyncio.sleep(0.01)
    gc.collect()


async def test_a_stream_that_forgot_is_mended_from_history() -> None:
    async with RedisProcess() as redis, nodes(redis.url) as (one, two):
        there = await two.reader("there", Position("", 0))
        await one.run("r1", 5)
        await settled(one.log, there)
        await two.fanout.aclose()
        await one.run("r2", 5)
        assert await one.out.flush(5)
        await redis.ask("DEL", f"runcast:stream:{CHANNEL}")
        async with RedisFanout(two.hub, redis.url) as again:
            await asyncio.wait_for(again.connected.wait(), 60)
            await one.run("r3", 5)
            await settled(one.log, there)
        assert text(there) == words(("r1", 5), ("r2", 5), ("r3", 5))
        assert two.hub.stats()["holes"] >= 1


async def test_without_history_the_stream_alone_mends() -> None:
    async with RedisProcess() as redis, nodes(redis.url, history=False) as (one, two):
        there = await two.reader("there")
        await one.run(
            "r0", 1
        )  # what comes before the node's subscription is of no use to a reader who came for news
        await settled(one.log, there)
        await one.run("r1", 5)
        await settled(one.log, there)
        await redis.ask("CLIENT", "KILL", "TYPE", "pubsub")
        await one.run("r2", 5)
        await settled(one.log, there)
        assert text(there).endswith(words(("r1", 5), ("r2", 5)))


async def test_a_node_that_starts_late_learns_where_the_channel_stands() -> None:
    async with RedisProcess() as redis, nodes(redis.url, listening=False) as (one, two):
        await one.run("r1", 5)
        assert await one.out.flush(5)
        there = await two.reader("there")
        async with RedisFanout(two.hub, redis.url):
            await settled(one.log, there)
        assert [each for each in there.frames if each.get("event") == "agent.status"][-1]


async def test_an_envelope_that_was_cut_elsewhere_waits_for_the_rest_and_then_heals() -> None:
    async with RedisProcess() as redis, nodes(redis.url) as (one, two):
        there = await two.reader("there", Position("", 0))
        told = MemoryPublisher()
        other = Broadcaster(told, config=BroadcastConfig(rollup_ms=0))
        for event in a_run("r1", 10):
            entry = await one.log.append(THREAD, event)
            assert entry is not None
            await one.log.flush()
            await other.publish(entry)
        assert await other.flush(5)
        await other.aclose()
        singles = told.envelopes(CHANNEL)
        await two.hub.publish(CHANNEL, singles[:4])
        merged = replace(
            singles[6],
            prev=singles[1].prev,
            payload={
                **singles[6].payload,
                "chunk": "".join(str(each.payload["chunk"]) for each in singles[1:7]),
            },
        )
        far = RedisPublisher(redis.url)
        await far.publish(CHANNEL, [merged, *singles[7:]])
        await settled(one.log, there)
        assert text(there) == words(("r1", 10))
        await far.aclose()


async def test_a_gap_in_redis_is_filled_from_history() -> None:
    async with RedisProcess() as redis, nodes(redis.url) as (one, two):
        there = await two.reader("there", Position("", 0))
        await one.append(a_run("r1", 0)[0])
        await settled(one.log, there)
        await until(lambda: two.hub.position(CHANNEL) == there.position, two.fanout.stats)
        epoch = there.epoch
        for event in a_run("r1", 8)[1:]:
            await one.log.append(THREAD, event)
        await one.log.flush()
        gap = Envelope(
            "agent.gap", THREAD, "r1", "2026-01-16T10:05:00.123Z", 12, 1, epoch, {"from_seq": 2, "to_seq": 12}
        )
        far = RedisPublisher(redis.url)
        await far.publish(CHANNEL, [gap])
        await settled(one.log, there)
        assert text(there) == words(("r1", 8))
        await far.aclose()


async def test_case_16_a_log_that_was_begun_anew_reaches_the_other_nodes_as_a_new_epoch() -> None:
    async with RedisProcess() as redis, nodes(redis.url) as (one, two):
        there = await two.reader("there", Position("", 0))
        await one.run("r1", 3)
        await settled(one.log, there)
        await two.fanout.aclose()
        await one.log.archive.delete(THREAD)
        await one.run("r2", 3)
        assert await one.out.flush(5)
        async with RedisFanout(two.hub, redis.url):
            await settled(one.log, there)
        assert there.greetings[-1]["recovered"] is False
        assert text(there).endswith(words(("r2", 3)))


async def test_nonsense_on_the_topic_is_counted_and_passed_over() -> None:
    async with RedisProcess() as redis, nodes(redis.url) as (one, two):
        there = await two.reader("there", Position("", 0))
        for nonsense in ("", "{}", "[1]", "\ud83d".encode("utf-8", "replace"), '{"seq": "x"}'):
            await redis.ask("PUBLISH", f"runcast:live:{CHANNEL}", nonsense)
        await one.run("r1", 3)
        await settled(one.log, there)
        assert two.fanout.stats()["bad"] == 5


async def test_a_node_without_redis_serves_its_own_and_keeps_asking() -> None:
    redis = RedisProcess()
    async with nodes(redis.url, 1, listening=False) as (one,):
        async with one.fanout:
            here = await one.reader("here", Position("", 0))
            await one.run("r1", 5)
            await settled(one.log, here)
            await until(lambda: one.fanout.stats()["faults"] > 1, one.fanout.stats)
            assert one.fanout.stats()["connected"] == 0
        assert text(here) == words(("r1", 5))


async def test_a_node_hears_what_its_readers_watch_and_nothing_else() -> None:
    async with RedisProcess() as redis, nodes(redis.url) as (one, two):
        topic = f"runcast:live:{CHANNEL}"
        await one.run("r1", 20)
        assert await one.out.flush(5)
        assert two.fanout.stats()["heard"] == 0
        assert await redis.ask("PUBSUB", "NUMPAT") == 0
        assert await redis.ask("PUBSUB", "NUMSUB", topic) == [topic.encode(), 0]
        there = await two.reader("there", Position("", 0))
        await settled(one.log, there)
        await one.run("r2", 20)
        await settled(one.log, there)
        assert await redis.ask("PUBSUB", "NUMSUB", topic) == [topic.encode(), 1]
        heard = two.fanout.stats()["heard"]
        assert heard > 0
        there.drop(two.hub)
        await until(lambda: two.fanout.stats()["channels"] == 0, two.fanout.stats)
        assert await redis.ask("PUBSUB", "NUMSUB", topic) == [topic.encode(), 0]
        await one.run("r3", 20)
        assert await one.out.flush(5)
        assert two.fanout.stats()["heard"] == heard
        assert text(there) == words(("r1", 20), ("r2", 20))


async def test_readers_who_come_and_go_while_a_run_writes_lose_nothing_between_them() -> None:
    async with RedisProcess() as redis, nodes(redis.url, check=0.02) as (one, two):
        writing = asyncio.create_task(one.run("r1", 300, pause=0.001))
        readers: list[Reader] = []
        position = Position("", 0)
        while not writing.done():
            readers.append(reader := await two.reader(f"number {len(readers)}", position))
            goal = position.offset + 5
            await until(
                lambda reader=reader, goal=goal: reader.position.offset > goal or writing.done(),
                two.fanout.stats,
            )  # type: ignore[misc]  # bound now
            reader.drop(two.hub)
            position = reader.position if reader.last else position
            if len(readers) % 2:  # some come back before the check that ends the subscription, some after
                await until(lambda: two.fanout.stats()["channels"] == 0, two.fanout.stats)
        readers.append(await two.reader("to the end", position))
        await one.run("r2", 3)
        await settled(one.log, readers[-1])
        assert "".join(map(text, readers)) == words(("r1", 300), ("r2", 3))
        assert [fault for reader in readers for fault in reader.faults] == []
        assert len(readers) > 3
