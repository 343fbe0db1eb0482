"""The broadcaster against targets with moods: it keeps order, sheds honestly, and never hurts the run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from ag_ui.core import (
    CustomEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)

from runcast.broadcast import (
    BroadcastConfig,
    Broadcaster,
    Budget,
    ConfigError,
    Envelope,
    MemoryPublisher,
    PublishError,
    TooLarge,
)
from runcast.slim.entry import Entry
from tests.broadcast.entries import Thread

CHANNEL = "private-agent.t1"
QUICK = (0.001, 0.005)


class Moody:
    """A target whose moods a test decides: called before each delivery, it may raise or wait."""

    name = "moody"

    def __init__(self, mood: Callable[[int, Sequence[Envelope]], Any], budget: Budget | None = None) -> None:
        self.budget = budget or Budget(64_000)
        self.inner = MemoryPublisher()
        self.calls = 0
        self.closed = False
        self._mood = mood

    async def publish(self, channel: str, envelopes: Sequence[Envelope]) -> None:
        self.calls += 1
        said = self._mood(self.calls, envelopes)
        if asyncio.iscoroutine(said):
            await said
        await self.inner.publish(channel, envelopes)

    async def aclose(self) -> None:
        self.closed = True


def ready(calls: int, envelopes: Sequence[Envelope]) -> None:
    return None


@asynccontextmanager
async def broadcaster(publisher: Any, **options: Any) -> AsyncIterator[Broadcaster]:
    it = Broadcaster(publisher, backoff=QUICK, **options)
    try:
        yield it
    finally:
        await it.aclose(timeout=0.2)


async def tell(it: Broadcaster, thread: Thread, tokens: int = 5, *, end: bool = True) -> None:
    thread_id, run_id = thread.thread_id, thread.run_id
    await it.publish(thread.entry(RunStartedEvent(thread_id=thread_id, run_id=run_id)))
    await it.publish(thread.entry(TextMessageStartEvent(message_id="m")))
    for n in range(tokens):
        await it.publish(thread.entry(TextMessageContentEvent(message_id="m", delta=f"{n} ")))
    if end:
        await it.publish(thread.entry(TextMessageEndEvent(message_id="m")))
        await it.publish(thread.entry(RunFinishedEvent(thread_id=thread_id, run_id=run_id)))


def chained(envelopes: Sequence[Envelope]) -> bool:
    last = envelopes[0].prev
    for envelope in envelopes:
        if envelope.prev != last:
            return False
        last = envelope.seq
    return True


async def test_a_run_reaches_its_channel_in_order_and_rolled_up() -> None:
    target = MemoryPublisher()
    async with broadcaster(target) as it:
        await tell(it, Thread())
        assert await it.flush(2)
        told = target.envelopes(CHANNEL)
        stats = it.stats()
    assert [envelope.type for envelope in told] == [
        "agent.status",
        "agent.stream.chunk",
        "agent.stream.chunk",
        "agent.status",
    ]
    assert [envelope.payload.get("chunk") for envelope in told[1:3]] == ["0 ", "1 2 3 4 "]
    assert chained(told)
    assert (stats["entries"], stats["delivered"], stats["merged"], stats["queued"]) == (9, 4, 4, 0)


async def test_a_held_chunk_leaves_when_its_window_ends() -> None:
    target = MemoryPublisher()
    async with broadcaster(target, config=BroadcastConfig(rollup_ms=30)) as it:
        await tell(it, Thread(), tokens=3, end=False)
        await asyncio.sleep(0.2)
        assert [each.payload.get("chunk") for each in target.envelopes(CHANNEL)[1:]] == ["0 ", "1 2 "]


@pytest.mark.parametrize("window", [0, 40, 100])
async def test_the_text_is_the_same_whatever_the_window(window: int) -> None:
    """Case 25: the roll-up changes how words travel, never what they say."""
    target = MemoryPublisher()
    async with broadcaster(target, config=BroadcastConfig(rollup_ms=window)) as it:
        await tell(it, Thread(), tokens=50)
        assert await it.flush(2)
    text = "".join(str(each.payload.get("chunk", "")) for each in target.envelopes(CHANNEL))
    assert text == "".join(f"{n} " for n in range(50))


async def test_a_target_that_fails_for_a_while_gets_everything_once() -> None:
    def mood(calls: int, envelopes: Sequence[Envelope]) -> None:
        if calls <= 3:
            raise PublishError("not now", after=0.002)

    target = Moody(mood)
    async with broadcaster(target) as it:
        await tell(it, Thread())
        assert await it.flush(5)
        stats = it.stats()
    told = target.inner.envelopes(CHANNEL)
    assert (told[0].payload["status"], told[-1].payload["status"]) == ("in_progress", "completed")
    assert chained(told)
    assert (stats["failures"], stats["retries"], stats["refused"]) == (3, 3, 0)


async def test_an_answer_that_got_lost_doubles_nothing() -> None:
    target = Moody(ready)
    deliver = target.publish

    async def ambiguous(channel: str, envelopes: Sequence[Envelope]) -> None:
        await deliver(channel, envelopes)
        if target.calls == 1:
            raise PublishError("the connection broke after the request was read")

    target.publish = ambiguous  # type: ignore[method-assign]  # the same target with a bad line
    async with broadcaster(target) as it:
        await tell(it, Thread())
        assert await it.flush(5)
    told = target.inner.envelopes(CHANNEL)
    assert len({each.seq for each in told}) == len(told)
    assert chained(told)


async def test_a_hanging_target_costs_the_agent_nothing() -> None:
    """Case 30, in its smallest form."""

    gate = asyncio.Event()
    target = Moody(lambda calls, envelopes: gate.wait())
    async with broadcaster(target, queue=50) as it:
        thread = Thread()
        while not target.calls:  # the one that hangs
            await tell(it, thread, tokens=100)
            await asyncio.sleep(0)
        for _ in range(20):
            await tell(it, thread, tokens=100)
        assert target.calls == 1
        stats = it.stats()
        assert stats["queued"] <= 50 + 2 * 20 + 2
        assert stats["shed"] + stats["merged"] > 1_000


async def test_after_a_flood_the_status_is_told_and_the_hole_is_named() -> None:
    gate = asyncio.Event()
    target = Moody(lambda calls, envelopes: gate.wait())
    async with broadcaster(target, queue=10, config=BroadcastConfig(rollup_ms=0)) as it:
        thread = Thread()
        await it.publish(thread.entry(RunStartedEvent(thread_id="t1", run_id="r1")))
        for n in range(200):
            await it.publish(thread.entry(CustomEvent(name="tick", value=n)))
        await it.publish(thread.entry(RunErrorEvent(message="boom")))
        gate.set()
        assert await it.flush(5)
    told = target.inner.envelopes(CHANNEL)
    assert chained(told)
    assert (told[0].payload["status"], told[-1].payload["status"]) == ("in_progress", "failed")
    gaps = [each.payload for each in told if each.type == "agent.gap"]
    missed = sum(int(gap["to_seq"]) - int(gap["from_seq"]) + 1 for gap in gaps)
    customs = sum(each.type == "agent.custom" for each in told)
    assert missed + customs == 200


async def test_what_a_target_will_never_take_becomes_a_gap_and_the_rest_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def mood(calls: int, envelopes: Sequence[Envelope]) -> None:
        if any(each.type == "agent.custom" for each in envelopes):
            raise TooLarge("413")

    target = Moody(mood)
    async with broadcaster(target, batch=1) as it:
        thread = Thread()
        await it.publish(thread.entry(RunStartedEvent(thread_id="t1", run_id="r1")))
        await it.publish(thread.entry(CustomEvent(name="big", value=1)))
        await it.publish(thread.entry(RunFinishedEvent(thread_id="t1", run_id="r1")))
        with caplog.at_level(logging.ERROR):
            assert await it.flush(5)
        assert it.stats()["refused"] == 1
    told = target.inner.envelopes(CHANNEL)
    assert [each.type for each in told] == ["agent.status", "agent.gap", "agent.status"]
    assert told[1].payload == {"from_seq": 2, "to_seq": 2}
    assert chained(told)
    assert "gave up on seq 2" in caplog.text


async def test_a_target_that_takes_nothing_at_all_is_not_asked_forever() -> None:
    def mood(calls: int, envelopes: Sequence[Envelope]) -> None:
        raise PublishError("wrong key", retry=False)

    target = Moody(mood)
    async with broadcaster(target) as it:
        await tell(it, Thread())
        assert await it.flush(5)
        assert target.calls < 20


async def test_a_status_waits_for_its_target_where_a_chunk_is_given_up() -> None:
    ok = asyncio.Event()

    def mood(calls: int, envelopes: Sequence[Envelope]) -> None:
        if not ok.is_set():
            raise PublishError("down")

    target = Moody(mood)
    async with broadcaster(target, attempts=2) as it:
        await tell(it, Thread())
        await asyncio.sleep(0.2)
        ok.set()
        assert await it.flush(5)
    told = target.inner.envelopes(CHANNEL)
    assert [each.payload.get("status") for each in told if each.type == "agent.status"] == [
        "in_progress",
        "completed",
    ]
    assert chained(told)


async def test_a_publishers_own_fault_is_a_failed_attempt(caplog: pytest.LogCaptureFixture) -> None:
    def mood(calls: int, envelopes: Sequence[Envelope]) -> None:
        if calls == 1:
            raise KeyError("a bug")

    target = Moody(mood)
    async with broadcaster(target) as it:
        with caplog.at_level(logging.ERROR):
            await tell(it, Thread())
            assert await it.flush(5)
    assert target.inner.envelopes(CHANNEL)[-1].payload["status"] == "completed"


def said(thread: Thread, tokens: int) -> list[Entry]:
    start = RunStartedEvent(thread_id=thread.thread_id, run_id=thread.run_id)
    words = [TextMessageContentEvent(message_id="m", delta=f"{n} ") for n in range(tokens)]
    return thread.entries([start, TextMessageStartEvent(message_id="m"), *words])


async def test_what_comes_at_once_is_mapped_at_once() -> None:
    target = MemoryPublisher()
    async with broadcaster(target) as it:
        it.put_all(said(Thread(), 5))
        assert await it.flush(2)
        told, stats = target.envelopes(CHANNEL), it.stats()
    assert [envelope.payload.get("chunk") for envelope in told[1:]] == ["0 ", "1 2 3 4 "]
    assert chained(told)
    assert (stats["entries"], stats["envelopes"], stats["merged"], stats["delivered"]) == (7, 6, 3, 3)


async def test_without_a_roll_up_what_comes_at_once_stays_apart() -> None:
    target = MemoryPublisher()
    async with broadcaster(target, config=BroadcastConfig(rollup_ms=0)) as it:
        it.put_all(said(Thread(), 3))
        assert await it.flush(2)
    assert [each.payload.get("chunk") for each in target.envelopes(CHANNEL)[1:]] == ["0 ", "1 ", "2 "]


async def test_an_entry_that_cannot_be_mapped_keeps_no_other_back(caplog: pytest.LogCaptureFixture) -> None:
    target = MemoryPublisher()
    async with broadcaster(target) as it:
        entries = said(Thread(), 2)
        object.__setattr__(entries[0], "at", "not a time")
        with caplog.at_level(logging.ERROR):
            it.put_all(entries)
        assert await it.flush(2)
        assert it.stats()["failures"] == 1
    assert "".join(each.payload["chunk"] for each in target.envelopes(CHANNEL)) == "0 1 "


async def test_a_fault_in_the_mapping_does_not_reach_the_run(caplog: pytest.LogCaptureFixture) -> None:
    async with broadcaster(MemoryPublisher()) as it:
        entry = Thread().entry(RunStartedEvent(thread_id="t1", run_id="r1"))
        object.__setattr__(entry, "at", "not a time")
        with caplog.at_level(logging.ERROR):
            await it.publish(entry)
        assert it.stats()["failures"] == 1


async def test_a_sink_counts_for_itself() -> None:
    target = MemoryPublisher()
    async with broadcaster(target) as it:
        sink = it.sink("t1")
        sink(RunStartedEvent(thread_id="t1", run_id="r9"))
        sink(RunFinishedEvent(thread_id="t1", run_id="r9"))
        assert await it.flush(2)
    told = target.envelopes(CHANNEL)
    assert [(each.seq, each.prev, each.execution_id) for each in told] == [(1, 0, "r9"), (2, 1, "r9")]
    assert told[0].epoch


async def test_threads_have_channels_of_their_own_and_quiet_ones_are_forgotten() -> None:
    target = MemoryPublisher()
    async with broadcaster(target, channels=3) as it:
        for n in range(10):
            await tell(it, Thread(f"t{n}"))
            assert await it.flush(2)
        assert it.stats()["channels"] == 3
        sent = sum(len(target.envelopes(f"private-agent.t{n}")) for n in range(10))
        assert it.stats()["merged"] == 80 - sent  # eight a thread, also of those forgotten


async def test_busy_channels_are_not_forgotten() -> None:
    gate = asyncio.Event()
    target = Moody(lambda calls, envelopes: gate.wait())
    async with broadcaster(target, channels=2) as it:
        for n in range(4):
            await tell(it, Thread(f"t{n}"))
        assert it.stats()["channels"] == 4
        gate.set()
        assert await it.flush(2)


async def test_a_worker_that_has_nothing_to_do_ends_and_another_begins() -> None:
    target = MemoryPublisher()
    async with broadcaster(target) as it:
        thread = Thread()
        await tell(it, thread)
        assert await it.flush(2)
        await asyncio.sleep(0)
        assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("broadcast")]
        thread.run_id = "r2"
        await tell(it, thread)
        assert await it.flush(2)
    assert len(target.envelopes(CHANNEL)) == 8


async def test_closing_delivers_what_can_be_delivered_and_lets_go() -> None:
    target = Moody(ready)
    it = Broadcaster(target)
    await tell(it, Thread())
    await it.aclose()
    assert target.closed
    assert target.inner.envelopes(CHANNEL)[-1].payload["status"] == "completed"


async def test_closing_does_not_wait_for_a_dead_target_forever() -> None:
    gate = asyncio.Event()
    target = Moody(lambda calls, envelopes: gate.wait())
    it = Broadcaster(target)
    await tell(it, Thread())
    await it.aclose(timeout=0.1)
    assert target.closed
    assert target.inner.envelopes(CHANNEL) == []


def test_a_broadcaster_without_a_target_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs a publisher"):
        Broadcaster([])


async def test_the_tighter_of_two_limits_counts() -> None:
    target = Moody(ready, budget=Budget(1_000))
    async with broadcaster(target) as it:
        thread = Thread()
        await it.publish(thread.entry(CustomEvent(name="big", value="x" * 5_000)))
        assert await it.flush(2)
    (told,) = target.inner.envelopes(CHANNEL)
    assert len(told.encode()) <= 1_000
    assert told.payload["truncated"]
