"""Regular expressions that take linear time, whatever the pattern and the text.

Knows the Rust engine inside pydantic-core: no back-tracking, no look-around, about a gigabyte a second. It reports
whether a text matches, not where; `Linear.spans` finds the place by bisection. Linear in the text is not linear in the
pattern: each character may cost a step for each state, so the states of a pattern are counted and bounded. Does not know
what is searched for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from pydantic_core import SchemaError, SchemaValidator, core_schema

from runcast.slim.values.surrogates import has_lone_surrogate

Finder = Callable[[str | bytes], bool]
NOTHING = "[^\\s\\S]"  # a pattern that matches nothing
MOST_STATES = 1_024  # of a pattern with its counted repeats written out
MOST_NESTED = 512  # of a counted repeat inside a counted repeat: more do not fit the engine's cache, and cost each character
COPIES = 4  # of a pattern have to fit the engine's limit for a program: larger ones do not fit its cache
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


def ascii_case(pattern: str) -> str:
    """The same pattern, with `(?i:` for the letters of ASCII alone: folding all of Unicode keeps the engine from looking
    for literals, and makes it several times slower."""
    return pattern.replace("(?i:", "(?i-u:")


def quick_finder(patterns: Iterable[str]) -> Finder:
    """A test for any of the patterns. Case counts in ASCII alone, and a pattern with other letters is searched only in
    texts that have such letters too."""
    every = list(patterns)
    plain = finder("|".join(ascii_case(each) for each in every if each.isascii()) or NOTHING)
    others = [each for each in every if not each.isascii()]
    if not others:
        return plain
    wide = finder("|".join(others))
    return lambda text: plain(text) or (not text.isascii() and wide(text))


def _compiles(pattern: str) -> bool:
    try:
        finder(pattern)
    except ValueError:
        return False
    return True


def searchable(text: str) -> str:
    """The same text, character for character, without the halves of surrogate pairs that UTF-8 cannot hold."""
    return text.encode(errors="replace").decode() if has_lone_surrogate(text) else text


class Linear:
    """A pattern from outside, searched so that neither it nor the text can blow up."""

    def __init__(self, pattern: str | re.Pattern[str]) -> None:
        source = pattern if isinstance(pattern, str) else _with_flags(pattern)
        self.source = source
        self.found = finder(source)
        states, nested = _states(source)
        if states > MOST_STATES or nested > MOST_NESTED:
            raise ValueError(
                f"pattern {source!r} is too large to be searched in every text: written out it has {states:,} states, and "
                f"{nested:,} in nested counts; keep to {MOST_STATES:,} and {MOST_NESTED:,}: use smaller counts, or + and *"
            )
        if not _compiles(rf"(?:{source}){{{COPIES}}}"):
            raise ValueError(
                f"pattern {source!r} is too large to be searched in every text; use smaller counts, or [A-Za-z0-9_] for \\w"
            )
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
        return start, self._longest(window, start, end)

    def _longest(self, window: str, start: int, end: int) -> int:
        """How far the match reaches: in steps that double while they hold, then by bisection."""
        step, limit = 1, len(window)
        while end < limit and self._whole(window[start : end + min(step, limit - end)]):
            end, step = end + min(step, limit - end), 2 * step
        most = min(step, limit - end) - 1  # `end` holds, and a step of one more does not
        return (
            end + _bisect(0, most, lambda more: not self._whole(window[start : end + more + 1]))
            if most > 0
            else end
        )


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


_TOKEN = re.compile(
    r"""
    (?P<counted>\{(?P<least>\d+)(?P<open>,(?P<most>\d*))?\}\??)
    | (?P<repeated>[*+?]\??)
    | (?P<begin>\((?:\?(?:P?<\w+>|[a-zA-Z-]*(?P<flags>[:)])))?)
    | (?P<close>\))
    | \||\^|\$
    | (?P<atom>\[\^?\]?(?:\\.|\[:?[^\]]*\]|[^\]\\])*\]|\\[pPxuU]\{[^}]*\}|\\.|.)
    """,
    re.VERBOSE | re.DOTALL,
)

_WIDE = re.compile(
    r"\.|\[\^|\\[SDWP]"
)  # nearly all of Unicode, which is several states of a program over bytes


def _states(pattern: str) -> tuple[int, int]:
    """How many states a valid pattern has with its counts written out, and how many its largest nested count has."""
    groups: list[tuple[int, int]] = []  # around the current one: states, and the largest count in it
    states = counted = nested = 0
    part = (0, 1)  # the last part, which a repeat applies to: states, and the largest count in it
    for token in _TOKEN.finditer(pattern):
        if token["counted"]:
            times = int(token["most"] or token["least"]) + (token["open"] == ",")
            nested = max(nested, times * part[1] if part[1] > 1 < times else 0)
            states += part[0] * (times - 1)
            part = (part[0] * times, part[1] * max(1, times))
            counted = max(counted, part[1])
        elif token["begin"] and token["flags"] != ")":
            groups.append((states, counted))
            states, counted = 0, 1
        elif token["close"] and groups:
            part = (states, counted)
            before, largest = groups.pop()
            states, counted = before + states, max(largest, counted)
        elif token["atom"]:
            size = 2 if _WIDE.match(token["atom"]) else 1
            part = (size, 1)
            states += size
    return states, nested
