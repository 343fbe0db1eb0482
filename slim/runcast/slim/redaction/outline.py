"""Outlines of events: their bytes with `0` for every digit and small hexadecimal letter.

Events of one place in a program differ in their ids, counts and times, so they have one outline, and a run has few. Where no
event with an outline can hold a secret, the next one with it needs no search. Knows expressions and bytes; does not know
events, or what a secret is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from runcast.slim.redaction.glimpse import unescaped
from runcast.slim.values.linear_regex import quick_finder

OUTLINE = bytes.maketrans(b"0123456789abcdef", b"0" * 16)
LONGEST = 2_048  # bytes of an outline that is kept
BRIEF = 512  # bytes of an event with a content of its own, up to which it may well have the outline of another one
KEPT = 1_024  # outlines
_BLURRED = "0123456789abcdef"
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d+(?:,\d*)?\}|\((?:\?[a-z-]*:)?|.", re.DOTALL)


def blurred(pattern: str) -> str:
    """A pattern that matches the outline of every text that `pattern` matches, in linear syntax."""
    out: list[str] = []
    folds = [False]  # whether case counts in the groups around
    for token in _TOKEN.findall(pattern):
        fold = folds[-1]
        if token[0] == "(":
            folds.append("i" in token.partition("-")[0] or fold)
        elif token == ")":
            folds.pop()
        out.append(_blurred_class(token, fold=fold) if token[0] == "[" else _blurred(token, fold=fold))
    return "".join(out)


def _blurred(token: str, *, fold: bool) -> str:
    if len(token) > 1 or (token.lower() if fold else token) not in _BLURRED:
        return token
    return f"[0{token.upper()}]" if fold and token.isalpha() else "0"


def _blurred_class(token: str, *, fold: bool) -> str:
    holds = re.compile(token, re.IGNORECASE if fold else 0).match
    return f"(?:{token}|0)" if any(map(holds, _BLURRED)) and not holds("0") else token


def _strings(outline: bytes) -> bytes:
    """The outline without the colons between keys and values, since every string is read by itself: an assignment stands
    inside one. JSON has no control characters."""
    return outline.replace(b'\\"', b"\x01").replace(b'":', b'"\x00').replace(b"\x01", b'\\"')


class Familiar:
    """The outlines that were seen and hold no secret. One that is seen for the second time is searched, once."""

    def __init__(self, names: Iterable[str], forms: Iterable[str]) -> None:
        """Linear patterns: of a name before a value, and of what stands in every text that holds a form."""
        self.outlines: set[bytes] = set()
        sources = ([*names], [*forms])
        # Compiled at the first use: many redactors never see an event.
        self._finders = cache(lambda: tuple(quick_finder(map(blurred, each)) for each in sources))
        self._seen: dict[int, bool] = {}  # by hash: whether it was searched

    def learn(self, outline: bytes) -> None:
        """Called for each event that holds no secret and has an outline that is not familiar."""
        if len(outline) > LONGEST:
            return
        key = hash(outline)
        searched = self._seen.get(key)
        if searched is None and len(self._seen) >= 2 * KEPT:
            self._seen.clear()
        self._seen[key] = searched is not None
        if searched is False and not self._may_hold(outline):
            if len(self.outlines) >= KEPT:
                self.outlines.clear()
            self.outlines.add(outline)

    def _may_hold(self, outline: bytes) -> bool:
        named, formed = self._finders()
        strings = _strings(outline)
        plain = unescaped(strings)
        return named(outline) or formed(strings) or (plain is not strings and (formed(plain) or named(plain)))
