"""Secrets as people and command lines write them: `--token x`, `<password>x</password>`, "the password is x".

Knows the words that introduce a secret without `:` or `=`; names before those are in `key_names.py`.
"""

from __future__ import annotations

import re

from runcast.slim.redaction.secret_pattern import SecretPattern, bounded
from runcast.slim.redaction.secret_values import is_reference, looks_generated

_WORDS = (
    *("password", "passwd", "passphrase", "passwort", "token", "secret", "api key", "access key"),
    *("secret key", "account key", "private key", "storepass", "securestring"),
)
_NAME = "(?i:" + "|".join(word.replace(" key", "[-_ ]?key") for word in _WORDS) + ")"
# The same for Python's engine, which skips to a class that a pattern begins with; and with `key`.
_TAILS = (
    r"(?<=[pP])(?i:ass(?:wor[dt]|wd|phrase)|rivate[-_ ]?key)|(?<=[tT])(?i:oken)|(?<=[aA])(?i:pi[-_ ]?key|cc(?:es|oun)[st][-_ ]?key)"
    r"|(?<=[sS])(?i:ecret(?:[-_ ]?key)?|ecurestring|torepass)"
)
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
    form=rf"-(?<![\w-]-)-?[a-z-]{{0,30}}?{_NAME}\s{{1,4}}[\"']?(?P<secret>(?!-){_VALUE}{{4,}}+)",
    hint=rf"-[a-z-]*{_NAME}\s",
    opening=rf"(?<![\w-])--?[a-z-]{{0,30}}?{_NAME}(?:\s{{1,4}}[\"']?(?P<secret>{_VALUE}*+))?\Z",
    onset=rf"(?:^-|--|(?:^|\s)-[a-z-]*$|-[a-z-]*{_NAME})",
    check=_is_made,
    sign="-",
    marks=_WORDS,
    delimited=True,
)
ELEMENT = SecretPattern(
    "element",
    form=rf"[<>][\w:.-]{{0,40}}?{_NAME}(?:</key>\s{{0,16}}<string)?>(?P<secret>[^<>]{{4,200}})</",
    hint=rf"{_NAME}(?:>|</key)",
    opening=rf"[<>][\w:.-]{{0,40}}?{_NAME}(?:</key>\s{{0,16}}<string)?>(?P<secret>[^<>]{{0,200}}+)<?\Z",
    onset=rf"(?:<[\w:. -]*$|{_NAME}(?:>|</key>))",
    sign=rf"{_NAME}(?:>|</key)",
    marks=_WORDS,
    delimited=True,
)
# "the password for staging is", "was set to", "lautet", "for x:", "(new):"
_SAID = r"(?:is|lautet|(?:was|has been|is now)(?: (?:re)?set| changed| updated)? to)"
_INTRODUCES = rf"(?:(?i:{_SAID}):?|(?i:for|of)\s[^\s:]{{1,64}}(?::|\s(?i:{_SAID}):?)|\([a-z]{{1,10}}\):)"
_PHRASE = r"(?i:[a-z ]{0,24}):?"  # what may become one
_BEGUN = rf"(?:{_PHRASE}|(?i:for|of)\s[^\s:]{{0,64}}(?::|\s{_PHRASE})?|\([a-z]{{0,10}}\)?:?)"
SENTENCE = SecretPattern(
    "sentence",
    form=rf"[pPtTsSaA](?<!\w[pPtTsSaA])(?:{_TAILS})\s{{1,4}}{_INTRODUCES}\s{{1,4}}(?P<secret>{_VALUE}{{6,}}+)",
    hint=rf"{_NAME}\s+(?i:is|for|of|was|has|lautet|\()",
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
    form=rf"{_FAST}(?:\s{{1,4}}|\(|\\*[\"']\s?,\s{{0,4}})\\*[\"'](?P<secret>{_INSIDE}{{8,}}+)(?=\\*[\"'])",
    hint=rf"{_NAME}(?:\s|\(|\\*[\"']\s?,\s*)\s*\\*[\"']",
    opening=rf"{_NAME}(?:\s{{1,4}}|\(|\\*[\"']\s?(?:,\s{{0,4}})?|\\*)(?:\\*(?:[\"'](?P<secret>{_INSIDE}*+)\\*)?)?\Z",
    onset=rf"{_NAME}(?:\s|\(|\\|[\"']|$)",
    check=_is_made,
    sign=rf"{_NAME}(?:\s|\(|\\|[\"']|$)",
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
# `machine h login joe password x`, as in a netrc file.
NETRC = SecretPattern(
    "netrc",
    form=rf"login\s{{1,8}}[^\s:]{{1,64}}\s{{1,8}}password\s{{1,8}}(?P<secret>{_VALUE}{{4,}}+)",
    hint=r"login\s+\S+\s+password\s",
    opening=rf"login\s{{1,8}}[^\s:]{{1,64}}\s{{1,8}}password\s{{1,8}}(?P<secret>{_VALUE}*+)\Z",
    onset=r"password\s",
    sign="login",
    marks=("password",),
    delimited=True,
)
# Programs that take a password behind one letter: `mysql -u root -pX`, `sshpass -p X`, `htpasswd -b file joe X`.
_PROGRAMS = (
    *("mysql", "mysqldump", "mysqladmin", "mariadb", "sshpass", "redis-cli", "docker login", "podman login"),
    *("helm registry login", "az login", "unzip", "ldapsearch", "ldapmodify", "htpasswd"),
)
_PROGRAM = rf"{bounded(_PROGRAMS)}\s(?=-)"
_LETTER = r"(?:-p\s?|-[aPw]\s|-b\s[^\s]{1,64}\s[^\s]{1,64}\s)[\"']?"
_OPTIONS = r"[^\n|;&]{0,96}?(?<=\s)"
COMMAND = SecretPattern(
    "command",
    form=rf"{_PROGRAM}{_OPTIONS}{_LETTER}(?P<secret>(?!-){_VALUE}{{4,}}+)",
    hint=rf"(?:{'|'.join(_PROGRAMS)})\s-",
    opening=rf"(?:{'|'.join(_PROGRAMS)})\s(?:-[^\n|;&]{{0,128}})?\Z",
    onset=rf"(?:(?:{'|'.join(_PROGRAMS)})(?:\s-|\s?$))",
    check=_is_made,
    sign=rf"(?:{'|'.join(_PROGRAMS)})",
    marks=tuple(sorted({f"{program} -" for program in _PROGRAMS})),
)
WRITTEN_FORMS = (FLAG, ELEMENT, SENTENCE, QUOTED, SPACED, PAIR, LOGIN, URL_TOKEN, NETRC, COMMAND)
