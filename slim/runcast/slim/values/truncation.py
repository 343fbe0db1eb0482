"""Cuts text at a visible character, never inside one.

Knows the boundaries between grapheme clusters well enough to stay on them: combining marks, joined emoji, flags,
Hangul syllables, emoji modifiers, variation selectors, surrogate pairs that arrived as two halves. Where the Unicode
rules need tables that the standard library does not have (pictographs, Indic conjuncts), it joins in doubt: a cut then
falls a few characters earlier, never inside a cluster. A cluster longer than `LONGEST_CLUSTER` is no readable character,
and is cut like plain text.
"""

from __future__ import annotations

import unicodedata

from runcast.slim.values.surrogates import has_lone_surrogate

ELLIPSIS = "..."
LONGEST_CLUSTER = 64

_ZWNJ, _ZWJ = 0x200C, 0x200D
_EXTENDING = {"Mn", "Me", "Mc"}  # categories that extend the character before (GB9, GB9a)
_CONTROL = {"Cc", "Zl", "Zp"}  # nothing joins to these (GB4, GB5)
_ALSO_EXTENDING = {0x0E33, 0x0EB3, 0xFF9E, 0xFF9F, _ZWNJ, _ZWJ}
# Marks that belong to the character after (GB9b): Arabic number signs, Malayalam and Indic prefixed letters.
_PREPENDED = {
    *range(0x0600, 0x0606),
    *(0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x0D4E, 0x110BD, 0x110CD, 0x111C2, 0x111C3),
    *(0x1193F, 0x11941, 0x11A3A, *range(0x11A84, 0x11A8A), 0x11D46, 0x11F02),
}
_VIRAMA = 9  # the combining class of signs that bind two Indic consonants (GB9c)


def clean(text: str) -> str:
    """The text as UTF-8 can hold it: halves of a surrogate pair that meet are joined, lone ones become U+FFFD."""
    if not has_lone_surrogate(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def cut(text: str, limit: int, *, mark: str = ELLIPSIS) -> str:
    """At most `limit` characters of the text, ending in `mark` where something was cut off."""
    if len(text) <= limit:
        return text
    if limit <= len(mark):
        return mark[: max(limit, 0)]
    return text[: boundary_before(text, limit - len(mark))] + mark


def boundary_before(text: str, position: int) -> int:
    """The last place at or before `position` where the text may be cut."""
    for place in range(position, max(0, position - LONGEST_CLUSTER), -1):
        if is_boundary(text, place):
            return place
    return position if position > LONGEST_CLUSTER else 0


def is_boundary(text: str, place: int) -> bool:
    """Whether the text may be cut between the characters `place - 1` and `place`."""
    if place <= 0 or place >= len(text):
        return True
    before, after = ord(text[place - 1]), ord(text[place])
    if before < 0x300 and after < 0x300:
        return (before, after) != (0x0D, 0x0A)
    kinds = unicodedata.category(text[place - 1]), unicodedata.category(text[place])
    if kinds[0] in _CONTROL or kinds[1] in _CONTROL:
        return True
    if _extends(after, kinds[1]) or before in _PREPENDED or before == _ZWJ:
        return False
    if _is_flag_half(before) and _is_flag_half(after):
        return _flag_halves_before(text, place) % 2 == 0
    if 0xD800 <= before < 0xDC00 <= after < 0xE000:
        return False
    if unicodedata.combining(text[place - 1]) == _VIRAMA and kinds[1] == "Lo":
        return False
    return not _hangul_joins(before, after)


def _extends(code: int, kind: str) -> bool:
    return (
        kind in _EXTENDING
        or code in _ALSO_EXTENDING
        or 0x1F3FB <= code <= 0x1F3FF
        or 0xE0020 <= code <= 0xE007F
    )


def _is_flag_half(code: int) -> bool:
    return 0x1F1E6 <= code <= 0x1F1FF


def _flag_halves_before(text: str, place: int) -> int:
    count = 0
    while place > count and count <= LONGEST_CLUSTER and _is_flag_half(ord(text[place - 1 - count])):
        count += 1
    return count


def _hangul_joins(before: int, after: int) -> bool:
    """Rules GB6 to GB8: leading, vowel and trailing jamo and the syllables made of them."""
    match _hangul(before):
        case "L":
            return _hangul(after) in ("L", "V", "LV", "LVT")
        case "V" | "LV":
            return _hangul(after) in ("V", "T")
        case "T" | "LVT":
            return _hangul(after) == "T"
        case _:
            return False


def _hangul(code: int) -> str:
    if 0xAC00 <= code <= 0xD7A3:
        return "LV" if (code - 0xAC00) % 28 == 0 else "LVT"
    if 0x1100 <= code <= 0x115F or 0xA960 <= code <= 0xA97C:
        return "L"
    if 0x1160 <= code <= 0x11A7 or 0xD7B0 <= code <= 0xD7C6:
        return "V"
    if 0x11A8 <= code <= 0x11FF or 0xD7CB <= code <= 0xD7FB:
        return "T"
    return ""
