"""A quick look at the length of JSON says less than the exact one, and never more."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from runcast.slim.values.json_budget import size, surely_within

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(values, st.integers(0, 400))
def test_what_surely_fits_fits(value: Any, room: int):
    assert not surely_within(value, room) or size(value) <= room


def test_what_no_quick_look_can_read_is_left_to_the_exact_one():
    assert surely_within({"a": [1, "b"]}, 400)
    assert not surely_within({"half": "\ud800"}, 400)
    assert not surely_within({1: 2}, 400)
