"""Regular expressions that take linear time whatever pattern and text they are given.

Knows the Rust engine inside pydantic-core: no back-tracking, no look-around, about a gigabyte a second; it says
whether, not where. `Linear.spans` finds where by bisection. Does not know what is searched for, or why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pydantic_core import SchemaError, SchemaValidator, core_schema

__all__ = ["Finder", "Linear", "finder", "searchable"]

Finder = Callable[[str | bytes], bool]
WINDOW = 4_096  # characters looked at together; a match longer than half of this may be found in two parts


def finder(pattern: str) -> Finder:
    """A test for `pattern` somewhere in a text, as fast as a search gets; a text must be `searchable`."""
    try:
        validator = SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError as error:
        reason = str(error).strip().splitlines()[-1].removeprefix("error: ")
        raise ValueError(
            f"pattern {pattern!r} cannot be searched in linear time: {reason}; "
            "write it without look-around and back-references"
        ) from error
    return validator.isinstance_python


def searchable(text: str) -> str:
    """The same text, character for character, without the halves of surrogate pairs that UTF-8 cannot hold."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


class Linear:
    """A pattern from outside, searched so that neither it nor the text can blow up."""

    def __init__(self, pattern: str | re.Pattern[str]) -> None:
        source = pattern if isinstance(pattern, str) else _with_flags(pattern)
        self.source = source
        self.found = finder(source)
        self._whole = finder(rf"\A(?:{source})\z")
        if self.found(""):
            raise ValueError(f"pattern {source!r} matches the empty text: it would find a secret everywhere")

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where matches stand, from left to right; the end of the text counts as a border for `$` and `\\b`."""
        at = 0
        while at < len(text):
            window = text[at : at + WINDOW]
            if not self.found(window):
                at += WINDOW if at + WINDOW >= len(text) else WINDOW // 2
                continue
            start, end = self._first(window)
            yield at + start, at + end
            at += end

    def _first(self, window: str) -> tuple[int, int]:
        reach = 16
        while not self.found(window[:reach]):
            reach *= 2
        end = _bisect(1, min(reach, len(window)), lambda to: self.found(window[:to]))
        start = end - _bisect(1, end, lambda size: self.found(window[end - size : end]))
        while end < len(window) and self._whole(window[start : end + 1]):
            end += 1
        return start, end


def _bisect(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The least number in `low..high` for which `holds`, given that it holds for `high`."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _with_flags(pattern: re.Pattern[str]) -> str:
    """The same pattern with its flags inside; a verbose one may end in a comment, hence the line break."""
    letters = "".join(
        letter
        for flag, letter in ((re.IGNORECASE, "i"), (re.MULTILINE, "m"), (re.DOTALL, "s"), (re.VERBOSE, "x"))
        if pattern.flags & flag
    )
    end = "\n" if pattern.flags & re.VERBOSE else ""
    return f"(?{letters}:{pattern.pattern}{end})" if letters else pattern.pattern
