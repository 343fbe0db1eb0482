"""Cuts fall between visible characters, are short enough, and change nothing the second time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runcast.slim.values.truncation import ELLIPSIS, LONGEST_CLUSTER, boundary_before, clean, cut, is_boundary

FAMILY = "👩‍👩‍👧‍👦"
CLUSTERS = {
    "family": FAMILY,
    "flag": "🇩🇪",
    "skin tone": "👍🏽",
    "rainbow flag": "🏳️‍🌈",
    "combining": "e\u0301\u0323",
    "jamo": "\u1112\u1161\u11ab",
    "syllable and trailing": "\uac00\u11a8",
    "archaic jamo": "\ua960\ud7b0\ud7cb",
    "conjunct": "क्ष",
    "spacing mark": "की",
    "prepended": "\u0600\u0661",
    "thai vowel": "ก\u0e33",
    "tag sequence": "🏴\U000e0067\U000e0062\U000e007f",
    "line break": "\r\n",
    "halves of a pair": "\ud83d\ude00",
}


@pytest.mark.parametrize("cluster", CLUSTERS.values(), ids=CLUSTERS)
def test_a_cut_never_falls_inside_one_visible_character(cluster: str):
    text = "ab" + cluster + "cd"
    for place in range(3, 2 + len(cluster)):
        assert not is_boundary(text, place)
        assert boundary_before(text, place) == 2
    assert is_boundary(text, 2)
    assert is_boundary(text, 2 + len(cluster))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("🇩🇪🇫🇷", 2),
        ("가나", 1),
        ("漢字", 1),
        ("é\u2028", 1),
        ("\u11a8\u1100", 1),
        ("\u1161\u1100", 1),
        ("ß\u0301", 0),
    ],
)
def test_other_neighbours_may_be_parted(text: str, place: int):
    assert is_boundary(text, place)


def test_a_cluster_nobody_reads_is_cut_like_plain_text():
    zalgo = "a" + "\u0301" * 5_000
    assert boundary_before(zalgo, 3_000) == 3_000
    assert boundary_before(zalgo, LONGEST_CLUSTER) == 0
    flags = "🇩" * 5_000
    assert 2_900 < boundary_before(flags, 3_000) <= 3_000


@pytest.mark.parametrize(
    ("limit", "expected"), [(5, "abcde"), (4, "a..."), (3, "..."), (2, ".."), (0, ""), (-1, ""), (9, "abcde")]
)
def test_a_cut_text_ends_in_a_mark_and_is_no_longer_than_asked(limit: int, expected: str):
    assert cut("abcde", limit) == expected


def test_a_text_that_may_not_be_cut_where_it_should_is_cut_before():
    assert cut(FAMILY * 3, 10) == FAMILY + ELLIPSIS


@given(
    st.text(st.characters(codec="utf-8") | st.sampled_from("".join(CLUSTERS.values())), max_size=60),
    st.integers(0, 40),
)
def test_cutting_is_bounded_and_done_once(text: str, limit: int):
    short = cut(text, limit)
    assert len(short) <= limit
    assert cut(short, limit) == short
    assert short == text or text.startswith(short.removesuffix(ELLIPSIS[: limit or 1])) or limit < 3
    short.encode()


@given(st.text(st.characters(categories=["Cs", "L", "So"]), max_size=20))
def test_clean_text_is_what_javascript_would_send_as_utf8(text: str):
    cleaned = clean(text)
    cleaned.encode()
    assert clean(cleaned) == cleaned
    assert cleaned == text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
