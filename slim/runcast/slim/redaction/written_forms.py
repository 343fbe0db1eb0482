"""Secrets as people and command lines write them: `--token x`, `<password>x</password>`, "the password is x".

Knows the words that introduce a secret without `:` or `=`; names before those are in `key_names.py`.
"""

from __future__ import annotations

import re

from runcast.slim.redaction.secret_pattern import SecretPattern
from runcast.slim.redaction.secret_values import is_reference, looks_generated

_WORDS = ("password", "passwd", "passphrase", "token", "secret", "api key", "apikey", "access key")
_NAME = "(?i:" + "|".join(word.replace(" ", "[-_ ]") for word in _WORDS) + ")"
# The same for Python's engine, which skips to a class that a pattern begins with; and with `key`.
_TAILS = "(?<=[pP])(?i:ass(?:word|wd|phrase))|(?<=[tT])(?i:oken)|(?<=[sS])(?i:ecret)|(?<=[aA])(?i:pi[-_ ]?key|ccess[-_ ]key)"
_FAST = rf"[pPtTsSaA](?:{_TAILS})"
_FAST_KEY = rf"[pPtTsSaAkK](?:{_TAILS}|(?<=[kK])(?i:ey))"
# The rest of a word that began in the delta before: nothing in `ret a1b2…` itself tells what it is about.
_REST = "|".join(sorted({word[at:] for word in (*_WORDS, "key") for at in range(1, len(word))}))
_RESTS = rf"^(?i:{_REST})(?:[^A-Za-z]|$)"
_VALUE = r"[^\s\"'`<>;|&\\]"


def _is_made(text: str) -> bool:
    """Whether the last word of the match is no word of prose: it has a digit, and is no reference."""
    value = re.split(r"[\s>]+", text.removesuffix("</"))[-1].strip(".,!?\"'\\")
    return any(map(str.isdigit, value)) and not is_reference(value)


def _is_login(text: str) -> bool:
    """The same of the part behind the colon; two numbers are a user and a group."""
    value = text.partition(":")[2]
    return not value.isdigit() and _is_made(value)


def _is_machine_made(text: str) -> bool:
    """Whether the last word looks generated: longer than a word, with letters and more than one digit."""
    value = text.split()[-1]
    return looks_generated(value) and sum(map(str.isdigit, value)) > 1


def _is_given(text: str) -> bool:
    """Whether what stands behind `value` is no reference."""
    return not is_reference(re.split(r"[\s:=\"'\\]", text)[-1])


FLAG = SecretPattern(
    "flag",
    form=rf"--(?<![\w-]--)[a-z-]{{0,30}}?{_NAME}\s{{1,4}}[\"']?(?P<secret>(?!-){_VALUE}{{4,}}+)",
    hint=rf"--[a-z-]*{_NAME}\s",
    opening=rf"(?<![\w-])--[a-z-]{{0,30}}?{_NAME}(?:\s{{1,4}}[\"']?(?P<secret>{_VALUE}*+))?\Z",
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
_INTRODUCES = r"(?:(?i:is):?|(?i:for|of)\s[^\s:]{1,64}:|\([a-z]{1,10}\):)"
_BEGUN = r"(?:(?i:is?|fo?r?|of?):?|(?i:for|of)\s[^\s:]{0,64}:?|\([a-z]{0,10}\)?:?)"
SENTENCE = SecretPattern(
    "sentence",
    form=rf"[pPtTsSaA](?<!\w[pPtTsSaA])(?:{_TAILS})\s{{1,4}}{_INTRODUCES}\s{{1,4}}(?P<secret>{_VALUE}{{6,}}+)",
    hint=rf"{_NAME}\s+(?i:is|for|of|\()",
    opening=rf"\b{_NAME}\s{{1,4}}(?:{_INTRODUCES}\s{{1,4}}(?P<secret>{_VALUE}*+)|{_BEGUN}?\s{{0,4}})\Z",
    onset=rf"{_NAME}(?:\s|$)",
    check=_is_made,
    sign=rf"{_NAME}\s",
    marks=_WORDS,
    delimited=True,
)
# `PASSWORD 'x'` as in SQL, and `set("token", "x")`.
_INSIDE = r"[^\s\"'`<>\\]"
QUOTED = SecretPattern(
    "quoted",
    form=rf"{_FAST}(?:\s{{1,4}}|\\*[\"']\s?,\s{{0,4}})\\*[\"'](?P<secret>{_INSIDE}{{8,}}+)(?=\\*[\"'])",
    hint=rf"{_NAME}(?:\s|\\*[\"']\s?,\s*)\s*\\*[\"']",
    opening=rf"{_NAME}(?:\s{{1,4}}|\\*[\"']\s?(?:,\s{{0,4}})?|\\*)(?:\\*(?:[\"'](?P<secret>{_INSIDE}*+)\\*)?)?\Z",
    onset=rf"{_NAME}(?:\s|\\|[\"']|$)",
    check=_is_made,
    sign=rf"{_NAME}(?:\s|\\|[\"']|$)",
    marks=_WORDS,
    delimited=True,
)
# `auth_token 3f2a…`, as people paste it; any other word after a name is prose.
SPACED = SecretPattern(
    "spaced",
    form=rf"{_FAST_KEY}\s{{1,4}}(?P<secret>[A-Za-z0-9_+=-]{{20,}}+)(?![./\w@])",
    hint=rf"(?i:{_NAME}|key)\s+[A-Za-z0-9_+=-]{{20}}",
    opening=rf"(?:{_NAME}|(?i:key))\s{{1,4}}(?P<secret>[A-Za-z0-9_+=-]*+)\Z",
    onset=rf"(?:(?i:{_NAME}|key)(?:\s|$)|{_RESTS})",
    check=_is_machine_made,
    sign=rf"(?i:{_NAME}|key)\s",
    marks=(*_WORDS, "key"),
    delimited=True,
)
# `{"name": "DB_PASSWORD", "value": "x"}`, in JSON, YAML or XML.
_NAMES = rf"[nNkK](?:(?<=[nN])(?i:ame)|(?<=[kK])(?i:ey))\\*[\"']?\s{{0,4}}[:=]\s{{0,4}}\\*[\"']?[\w.-]{{0,40}}?{_NAME}\\*[\"']?"
_VALUES = r"\\*[\"']?\s{0,4}[:=]\s{0,4}\\*[\"']?"
_APART = r"(?:[,;\s]|\\+[nrt]){1,16}"
_HELD = r"[^\s\"'\\<>,;{}&]"
PAIR = SecretPattern(
    "pair",
    form=rf"{_NAMES}{_APART}\\*[\"']?(?i:value){_VALUES}(?P<secret>{_HELD}{{4,}}+)",
    hint=rf"{_NAME}\\*[\"']?{_APART}\\*[\"']?(?i:value)",
    opening=rf"{_NAMES}\\*(?:{_APART}\\*[\"']?(?:(?i:value){_VALUES}(?P<secret>{_HELD}*+)"
    rf"|(?i:va?l?u?e?)\\*[\"']?\s{{0,4}}(?:[:=]\s{{0,4}}\\*)?)?)?\Z",
    onset=rf"{_NAME}\\*[\"']?(?:[,;\s]|\\|$)",
    check=_is_given,
    sign=rf"{_NAME}\\*[\"']?(?:[,;\s]|\\|$)",
    marks=_WORDS,
    delimited=True,
)
LOGIN = SecretPattern(
    "login",
    form=rf"-(?<![\w-]-)(?:u|-user)[ =][\"']?[\w.@+-]{{1,64}}:(?P<secret>{_VALUE}{{4,}}+)",
    hint=r"(?:-u|--user)[ =]\\*[\"']?[\w.@+-]+:",
    opening=rf"(?<![\w-])(?:-u|--user)(?:[ =][\"']?(?:[\w.@+-]{{1,64}}(?::(?P<secret>{_VALUE}*+))?)?)?\Z",
    onset=r"(?:-u|--us?e?r?)(?:[ =]|$)|(?:^|\s)-$",
    check=_is_login,
    sign="-u|--us",
    marks=("-u ", "-u=", "--user"),
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
WRITTEN_FORMS = (FLAG, ELEMENT, SENTENCE, QUOTED, SPACED, PAIR, LOGIN, URL_TOKEN)
