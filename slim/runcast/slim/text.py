"""Text that was cut in UTF-16, put together again.

JavaScript producers count in UTF-16 code units and may end a delta between the two halves of a surrogate pair.
Knows how such parts join; does not know events, JSON or where the parts came from.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["has_lone_surrogate", "join_text"]


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
