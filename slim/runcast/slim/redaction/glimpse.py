"""A first look at an event's bytes: whether they may hold a secret at all.

Nearly every event is passed by it, so it is one search. Does not know where a secret is, or what is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from runcast.slim.redaction.key_names import KeyNames
from runcast.slim.redaction.secret_pattern import SecretPattern, any_of, compiled
from runcast.slim.values.linear_regex import Finder, Linear, quick_finder


def either(one: Finder, other: Finder) -> Finder:
    """Two patterns that are faster one after the other: together their program does not fit the engine's cache."""
    return lambda text: one(text) or other(text)


def both(one: Finder, other: Finder) -> Finder:
    """Two patterns that a text must have; the first one is the rarer."""
    return lambda text: one(text) and other(text)


GROUPED = 40  # expressions that are searched at once: the states of more do not fit the engine's cache


def grouped(patterns: Iterable[str]) -> Finder:
    """Any of many patterns, some at a time: each group fits the engine's cache, and all together would not."""
    every = list(patterns)
    finders = [quick_finder(every[at : at + GROUPED]) for at in range(0, len(every), GROUPED)]

    def found(text: str | bytes) -> bool:
        for each in finders:  # noqa: SIM110 - a generator costs as much as a search of a short text
            if each(text):
                return True
        return False

    return found


def glimpse_of(keys: KeyNames, forms: Sequence[SecretPattern], custom: Sequence[Linear]) -> Finder:
    """Whether a text has one of the literals that every secret has, case aside: literals are found faster than a pattern.
    A form without known literals is searched by its hint; with a foreign pattern every text is looked at."""
    if custom:
        return lambda text: True
    named = {word: rf"(?-u:\b|[_0-9{more}{more.upper()}])" for word, more in keys.marks().items()}
    found = re.compile(any_of(named, named).replace("(?-u:", "(?:"))
    marks = [f"{mark} " if form.delimited else mark for form in forms for mark in form.marks]
    least = _shortest(mark.rstrip() for mark in marks if not found.search(mark))
    begun = {mark for form in forms for mark in form.begins if not any(each in mark for each in least)}
    plain, wide = (sorted(m for m in least if m.isascii() is each) for each in (True, False))
    literals = [f"(?i:{any_of((*named, *plain), named)})", f"(?i:{any_of(wide)})"]
    if begun:
        edge = r"(?-u:\b|_|\\[nrtbf]|\\u[0-9A-Fa-f]{4})"
        literals.append(rf"{edge}(?i:{any_of(sorted(begun))})")
    shaped = [form.hint for form in forms if not has_marks(form)]
    return either(quick_finder(literals), quick_finder(shaped))


def unescaped(data: bytes) -> bytes:
    """JSON with the escapes of its strings resolved: hints are written for texts, where a word ends at a line break."""
    if b"\\" not in data:
        return data
    for escape, sign in _ESCAPES:
        data = data.replace(escape, sign)
    return data


# JSON has no control characters; in an outline `\f` is `\0`.
_ESCAPES = (
    *((b"\\\\", b"\x01"), (b"\\n", b"\n"), (b"\\r", b"\r"), (b"\\t", b"\t"), (b"\\f", b"\f")),
    *((b"\\0", b"\f"), (b'\\"', b'"'), (b"\x01", b"\\")),
)


# Of a form: whether a text may hold it, and where it stands.
Search = tuple[Finder, re.Pattern[str], SecretPattern]


def together(forms: Sequence[SecretPattern]) -> tuple[Finder, list[Search]]:
    """Forms behind one search, which passes most texts by; then each has its own."""
    if len(forms) == 1:
        return _hinted(forms[0]), [(_anyway, compiled(forms[0].form), forms[0])]
    each = [(_hinted(form), compiled(form.form), form) for form in forms]
    return quick_finder(form.hint for form in forms), each


def _anyway(text: str | bytes) -> bool:
    return True


def _hinted(form: SecretPattern) -> Finder:
    hint = quick_finder([form.hint])
    return both(hint, quick_finder([form.besides])) if form.besides else hint


def has_marks(form: SecretPattern) -> bool:
    """Whether one of some literals stands in every text that holds the form."""
    return bool(form.marks or form.begins)


def endings(marks: Iterable[str]) -> Iterator[str]:
    """What a delta begins with when one of the marks was split."""
    rests = sorted({mark[at:] for mark in marks for at in range(1, len(mark))})
    for plain in (True, False):
        yield rf"^(?i:{any_of(each for each in rests if each.isascii() is plain)})(?:[^a-z]|$)"


def _shortest(marks: Iterable[str]) -> list[str]:
    """The marks, without those that contain another one."""
    every = sorted(set(marks))
    return [mark for mark in every if not any(other != mark and other in mark for other in every)]
