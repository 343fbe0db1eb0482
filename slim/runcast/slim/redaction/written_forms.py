"""Secrets as people and command lines write them: `--token x`, `<password>x</password>`, "the password is x".

Knows the words that introduce a secret without `:` or `=`; names before those are in `key_names.py`.
"""

from __future__ import annotations

import re

from runcast.slim.redaction.secret_pattern import SecretPattern
from runcast.slim.redaction.secret_values import is_reference

__all__ = ["WRITTEN_FORMS"]

_WORDS = ("password", "passwd", "passphrase", "token", "secret", "api key", "apikey", "access key")
_NAME = "(?i:" + "|".join(word.replace(" ", "[-_ ]") for word in _WORDS) + ")"
_VALUE = r"[^\s\"'`<>;|&\\]"


def _is_made(text: str) -> bool:
    """Whether the last word of the match is no word of prose: it has a digit, and is no reference."""
    value = re.split(r"[\s>]+", text.removesuffix("</"))[-1].rstrip(".,!?")
    return any(map(str.isdigit, value)) and not is_reference(value)


FLAG = SecretPattern(
    "flag",
    form=rf"--(?<![\w-]--)[a-z-]{{0,30}}?{_NAME}\s{{1,4}}(?P<secret>(?!-){_VALUE}{{4,}}+)",
    hint=rf"--[a-z-]*{_NAME}\s",
    opening=rf"(?<![\w-])--[a-z-]{{0,30}}?{_NAME}(?:\s{{1,4}}(?P<secret>{_VALUE}*+))?\Z",
    onset="(?:^-|--)",
    check=_is_made,
    sign="--",
    marks=_WORDS,
    delimited=True,
)
ELEMENT = SecretPattern(
    "element",
    form=rf"<[\w:.-]{{0,40}}?{_NAME}>(?P<secret>[^<>]{{4,200}})</",
    hint=rf"{_NAME}>",
    opening=rf"<[\w:.-]{{0,40}}?{_NAME}>(?P<secret>[^<>]{{0,200}}+)<?\Z",
    onset=rf"(?:<[\w:. -]*$|{_NAME}>)",
    sign=rf"{_NAME}>",
    marks=_WORDS,
    delimited=True,
)
SENTENCE = SecretPattern(
    "sentence",
    form=rf"\b{_NAME}\s{{1,4}}(?i:is):?\s{{1,4}}(?P<secret>{_VALUE}{{6,}}+)",
    hint=rf"{_NAME}\s+(?i:is)",
    opening=rf"\b{_NAME}\s{{1,4}}(?:(?i:i)(?:(?i:s)(?::?\s{{0,4}}(?P<secret>{_VALUE}*+))?)?)?\Z",
    onset=rf"{_NAME}(?:\s|$)",
    check=_is_made,
    sign=rf"{_NAME}\s",
    marks=_WORDS,
    delimited=True,
)
URL_TOKEN = SecretPattern(
    "url_token",
    form=r"://(?P<secret>[A-Za-z0-9_-]{20,}+)@",
    hint=r"://[A-Za-z0-9_-]{20,}@",
    opening=r"://(?P<secret>[A-Za-z0-9_-]*+)\Z",
    onset="(?:://|(?::/?)$)",
    sign="://",
    marks=("://",),
)
WRITTEN_FORMS = (FLAG, ELEMENT, SENTENCE, URL_TOKEN)
