"""What a form of secret consists of, and how the usual ones are made.

Knows expressions; does not know any service, or where a form is searched. Each form has four expressions: the form
itself, a hint that stands in every text that holds it (so that nearly every text is skipped at once), its beginning at the
end of a text that still grows, and what may become that beginning. Forms use classes that exclude their own end,
possessive or bounded repeats, and starts that cannot follow their own characters, so that no text makes the engine
backtrack: matching is linear.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runcast.slim.redaction.search_windows import REACH


@dataclass(frozen=True, slots=True)
class SecretPattern:
    """One form of secret. Where `form` has a group `secret`, only that part is replaced."""

    name: str
    form: str  # Python syntax
    hint: str  # linear syntax: stands in every text that holds the form
    opening: str  # Python syntax, matched up to the end of a text: the form may have begun; group `secret` as in `form`
    onset: str  # linear syntax, matched up to the end of a text: what may become an opening
    check: Callable[[str], bool] | None = None  # a final check of the match
    unbroken: bool = False  # a run of `RUN` to the end of the text; `opening` is the part before it
    sign: str = ""  # linear syntax: stands in every text that `opening` matches; empty: unknown
    marks: tuple[str, ...] = ()  # lower case: one stands in every text that holds the form; empty: unknown
    delimited: bool = False  # each mark is a word that no letter or digit follows
    adjacent: bool = (
        False  # `opening` is short and anchored to the end of the text: it needs no onset before it
    )
    apart: bool = False  # searched by itself: together with others it does not fit the engine's cache
    begins: tuple[str, ...] = ()  # marks too, with no letter or digit before them
    whole: bool = False  # begins where a word does: the rest of a longer word is none
    rests: str = ""  # linear syntax: what a delta begins with that ends what begins an opening
    parts: Callable[[str], Iterable[tuple[int, int]]] | None = None  # secrets within a match
    besides: str = ""  # linear syntax: stands beside the hint, and is looked for where that was found
    reach: int = REACH  # so many characters, and one run without blanks, show whether it is one


def luhn(text: str) -> bool:
    """Whether the digits pass the check of a card number."""
    digits = [int(each) for each in text if each.isdecimal()]
    doubled = [sum(divmod(digit * 2, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0 and any(digits)


def any_of(literals: Iterable[str], behind: Mapping[str, str] | None = None) -> str:
    """Any of these literals as a trie, the longest first; `behind` has what must follow one. Of an alternation the engine
    has every beginning in each of its states, and soon more states than fit its cache; of a trie it has the first letters.
    """
    trie: dict[str, Any] = {}
    for literal in literals:
        node = trie
        for character in literal:
            node = node.setdefault(character, {})
        node[""] = (behind or {}).get(literal, "")
    return f"(?:{_branches(trie)})" if trie else "(?:$a)"


def bounded(literals: Iterable[str]) -> str:
    """Any of these literals that no letter or digit precedes, as a trie. The look behind comes last, because the engine
    skips from candidate to candidate only where an expression begins with a character."""
    trie: dict[str, Any] = {}
    for literal in literals:
        node = trie
        for character in literal:
            node = node.setdefault(character, {})
        node[""] = rf"(?<![A-Za-z0-9]{re.escape(literal)})"
    return _branches(trie)


def _branches(node: dict[str, Any]) -> str:
    longest_first = sorted(node, key=bool, reverse=True)
    each = [re.escape(here) + _branches(node[here]) if here else node[here] for here in longest_first]
    return each[0] if len(each) == 1 else f"(?:{'|'.join(each)})"


def _begun(literals: Iterable[str]) -> str:
    """A pattern for the literals' proper beginnings."""
    return any_of(sorted({each[:size] for each in literals for size in range(1, len(each))}))


RUN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+/=~-"  # the characters of credentials
RUN_CLASS = r"[A-Za-z0-9_.+/=~-]"
_BOUND = r"(?<![A-Za-z0-9])"
_EDGE = r"(?:^|[^A-Za-z0-9]|\\[nrtbf]|\\u[0-9A-Fa-f]{4})"  # the same where JSON escapes may stand before


# Parts that many prefixes share: fewer literals are found faster.
_SHARED = (
    "_live_",
    "_test_",
    "dp.",
    "key-",
    "lin_",
    "lsv2_",
    "pat_",
    "pscale_",
    "shp",
    "sntry",
    "xox",
)


def _mark(prefix: str) -> str:
    return next((part for part in _SHARED if part in prefix), prefix)


def prefixed(
    name: str, literals: Iterable[str], rest: str, *, dead: str = "", inside: bool = False
) -> SecretPattern:
    """A credential that begins with one of these literals, which stay, since they only name its kind. Where `rest` does
    not match, `dead` is skipped: no credential begins in it either. With `inside`, a word may stand before the literal."""
    heads = [*literals]
    marks = [(each.lower(), _mark(each.lower())) for each in heads]
    head, begun = any_of(heads), _begun(heads)
    hint = rf"(?:{head})" if inside else rf"{_EDGE}(?:{head})"
    return SecretPattern(
        name,
        form=rf"{hint if inside else bounded(heads)}(?:(?P<secret>{rest}){dead and f'|{dead}'})",
        hint=hint,
        opening=rf"{'' if inside else _BOUND}(?:{head})(?={RUN_CLASS}*+\Z)",
        onset=rf"(?:{hint}|{'' if inside else '(?:^|[^A-Za-z0-9])'}(?:{begun})$)",
        unbroken=True,
        sign=hint,
        marks=tuple({mark for head, mark in marks if inside or not head.startswith(mark)}),
        begins=tuple({mark for head, mark in marks if not inside and head.startswith(mark)}),
    )


def announced(name: str, schemes: tuple[str, ...], value: str) -> SecretPattern:
    """A credential after a word that announces it, which stays: `Bearer …`."""
    heads = any_of(schemes)
    bounded = "|".join(
        rf"[{each[0]}{each[0].upper()}](?<![A-Za-z0-9][{each[0]}{each[0].upper()}])(?i:{each[1:]})"
        for each in schemes
    )
    begun = _begun(schemes)
    hint = rf"(?i:{heads})"
    return SecretPattern(
        name,
        form=rf"(?:{bounded})\s{{1,8}}(?P<secret>{value})",
        hint=hint,
        opening=rf"{_BOUND}{hint}\s{{1,8}}(?P<secret>{RUN_CLASS}*+)\Z",
        onset=rf"(?i:{heads})|(?:^|[^A-Za-z0-9])(?i:{begun})$",
        sign=hint,
        marks=schemes,
    )


def compiled(pattern: str) -> re.Pattern[str]:
    """The same pattern for Python's engine, with case as in `quick_finder`."""
    return re.compile(pattern.replace("(?i:", "(?ai:") if pattern.isascii() else pattern)
