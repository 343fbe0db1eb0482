"""Marks: a position and an entry of one history never contradict each other, those of two mostly do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runcast.slim.entry import Entry, bound, is_mark, is_other_history, mark_of, unbound

Lengths = st.lists(st.integers(1, 5), min_size=1, max_size=6)


def history(lengths: list[int], name: str, before: list[str] | None = None) -> list[str]:
    """The mark of every seq, from the lengths of the runs."""
    marks = list(before or [])
    for n, length in enumerate(lengths):
        marks += [mark_of(len(marks) + 1, f"{name}{n}")] * length
    return marks


@given(Lengths)
def test_no_entry_contradicts_a_place_in_its_own_history(lengths: list[int]):
    marks = history(lengths, "a")
    for last in range(1, len(marks) + 1):
        for seq in range(1, len(marks) + 1):
            assert not is_other_history(last, marks[last - 1], seq, marks[seq - 1])


@given(Lengths, Lengths, st.data())
def test_whoever_reads_on_meets_a_contradiction_in_another_history(
    lengths: list[int], others: list[int], data: st.DataObject
):
    old = history(lengths, "a")
    kept = data.draw(st.integers(0, len(old) - 1))
    new = history(others, "b", old[:kept])
    last = data.draw(st.integers(kept + 1, len(old)))
    seen = [is_other_history(last, old[last - 1], seq, new[seq - 1]) for seq in range(1, len(new) + 1)]
    assert not any(seen[:kept])
    # At the latest the entry in the reader's own place, or the first behind it, tells.
    assert not new[last - 1 :] or any(seen[: last + 1])


def test_an_entry_without_a_mark_contradicts_nothing():
    assert not is_other_history(5, "", 3, "1.a")
    assert not is_other_history(5, "1.a", 3, "")


@given(st.text(), st.integers(1, 2**50), st.text("0123456789abcdef", min_size=1))
def test_an_epoch_and_a_mark_are_one_text_and_two_again(epoch: str, first: int, random: str):
    mark = mark_of(first, random)
    assert is_mark(mark)
    assert unbound(bound(epoch, mark)) == (epoch, mark)
    assert bound(epoch, "") == epoch


def test_what_is_no_mark_leaves_the_epoch_whole():
    for text in ("", "k3f9x2", "a~b", "~", "a~1.", "a~1.b c", "a~.b", "7:a"):
        assert unbound(text) == (text, "")
    assert not any(map(is_mark, (None, 7, "", "1", "x.1", "1.a~", "9" * 17 + ".a")))


def test_an_entry_says_its_history():
    assert Entry("t", 9, "k3", "r", 0, None, "7.ab").history == "k3~7.ab"  # type: ignore[arg-type]
