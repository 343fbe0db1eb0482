"""Joins text that was cut between the halves of a surrogate pair.

JavaScript producers count in UTF-16 code units and may end a delta between two halves. Does not know events or JSON.
"""

from __future__ import annotations

from collections.abc import Iterable


def has_lone_surrogate(text: str) -> bool:
    """Whether UTF-8 cannot hold this text because half a surrogate pair stands in it."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def join_text(parts: Iterable[str]) -> str:
    """Join parts in order as JavaScript would: two halves of a pair that meet become one character."""
    text = "".join(parts)
    if not has_lone_surrogate(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
