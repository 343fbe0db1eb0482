"""Joining text the way a JavaScript consumer does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runcast.slim.values.surrogates import has_lone_surrogate, join_text

UNITS = st.text(st.sampled_from("aé\u20ac\ufeff😀\ud83d\ude00\ud800\udfff"), max_size=8)


def test_a_pair_split_over_two_parts_becomes_one_character():
    assert join_text(["hi \ud83d", "\ude00!"]) == "hi \U0001f600!"


def test_a_half_that_never_meets_its_other_half_stays():
    assert join_text(["a\ud83d", "b\ude00"]) == "a\ud83db\ude00"


def test_a_byte_order_mark_is_text_like_any_other():
    assert join_text(["\ufeff", "\ud83d", "\ude00"]) == "\ufeff\U0001f600"


def test_joiners_and_combining_marks_are_left_alone():
    assert join_text(["\U0001f469\u200d", "\U0001f4bb", "e", "\u0301"]) == "\U0001f469\u200d\U0001f4bbe\u0301"


@pytest.mark.parametrize(
    ("text", "lone"), [("", False), ("abc", False), ("\U0001f600é", False), ("\ud83d", True)]
)
def test_halves_are_found(text: str, lone: bool):
    assert has_lone_surrogate(text) is lone


@given(st.lists(UNITS, max_size=6))
def test_joining_agrees_with_utf16(parts: list[str]):
    units = b"".join(part.encode("utf-16-le", "surrogatepass") for part in parts)
    assert join_text(parts).encode("utf-16-le", "surrogatepass") == units


@given(st.text(max_size=20), st.integers(0, 40))
def test_any_cut_between_code_units_heals(text: str, at: int):
    units = text.encode("utf-16-le")
    left, right = units[: at * 2], units[at * 2 :]
    parts = [half.decode("utf-16-le", "surrogatepass") for half in (left, right)]
    assert join_text(parts) == text
