"""Where in a long text a form is searched: only near what stands in every text that holds it.

A text is looked at in pieces, by finders that cannot say where something stands; the engine that can is slower, and searches
a form only in the pieces that may hold its beginning. Knows texts and expressions; does not know any form, or what a secret is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from runcast.slim.values.linear_regex import Finder

PIECE = 2_048  # characters that are passed by together
PART = 256  # of a piece, for what is short
BEFORE = 64  # what stands before a form and belongs to its hint
HINTED = 512  # the characters of a form in which its hint lies
REACH = 640  # so many, and one run behind them, show whether a form that begins here is one
LONGEST_RUN = 32_768  # of a run that is looked at to its end
MOST = 65_536  # characters in which one search may find a beginning: it holds Python's lock, and with it the event loop
EDGE = 64  # characters behind a run that a form may look ahead to

Span = tuple[int, int]  # the first place where something may begin, and the first where it may not

_border = re.compile(r"[\s\"'`<>\\]")


class Piece(NamedTuple):
    """A part of a text, and what has to be looked at to know whether a form may begin in it."""

    start: int
    stop: int
    text: str


def blocks(text: str) -> Iterator[list[Piece]]:
    """The pieces of a text, some at a time: a finder is fastest when it is used several times in a row."""
    for block in range(0, len(text), MOST):
        yield [
            Piece(at, min(at + PIECE, len(text)), text[max(0, at - BEFORE) : at + PIECE + HINTED])
            for at in range(block, min(block + MOST, len(text)), PIECE)
        ]


def joined(pieces: Iterable[Piece]) -> list[Span]:
    """Where the pieces begin and end, adjacent ones as one."""
    spans: list[Span] = []
    for start, stop, _ in pieces:
        _add(spans, start, stop)
    return spans


def _add(spans: list[Span], start: int, stop: int) -> None:
    if spans and spans[-1][1] == start and stop - spans[-1][0] <= MOST:
        spans[-1] = (spans[-1][0], stop)
    else:
        spans.append((start, stop))


def spans_of(text: str, finder: Finder, behind: int) -> list[Span]:
    """The spans of a text in which what the finder finds may begin; it ends at most `behind` characters later. A piece that
    holds it is looked at again in smaller parts."""
    found: list[Span] = []
    for start, stop, piece in chain.from_iterable(blocks(text)):
        if finder(piece):
            for at in range(start, stop, PART):
                end = min(at + PART, stop)
                if finder(text[max(0, at - BEFORE) : end + behind]):
                    _add(found, at, end)
    return found


def matches(
    pattern: re.Pattern[str], text: str, spans: Iterable[Span], reach: int = REACH
) -> Iterator[re.Match[str]]:
    """As `finditer`, of the matches that begin in the spans; every other place is known to begin none."""
    at = 0
    for start, stop in spans:
        at, end = max(at, start), _end(text, stop + reach)
        while at < stop:
            match = pattern.search(text, at, end)
            if match is None or match.start() >= stop:
                break
            at = match.start() + 1
            if match.end() > stop:  # what was cut off may belong to it
                match = pattern.match(text, match.start())
            if match is not None:
                at = max(match.end(), at)
                yield match


def _end(text: str, least: int) -> int:
    """Where a search may stop: behind a run that goes on there."""
    if least >= len(text):
        return len(text)
    border = _border.search(text, least, least + LONGEST_RUN)
    return (least + LONGEST_RUN if border is None else border.end()) + EDGE
