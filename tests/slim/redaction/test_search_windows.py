"""In a long text forms are searched near their hints alone, and found as if they were searched everywhere."""

from __future__ import annotations

import random
import re

import pytest

from runcast.slim import DEFAULT_PATTERNS, Redactor, SecretPattern
from runcast.slim.redaction import search_windows
from runcast.slim.redaction.search_windows import (
    BEFORE,
    HINTED,
    MOST,
    PIECE,
    blocks,
    joined,
    matches,
    spans_of,
)
from runcast.slim.redaction.secret_pattern import compiled
from runcast.slim.values.linear_regex import quick_finder
from tests.conftest import share
from tests.slim.redaction.test_forms import EVERY, SECRET

REDACTOR = Redactor()
PEM = "-----BEGIN PRIVATE KEY-----\n" + "MIIE" * 4_000 + "\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    "planted", ["AKIA" + "Q7" * 8, PEM, f"Bearer {'a1B2' * 9_000}"], ids=["key", "pem", "run"]
)
@pytest.mark.parametrize("border", [PIECE, MOST])
def test_a_secret_is_found_wherever_a_window_ends(planted: str, border: int):
    expected = REDACTOR.text(f"{planted} it goes on {planted}").split()
    for before in range(max(0, border - len(planted)), border + 5, 1 + len(planted) // 4):
        text = " " * before + planted + " it goes on" + " " * 3_000 + planted
        assert REDACTOR.text(text).split() == expected, before


@pytest.mark.parametrize("form", DEFAULT_PATTERNS, ids=lambda form: form.name)
def test_where_a_form_begins_its_hint_is_near(form: SecretPattern):
    pattern, hints = compiled(form.form), [quick_finder([each]) for each in (form.hint, form.besides) if each]
    for text in EVERY:
        for match in pattern.finditer(text):
            if all(hint(text) for hint in hints) and (form.check is None or form.check(match.group())):
                near = text[max(0, match.start() - BEFORE) : match.start() + HINTED]
                assert all(hint(near) for hint in hints), text


@pytest.mark.parametrize("seed", range(share(9)))
def test_a_long_text_loses_what_its_parts_lose(seed: int):
    pick = random.Random(seed)
    planted = [each for pairs in SECRET.values() for each in pairs if each[1] not in REDACTOR.text(each[0])]
    parts = pick.sample(planted, 30)
    lines = ("\n\n" + "it goes on and on\n" * pick.randrange(150) + "\n" for _ in parts)
    whole = REDACTOR.text("".join(part + gap for (part, _), gap in zip(parts, lines, strict=True)))
    assert [part for part, secret in parts if secret in whole] == []


@pytest.mark.parametrize("before", range(12, 40))
def test_windows_cut_nothing_that_decides(before: int, monkeypatch: pytest.MonkeyPatch):
    """Neither what a form looks ahead to, nor its rest: the window's end alone looks like the text's."""
    monkeypatch.setattr(search_windows, "EDGE", 2)
    pattern = re.compile(r"(?<!k)k{1,9}+(?!!)")
    for planted in ("kkk!", f"{9 * 'k'}!", 9 * "k", "kk kkk! k"):
        text = "." * before + planted + "." * 30
        spans = [(at, at + 16) for at in range(0, len(text), 16)]
        found = [match.span() for match in matches(pattern, text, spans, 8)]
        assert found == [match.span() for match in pattern.finditer(text)], planted


def test_what_only_a_window_shows_is_no_match(monkeypatch: pytest.MonkeyPatch):
    for name in ("EDGE", "LONGEST_RUN"):
        monkeypatch.setattr(search_windows, name, 0)
    assert list(matches(re.compile(r"(?<!k)k{1,9}+(?!!)"), "." * 10 + "kkk!....", [(0, 12)], 1)) == []


def test_what_is_short_is_searched_in_small_parts_of_a_piece():
    text = "." * 5_000 + "name=" + "." * 5_000
    assert [
        (start <= 5_000 < stop, stop - start)
        for start, stop in spans_of(text, lambda part: "name=" in part, 8)
    ] == [(True, 256)]


def test_pieces_cover_the_text_and_adjacent_ones_are_one_span():
    text = "x" * (MOST + 3 * PIECE + 1)
    every = [piece for block in blocks(text) for piece in block]
    assert joined(every) == [(0, MOST), (MOST, len(text))]
    assert joined([every[0], every[2]]) == [(0, PIECE), (2 * PIECE, 3 * PIECE)]
    assert list(blocks("")) == []
