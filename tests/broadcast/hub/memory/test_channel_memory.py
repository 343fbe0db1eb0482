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


def weight(memory: Memory, *channels: str) -> int:
    """What these channels hold, counted anew."""
    rings = [memory.find(each) for each in channels]
    return sum(ring.size for ring in rings if ring is not None)


def test_what_leaves_is_weighed_off() -> None:
    memory = Memory(HubLimits(), HubStats(), None)
    names = [f"private-agent.s{n}" for n in range(3)]
    for n, name in enumerate(names):
        for seq in (1, 2):
            memory.add(name, envelope(seq, session_id=f"s{n}", text="x" * n), busy=bool)
    assert memory.size == weight(memory, *names) > 0
    memory.add(names[0], envelope(1, session_id="s0", epoch="anew"), busy=bool)
    memory.erase(names[1])
    memory.erase("private-agent.never")
    assert memory.size == weight(memory, *names)
    assert len(memory) == 2
    assert [memory.is_erased(names[1], each) for each in (EPOCH, "anew")] == [True, False]
    assert not memory.is_erased("private-agent.never", "")


def test_when_all_are_watched_the_longest_untouched_lose_their_envelopes_and_not_their_place() -> None:
    one = len(envelope(1, text="x" * 100).encode())
    memory = Memory(HubLimits(memory=2 * one), HubStats(), None)
    names = [f"private-agent.s{n}" for n in range(3)]
    for n, name in enumerate(names):
        memory.add(name, envelope(1, session_id=f"s{n}", text="x" * 100), busy=lambda _: True)
    assert len(memory) == 3
    assert [memory.stands(each).offset for each in names] == [1, 1, 1]
    assert memory.size == weight(memory, *names) <= 2 * one
    assert memory.recent(names[0], Position(EPOCH, 0)) is None
    assert len(memory.recent(names[2], Position(EPOCH, 0)) or ()) == 1


def test_so_many_channels_are_remembered_and_the_quiet_go_first() -> None:
    memory = Memory(HubLimits(channels=2), HubStats(), None)
    names = [f"private-agent.s{n}" for n in range(4)]
    watched = {names[0]}
    for n, name in enumerate(names):
        memory.add(name, envelope(1, session_id=f"s{n}"), busy=watched.__contains__)
    assert [memory.find(each) is not None for each in names] == [True, False, False, True]
    assert memory.size == weight(memory, *names)


def test_a_quiet_channel_is_forgotten_when_it_is_old_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(channel_memory, "time", SimpleNamespace(monotonic=lambda: clock.now))
    memory = Memory(HubLimits(ring_age=50), HubStats(), None)
    old, new = "private-agent.old", "private-agent.new"
    memory.add(old, envelope(1, session_id="old"), busy=lambda _: False)
    for passed, there in ((50.0, True), (0.1, False)):
        clock.now += passed
        memory.add(new, envelope(int(clock.now * 10), session_id="new"), busy=lambda _: False)
        assert (memory.find(old) is not None) is there


def test_a_name_of_ones_own_is_a_threads_as_long_as_it_is_remembered() -> None:
    memory = Memory(HubLimits(), HubStats(), None)
    memory.add("my-channel", envelope(1, session_id="s9"), busy=bool)
    assert memory.session("my-channel") == "s9"
    memory.erase("my-channel")
    assert memory.session("my-channel") is None


def test_the_last_events_of_so_many_cache_channels_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_memory, "_EVENTS", 2)
    memory = Memory(HubLimits(), HubStats(), None)
    for name in ("a", "b", "a", "c"):
        memory.keep_event(name, name.upper())
    assert [memory.last_event(each) for each in "abc"] == ["A", None, "C"]
    for name in ("a", "b", "c"):
        memory.add(name, envelope(1), busy=bool)
        memory.erase(name)
    assert memory.last_event("a") is None
    assert [memory.is_erased(each, EPOCH) for each in "abc"] == [False, True, True]


async def test_a_history_that_breaks_is_counted_and_asked_again() -> None:
    asked = list[int]()

    async def history(*given: Any, **more: Any) -> Replay:
        asked.append(1)
        raise RuntimeError("the database is away")

    stats = HubStats()
    memory = Memory(HubLimits(), stats, history)
    memory.add(CHANNEL, envelope(3), busy=bool)
    for count in (1, 2):
        replay = await memory.read(CHANNEL, Position(EPOCH, 1))
        assert (replay.recovered, replay.head, replay.epoch) == (False, 3, EPOCH)
        assert stats.history_errors == len(asked) == count


@pytest.mark.parametrize(("limit", "recovered"), [(2, True), (1, False)])
async def test_a_replay_has_at_most_so_many_envelopes(limit: int, recovered: bool) -> None:
    mosts = list[int]()

    async def history(*asked: Any, most: int, **more: Any) -> Replay:
        mosts.append(most)
        return Replay(True, EPOCH, 2, [envelope(1), envelope(2)])

    replay = await Memory(HubLimits(replay=limit), HubStats(), history).read(CHANNEL, Position(EPOCH, 0))
    assert (replay.recovered, mosts) == (recovered, [limit])


def test_an_envelope_costs_a_look_at_few_channels_and_the_quiet_are_forgotten_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(channel_memory, "time", SimpleNamespace(monotonic=lambda: clock.now))
    memory, looked = Memory(HubLimits(ring_age=50), HubStats(), None), list[str]()

    def busy(channel: str) -> bool:
        looked.append(channel)
        return bool(clock.now == 100.0)

    names = [f"private-agent.s{n}" for n in range(40)]
    for n, name in enumerate(names):
        memory.add(name, envelope(1, session_id=f"s{n}"), busy=busy)
    assert len(looked) < 2 * len(names), "however many there are"
    clock.now += 51  # nobody watches any of them
    for seq in range(1, len(names) // 2 + 1):
        memory.add("private-agent.new", envelope(seq, session_id="new"), busy=busy)
    assert len(memory) == 1
