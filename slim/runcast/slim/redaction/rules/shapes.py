"""Secrets that show by themselves: random characters behind a prefix, or behind any name and an operator.

Knows what random characters look like, and which prefixes and names stand before random characters that are no secret. Rules
for one service each are in `services.py`.
"""

from __future__ import annotations

import re

from runcast.slim.redaction.key_names import words
from runcast.slim.redaction.rules.known_names import PUBLIC_NAMES
from runcast.slim.redaction.secret_pattern import RUN_CLASS, SecretPattern
from runcast.slim.redaction.secret_values import looks_random

# Prefixes of ids, which every agent's events are full of, of digests and of generated names in programs.
_IDS = (
    *("id", "call", "toolu", "msg", "run", "resp", "req", "rs", "fc", "chatcmpl", "cmpl", "file", "asst"),
    *("thread", "user", "usr", "org", "cus", "in", "pi", "price", "prod", "sub", "evt", "ch", "ord"),
    *("order", "sess", "session", "acct", "seti", "pm", "txn", "sha1", "sha256", "sha384", "sha512"),
    *("md5", "index", "chunk", "main", "vendor", "ws", "step", "event", "batch", "vs", "ft", "item"),
    *("ca", "css", "h1", "rev", "commit", "build", "image", "img", "trace", "span", "node", "pod", "job"),
    *("task", "ref", "tag", "container", "cntr", "checkpoint", "snap", "data", "type", "version"),
    *("key_id", "public", "pub", "sig", "ssh", "lib", "test"),
)
# A short one is a whole word: `ca_…` is an id, and `vca_…` is none.
_NO_ID = "".join(
    rf"(?<!{each}[_-])" if len(each) > 3 or each == "id" else rf"(?<!(?<![A-Za-z0-9]){each}[_-])"
    for each in sorted({word[-6:] for word in _IDS}, key=len)
)
# Words that announce a secret behind them.
_KINDS = (
    *("key", "tok", "oken", "pat", "sk", "rk", "sec", "cret"),
    *("live", "prod", "auth", "cess", "api", "pass", "pwd"),
)
_KIND = "|".join(rf"(?<={each}[_-])|(?<={each.upper()}[_-])" for each in _KINDS)
_PLAIN = r"(?<!cache.key[_-])(?<!lic.key[_-])(?<!ary.key[_-])(?<!ency.key[_-])"
_MIXED = r"(?=[A-Za-z]*+[0-9])(?=[a-z0-9]*+[A-Z])(?=[A-Z0-9]*+[a-z])"
_LOWER = r"(?=[A-Za-z]*+[0-9])(?=[0-9]*+[A-Za-z])"
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_FILE = r"(?![\w./-]*\.[a-z]{2,4}\b)"  # the hash in the name of a file

SHAPE = SecretPattern(
    "shape",
    form=rf"[_-](?<=[A-Za-z0-9][_-])(?:(?=[A-Za-z0-9]{{24}}){_FILE}(?:(?:{_KIND}){_PLAIN}{_LOWER}|{_NO_ID}{_MIXED})"
    rf"|(?:{_KIND}){_PLAIN}(?={_UUID}))(?P<secret>[A-Za-z0-9_-]++)",
    hint=r"[A-Za-z0-9][_-](?:[A-Za-z0-9]{24}|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-)",
    opening=rf"(?<=[A-Za-z0-9])[_-](?P<secret>{RUN_CLASS}*+)\Z",
    onset=r"(?:^|[A-Za-z0-9])[_-](?:[A-Za-z0-9]*$|[A-Za-z0-9]{24}|[0-9a-fA-F]{8}-)",
    sign=r"[A-Za-z0-9][_-]",
    adjacent=True,
)
# Random characters soon have a letter that hexadecimal numbers have not, and a digit behind it.
_MADE = r"[0-9A-Fa-f]{0,7}[G-Zg-z][A-Za-z]{0,15}[0-9][A-Za-z0-9_-]{10}"
_ANY_NAME = r"[A-Za-z][\w.-]{0,40}+"
_OPERATOR = r"\\*[\"']?\]?\s{0,2}(?:=>|:=|[:=])\s{0,4}\\*[\"'`]?"


# Part of a path, a host or a file: its pieces are words, or it ends in one.
_PLACE = re.compile(r"\.[a-z]{2,5}$|^[./~]|//|\.\.|(?:^|/)[a-z]{2,}(?:/|$)")


def _quoted(text: str) -> bool:
    return '"' in text or "'" in text


def _is_assigned(text: str) -> bool:
    name, value = re.fullmatch(rf"({_ANY_NAME}){_OPERATOR}(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]  # it is the form
    parts = words(name)
    return (
        (len(name) > 1 or _quoted(text))
        and PUBLIC_NAMES.isdisjoint((parts[-1], "".join(parts[-2:])))
        and not value.startswith(_ID_PREFIXES)
        and not _PLACE.search(value)
        and looks_random(value)
    )


# Random characters alone, as a word of their own and behind no operator. What stands before the first digit behind a letter
# stays: a stream has released it before anything shows.
_WORD = "[A-Za-z0-9_-]"
_APART = "".join(
    rf"(?<!{sign}{blank}{quote})" for sign in ":=" for blank in ("", " ") for quote in ("", "[\"'`]", r"\\\"")
)
_EDGE = rf"(?:(?<![\w+/=.@:#%&?~\\$-])|(?<=\\[nrt])){_APART}"
_HEAD = "(?:[0-9_-]|[A-Za-z](?![0-9])){0,30}+[A-Za-z]"
_WRAPPED = rf"(?!{_WORD}{{60,76}}(?:\r?\n|\\))"  # a line of a file in base64


# A digit between letters of both cases, which words of programs hardly have; on one side of it stands half of the word.
_MIX = "(?:[a-z][0-9]{1,3}[A-Z]|[A-Z][0-9]{1,3}[a-z])"
_MIXES = rf"{_WORD}{{10}}{_MIX}{_WORD}{{4}}|{_MIX}{_WORD}{{10}}"
_mixes = re.compile(rf"{_MIX}{_WORD}{{4}}")
_PIECE = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def _is_bare(text: str) -> bool:
    """Whether the word is random and no id: digits in two places, and hardly a syllable; the word before it may name an id."""
    *before, word = re.split(r"[\s\"'`(]+", text)
    return (
        _mixes.search(word) is not None
        and len(re.findall("[0-9]+", word)) > 1
        and sum(map(str.isalpha, word)) < 3 * len(_PIECE.findall(word))
        and PUBLIC_NAMES.isdisjoint(words(each)[-1] for each in before if each)
        and not word.startswith(_ID_PREFIXES)
        and looks_random(word)
    )


BARE = SecretPattern(
    "bare",
    form=rf"(?:(?<![\w$])[A-Za-z]{{2,16}}\s[\"'`(]?)?+{_EDGE}{_WRAPPED}(?={_WORD}{{24,200}}+(?![\w+/=@%&~]|[.:]\w)){_HEAD}(?P<secret>[0-9]{_WORD}++)",
    hint=_MIXES,
    opening=rf"{_EDGE}{_HEAD}(?P<secret>[0-9]{_WORD}*+)[.:\\]?\Z",
    onset=rf"[A-Za-z][0-9]{_WORD}*[.:\\]?$",
    check=_is_bare,
    adjacent=True,
    sign="[A-Za-z][0-9]",
    rests="^[0-9]",
    whole=True,
)
_ID_PREFIXES = tuple(f"{each}{mark}" for each in _IDS for mark in "_-")
# `NAME=…`, `"name": "…"`, whatever the name, unless names like it stand before ids and hashes.
ASSIGNED = SecretPattern(
    "assigned",
    form=rf"(?<![\w.-]){_ANY_NAME}{_OPERATOR}(?P<secret>(?={_MADE})[A-Za-z0-9][A-Za-z0-9_+/=.~-]{{15,199}}+)(?![\w@:%(])",
    hint=rf"[:=]>?(?:\s|\\[nrt]){{0,4}}\\*[\"'`]?{_MADE}",
    opening=rf"[:=]>?\s{{0,4}}\\*(?:[\"'`]?(?P<secret>{RUN_CLASS}*+))?\Z",
    onset=rf"[:=]>?\s{{0,4}}\\*[\"'`]?{RUN_CLASS}*$",
    check=_is_assigned,
    adjacent=True,
    sign="[:=]",
)
# Hashes of passwords, as `htpasswd`, `/etc/shadow`, LDAP and Django keep them.
_KINDS_OF_HASH = r"(?:apr1|[1567y]|2[abxy]|gy|argon2i?d?|scrypt|bcrypt-sha256|pbkdf2-[a-z0-9]{3,6})"
_HASHED = rf"(?:\${_KINDS_OF_HASH}\$|\{{S{{1,2}}HA(?:256|512)?\}}|pbkdf2_sha[0-9]{{1,3}}\$)"
_CRYPT = r"[A-Za-z0-9./$=,+_-]"
HASH = SecretPattern(
    "hash",
    form=rf"{_HASHED}(?P<secret>{_CRYPT}{{20,}}+)",
    hint=_HASHED,
    opening=rf"{_HASHED}(?P<secret>{_CRYPT}*+)\Z",
    onset=rf"{_HASHED}|(?:\$[a-z0-9-]{{0,14}}|\{{S{{1,2}}H?A?[0-9]{{0,3}}|pbkdf2_[a-z0-9]{{0,6}})$",
    sign=_HASHED,
    marks=(
        *("$apr1$", "$1$", "$2a$", "$2b$", "$2x$", "$2y$", "$5$", "$6$", "$7$", "$y$", "$gy$", "$argon2"),
        *("$scrypt$", "$bcrypt-", "$pbkdf2-", "{ssha", "{sha", "pbkdf2_sha"),
    ),
)
SHAPES = (SHAPE, ASSIGNED, BARE, HASH)
