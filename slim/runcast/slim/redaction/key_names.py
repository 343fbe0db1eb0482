"""The names of keys that announce a secret.

Knows names, however their words are joined; does not know values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from runcast.slim.redaction.rules.known_names import (
    DEFAULT_KEYS,
    HARMLESS_NAMES,
    PLAIN_KEYS,
    STAGES,
    SUFFIXES,
    WEAK_KEYS,
)
from runcast.slim.redaction.secret_values import (
    SHORTEST_GENERATED,
    is_uuid,
    looks_generated,
    looks_random,
    looks_unlike_a_word,
)

__all__ = ["DEFAULT_KEYS", "WEAK_KEYS", "KeyNames"]

_SHORT_NUMBERS = frozenset({"pin", "otp", "verification"})  # those are short numbers
# What may be joined to another word before it: `authtoken`, `PGPASSWORD`, `MYSQLPASS`.
_JOINED = (
    *(
        "password",
        "passwd",
        "passphrase",
        "passwort",
        "secret",
        "token",
        "apikey",
        "credential",
        "credentials",
    ),
    *("secretkey", "accesskey", "privatekey", "signingkey", "encryptionkey", "masterkey", "pwd", "pass"),
)
_JOINED_WEAK = ("key", "auth", "pw")
_HARMLESS_JOINED = (
    *(name.replace(" ", "") for name in HARMLESS_NAMES),
    *("nopasswd", "compass", "bypass", "surpass", "trespass", "overpass", "underpass", "encompass"),
)
_QUALIFIED = frozenset({"key", "keys", "auth", "api"})  # with a word before them they may announce a UUID
_COMMON = frozenset({"number", "code"})  # too common in field names to skip texts by
SUFFIX = rf"(?:[_-]?[0-9]{{1,2}}|[_-](?i:{'|'.join(SUFFIXES)}))?"
_suffix = re.compile(rf"(?:[_-]?[0-9]{{1,2}}|[_-](?i:{'|'.join(SUFFIXES)}))\Z")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
LONGEST_NAME = 80
_MADE = re.compile(r"[A-Za-z0-9_+=~-]{16,200}")
_GROUPS = re.compile(r"[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){3,5}")  # of a product key
SHORTEST_WEAK = 8  # of a value behind a weak name, but for numbers
SHORTEST_RANDOM = 12  # of random characters behind `X-Gotify-Key`


@lru_cache(maxsize=4096)
def words(name: str) -> tuple[str, ...]:
    """The words of a key name in lower case: `X-ApiKey` gives `x api key`."""
    return tuple(word.lower() for word in _WORD.findall(name[-LONGEST_NAME:]))


class KeyNames:
    """The key names that announce a secret. Those in `weak` announce one only before a value that looks generated."""

    def __init__(self, names: Iterable[str], weak: Iterable[str] = ()) -> None:
        strong = tuple(dict.fromkeys(" ".join(words(name)) for name in names))
        if "" in strong:
            raise ValueError("a key name needs at least one letter or digit")
        self._known = frozenset(strong)
        self._weak = frozenset(weak) - self._known
        self.names = (*strong, *sorted(self._weak))
        joined = {name.replace(" ", "") for name in self._known}
        self._joined = tuple(word for word in _JOINED if word in joined)
        self._known_names = lru_cache(maxsize=4096)(self._announces)  # the same few stand in every value
        self.is_weak = lru_cache(maxsize=4096)(self._is_weak)
        self._longest = max((name.count(" ") + 1 for name in self.names), default=0)

    def __contains__(self, name: str) -> bool:
        return self._known_names(name)

    def _announces(self, name: str) -> bool:
        if self._ends(name):
            return True
        base, suffix = _split(name)
        certain = suffix in STAGES or suffix.isdecimal()
        return bool(suffix) and certain and words(base)[-1:] != ("token",) and self._ends(base)

    def _ends(self, name: str) -> bool:
        """Whether the name ends in words that announce a secret."""
        parts = words(name)
        if " ".join(parts[-2:]) in HARMLESS_NAMES:
            return False
        if any(" ".join(parts[-count:]) in self._known for count in range(1, self._longest + 1)):
            return True
        last = parts[-1] if parts else ""
        return last.endswith(self._joined) and not last.endswith(_HARMLESS_JOINED) if self._joined else False

    def _is_weak(self, name: str) -> bool:
        """Whether the name announces a secret before some values only."""
        base, suffix = _split(name)
        if suffix and self._weak and self._ends(base):
            return True
        parts = words(base)
        if not self._weak or not parts or parts[-2:] == ("public", "key"):
            return False
        known = any(" ".join(parts[-count:]) in self._weak for count in (1, 2, 3))
        return known or parts[-1].endswith(_JOINED_WEAK)

    def may_hold(self, name: str, value: str, *, written: bool = False) -> bool:
        """Whether this weak name before this value announces a secret; `written`, where it is no key of a document."""
        if len(value) < SHORTEST_WEAK and not value.isdecimal():
            return False
        if not self.is_weak(name):
            return False
        base, suffix = _split(name)
        parts = words(base)
        last = parts[-1]
        if last == "psk":  # a password that people choose
            return len(value) >= SHORTEST_WEAK and any(map(str.isdigit, value)) and not value.isdigit()
        qualified = (len(parts) > 1 and last in _QUALIFIED) or (bool(suffix) and self._ends(base))
        if qualified and not PLAIN_KEYS.isdisjoint(parts[-3:-1]):
            return False
        if qualified and _MADE.fullmatch(value) and (_GROUPS.fullmatch(value) or looks_unlike_a_word(value)):
            return True
        if len(value) < SHORTEST_GENERATED and not value.isdecimal():
            return qualified and len(value) >= SHORTEST_RANDOM and looks_random(value)
        if is_uuid(value):
            return qualified or last in ("auth", "api") or (written and parts == ("key",))
        return looks_generated(value, digits=not _SHORT_NUMBERS.isdisjoint(parts[-2:]))

    def marks(self) -> dict[str, str]:
        """A few lower-case words of which every name has one, each with the characters that may follow it in a name."""
        left = [name.split(" ") for name in self.names]
        found: list[str] = []
        while left:
            every = [word for name in left for word in name if word not in _COMMON or len(name) == 1]
            best = max(every, key=lambda word: (every.count(word), len(word), word))
            found.append(best)
            left = [name for name in left if best not in name]
        least = [word for word in found if not any(other != word and other in word for other in found)]
        joined = [name.replace(" ", "") for name in self.names]
        return {word: "".join(sorted(set(_behind(word, joined)))) for word in sorted(least)}

    def pattern(self, *, strong: bool = False) -> str:
        """An expression for any of the names, or for the strong ones, as written in a text, case aside; both engines
        accept it."""
        names = [name for name in self.names if not strong or name in self._known]
        return "|".join(
            r"[_\-. ]?".join(map(re.escape, name.split(" "))) for name in sorted(names, reverse=True)
        )


@lru_cache(maxsize=4096)
def _split(name: str) -> tuple[str, str]:
    """A name and what is added behind it: `DB_PASSWORD_PROD` gives `DB_PASSWORD` and `prod`."""
    match = _suffix.search(name)
    return (name, "") if match is None else (name[: match.start()], match[0].lstrip("_-").lower())


def _behind(word: str, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        for at in range(len(name)):
            if name.startswith(word, at):
                yield name[at + len(word) : at + len(word) + 1]
