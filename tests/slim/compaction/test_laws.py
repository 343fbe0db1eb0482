"""What compaction holds for every stream, judged by the official client; and what the official one does to the same."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from ag_ui.core import Event, RunErrorEvent, RunFinishedEvent, RunStartedEvent

from runcast.slim.compaction.compactor import compact
from runcast.slim.protocol.chunk_expander import ChunkExpander
from runcast.slim.wire.codec import AnyEvent
from tests import shapes, streams
from tests.conftest import share
from tests.e2e.oracle import Oracle
from tests.slim.folding.test_parity import start
from tests.slim.views import applied, in_batches, judged, plain

STREAMS = share(600)  # of each kind
FOLDED = {
    "TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS", "REASONING_MESSAGE_CONTENT",
    "STATE_SNAPSHOT", "STATE_DELTA", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA",
}  # fmt: skip

Draw = Callable[..., list[Event]]
every_kind = pytest.mark.parametrize("draw", [streams.structured, streams.adversarial])


def length(stream: list[Any]) -> int:
    """Bytes on the wire, more or less: what counts is that both sides are measured alike."""
    return sum(len(str(event if isinstance(event, dict) else plain(event))) for event in stream)


def types(stream: list[AnyEvent]) -> list[str]:
    return [str(getattr(event.type, "value", event.type)) for event in stream]


@pytest.mark.oracle
@pytest.mark.parametrize("chunks", [False, True], ids=["explicit", "chunks"])
@every_kind
def test_cases_2_and_3_no_outcome_changes_and_no_valid_stream_becomes_invalid(
    oracle: Oracle, draw: Draw, chunks: bool
):
    drawn = [draw(random.Random(seed), chunks=chunks) for seed in range(STREAMS)]
    for some in in_batches(drawn):
        requests: list[Any] = []
        for seed, stream in enumerate(some):
            held = start(random.Random(seed)) if seed % 2 else {}
            small = compact(stream)
            requests += [applied(stream, **held), applied(small, **held), judged(stream), judged(small)]
        answers = oracle.batch(requests)
        for at, stream in enumerate(some):
            before, after, valid, still_valid = answers[4 * at : 4 * at + 4]
            assert after == before, stream
            assert valid["ok"]
            assert still_valid["ok"], stream


@pytest.mark.oracle
@every_kind
def test_case_2_even_a_broken_stream_leads_where_it_led(oracle: Oracle, draw: Draw):
    drawn = []
    for seed in range(STREAMS // 2):
        rng = random.Random(seed)
        drawn.append(streams.mutated(rng, draw(rng)))
    for some in in_batches(drawn):
        answers = oracle.batch(
            [each for stream in some for each in (applied(stream), applied(compact(stream)))]
        )
        for at, stream in enumerate(some):
            assert answers[2 * at] == answers[2 * at + 1], stream


@pytest.mark.oracle
@every_kind
def test_case_2_with_a_known_state_for_a_client_that_holds_it(oracle: Oracle, draw: Draw):
    drawn = [draw(random.Random(seed)) for seed in range(STREAMS // 2)]
    for some in in_batches(drawn):
        requests: list[Any] = []
        for seed, stream in enumerate(some):
            state = random.Random(seed).choice((*shapes.VALUES, {"keep": 1, "items": []}))
            small = compact(stream, base_state=state)
            assert compact(small, base_state=state) == small
            assert len(small) <= len(compact(stream))
            requests += [applied(stream, state=state), applied(small, state=state)]
        answers = oracle.batch(requests)
        for at, stream in enumerate(some):
            assert answers[2 * at] == answers[2 * at + 1], stream


@every_kind
def test_case_4_compacting_twice_is_compacting_once(draw: Draw):
    for seed in range(STREAMS):
        for chunks in (False, True):
            once = compact(draw(random.Random(seed), chunks=chunks))
            assert compact(once) == once


def borders(stream: list[Event]) -> list[int]:
    """Where one run is over and the next has not begun."""
    ends = (RunFinishedEvent, RunErrorEvent)
    return [
        at
        for at in range(len(stream) + 1)
        if at in (0, len(stream))
        or isinstance(stream[at], RunStartedEvent)
        or isinstance(stream[at - 1], ends)
    ]


@every_kind
def test_case_5_runs_compact_alike_alone_and_together(draw: Draw):
    for seed in range(STREAMS):
        stream = draw(random.Random(seed), chunks=seed % 2 == 0)
        for cut in borders(stream):
            assert compact(stream[:cut]) + compact(stream[cut:]) == compact(stream)


@every_kind
def test_case_9_the_result_is_never_larger(draw: Draw):
    for seed in range(STREAMS):
        stream = draw(random.Random(seed))
        small = compact(stream)
        assert len(small) <= len(stream)
        assert length(small) <= length(stream)


def test_case_9_with_chunks_never_larger_than_what_they_stand_for():
    for seed in range(STREAMS // 2):
        stream = streams.structured(random.Random(seed), chunks=True)
        expander = ChunkExpander()
        explicit = [each for event in stream for each in expander.feed(event)]
        assert len(compact(stream)) <= len(explicit)
        assert compact(explicit) == compact(stream)


@pytest.mark.oracle
def test_case_9_no_more_events_than_the_official_result_where_that_one_is_right(oracle: Oracle):
    drawn = [streams.sequential(random.Random(seed)) for seed in range(STREAMS)]
    total: Counter[str] = Counter()
    for some in in_batches(drawn):
        answers = oracle.batch([{"op": "compact", "events": stream} for stream in some])
        for stream, theirs in zip(some, answers, strict=True):
            ours = len(compact(stream))
            assert ours <= len(theirs["events"]), stream
            total.update(ours=ours, theirs=len(theirs["events"]))
    assert total["ours"] < total["theirs"]


@every_kind
def test_case_10_kept_events_keep_their_order_and_all_others_are_the_same(draw: Draw):
    for seed in range(STREAMS):
        stream = draw(random.Random(seed))
        small = compact(stream)
        others = [event for event in stream if event.type.value not in FOLDED]
        assert [event for event in small if types([event])[0] not in FOLDED] == others
        place = {id(event): at for at, event in enumerate(stream)}
        kept = [place[id(event)] for event in small if id(event) in place]
        assert kept == sorted(kept)


Rates = dict[str, float]


def rates(oracle: Oracle, draw: Callable[[random.Random], list[Event]], count: int) -> Rates:
    """In how many of a hundred streams each compaction changes the outcome, or makes a valid stream invalid."""
    wrong: Counter[str] = Counter()
    drawn = [draw(random.Random(seed)) for seed in range(count)]
    for some in in_batches(drawn):
        official = [
            each["events"] for each in oracle.batch([{"op": "compact", "events": one} for one in some])
        ]
        requests: list[Any] = []
        for stream, theirs in zip(some, official, strict=True):
            for each in (stream, compact(stream), theirs):
                requests += [applied(each), judged(each)]
        answers = oracle.batch(requests)
        for at in range(len(some)):
            view, _, *rest = answers[6 * at : 6 * at + 6]
            for name, (led, valid) in {"ours": rest[:2], "official": rest[2:]}.items():
                wrong[f"{name} outcome"] += led != view
                wrong[f"{name} invalid"] += not valid["ok"]
    names = ("ours outcome", "ours invalid", "official outcome", "official invalid")
    return {name: 100 * wrong[name] / count for name in names}


@pytest.mark.oracle
def test_the_official_compaction_changes_outcomes_and_ours_does_not(
    oracle: Oracle, capsys: pytest.CaptureFixture[str]
):
    with capsys.disabled():
        print(
            "\nof 100 streams            ours: outcome changed / invalid    official: outcome changed / invalid"
        )
        for draw in (streams.sequential, streams.structured, streams.adversarial):
            found = rates(oracle, draw, share(400))
            print(f"  {draw.__name__:22}" + "".join(f"{found[name]:14.1f} %" for name in found))
            assert found["ours outcome"] == found["ours invalid"] == 0
            if draw is not streams.sequential:
                assert found["official outcome"] > 5
                assert found["official invalid"] > 5
