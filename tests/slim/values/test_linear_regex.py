"""Patterns of users: found in linear time, ended in one pass, and refused where they are too large."""

from __future__ import annotations

import random
import re
import time

import pytest

from runcast.slim.values.linear_regex import Linear

FOUR_TIMES = 10  # the cost of a text four times as long: 4 where it is linear, 16 where it is quadratic


@pytest.mark.parametrize("pattern", [r"[a-c]{3,}", r"ab+c?", r"x[0-9]{2,5}", r"(?i)AB"])
def test_matches_stand_where_pythons_engine_finds_them(pattern: str):
    rng = random.Random(1)
    for _ in range(500):
        text = "".join(rng.choice("abcx12 ") for _ in range(rng.randrange(40)))
        assert list(Linear(pattern).spans(text)) == [each.span() for each in re.finditer(pattern, text)]


@pytest.mark.parametrize(
    ("pattern", "unit"),
    [
        (r"[A-Za-z0-9+/=]{40,}", "xYz9+/="),
        (r"(?:[a-z]{1,20}){1,20}", "a"),
        (r"(?:[a-z0-9]{1,63}\.){1,8}[a-z]{2,}", "abc."),
        (r"x[a-z]{0,1000}y", "x"),
        (r"\w{50}", "ä"),
    ],
)
def test_a_text_four_times_as_long_costs_about_four_times_as_much(pattern: str, unit: str):
    linear = Linear(pattern)

    def cost(length: int) -> float:
        spent = []
        for _ in range(5):
            began = time.process_time()
            for _ in linear.spans((unit * length)[:length]):
                pass
            spent.append(time.process_time() - began)
        return min(spent)

    assert cost(240_000) < FOUR_TIMES * cost(60_000)


@pytest.mark.parametrize(
    ("pattern", "states", "nested"),
    [
        (r"([a-z]{1,50}){1,50}", "2,500", "2,500"),
        (r"(?P<a>(?:x{1,9}y?){1,9}|z){10}", "910", "810"),
        (r"(?i)(?s:[]a{9}]{1024})\p{Greek}\x{41}", "1,026", "0"),
        (r"x[a-z]{0,4000}y", "4,002", "0"),
        (r"a{1000,}b{24}", "1,025", "0"),
        (r"(a?){30}{30}", "900", "900"),
        (r".{1,700}\d", "1,401", "0"),
        (r"(?:[^x]\S\.){220}", "1,100", "0"),
    ],
)
def test_a_pattern_with_too_many_states_is_refused_with_their_number(pattern: str, states: str, nested: str):
    with pytest.raises(ValueError, match=f"it has {states} states, and {nested} in nested counts"):
        Linear(pattern)


def test_a_pattern_whose_program_is_too_large_is_refused():
    with pytest.raises(ValueError, match=r"too large .* use smaller counts, or \[A-Za-z0-9_\]"):
        Linear(r"\w{100}")


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?i)acme-[0-9a-f]{32}",
        r"([a-z0-9-]{1,63}\.){1,8}[a-z]{2,}",
        r"\bcust_\w{16}\b",
        re.compile("a{3} # three", re.VERBOSE),
    ],
)
def test_a_pattern_of_a_usual_size_is_taken(pattern: str | re.Pattern[str]):
    assert list(Linear(pattern).spans("")) == []
