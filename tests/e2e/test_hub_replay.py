"""What a reader gets when it comes back: Centrifugo's table of cases, holes, races, faults of the history."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from uuid import uuid4

import pytest
from redis.asyncio import Redis

from runcast.broadcast import Envelope, Position, Replay, channel_for
from runcast.broadcast.hub.fanout import RedisHistory
from runcast.broadcast.publishers.redis import RedisPublisher
from tests.conftest import share
from tests.e2e.stage import EPOCH, SKINS, Log, Stage, a_hub, envelope, frames, limits, stage
from tests.servers import redis_server

__all__ = ["redis_server"]

every_skin = pytest.mark.parametrize("skin", SKINS)


@dataclass(frozen=True)
class Case:
    """Published so far, of which the hub remembers the last `ring`; a reader comes with a position."""

    name: str
    published: int
    offset: int
    epoch: str
    ring: int
    recovered: bool
    seqs: Sequence[int]


CASES = [
    Case("nothing new", 5, 5, EPOCH, 10, True, []),
    Case("from a position", 5, 2, EPOCH, 10, True, [3, 4, 5]),
    Case("from the beginning", 5, 0, EPOCH, 10, True, [1, 2, 3, 4, 5]),
    Case("exactly what is remembered", 8, 3, EPOCH, 5, True, [4, 5, 6, 7, 8]),
    Case("one more than is remembered", 8, 2, EPOCH, 5, False, []),
    Case("position in the future", 5, 6, EPOCH, 10, False, []),
    Case("position far beyond", 5, 2**52, EPOCH, 10, False, []),
    Case("another epoch", 5, 2, "other", 10, False, []),
    Case("another epoch at the same place", 5, 5, "other", 10, False, []),
    Case("any epoch", 5, 2, "", 10, True, [3, 4, 5]),
    Case("nothing was ever published", 0, 0, "", 10, False, []),
    Case("nothing is known any more", 0, 7, EPOCH, 10, False, []),
    Case("more than a replay holds", 10, 1, EPOCH, 10, False, []),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("behind", [False, True], ids=["ring", "history"])
async def test_the_table(case: Case, behind: bool):
    """The hub's own memory, and a history that remembers the same, answer alike."""
    log = Log(first=max(1, case.published - case.ring + 1))
    bounds = limits(ring=1 if behind else case.ring, replay=8)
    hub = a_hub(limits=bounds, history=log.history if behind else None)
    async with stage(hub=hub) as served:
        await served.publish([log.next() for _ in range(case.published)])
        async with served.plain("s1", after=case.offset, epoch=case.epoch) as websocket:
            greeting = json.loads((await frames(websocket, 1))[0])
            await served.publish([log.next()])
            live = case.published + 1
            got = [json.loads(text)["seq"] for text in await frames(websocket, len(case.seqs) + 1)]
        # A log that is there and empty knows more than a hub that has heard of nothing.
        empty = behind and case.published == case.offset == 0
        assert (greeting["was_recovering"], greeting["recovered"]) == (True, case.recovered or empty)
        assert got == [*case.seqs, live]


@pytest.mark.server
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_case_13_the_table_from_redis(case: Case, redis_server: str):
    """The same from the streams that the Redis publisher fills, for a hub that remembers next to nothing."""
    prefix = f"table-{uuid4().hex}:"
    publisher = RedisPublisher(redis_server, prefix=prefix)
    history = RedisHistory(redis_server, prefix=prefix)
    log = Log()
    hub = a_hub(limits=limits(ring=1, replay=8), history=history)
    async with stage(hub=hub) as served:
        told = [log.next() for _ in range(case.published)]
        await publisher.publish(channel_for("s1"), told)
        await _trimmed(redis_server, publisher.stream(channel_for("s1")), case.ring)
        await served.publish(told)
        async with served.plain("s1", after=case.offset, epoch=case.epoch) as websocket:
            greeting = json.loads((await frames(websocket, 1))[0])
            await served.publish([log.next()])
            got = [json.loads(text)["seq"] for text in await frames(websocket, len(case.seqs) + 1)]
    assert (greeting["was_recovering"], greeting["recovered"]) == (True, case.recovered)
    assert got == [*case.seqs, case.published + 1]
    await history.aclose()
    await publisher.aclose()


async def _trimmed(url: str, stream: str, length: int) -> None:
    """The publisher trims about where it should, which is cheaper; the table wants it exact."""
    client: Any = Redis.from_url(url)
    await client.xtrim(stream, maxlen=length, approximate=False)
    await client.aclose()


async def test_too_much_to_replay_in_bytes():
    hub = a_hub(limits=limits(replay_bytes=1_000))
    async with stage(hub=hub) as served:
        await served.publish([envelope(n, text="x" * 500) for n in (1, 2, 3)])
        async with served.plain("s1", after=0) as websocket:
            assert json.loads((await frames(websocket, 1))[0])["recovered"] is False
        async with served.plain("s1", after=2) as websocket:
            assert json.loads((await frames(websocket, 1))[0])["recovered"] is True


@pytest.mark.parametrize(("age", "recovered"), [(3_600.0, True), (0.05, False)])
async def test_what_is_too_old_is_not_replayed(age: float, recovered: bool):
    hub = a_hub(limits=limits(ring_age=age))
    async with stage(hub=hub) as served:
        await served.publish([envelope(1), envelope(2)])
        await asyncio.sleep(0.1)
        async with served.plain("s1", after=1) as websocket:
            assert json.loads((await frames(websocket, 1))[0])["recovered"] is recovered


async def read(websocket: Any, last: int) -> list[int]:
    """Seqs until the last one has come."""
    seqs: list[int] = []
    async with asyncio.timeout(60):
        while not seqs or seqs[-1] != last:
            said = json.loads(await websocket.recv())
            if "seq" in said:
                seqs.append(said["seq"])
    return seqs


@pytest.mark.parametrize("merge", [1, 3])
async def test_a_log_that_is_ahead_of_the_hub_is_waited_for(merge: int):
    """The log has 41 to 44 already; the live envelope that tells of 41 to 45 must neither double nor lose."""
    log = Log(merge=merge)
    async with stage(hub=a_hub(history=log.history)) as served:
        for _ in range(40):
            await served.publish([log.next()])
        log.head = 44
        async with served.plain("s1", after=43, epoch=EPOCH) as websocket:
            assert json.loads((await frames(websocket, 1))[0])["offset"] == 44
            log.head = 45
            await served.publish([envelope(45, 40)])
            await served.publish([log.next(entries=2)])
            chain = [(43, 43)]
            while chain[-1][1] != 47:
                said = json.loads((await frames(websocket, 1))[0])
                chain.append((said["prev"], said["seq"]))
        assert all(this[0] == before[1] for before, this in pairwise(chain))


async def test_history_is_asked_to_end_where_the_live_stream_goes_on():
    log = Log()
    async with stage(hub=a_hub(history=log.history, limits=limits(ring=1))) as served:
        await served.publish([log.next() for _ in range(10)])
        log.head = 13  # three entries that wait in the broadcaster
        async with served.plain("s1", after=3, epoch=EPOCH) as websocket:
            await served.publish([envelope(13, 10)])
            assert await read(websocket, 13) == [4, 5, 6, 7, 8, 9, 10, 13]
        assert log.asked == [(Position(EPOCH, 3), 10)]


@every_skin
async def test_a_hole_in_what_is_published_is_mended_from_history(skin: str):
    log = Log()
    async with (
        stage(skin, a_hub(history=log.history)) as served,
        served.plain("s1") as one,
        served.plain("s1") as two,
    ):
        await served.publish([log.next(), log.next()])
        log.next(), log.next()  # lost on the way to this node
        await served.publish([log.next(), log.next()])
        for websocket in (one, two):
            assert await read(websocket, 6) == [1, 2, 3, 4, 5, 6]
        assert len(log.asked) == 1  # readers at one place share one read
        assert served.hub.stats()["holes"] == 1


async def test_without_a_history_a_hole_is_shown_as_one():
    async with stage() as served, served.plain("s1") as websocket:
        await served.publish([envelope(1), envelope(5, 4)])
        _, one, five = [json.loads(text) for text in await frames(websocket, 3)]
        assert (one["seq"], five["prev"], five["seq"]) == (1, 4, 5)
        assert served.hub.stats()["holes"] == 1


async def test_doubled_and_reordered_envelopes_arrive_once_and_in_order():
    log = Log()
    sent = [log.next() for _ in range(60)]
    rng = random.Random(5)
    jumbled = [each for each in sent for _ in range(rng.choice([0, 1, 1, 2]))]
    for at in range(0, len(jumbled) - 3, 3):
        jumbled[at], jumbled[at + 2] = jumbled[at + 2], jumbled[at]
    async with stage(hub=a_hub(history=log.history)) as served, served.plain("s1") as websocket:
        await served.publish([sent[0]])
        for each in jumbled:
            await served.publish([each])
            await asyncio.sleep(0.001)
        await served.publish([log.next()])
        assert await read(websocket, 61) == list(range(1, 62))


class Liar:
    """A history that answers whatever it likes."""

    def __init__(self, replay: Replay) -> None:
        self.replay = replay

    async def __call__(self, session_id: str, position: Position, *, until: int | None, most: int) -> Replay:
        return self.replay


def told(*envelopes: Envelope, head: int = 9, epoch: str = EPOCH) -> Replay:
    return Replay(True, epoch, head, envelopes)


@pytest.mark.parametrize(
    "replay",
    [
        told(envelope(2), envelope(4)),
        told(envelope(3)),
        told(envelope(2), envelope(2)),
        told(envelope(3), envelope(2)),
        told(envelope(2, epoch="other")),
        told(envelope(2), epoch="other"),
        told(envelope(2, part=(1, 2))),
        told(head=0),
        told(*[envelope(n) for n in range(2, 400)], head=400),
        told(*[envelope(n, text="x" * 10_000) for n in range(2, 60)], head=60),
    ],
    ids=["hole", "late", "double", "disorder", "stranger", "epoch", "half", "future", "many", "large"],
)
async def test_a_history_with_a_hole_is_not_believed(replay: Replay):
    async with (
        stage(hub=a_hub(history=Liar(replay))) as served,
        served.plain("s1", after=1, epoch=EPOCH) as websocket,
    ):
        assert json.loads((await frames(websocket, 1))[0])["recovered"] is False
        await served.publish([envelope(70, 69, epoch=replay.epoch)])
        assert json.loads((await frames(websocket, 1))[0])["seq"] == 70


@every_skin
async def test_a_history_that_breaks_is_counted_and_said(skin: str):
    log = Log()
    log.broken = True
    hub = a_hub(history=log.history, snapshot_url="/threads/{session_id}/snapshot")
    async with stage(skin, hub) as served, served.plain("a/b", after=3) as websocket:
        said = json.loads((await frames(websocket, 1))[0])
        assert (said["recovered"], said["snapshot"]) == (False, "/threads/a%2Fb/snapshot")
        assert hub.stats()["history_errors"] == 1


async def test_a_mend_that_cannot_be_had_sends_its_readers_away_to_come_back():
    log = Log()
    async with stage(hub=a_hub(history=log.history)) as served, served.plain("s1") as websocket:
        await served.publish([log.next()])
        log.broken = True
        await served.publish([envelope(9, 8)])
        await websocket.wait_closed()
        assert websocket.close_code == 4200


@pytest.mark.parametrize("skin", ["websockets", "asgi"])
async def test_leaving_in_the_middle_of_catching_up(skin: str):
    log = Log()
    log.delay = 0.1
    async with stage(skin, a_hub(history=log.history, limits=limits(ring=1))) as served:
        await served.publish([log.next() for _ in range(5)])
        for _ in range(5):
            async with served.plain("s1", after=1):
                await asyncio.sleep(0.01)
        await served.quiet()
        async with served.plain("s1", after=1) as websocket:
            assert await read(websocket, 5) == [2, 3, 4, 5]


async def test_an_entry_of_several_envelopes_is_never_halved():
    parts = [envelope(2, part=(n, 3), text=str(n)) for n in (1, 2, 3)]
    async with stage() as served, served.plain("s1") as early:
        await served.publish([envelope(1), *parts[:2]])
        async with served.plain("s1") as fresh, served.plain("s1", after=1) as back:
            await served.publish([parts[2], envelope(3)])
            for websocket, expected in ((early, 5), (fresh, 4), (back, 4)):
                said = [json.loads(text) for text in await frames(websocket, expected + 1)]
                assert [each.get("part") for each in said[-4:]] == [[1, 3], [2, 3], [3, 3], None]
            async with served.plain("s1", after=2) as late:
                assert json.loads((await frames(late, 1))[0])["recovered"] is True


async def crowd(served: Stage, log: Log, *, clients: int, count: int, seed: int) -> list[list[int]]:
    """Clients that drop at random and come back with their position while everything is published."""
    got: list[list[int]] = [[] for _ in range(clients)]

    async def client(number: int) -> None:
        rng = random.Random(seed + number)
        mine = got[number]
        while not mine or mine[-1] != count:
            last = mine[-1] if mine else 0
            async with served.plain("s1", after=last, epoch=log.epoch, open_timeout=30) as websocket:
                for _ in range(rng.randint(1, max(2, count // 6))):
                    said = json.loads(await websocket.recv())
                    if "seq" in said:
                        mine.append(said["seq"])
                    elif not said["recovered"]:
                        raise AssertionError(said)
                    if mine and mine[-1] == count:
                        return
                websocket.transport.abort()

    async with asyncio.timeout(90), asyncio.TaskGroup() as group:
        for number in range(clients):
            group.create_task(client(number))
        for at in range(count):
            await served.publish([log.next()])
            if at % 10 == 9:
                await asyncio.sleep(0.001)
    return got


@pytest.mark.parametrize(("skin", "ring"), [("websockets", 2_000), ("websockets", 20), ("asgi", 20)])
async def test_fifty_clients_that_drop_at_random_have_everything_once(skin: str, ring: int):
    """With a ring that has it all, and with one so small that nearly every return asks the log."""
    log = Log()
    bounds = limits(ring=ring, replay=2_000)
    async with stage(skin, a_hub(history=log.history, limits=bounds)) as served:
        await served.publish([log.next()])
        got = await crowd(served, log, clients=50, count=300, seed=ring)
    assert got == [list(range(1, 301))] * 50


async def test_a_hundred_clients_come_and_go_while_envelopes_are_published():
    log = Log()
    log.delay = 0.002
    async with stage(hub=a_hub(history=log.history, limits=limits(ring=50, replay=2_000))) as served:
        await served.publish([log.next()])
        got = await crowd(served, log, clients=100, count=share(1_000), seed=7)
    assert got == [list(range(1, share(1_000) + 1))] * 100
