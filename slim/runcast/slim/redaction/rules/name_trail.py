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
    trie = _reversed(names)
    operator = r"(?:=(?:=?!|==|[+.?|]{1,2}+|[:=]?:{0,2}+)|::{0,2}+|>=|-<|[dD]3%)"
    between = r"(?:(?=[\s\]*`\"'])\s{0,24}+(?:\][0-9]{0,5}\[)?\]?(?:\*\*|`)?(?:[\"']\\{0,64}+)?)?+"
    return re.compile(rf"{operator}{between}(?P<name>{_suffix()}{_branches(trie)})" if trie else r"(?!)")


def _suffix() -> str:
    return rf"(?:[0-9]{{1,2}}[_-]?|{_branches(_reversed(SUFFIXES))}[_-])?"


def _reversed(words: Iterable[str]) -> dict[str, Any]:
    """A trie of the words, read backwards."""
    trie: dict[str, Any] = {}
    for word in words:
        node = trie
        for letter in reversed(word):
            node = node.setdefault(letter, {})
        node[""] = {}
    return trie


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
