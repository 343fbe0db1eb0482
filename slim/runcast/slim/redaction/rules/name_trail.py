"""Finds names before an operator, backwards from the operator: few places have one, many may begin a name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from runcast.slim.redaction.rules.known_names import SUFFIXES


def trail(names: Iterable[str]) -> re.Pattern[str]:
    """A name and its operator in a text that is read backwards, and perhaps more: `_tail` has the last word.

    Letters are classes of both cases in a trie, which the engine skips by their first character.
    """
    trie: dict[str, Any] = {}
    for name in names:
        node = trie
        for letter in reversed(name):
            node = node.setdefault(letter, {})
        node[""] = {}
    operator = r"(?:>=|-<|={1,2}!|===|[dD]3%|=[+.?|]{1,2}+|=?[:=]:{0,2}+)"
    quote = r"(?:[\"']\\*)?"
    return re.compile(
        rf"{operator}\s{{0,24}}+(?:\][0-9]{{0,5}}\[)?\]?(?:\*\*|`)?{quote}(?P<name>{_suffix()}{_branches(trie)})"
        if trie
        else r"(?!)"
    )


def _suffix() -> str:
    words = "|".join("".join(f"[{each}{each.upper()}]" for each in reversed(word)) for word in SUFFIXES)
    return rf"(?:[0-9]{{1,2}}[_-]?|(?:{words})[_-])?"


_LETTERS = {" ": r"[_\-. ]?"}


def _branches(node: dict[str, Any]) -> str:
    """The longest of the words first."""
    branches = [
        (_LETTERS.get(letter) or f"[{letter}{letter.upper()}]") + _branches(below)
        for letter, below in node.items()
        if letter
    ]
    rest = f"(?:{'|'.join(branches)})" if branches else ""
    return f"{rest}?" if "" in node and branches else rest
