"""Where a value begins and ends that stands behind a name: a string, a word, a line, an object.

Knows quotes, escapes and brackets; does not know names, or which values are secrets.
"""

from __future__ import annotations

import re
import sys
from typing import NamedTuple

KEPT = frozenset({"true", "false", "null", "none", "undefined"})  # values that are no secret
_LONGEST_KEPT = max(map(len, KEPT))
_JSON_LITERAL = re.compile(r"[^\s,}\]\"'\\]++")
_WORD = r"[^\s\"'`,;&)}\]<>\\]"
LONG = (
    48  # so much of a word is found with the name before it: an expression that read on would not be linear
)
# What no quote opens, as a group of the expression that finds the name before it.
WORD = rf"(?P<word>(?!\[){_WORD}{{1,{LONG}}}+)"
_rest = re.compile(rf"{_WORD}*+")
_LINE = re.compile(r"[^\r\n\"'`\\]++")
_CLOSING = {quote: re.compile(rf"\\*{quote}|\n") for quote in "\"'`"}
_BRACKET = re.compile(r"\\*[\"']|[{}\[\]]")
# What stands between two strings: the quote before it ends a string that has the name in it, `["password=", 1, "…"]`.
_STRUCTURE = re.compile(r"(?:\\+[nrt]|\s)*(?:[,}\]);](?:[\s,}\]\[{:);0-9eE.+-]|true|false|null|\\+[nrt])*)")
# What is added behind a string that has the name in it: `"…?token=" + token + "&…"`.
_ADDED = re.compile(r"\s?\+\s?(?:[\w.()\[\]]{1,60}\s?(?:\+\s?)?)?")
_SHORTEST = 4  # a bare value of fewer characters after a name is prose


class Finding(NamedTuple):
    """A secret, or the beginning of one: `open` when the text ends inside it. A tuple, because a text may hold many."""

    start: int
    end: int
    quote: str = ""  # put around the replacement of a number or an object in JSON
    open: bool = False
    weak: bool = False  # no secret unless more text follows


def value_behind(
    text: str, at: int, q: str | None, quote: str | None, *, whole_line: bool = False
) -> Finding | None:
    """The value at `at`, behind a name and its operator, if there is one; `q` is the quote that ends the name, and `quote`
    the one that opens the value."""
    if quote is not None:
        return _quoted(text, at, quote, sure=q is not None)
    match = _LINE.match(text, at) if whole_line and q is None and text[at : at + 1] != "[" else None
    return _unquoted(text, at, q) if match is None else word_behind(text, at, match.end(), at)


def word_behind(text: str, at: int, end: int, lead: int) -> Finding | None:
    """The same of a value that nothing quotes, and that ends at `end`; the name before it ends at `lead`."""
    if end - at == LONG:
        end = _rest.match(text, end).end()  # type: ignore[union-attr]  # it matches everywhere
    below = text[end - 1] == ":" and "\n" in text[lead:at]  # a key of its own, a line below
    none = below or end - at < _SHORTEST or (end - at <= _LONGEST_KEPT and text[at:end].lower() in KEPT)
    if end == len(text):
        return Finding(at, end, open=True, weak=none)
    return None if none else Finding(at, end)


def _unquoted(text: str, at: int, q: str | None) -> Finding | None:
    """What is neither a string nor a word: a value of JSON, or the end of the text."""
    first = text[at : at + 1]
    if (not first or first == "\\") and not text[at : at + 16].strip("\\"):  # an escaped quote may begin
        return Finding(at, len(text), open=True, weak=True) if len(text) - at < 16 else None
    if q is None:
        return None
    return _container(text, at, q) if first in "{[" else _literal(text, at, q)


def _quoted(text: str, at: int, quote: str, *, sure: bool) -> Finding | None:
    """The inside of a string, up to the quote with as many escapes as the opening one. Unless it is sure, the quote may
    also end a string that has the name in it."""
    closer = _closer(text, at, quote)
    if closer is None:
        end = _broken_off(text, at, quote)
        if at == end < len(text):
            return None
        return Finding(at, end, open=True, weak=at == len(text) or (not sure and _is_structure(text, at)))
    if closer.start() == at or (not sure and _is_structure(text, at, closer.start())):
        return None
    return Finding(at, closer.start())


def _broken_off(text: str, at: int, quote: str) -> int:
    """Where a string ends that nothing closes: with the string of JSON that it stands in, or with the text."""
    match = None if quote[-1] == '"' else _outer.search(text, at)
    return len(text) if match is None else match.start()


_outer = re.compile(r"\\*\"")


def _is_structure(text: str, start: int, end: int = sys.maxsize) -> bool:
    return (
        _STRUCTURE.fullmatch(text, start, end) is not None or _ADDED.fullmatch(text, start, end) is not None
    )


def _closer(text: str, at: int, quote: str) -> re.Match[str] | None:
    """The quote that closes a string opened by `quote`; a raw line break closes any, since JSON strings have none."""
    depth, closing = len(quote) - 1, _CLOSING[quote[-1]]
    while (match := closing.search(text, at)) is not None:
        escapes = len(match.group()) - 1
        key = _key_around(text, match.start()) if match.group() == "\n" else None
        if key is not None:  # it has line breaks, also in a string
            if key["end"] is None:
                return None
            at = key.end()
            continue
        if match.group() == "\n" or escapes < depth or escapes % (2 * (depth + 1)) == depth:
            return match
        at = match.end()
    return None


_LINE_OF_KEY = "[A-Za-z0-9+/=:, ]{0,80}"
_key = re.compile(
    rf"-----BEGIN [A-Za-z0-9 ]{{0,40}}-----\r?\n(?:{_LINE_OF_KEY}\r?\n){{0,200}}+"
    rf"(?:(?P<end>-----END [A-Za-z0-9 ]{{0,40}}-----)|{_LINE_OF_KEY}-{{0,5}}[A-Z0-9 ]{{0,40}}-{{0,5}}\Z)"
)
_LONGEST_HEADER = 62


def _key_around(text: str, line_break: int) -> re.Match[str] | None:
    """The key with which a line ends that begins one, or what there is of it at the end of the text."""
    begin = text.rfind("-----BEGIN", max(0, line_break - _LONGEST_HEADER), line_break)
    key = _key.match(text, begin) if begin >= 0 else None
    return key if key is not None and key.end() > line_break else None


def _literal(text: str, at: int, quote: str) -> Finding | None:
    match = _JSON_LITERAL.match(text, at)
    if match is None:
        return None
    if text[match.end() : match.end() + 1] in ('"', "'"):  # the prefix of a program's string
        return None
    ends, none = match.end() == len(text), match.group().lower() in KEPT
    return None if none and not ends else Finding(at, match.end(), quote, open=ends, weak=none)


def _container(text: str, at: int, quote: str) -> Finding:
    """An object or a list, up to its closing bracket, or to the end of the string that breaks off inside it; brackets inside
    strings do not count."""
    depth, position = 0, at
    while (match := _BRACKET.search(text, position)) is not None:
        position = match.end()
        mark = match.group()
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
            if depth == 0:
                return Finding(at, position, quote)
        elif len(mark) < len(quote):  # the string that holds the object ends
            return Finding(at, match.start(), quote)
        elif mark == quote:
            closer = _closer(text, position, quote)
            if closer is not None and len(closer.group()) < len(quote) and closer.group() != "\n":
                return Finding(at, closer.start(), quote)
            position = len(text) if closer is None else closer.end()
    return Finding(at, len(text), quote, open=True)
