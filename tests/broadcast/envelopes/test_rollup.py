"""The roll-up of chunks, and its law: text and chain are the same whatever the window."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from runcast.broadcast import Coalescer, Envelope
from runcast.broadcast.envelopes.budget import Budget
from runcast.broadcast.envelopes.rollup import join

Step = tuple[str, str, bool, int]  # kind, message, complete, milliseconds since the one before


def chunk(seq: int, text: str, *, message: str = "m", complete: bool = False) -> Envelope:
    payload = {"message_id": message, "chunk": text, "chunk_index": seq, "is_complete": complete}
    return Envelope("agent.stream.chunk", "t", "r", "2026-01-16T10:05:05.000Z", seq, seq - 1, "e", payload)


def other(seq: int, kind: str = "agent.status") -> Envelope:
    return replace(chunk(seq, ""), type=kind, payload={"status": "completed"})


def texts(envelopes: list[Envelope]) -> list[str]:
    return [str(envelope.payload.get("chunk", envelope.type)) for envelope in envelopes]


def test_the_first_chunk_leaves_at_once_and_the_rest_together() -> None:
    roll = Coalescer(40)
    assert texts(roll.feed(chunk(1, "a"), 0)) == ["a"]
    assert roll.feed(chunk(2, "b"), 5) == []
    assert roll.feed(chunk(3, "c"), 10) == []
    assert roll.due() == 40
    assert roll.tick(39) == []
    (joined,) = roll.tick(40)
    assert (joined.payload["chunk"], joined.seq, joined.prev) == ("bc", 3, 1)
    assert (roll.due(), roll.merged) == (None, 1)


def test_nothing_is_joined_over_a_piece_that_is_missing() -> None:
    roll = Coalescer(40)
    roll.feed(chunk(1, "a"), 0)
    roll.feed(chunk(2, "b"), 5)
    assert texts(roll.feed(chunk(4, "d"), 10)) == ["b"]  # the third came to the hub another way
    assert texts(roll.flush()) == ["d"]


def test_tokens_of_joined_chunks_add_up() -> None:
    roll = Coalescer(40)
    roll.feed(chunk(1, "a"), 0)
    for seq, tokens in ((2, 3), (3, 0), (4, 4)):
        more = {"tokens_delta": tokens} if tokens else {}
        one = chunk(seq, "x")
        assert roll.feed(replace(one, payload={**one.payload, **more}), 5) == []
    (joined,) = roll.flush()
    assert (joined.payload["chunk"], joined.payload["tokens_delta"]) == ("xxx", 7)
    roll.feed(chunk(5, "b"), 6)
    assert all("tokens_delta" not in each.payload for each in roll.flush())


def test_anything_else_flushes_first() -> None:
    roll = Coalescer(40)
    roll.feed(chunk(1, "a"), 0)
    roll.feed(chunk(2, "b"), 1)
    assert texts(roll.feed(other(3), 2)) == ["b", "agent.status"]


def test_the_end_of_a_message_flushes_and_says_so() -> None:
    roll = Coalescer(40)
    roll.feed(chunk(1, "a"), 0)
    roll.feed(chunk(2, "b"), 1)
    (joined,) = roll.feed(chunk(3, "", complete=True), 2)
    assert (joined.payload["chunk"], joined.payload["is_complete"]) == ("b", True)


def test_another_message_flushes_and_leaves_at_once() -> None:
    roll = Coalescer(40)
    roll.feed(chunk(1, "a"), 0)
    roll.feed(chunk(2, "b"), 1)
    assert texts(roll.feed(chunk(3, "x", message="n"), 2)) == ["b", "x"]


def test_a_late_chunk_leaves_at_once_again() -> None:
    roll = Coalescer(40)
    roll.feed(chunk(1, "a"), 0)
    assert texts(roll.feed(chunk(2, "b"), 41)) == ["b"]


def test_a_late_chunk_takes_what_waited_with_it() -> None:
    roll = Coalescer(40)
    roll.feed(chunk(1, "a"), 0)
    roll.feed(chunk(2, "b"), 1)
    assert texts(roll.feed(chunk(3, "c"), 50)) == ["bc"]


def test_no_window_means_no_waiting() -> None:
    roll = Coalescer(0)
    assert [texts(roll.feed(chunk(n, "x"), 0)) for n in (1, 2)] == [["x"], ["x"]]


def test_a_budget_ends_a_roll_up() -> None:
    roll = Coalescer(40, fits=lambda envelope: len(str(envelope.payload["chunk"])) <= 3)
    roll.feed(chunk(1, "a"), 0)
    roll.feed(chunk(2, "bb"), 1)
    assert texts(roll.feed(chunk(3, "cc"), 2)) == ["bb"]
    assert texts(roll.flush()) == ["cc"]


def test_parts_of_one_entry_are_never_joined_and_share_their_prev() -> None:
    roll = Coalescer(40)
    roll.feed(chunk(1, "a"), 0)
    roll.feed(chunk(2, "b"), 1)
    one, two = (replace(chunk(3, x), prev=2, part=(n, 2)) for n, x in ((1, "c"), (2, "d")))
    out = roll.feed(one, 2) + roll.feed(two, 2) + roll.feed(other(4), 2)
    assert [(each.seq, each.prev, each.part) for each in out] == [
        (2, 1, None),
        (3, 2, (1, 2)),
        (3, 2, (2, 2)),
        (4, 3, None),
    ]


def test_a_replacement_is_never_joined() -> None:
    roll = Coalescer(40)
    roll.feed(chunk(1, "a"), 0)
    new = chunk(2, "z", complete=True)
    (out,) = roll.feed(replace(new, payload={**new.payload, "replace": True}), 1)
    assert out.payload["replace"]


steps = st.lists(
    st.tuples(
        st.sampled_from(["chunk", "chunk", "chunk", "status"]),
        st.sampled_from(["m", "n"]),
        st.booleans(),
        st.integers(0, 60),
    ),
    max_size=40,
)


@given(steps, st.sampled_from([0, 1, 40, 100]))
def test_whatever_the_window_the_text_is_the_same_and_the_chain_holds(
    script: list[Step], window: int
) -> None:
    """Case 25: for windows of every size."""
    roll = Coalescer(window)
    now = 0
    out: list[Envelope] = []
    fed: list[Envelope] = []
    for seq, (kind, message, complete, pause) in enumerate(script, start=1):
        now += pause
        out += roll.tick(now)
        envelope = (
            chunk(seq, f"{seq},", message=message, complete=complete) if kind == "chunk" else other(seq)
        )
        fed.append(envelope)
        out += roll.feed(envelope, now)
    out += roll.flush()

    def said(envelopes: list[Envelope]) -> str:
        return "".join(texts(envelopes))

    assert said(out) == said(fed)
    last = 0
    for envelope in out:
        assert envelope.prev == last
        last = envelope.seq
    assert last == len(script)


@given(
    st.lists(st.text(st.sampled_from('aß€😀"\\\n\x00'), min_size=1, max_size=60), min_size=2, max_size=60),
    st.sampled_from([Budget(700), Budget(2_000), Budget(1_800, quoted=True), Budget(60_000)]),
)
def test_a_joined_envelope_stays_within_its_budget_whatever_its_characters(
    pieces: list[str], budget: Budget
) -> None:
    roll = Coalescer(40, fits=lambda envelope: budget.fits(envelope.encode()))
    out: list[Envelope] = []
    for seq, piece in enumerate(pieces, start=1):
        out += roll.feed(chunk(seq, piece), 0)
    out += roll.flush()
    assert "".join(texts(out)) == "".join(pieces)
    assert all(budget.fits(envelope.encode()) for envelope in out)
    for one, other_one in pairwise(out[1:]):  # the first leaves at once
        both = join([replace(one, seq=other_one.prev), other_one])
        assert not budget.fits(both.encode()), "nothing is sent alone that would have fitted"


def test_a_long_roll_up_is_measured_seldom() -> None:
    measured = 0

    def fits(envelope: Envelope) -> bool:
        nonlocal measured
        measured += 1
        return len(envelope.encode()) <= 60_000

    roll = Coalescer(40, fits=fits)
    for seq in range(1, 2_001):
        assert len(roll.feed(chunk(seq, "word "), 0)) == (seq == 1)
    assert measured < 100
