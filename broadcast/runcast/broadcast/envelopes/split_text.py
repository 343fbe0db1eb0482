"""Splits a text into pieces that each fit, never inside a visible character.

A callable decides whether a piece fits, so that any target's way of counting works.
"""

from __future__ import annotations

from collections.abc import Callable

from runcast.slim.values.truncation import boundary_before


def split_text(text: str, fits: Callable[[str], bool]) -> list[str]:
    """The pieces in order; joined they are the text. A character that fits nowhere is a piece of its own."""
    pieces: list[str] = []
    start = 0
    guess = len(text)
    while start < len(text):
        end = _longest(text, start, min(guess, len(text) - start), fits)
        pieces.append(text[start:end])
        guess = 2 * (end - start)
        start = end
    return pieces or [text]


def _longest(text: str, start: int, guess: int, fits: Callable[[str], bool]) -> int:
    """The end of the longest piece from `start` that fits, on a boundary."""
    low, high = 1, guess  # a piece of `low` characters is taken whatever its size, for progress
    while low < high:
        middle = (low + high + 1) // 2
        if fits(text[start : start + middle]):
            low = middle
        else:
            high = middle - 1
    if start + low >= len(text):
        return len(text)
    end = boundary_before(text, start + low)
    return end if end > start else start + low
