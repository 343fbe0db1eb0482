"""What a channel remembers: the chain, its parts, its bounds, and when a replay is to be believed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runcast.broadcast import Envelope, Position, Replay
from runcast.broadcast.hub.memory.ring import Fit, Ring, follow, read_envelope, sound
from tests.e2e.stage import EPOCH, envelope

ALL = {"most": 1_000, "most_bytes": 1_000_000}


def ring(*envelopes: Envelope, most: int = 100, most_bytes: int = 1_000_000, age: float = 100.0) -> Ring:
    it = Ring(most=most, most_bytes=most_bytes, age=age)
    for at, each in enumerate(envelopes):
        it.add(each, each.encode(), float(at))
    return it


def after(it: Ring, offset: int, epoch: str = EPOCH, **bounds: int) -> list[int] | None:
    kept = it.after(Position(epoch, offset), **{**ALL, **bounds})
    return None if kept is None else [each.envelope.seq for each in kept]


@pytest.mark.parametrize(
    ("new", "fit"),
    [
        (envelope(3), Fit.NEXT),
        (envelope(6, 2), Fit.NEXT),
        (envelope(2), Fit.DOUBLE),
        (envelope(1), Fit.DOUBLE),
        (envelope(4), Fit.HOLE),
        (envelope(4, 1), Fit.HOLE),
        (envelope(3, part=(2, 2)), Fit.HOLE),
        (envelope(2, part=(2, 2)), Fit.DOUBLE),  # `seq <= last`, as for every reader
        (envelope(1, epoch="new"), Fit.RESTART),
    ],
)
def test_how_an_envelope_follows(new: Envelope, fit: Fit):
    it = ring(envelope(1), envelope(2))
    assert it.judge(new) is fit
    assert ring().judge(new) is Fit.NEXT


def test_another_history_restarts_the_chain_and_its_late_envelopes_are_dropped():
    def marked(seq: int, mark: str) -> Envelope:
        return replace(envelope(seq), mark=mark)

    it = ring(marked(1, "1.a"), marked(2, "1.a"), marked(3, "3.b"))
    assert it.judge(marked(2, "1.a")) is Fit.DOUBLE
    assert it.judge(marked(4, "4.c")) is Fit.NEXT
    assert it.judge(marked(3, "3.z")) is Fit.RESTART
    it.add(marked(3, "3.z"), b"x", 2.0)
    assert it.judge(marked(3, "3.b")) is Fit.DOUBLE
    it.add(marked(4, "3.z"), b"x", 2.0)

    def follows(offset: int, mark: str) -> bool:
        position = Position(EPOCH, offset, mark)
        return it.after(position, most=9, most_bytes=99) is not None

    places = [(4, "3.z"), (3, "3.z"), (4, ""), (3, ""), (4, "3.b"), (3, "3.b"), (2, "1.a")]
    # The last one is right; what the ring does not know is asked of the log.
    assert [follows(*each) for each in places] == [True] * 4 + [False] * 3


def test_the_parts_of_an_entry_follow_one_another():
    parts = [envelope(2, part=(n, 3)) for n in (1, 2, 3)]
    it = ring(envelope(1), parts[0])
    assert (it.head, it.whole, it.stands.offset) == (2, False, 1)
    assert [it.judge(each) for each in (*parts, envelope(3))] == [Fit.DOUBLE, Fit.NEXT, Fit.HOLE, Fit.HOLE]
    assert (after(it, 1), after(it, 2)) == ([2], None)
    for each in parts[1:]:
        it.add(each, b"x", 2.0)
    assert (it.whole, it.stands.offset, after(it, 1), after(it, 2)) == (True, 2, [2, 2, 2], [])


def test_after_a_hole_or_a_restart_the_chain_begins_anew():
    it = ring(envelope(1), envelope(2), envelope(9, 8))
    assert (after(it, 1), after(it, 8), after(it, 9)) == (None, [9], [])
    it.add(envelope(1, epoch="new"), b"x", 3.0)
    assert (it.epoch, it.head, after(it, 0), after(it, 0, "new"), after(it, 0, "")) == (
        "new",
        1,
        None,
        [1],
        [1],
    )
    assert it.judge(envelope(10)) is Fit.DOUBLE  # of an incarnation that is over


@pytest.mark.parametrize(("offset", "epoch"), [(5, EPOCH), (0, "other"), (2, "other"), (2**52, "")])
def test_places_it_cannot_tell_of(offset: int, epoch: str):
    assert after(ring(envelope(1), envelope(2)), offset, epoch) is None


def test_a_place_inside_an_envelope_is_none():
    it = ring(envelope(1), envelope(5, 1))
    assert [after(it, n) for n in (0, 1, 2, 3, 4, 5)] == [[1, 5], [5], None, None, None, []]


def test_bounds_of_an_answer():
    it = ring(*(envelope(n) for n in range(1, 6)))
    assert (after(it, 2, most=3), after(it, 2, most=2)) == ([3, 4, 5], None)
    size = sum(len(envelope(n).encode()) for n in (4, 5))
    assert (after(it, 3, most_bytes=size), after(it, 3, most_bytes=size - 1)) == ([4, 5], None)


@pytest.mark.parametrize("new", [envelope(5), envelope(1, epoch="e2")], ids=["a hole", "another epoch"])
def test_a_chain_that_begins_anew_weighs_what_it_holds(new: Envelope):
    it = ring(*map(envelope, (1, 2, 3)))
    kept = it.add(new, new.encode(), 0.0)
    assert it.size == len(kept.body)


def test_bounds_of_the_memory():
    numbered = [envelope(n) for n in range(1, 11)]
    assert after(ring(*numbered, most=3), 7) == [8, 9, 10]
    assert after(ring(*numbered, most=3), 6) is None
    size = len(numbered[0].encode())
    small = ring(*numbered, most_bytes=2 * size + 10)
    assert small.size <= 2 * size + 10
    assert after(small, 8) == [9, 10]
    none = ring(*numbered, most_bytes=10)
    assert (none.size, none.head, after(none, 10), after(none, 9), none.last()) == (0, 10, [], None, None)


def test_age():
    it = ring(*(envelope(n) for n in (1, 2, 3)), age=5.0)
    it.expire(6.5)
    assert after(it, 1) == [3] if after(it, 2) is None else after(it, 2) == [3]
    it.expire(100.0)
    assert (it.size, it.head, after(it, 3)) == (0, 3, [])


def test_half_an_entry_is_not_remembered():
    it = ring(envelope(1, part=(1, 2)), envelope(1, part=(2, 2)), envelope(2), most=2)
    assert after(it, 0) is None
    assert after(it, 1) == [2]


def test_forgetting_keeps_the_place():
    it = ring(envelope(1), envelope(2))
    freed = it.size
    assert it.clear() == freed > 0
    assert (it.size, it.head, it.judge(envelope(3)), after(it, 2)) == (0, 2, Fit.NEXT, [])


def test_the_last_one():
    assert ring().last() is None
    last = ring(envelope(1), envelope(2)).last()
    assert last is not None
    assert last.envelope == envelope(2)


@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(0, 12), st.sampled_from(["a", "b"])), max_size=30),
    st.integers(1, 5),
)
def test_what_it_tells_is_always_an_unbroken_chain(drawn: list[tuple[int, int, str]], most: int):
    it = Ring(most=most, most_bytes=10_000, age=100.0)
    for at, (seq, prev, epoch) in enumerate(drawn):
        each = envelope(seq, min(prev, seq - 1), epoch=epoch)
        if it.judge(each) is not Fit.DOUBLE:
            it.add(each, each.encode(), float(at))
    for offset in range(14):
        kept = it.after(Position("", offset), **ALL)
        if kept is not None:
            assert follow([each.envelope for each in kept], offset) == len(kept)
            assert (kept[-1].envelope.seq if kept else offset) == it.head


@pytest.mark.parametrize(
    ("envelopes", "count"),
    [
        ([], 0),
        ([envelope(6), envelope(7)], 2),
        ([envelope(6), envelope(8)], 1),
        ([envelope(7)], 0),
        ([envelope(6, part=(1, 2)), envelope(6, part=(2, 2)), envelope(7)], 3),
        ([envelope(6, part=(1, 2)), envelope(7)], 1),
        ([envelope(6, part=(2, 2))], 0),
    ],
)
def test_what_continues_from_a_place(envelopes: list[Envelope], count: int):
    assert follow(envelopes, 5) == count


@pytest.mark.parametrize(
    ("replay", "believed"),
    [
        (Replay(True, EPOCH, 5), True),
        (Replay(True, EPOCH, 9), True),
        (Replay(True, EPOCH, 4), False),
        (Replay(True, "other", 5), False),
        (Replay(True, EPOCH, 7, [envelope(6), envelope(7)]), True),
        (Replay(True, EPOCH, 7, [envelope(7)]), False),
        (Replay(True, EPOCH, 7, [envelope(6), envelope(7, epoch="other")]), False),
        (Replay(True, EPOCH, 6, [envelope(6, part=(1, 2))]), False),
    ],
)
def test_which_replay_is_believed(replay: Replay, believed: bool):
    assert sound(replay, Position(EPOCH, 5)) is believed


def test_any_epoch_will_do_for_who_kept_none():
    assert sound(Replay(True, "other", 5), Position("", 5))


def change(**changes: Any) -> str:
    return json.dumps({**envelope(5).to_dict(), **changes})


def test_an_envelope_from_outside_is_read_back():
    for each in (envelope(5), envelope(5, part=(1, 2))):
        assert read_envelope(each.encode().decode()) == each


@pytest.mark.parametrize(
    "data",
    [
        "", "{oops", "[]", "7", "null", "{}", change(seq="5"), change(seq=True), change(prev=5), change(prev=-1),
        change(epoch=""), change(epoch=None), change(session_id=7), change(part=[1]), change(part=["1", 2]), change(part=7),
        change(timestamp=None),
    ],
)  # fmt: skip
def test_what_is_no_envelope(data: str):
    assert read_envelope(data) is None


def test_what_the_log_itself_says_of_its_epoch_holds():
    it = ring()
    it.expect("")
    it.expect("a")
    assert (after(it, 0, ""), after(it, 0, "a")) == (
        None,
        None,
    )  # nothing was seen: it cannot say that nothing was missed
    assert [it.judge(envelope(1, epoch=each)) for each in "ab"] == [Fit.NEXT, Fit.RESTART]
    it.expect("b")  # readers were told of another
    assert [it.judge(envelope(1, epoch=each)) for each in "ab"] == [Fit.DOUBLE, Fit.RESTART]
    it.add(envelope(1, epoch="b"), b"x", 1.0)
    it.expect("a")  # a replica that is late
    it.expect("b")
    assert [it.judge(envelope(2, epoch=each)) for each in "ab"] == [Fit.DOUBLE, Fit.NEXT]
    it.expect("c")
    assert [it.judge(envelope(2, epoch=each)) for each in "abc"] == [Fit.DOUBLE, Fit.DOUBLE, Fit.RESTART]
    it.add(envelope(1, epoch="c"), b"x", 2.0)
    assert (it.epoch, it.judge(envelope(2, epoch="c"))) == ("c", Fit.NEXT)


def test_an_envelope_is_kept_to_the_last_moment_of_its_age() -> None:
    it = ring(envelope(1), age=10.0)
    it.expire(10.0)
    assert after(it, 0) == [1]
    it.expire(10.5)
    assert (after(it, 0), it.size) == (None, 0)
