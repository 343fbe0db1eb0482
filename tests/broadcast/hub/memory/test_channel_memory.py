"""What a hub reads from its history, and when it does not believe it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from runcast.broadcast import Envelope, Position, Replay
from runcast.broadcast.hub.limits import HubLimits, HubStats
from runcast.broadcast.hub.memory import channel_memory
from runcast.broadcast.hub.memory.channel_memory import Memory
from tests.broadcast.hub.fakes import CHANNEL
from tests.e2e.stage import EPOCH, envelope


@pytest.mark.parametrize(
    ("found", "recovered"),
    [
        ([envelope(1), envelope(2)], True),
        ([envelope(1), envelope(3)], False),
        ([envelope(2)], False),
        ([envelope(1), envelope(2, epoch="other")], False),
        ([envelope(1), envelope(2, part=(1, 2))], False),
    ],
    ids=["whole", "a hole", "a late beginning", "another epoch", "half an entry"],
)
async def test_a_history_that_does_not_continue_from_the_position_recovers_nobody(
    found: list[Envelope], recovered: bool
) -> None:
    async def history(*asked: Any, **more: Any) -> Replay:
        return Replay(True, EPOCH, 3, found)

    stats = HubStats()
    replay = await Memory(HubLimits(), stats, history).read(CHANNEL, Position(EPOCH, 0))
    assert (replay.recovered, list(replay.envelopes)) == (recovered, found if recovered else [])
    assert stats.history_errors == (not recovered)


async def test_a_replay_of_too_many_bytes_recovers_nobody() -> None:
    async def history(*asked: Any, **more: Any) -> Replay:
        return Replay(True, EPOCH, 2, [envelope(1, text="x" * 600), envelope(2, text="x" * 600)])

    for most, recovered in ((2_000, True), (1_000, False)):
        memory = Memory(HubLimits(replay_bytes=most), HubStats(), history)
        replay = await memory.read(CHANNEL, Position(EPOCH, 0))
        assert (replay.recovered, len(replay.envelopes)) == (recovered, 2 if recovered else 0)


async def test_readers_of_one_position_share_a_read_that_ends_at_the_same_place() -> None:
    asked, goes_on = list[int | None](), asyncio.Event()

    async def history(session_id: str, position: Position, *, until: int | None, most: int) -> Replay:
        asked.append(until)
        await goes_on.wait()
        return Replay(True, EPOCH, 2, [envelope(2)])

    memory = Memory(HubLimits(), HubStats(), history)
    position = Position(EPOCH, 1)
    reads = [asyncio.create_task(memory.read(CHANNEL, position)) for _ in range(2)]
    await asyncio.sleep(0)
    memory.add(CHANNEL, envelope(1), busy=bool)
    memory.add(CHANNEL, envelope(2), busy=bool)
    reads.append(asyncio.create_task(memory.read(CHANNEL, position)))
    for _ in range(10):
        await asyncio.sleep(0)
    goes_on.set()
    assert [(await each).recovered for each in reads] == [True] * 3
    assert asked == [None, 2], "once more, up to what was published meanwhile"


def test_what_has_grown_too_old_is_not_replayed_though_nothing_new_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(channel_memory, "time", SimpleNamespace(monotonic=lambda: clock.now))
    memory = Memory(HubLimits(ring_age=50), HubStats(), None)
    for seq in (1, 2):
        memory.add(CHANNEL, envelope(seq), busy=bool)
    assert [each.envelope.seq for each in memory.recent(CHANNEL, Position(EPOCH, 1)) or ()] == [2]
    clock.now += 51
    assert memory.recent(CHANNEL, Position(EPOCH, 1)) is None
    assert memory.size == 0
