"""A channel of events themselves: every one, contiguous, whole as far as the target's limit allows."""

from __future__ import annotations

import json
import random

import pytest
from ag_ui.core import (
    CustomEvent,
    MessagesSnapshotEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    UserMessage,
)

from runcast.broadcast import (
    BroadcastConfig,
    Broadcaster,
    Budget,
    Envelope,
    EnvelopeMapper,
    LogHistory,
    MemoryPublisher,
    Position,
)
from runcast.broadcast.envelopes.outgoing import EnvelopeQueue
from runcast.slim import RunLog, UnknownEvent, encode, open_store
from tests.broadcast.entries import Thread, mapped
from tests.streams import adversarial, structured

AGUI = BroadcastConfig.agui()


@pytest.mark.parametrize("seed", range(40))
def test_every_event_is_there_as_its_wire_form_says_it(seed: int) -> None:
    rng = random.Random(seed)
    events = rng.choice((structured, adversarial))(rng, chunks=seed % 2 == 0)
    envelopes = mapped(events, BroadcastConfig.agui(max_envelope_bytes=1_000_000))
    assert [dict(each.payload) for each in envelopes] == [json.loads(encode(event)) for event in events]
    assert {each.type for each in envelopes} == {"agui.event"}
    assert [(each.prev, each.seq) for each in envelopes] == [(n, n + 1) for n in range(len(events))]


def test_an_event_of_no_known_type_goes_through() -> None:
    entry = Thread().entry(StateSnapshotEvent(snapshot={}))
    object.__setattr__(entry, "event", UnknownEvent.model_validate({"type": "SHINY", "value": None}))
    (told,) = EnvelopeMapper(AGUI).feed(entry)
    assert told.payload == {"type": "SHINY", "value": None}


@pytest.mark.parametrize("sample", ["a", '"', "ż", "👨‍👩‍👧‍👦"])
def test_a_delta_that_is_too_large_travels_in_pieces_that_are_events(sample: str) -> None:
    whole = sample * 6_000
    events = [
        TextMessageStartEvent(message_id="m"),
        TextMessageContentEvent(message_id="m", delta=whole, metadata={"note": "x" * 5_000}),
        TextMessageEndEvent(message_id="m"),
    ]
    mapper = EnvelopeMapper(AGUI, budget=Budget(2_000))
    told = [envelope for entry in Thread().entries(events) for envelope in mapper.feed(entry)]
    pieces = told[1:-1]
    assert "".join(str(each.payload["delta"]) for each in pieces) == whole
    assert [each.part for each in pieces] == [(n, len(pieces)) for n in range(1, len(pieces) + 1)]
    assert all(len(each.encode()) <= 2_000 for each in told)
    assert {(each.payload["type"], each.payload["messageId"]) for each in pieces} == {
        ("TEXT_MESSAGE_CONTENT", "m")
    }


def test_any_other_event_that_is_too_large_is_named_and_marked() -> None:
    big = MessagesSnapshotEvent(messages=[UserMessage(id="u", content="x" * 9_000)], timestamp=7)
    (told,) = EnvelopeMapper(AGUI, budget=Budget(2_000)).feed(Thread().entry(big))
    assert told.payload == {
        "type": "MESSAGES_SNAPSHOT",
        "timestamp": 7,
        "truncated": True,
        "original_bytes": len(encode(big)),
    }


def test_an_event_that_nothing_can_write_is_named() -> None:
    circle: list[object] = []
    circle.append(circle)
    (told,) = EnvelopeMapper(AGUI).feed(Thread().entry(CustomEvent(name="n", value=circle)))
    assert told.payload == {"type": "CUSTOM", "truncated": True}


def test_arguments_in_pieces_join_to_the_same_json() -> None:
    arguments = json.dumps({"q": '"' * 4_000})
    mapper = EnvelopeMapper(AGUI, budget=Budget(1_000))
    told = mapper.feed(Thread().entry(ToolCallArgsEvent(tool_call_id="c", delta=arguments)))
    assert json.loads("".join(str(each.payload["delta"]) for each in told)) == {"q": '"' * 4_000}


def test_ids_beyond_measure_still_fit() -> None:
    big = CustomEvent(name="n" * 5_000, value="x" * 5_000)
    (told,) = EnvelopeMapper(AGUI, budget=Budget(1_000)).feed(Thread().entry(big))
    assert len(told.encode()) <= 1_000
    assert told.payload["truncated"] is True


def test_a_full_queue_keeps_what_begins_and_ends_a_run() -> None:
    thread = Thread()
    mapper = EnvelopeMapper(AGUI)
    box = EnvelopeQueue(8)
    events = [RunStartedEvent(thread_id="t1", run_id="r1")]
    events += [CustomEvent(name="n", value=n) for n in range(50)]  # type: ignore[list-item]
    events += [RunErrorEvent(message="x")]  # type: ignore[list-item]
    for entry in thread.entries(events):
        box.put(mapper.feed(entry))
    left = box.take(100)
    kinds = [each.payload.get("type", each.type) for each in left]
    assert (kinds[0], kinds[-1]) == ("RUN_STARTED", "RUN_ERROR")
    assert "agent.gap" in kinds


async def test_one_thread_in_events_beside_another_in_envelopes() -> None:
    target = MemoryPublisher()
    it = Broadcaster(target, config=lambda thread_id: AGUI if thread_id == "raw" else BroadcastConfig())
    for thread in (Thread("raw"), Thread("ui")):
        for event in (
            RunStartedEvent(thread_id=thread.thread_id, run_id="r1"),
            TextMessageStartEvent(message_id="m"),
            TextMessageContentEvent(message_id="m", delta="hi"),
            TextMessageEndEvent(message_id="m"),
            RunFinishedEvent(thread_id=thread.thread_id, run_id="r1"),
        ):
            await it.publish(thread.entry(event))
    assert await it.flush(2)
    raw = target.envelopes("private-agent.raw")
    assert [each.payload["type"] for each in raw] == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    assert len(target.envelopes("private-agent.ui")) == 4
    await it.aclose()


async def test_history_gives_the_same_events_as_were_live() -> None:
    async with RunLog(open_store("memory://")) as log:
        live: list[Envelope] = []
        mapper = EnvelopeMapper(AGUI)
        for event in (
            RunStartedEvent(thread_id="t1", run_id="r1"),
            CustomEvent(name="n", value={"deep": [1]}),
            RunFinishedEvent(thread_id="t1", run_id="r1"),
        ):
            entry = await log.append("t1", event)
            assert entry is not None
            live += mapper.feed(entry)
        history = LogHistory(log, config=lambda thread_id: AGUI)
        again = await history("t1", Position(live[0].epoch, 1), until=None, most=100)
        assert list(again.envelopes) == live[1:]
