"""Envelopes read back from the log are those that went out the first time."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from ag_ui.core import (
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)

from runcast.app.demo.watch import in_order
from runcast.broadcast import Budget, Envelope, EnvelopeMapper, LogHistory, Position, Reader, Take
from runcast.slim import MemoryStore, RunLog
from tests.broadcast.test_reader import log as random_thread
from tests.broadcast.test_reader import said


@pytest.fixture
async def log() -> AsyncIterator[RunLog]:
    async with RunLog(MemoryStore()) as it:
        yield it


async def filled(log: RunLog, seed: int) -> tuple[list[Envelope], str]:
    """A random thread in the log, and its envelopes as they went out the first time."""
    await log.append_many("t1", [entry.event for entry in random_thread(random.Random(seed))])
    mapper = EnvelopeMapper()
    entries = await log.entries("t1")
    return [envelope for entry in entries for envelope in mapper.feed(entry)], entries[0].epoch


@pytest.mark.parametrize("seed", range(12))
async def test_page_by_page_it_is_what_was_sent_the_first_time(log: RunLog, seed: int) -> None:
    live, epoch = await filled(log, seed)
    history = LogHistory(log)
    for most in (1, 3, 1_000):
        reader, read, more = Reader(last=0, epoch=epoch), [], True
        while more:
            stretch = await history.read("t1", Position(epoch, reader.last or 0), most=most)
            assert stretch.recovered
            assert all(reader.take(each, fetched=True) is Take.APPLY for each in stretch.envelopes)
            read += stretch.envelopes
            more = stretch.more
        assert [(each.seq, each.type, each.payload) for each in read] == [
            (each.seq, each.type, each.payload) for each in live
        ]


@pytest.mark.parametrize("seed", range(12))
async def test_with_its_texts_joined_it_reads_the_same(log: RunLog, seed: int) -> None:
    live, epoch = await filled(log, seed)
    history = LogHistory(log)
    for most in (1, 3, 1_000):
        reader, read, more = Reader(last=0, epoch=epoch), [], True
        while more:
            stretch = await history.read("t1", Position(epoch, reader.last or 0), most=most, joined=True)
            assert all(reader.take(each, fetched=True) is Take.APPLY for each in stretch.envelopes)
            assert all(len(each.encode()) <= 8_000 for each in stretch.envelopes)
            read += stretch.envelopes
            more = stretch.more
        assert in_order(read) == in_order(live)
        assert reader.last == live[-1].seq


async def test_a_long_text_is_few_envelopes_and_a_long_silence_is_skipped(log: RunLog) -> None:
    events = [
        RunStartedEvent(thread_id="t1", run_id="r1"),
        ReasoningMessageStartEvent(message_id="m0"),
        *[ReasoningMessageContentEvent(message_id="m0", delta="hm ") for _ in range(12_000)],
        ReasoningMessageEndEvent(message_id="m0"),
        TextMessageStartEvent(message_id="m1", role="assistant"),
        *[TextMessageContentEvent(message_id="m1", delta=f"word{n} ") for n in range(12_000)],
        TextMessageEndEvent(message_id="m1"),
        RunFinishedEvent(thread_id="t1", run_id="r1"),
    ]
    await log.append_many("t1", events)
    history = LogHistory(log)
    after, read, answers, more = 0, [], 0, True
    while more:
        stretch = await history.read("t1", Position("", after), most=1_000, joined=True)
        read += stretch.envelopes
        after, more, answers = read[-1].seq, stretch.more, answers + 1
    assert len(read) < 40
    assert answers < 10
    text = "".join(each.payload["chunk"] for each in read if each.type == "agent.stream.chunk")
    assert text == "".join(f"word{n} " for n in range(12_000))


@pytest.mark.parametrize("seed", range(4))
async def test_from_any_place_it_is_the_rest(log: RunLog, seed: int) -> None:
    live, epoch = await filled(log, seed)
    history = LogHistory(log)
    head = live[-1].seq
    for after in random.Random(seed).sample(range(head + 1), min(head, 20)):
        replay = await history("t1", Position(epoch, after), until=None, most=10_000)
        rest = [each for each in live if each.seq > after]
        assert [each.payload for each in replay.envelopes] == [each.payload for each in rest]
        assert (replay.recovered, replay.epoch, replay.head) == (True, epoch, head)
        assert not replay.envelopes or replay.envelopes[0].prev == after


async def test_until_is_where_the_live_stream_goes_on(log: RunLog) -> None:
    live, epoch = await filled(log, 3)
    middle = live[len(live) // 2].seq
    replay = await LogHistory(log)("t1", Position(epoch, 0), until=middle, most=10_000)
    assert replay.envelopes[-1].seq == middle


async def test_more_than_was_asked_for_is_not_recovered(log: RunLog) -> None:
    live, epoch = await filled(log, 3)
    replay = await LogHistory(log)("t1", Position(epoch, 0), until=None, most=2)
    assert (replay.recovered, len(replay.envelopes), replay.head) == (False, 0, live[-1].seq)


async def test_another_epoch_or_the_future_is_not_recovered(log: RunLog) -> None:
    live, epoch = await filled(log, 3)
    history = LogHistory(log)
    head = live[-1].seq
    for position in (Position("other", 1), Position(epoch, head + 1)):
        stretch = await history.read("t1", position, most=10)
        assert (stretch.recovered, stretch.epoch, stretch.head) == (False, epoch, head)
    assert (await history.read("t1", Position("", head), most=10)).recovered


async def test_a_thread_that_is_not_there_has_nothing_to_tell(log: RunLog) -> None:
    history = LogHistory(log)
    assert (await history.read("ghost", Position("", 0), most=10)).recovered
    assert not (await history.read("ghost", Position("e", 7), most=10)).recovered


async def test_a_thread_that_grows_meanwhile_is_read_to_the_end(log: RunLog) -> None:
    _, epoch = await filled(log, 5)
    history = LogHistory(log)
    first = await history.read("t1", Position(epoch, 0), most=10_000)
    for entry in random_thread(random.Random(99)):
        event = entry.event
        if hasattr(event, "run_id"):
            event = event.model_copy(update={"run_id": f"later-{event.run_id}"})
        await log.append("t1", event)
    await log.flush()
    second = await history.read("t1", Position(epoch, first.envelopes[-1].seq), most=10_000)
    mapper = EnvelopeMapper()
    everything = [each for entry in await log.entries("t1") for each in mapper.feed(entry)]
    assert [each.payload for each in [*first.envelopes, *second.envelopes]] == [
        each.payload for each in everything
    ]


async def test_old_places_are_forgotten(log: RunLog) -> None:
    history = LogHistory(log, budget=Budget(2_000))
    for number in range(300):
        entries = random_thread(random.Random(1))
        await log.append_many(f"t{number}", [entry.event for entry in entries[:2]])
        await history.read(f"t{number}", Position("", 0), most=1)
    assert len(history._places) == 256


async def test_from_inside_a_pruned_run_nothing_is_told_twice(log: RunLog) -> None:
    live, epoch = await filled(log, 1)
    await log.archive.prune(older_than=timedelta(milliseconds=-1_000))
    inside = await LogHistory(log).read("t1", Position(epoch, 3), most=1_000)
    assert (inside.recovered, inside.envelopes) == (False, ())
    whole = await LogHistory(log).read("t1", Position(epoch, 0), most=1_000)
    assert said(list(whole.envelopes))[0] == said(live)[0]
    behind = await LogHistory(log).read("t1", Position(epoch, live[-1].seq), most=1_000)
    assert (behind.recovered, behind.envelopes) == (True, [])
