"""The profile `client` against the client itself, on thousands of streams: the same first offender or none."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest
from ag_ui.core import Event

from runcast.slim.protocol.rules import RULES
from runcast.slim.protocol.verifier import verify
from tests.conftest import share
from tests.e2e.oracle import Oracle
from tests.slim.mutations import babble, broken, chunked
from tests.slim.views import in_batches
from tests.slim.wires import Wire, read
from tests.streams import adversarial, structured

BATCH = 500


def on_the_wire(events: list[Event]) -> list[Wire]:
    return [event.model_dump(by_alias=True) | {"type": event.type.value} for event in events]


def streams(rng: random.Random) -> Iterator[list[Wire]]:
    """Without end: valid streams, valid ones with hostile ids, damaged ones, babble, and chunks in any order."""
    while True:
        chunks = rng.random() < 0.2
        for make in (structured, adversarial):
            valid = on_the_wire(make(rng, chunks=chunks))
            yield valid
            yield broken(rng, valid)
            yield broken(rng, valid)
        yield babble(rng)
        yield babble(rng)
        yield chunked(rng)


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(share(16)))
def test_the_first_offender_is_the_clients(seed: int, oracle: Oracle):
    source = streams(random.Random(seed))
    asked = [next(source) for _ in range(BATCH)]
    answers = oracle.batch([{"op": "accepts", "events": each} for each in asked])
    told: Counter[str] = Counter()
    for events, answer in zip(asked, answers, strict=True):
        found = verify(read(events), "client", explicit_nulls=True)
        first = found[0].index if found else None
        assert first == (None if answer["ok"] else answer["passed"]), (answer.get("error"), found[:1])
        told[found[0].rule if found else "ok"] += 1
    assert told["ok"] > BATCH / 5


@pytest.mark.oracle
def test_an_earlier_client_takes_the_chunks_that_are_taken(oracle: Oracle):
    """Client 0.0.59 knows no later types and wants whole echoes; it says the same of everything else."""
    rng = random.Random(7)
    drawn = [
        [each for each in chunked(rng) if each["type"] != "NEWS" and "input" not in each]
        for _ in range(share(8_000))
    ]
    taken = []
    for events in drawn:
        found = verify(read(events), "client", explicit_nulls=True)
        taken.append(events[: found[0].index] if found else events)
    for some in in_batches(taken):
        answers = oracle.batch([{"op": "earlier", "events": each} for each in some])
        assert [answer.get("error") for answer in answers if not answer["ok"]] == []


def test_these_streams_break_every_rule_the_client_knows():
    source = streams(random.Random(0))
    found = [verify(read(next(source)), "client", explicit_nulls=True) for _ in range(3000)]
    told = Counter(each[0].rule for each in found if each)
    assert {name for name, rule in RULES.items() if not rule.strict} == set(told)
