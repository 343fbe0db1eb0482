"""Ids from outside: what a store can hold, a header can carry and a log line can quote.

Pure. Does not know which id it is, or who sent it.
"""

from __future__ import annotations

from typing import Any, TypeGuard

LONGEST_ID = 512  # characters


def is_identifier(value: Any, *, longest: int = LONGEST_ID) -> TypeGuard[str]:
    """Whether a value is text of 1 to `longest` characters without control characters and halves of surrogate pairs."""
    return isinstance(value, str) and 0 < len(value) <= longest and all(map(_plain, value))


def identifier(
    what: str, value: Any, *, error: type[Exception] = ValueError, longest: int = LONGEST_ID
) -> str:
    """The id, or an error that says what it must be."""
    if not is_identifier(value, longest=longest):
        raise error(f"{what} must be 1 to {longest} characters without control characters")
    return value


def _plain(character: str) -> bool:
    code = ord(character)
    return (
        code >= 32 and not 127 <= code < 160 and not 0xD800 <= code <= 0xDFFF and code not in (0x2028, 0x2029)
    )
