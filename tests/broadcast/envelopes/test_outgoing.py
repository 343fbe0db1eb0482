"""The bounded way out: what is shed leaves a gap, and the chain never breaks."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from runcast.broadcast.envelopes.outgoing import EnvelopeQueue
from tests.broadcast.envelopes.test_rollup import chunk, other


def positions(box: EnvelopeQueue) -> list[tuple[str, int, int]]:
    return [(each.type.removeprefix("agent."), each.prev, each.seq) for each in box.take(1000)]


def test_what_fits_waits_in_order() -> None:
    box = EnvelopeQueue(10)
    box.put([other(1), chunk(2, "a")])
    assert [each.seq for each in box.take(1)] == [1]
    box.done(1)
    assert [each.seq for each in box.take(5)] == [2]
    assert len(box) == 1


def test_a_full_queue_joins_chunks_first() -> None:
    box = EnvelopeQueue(3)
    box.put([other(1), *(chunk(n, str(n)) for n in (2, 3, 4, 5))])
    assert positions(box) == [("status", 0, 1), ("stream.chunk", 1, 5)]
    assert (box.merged, box.shed) == (3, 0)
    assert box.take(2)[1].payload["chunk"] == "2345"


def test_then_chunks_become_a_gap_that_names_the_hole() -> None:
    box = EnvelopeQueue(4, fits=lambda envelope: False)
    box.put([other(1), *(chunk(n, "x") for n in (2, 3, 4)), other(5)])
    assert positions(box) == [("status", 0, 1), ("gap", 1, 3), ("stream.chunk", 3, 4), ("status", 4, 5)]
    assert box.take(2)[1].payload == {"from_seq": 2, "to_seq": 3}


def test_then_everything_but_status_and_questions() -> None:
    box = EnvelopeQueue(4)
    box.put([other(n, "agent.tool.started") for n in range(1, 6)] + [other(6), other(7, "agent.interrupt")])
    assert positions(box) == [("gap", 0, 4), ("tool.started", 4, 5), ("status", 5, 6), ("interrupt", 6, 7)]


def test_statuses_stay_whatever_the_limit_is() -> None:
    box = EnvelopeQueue(2)
    box.put([other(n) for n in range(1, 6)])
    assert len(box) == 5


def test_gaps_grow_instead_of_multiplying() -> None:
    box = EnvelopeQueue(4, fits=lambda envelope: False)
    for seq in range(1, 40):
        box.put([chunk(seq, "x")])
        assert len(box) <= 4
    first, *_ = box.take(4)
    assert (first.type, first.payload["from_seq"]) == ("agent.gap", 1)


def test_what_is_on_its_way_is_not_touched() -> None:
    box = EnvelopeQueue(3)
    box.put([chunk(1, "a"), chunk(2, "b")])
    taken = box.take(2)
    box.put([chunk(3, "c"), chunk(4, "d"), chunk(5, "e")])
    assert box.take(2) == taken
    box.done(2)
    assert positions(box) == [("stream.chunk", 2, 5)]


def test_what_is_on_its_way_is_not_shed_either() -> None:
    box = EnvelopeQueue(4, fits=lambda envelope: False)
    box.put([chunk(n, "x") for n in (1, 2)])
    taken = box.take(2)
    box.put([chunk(n, "x") for n in (3, 4, 5, 6)])
    assert box.take(2) == taken
    box.put_back()
    box.put([chunk(7, "x")])
    assert box.take(1)[0].type == "agent.gap"


def test_a_refused_envelope_leaves_a_gap_in_its_place() -> None:
    box = EnvelopeQueue(10)
    box.put([chunk(1, "a"), chunk(2, "b"), other(3)])
    box.take(3)
    box.refuse(1)
    assert positions(box) == [("gap", 0, 1), ("stream.chunk", 1, 2), ("status", 2, 3)]
    box.refuse(0)
    assert box.shed == 1


def test_parts_of_one_entry_go_together() -> None:
    box = EnvelopeQueue(4)
    parts = [replace(other(2, "agent.custom"), part=(n, 3)) for n in (1, 2, 3)]
    box.put([other(1), *parts, other(3, "agent.custom"), other(4)])
    kinds = positions(box)
    assert kinds[0] == ("status", 0, 1)
    assert kinds[1][0] == "gap"
    assert ("custom", 1, 2) not in kinds


@given(st.lists(st.sampled_from(["chunk", "tool", "status", "take", "done", "refuse"]), max_size=80))
def test_the_chain_never_breaks_whatever_is_shed(script: list[str]) -> None:
    box = EnvelopeQueue(5)
    seq = 0
    out = []
    flying = 0
    for move in script:
        if move == "take":
            flying = len(box.take(3))
        elif move == "done":
            out += box.take(flying)
            box.done(flying)
            flying = 0
        elif move == "refuse":
            box.refuse(min(flying, 1))
            flying = 0
        else:
            seq += 1
            kind = {"chunk": chunk(seq, "x"), "tool": other(seq, "agent.tool.started"), "status": other(seq)}
            box.put([kind[move]])
    out += box.take(1000)
    last = 0
    for envelope in out:
        assert envelope.prev == last
        last = envelope.seq
    assert last == seq
