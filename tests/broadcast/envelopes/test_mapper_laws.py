"""What holds for every stream: nothing is raised, nothing is lost, the chain holds and the budget too."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import pairwise

import pytest
from ag_ui.core import (
    Event,
    ReasoningMessageContentEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
)

from runcast.broadcast import BroadcastConfig, Budget, Envelope, EnvelopeMapper
from runcast.broadcast.envelopes.budget import HUB
from runcast.broadcast.envelopes.rollup import join
from runcast.slim import fold
from runcast.slim.entry import Entry
from runcast.slim.values.truncation import clean
from tests.broadcast.entries import Thread
from tests.streams import adversarial, mutated, structured

CONFIGS = (
    BroadcastConfig.minimal(),
    BroadcastConfig.standard(),
    BroadcastConfig.debug(),
    BroadcastConfig.agui(),
)
BUDGET = Budget(900)


def stream(seed: int) -> list[Event]:
    """Of every kind: as producers write, as nobody would, and damaged."""
    rng = random.Random(seed)
    events = rng.choice((structured, adversarial))(rng, chunks=rng.random() < 0.5)
    return mutated(rng, events) if rng.random() < 0.3 else events


def told(entries: Iterable[Entry], mapper: EnvelopeMapper) -> list[Envelope]:
    return [envelope for entry in entries for envelope in mapper.feed(entry)]


def unbroken(envelopes: list[Envelope]) -> bool:
    """Every envelope follows the one before it; the parts of an entry count up and share their place."""
    place = (0, 0, 1, 1)  # prev, seq, part, parts
    for envelope in envelopes:
        part, parts = envelope.part or (1, 1)
        prev, seq, told_part, told_parts = place
        if told_part < told_parts:
            if (envelope.prev, envelope.seq, part, parts) != (prev, seq, told_part + 1, told_parts):
                return False
        elif envelope.prev != seq or envelope.seq <= seq or part != 1:
            return False
        place = (envelope.prev, envelope.seq, part, parts)
    return place[2] == place[3]


@pytest.mark.parametrize("block", range(10))
def test_every_stream_is_told_in_an_unbroken_chain_within_the_budget(block: int) -> None:
    for seed in range(block * 60, block * 60 + 60):
        entries = Thread().entries(stream(seed))
        for config in CONFIGS:
            envelopes = told(entries, EnvelopeMapper(config, budget=BUDGET))
            assert unbroken(envelopes), seed
            assert all(BUDGET.fits(envelope.encode()) for envelope in envelopes), seed
            assert envelopes == told(entries, EnvelopeMapper(config, budget=BUDGET)), seed


@pytest.mark.parametrize("block", range(5))
def test_deltas_that_come_at_once_are_mapped_as_if_their_envelopes_had_been_joined(block: int) -> None:
    joined = 0
    for seed in range(block * 40, block * 40 + 40):
        rng = random.Random(seed)
        entries = Thread().entries(stream(seed))
        for config in CONFIGS:
            budget = rng.choice((BUDGET, Budget(2_000), HUB))
            singly, together = EnvelopeMapper(config, budget=budget), EnvelopeMapper(config, budget=budget)
            at = 0
            while at < len(entries):
                lot = entries[at : (at := at + rng.randint(1, 12))]
                for stretch in together.stretches(lot):
                    each = told(stretch, singly)
                    if len(stretch) > 1 < len(each):
                        each, joined = [join(each)], joined + 1
                    assert together.feed_stretch(stretch) == each, seed
                assert together.position == singly.position, seed
    assert joined > 5


def test_a_stretch_ends_where_its_text_does_not_fit_or_cannot_be_counted() -> None:
    thread, said = Thread(), TextMessageContentEvent(message_id="m", delta="a" * 20)
    begun = [
        RunStartedEvent(thread_id="t1", run_id="r1"),
        TextMessageStartEvent(message_id="m"),
        ReasoningMessageContentEvent(message_id="m", delta="hm"),
    ]
    events: list[Event] = [
        *(said, said, said, said),
        said.model_copy(update={"metadata": {"runcast": {}}}),
        said,
        *(said.model_copy(update={"delta": delta}) for delta in ("", "half \ud83d", "\ude00", "!")),
        *(ReasoningMessageContentEvent(message_id="m", delta=delta) for delta in ("so", " it", " is")),
        TextMessageContentEvent(message_id="n", delta="of none"),
        TextMessageContentEvent(message_id="n", delta=" either"),
    ]
    mapper = EnvelopeMapper(BroadcastConfig.debug(), budget=Budget(1_600))  # 67 characters have room
    told(thread.entries(begun), mapper)
    sizes: list[int] = []
    for stretch in mapper.stretches(thread.entries(events)):
        sizes.append(len(stretch))
        mapper.feed_stretch(stretch)
    assert sizes == [1, 3, 1, 1, 1, 1, 2, 3, 1, 1]


@pytest.mark.parametrize("block", range(5))
def test_status_changes_once_each_and_ends_once(block: int) -> None:
    """Case 24: no duplicates, one end a run, failed never overwritten, whatever comes."""
    endings = {"completed", "failed", "interrupted", "cancelled"}
    for seed in range(block * 60, block * 60 + 60):
        moves: dict[str, list[tuple[object, object]]] = {}
        for envelope in told(Thread().entries(stream(seed)), EnvelopeMapper()):
            if envelope.type == "agent.status":
                said = (envelope.payload["previous_status"], envelope.payload["status"])
                moves.setdefault(envelope.execution_id, []).append(said)
        for seen in moves.values():
            assert seen[0][0] is None
            assert all(before[1] == after[0] != after[1] for before, after in pairwise(seen))
            ended = [now for _, now in seen if now in endings]
            assert len(ended) <= 1 or (len(ended) == 2 and ended[1] == "failed"), seed


def of_one_run(events: list[Event]) -> list[Event]:
    """The first run alone."""
    for at, event in enumerate(events[1:], 1):
        if isinstance(event, RunStartedEvent):
            return events[:at]
    return events


@pytest.mark.parametrize("block", range(10))
def test_the_text_on_the_screen_is_the_text_of_the_conversation(block: int) -> None:
    for seed in range(block * 60, block * 60 + 60):
        rng = random.Random(seed)
        events = of_one_run(structured(rng, chunks=seed % 2 == 0))
        started = events[0]
        assert isinstance(started, RunStartedEvent)
        started.input = None  # what was there before is not told by this run
        shown: dict[str, str] = {}
        for envelope in told(Thread().entries(events), EnvelopeMapper(budget=BUDGET)):
            if envelope.type == "agent.stream.chunk":
                payload = envelope.payload
                before = "" if payload.get("replace") else shown.get(payload["message_id"], "")
                shown[payload["message_id"]] = before + payload["chunk"]
        said = {message.id: message.content for message in fold(events).messages}
        for message_id, text in shown.items():
            content = said.get(message_id, "")
            assert not isinstance(content, str) or clean(content).rstrip("\ufffd") == text.rstrip("\ufffd"), (
                seed
            )
