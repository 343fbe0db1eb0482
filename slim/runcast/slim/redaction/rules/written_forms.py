"""Secrets as people and command lines write them: `--token x`, `<password>x</password>`, "the password is x".

Knows the words that introduce a secret without `:` or `=`; names before those are in `key_names.py`.
"""

from __future__ import annotations

import re

from runcast.slim.redaction.secret_pattern import SecretPattern, bounded
from runcast.slim.redaction.secret_values import is_reference, is_uuid, looks_generated, looks_random

_WORDS = (
    *("password", "passwd", "passphrase", "passwort", "token", "secret", "api key", "access key"),
    *("secret key", "account key", "private key", "storepass", "securestring", "passcode", "pwd", "pw"),
)
_NAME = "(?i:" + "|".join(word.replace(" key", "[-_ ]?key") for word in _WORDS) + ")"
_KEY_NAME = f"(?:{_NAME}|(?i:key))"
_NAMED = re.compile(_NAME)
# The same for Python's engine, which skips to a class that a pattern begins with; and with `key`.
_TAILS = (
    r"(?<=[pP])(?i:ass(?:wor[dt]|wd|phrase|code)|wd?|rivate[-_ ]?key)|(?<=[tT])(?i:oken)|(?<=[aA])(?i:pi[-_ ]?key|cc(?:es|oun)[st][-_ ]?key)"
    r"|(?<=[sS])(?i:ecret(?:[-_ ]?key)?|ecurestring|torepass)"
)
_FAST = rf"[pPtTsSaA](?:{_TAILS})"
_FAST_KEY = rf"[pPtTsSaAkK](?:{_TAILS}|(?<=[kK])(?i:ey)|(?<=[aA])(?i:ccess)|(?<=[pP])(?i:rivate))"
# The rest of a word that began in the delta before: nothing in `ret a1b2…` itself tells what it is about.
_REST = "|".join(
    sorted({word[at:] for word in (*_WORDS, "key", "access", "private") for at in range(1, len(word))})
)
_RESTS = rf"^(?i:{_REST})(?:[^A-Za-z]|$)"
_VALUE = r"[^\s\"'`<>;|&\\]"


_PLACEHOLDERS = frozenset(
    {"password", "passwd", "pass", "token", "secret", "api_key", "pwd", "users", "staff", "docker"}
)


def _is_made(text: str) -> bool:
    """Whether the last word of the match is no word of prose: it has a digit, and is no reference."""
    value = re.split(r"[\s>]+", text.removesuffix("</"))[-1].strip(".,!?\"'\\")
    return any(map(str.isdigit, value)) and not is_reference(value)


def _is_login(text: str) -> bool:
    """Whether what stands behind the colon is no reference, and no group: `root:root`, `1000:1000`."""
    user, _, value = text.partition(":")
    same = user.endswith(value) and not any(map(str.isdigit, value))
    return not (value.isdigit() or same or is_reference(value) or value.lower() in _PLACEHOLDERS)


def _is_machine_made(text: str) -> bool:
    """Whether the last word looks generated: longer than a word, with letters and more than one digit. A hash or a UUID
    counts where it follows at once, and not behind `commit`, `cache` and the like."""
    value = re.split(r"[\s():*`\"']", text)[-1]
    at_once = re.match(r"\S+[\s():*`]{1,4}\S+$", text) is not None
    made = looks_random(value) if "/" in value else looks_generated(value) or (at_once and is_uuid(value))
    return made and sum(map(str.isdigit, value)) > 1 and (at_once or looks_random(value))


def _is_given(text: str) -> bool:
    """Whether what stands behind `value` is no reference, and looks generated where the name is a key of something."""
    value = re.split(r"[\s:=\"'\\]", text)[-1]
    return not is_reference(value) and (_NAMED.search(text) is not None or looks_generated(value))


def _is_element(text: str) -> bool:
    """Whether an element that is only a key of something has a generated value."""
    name, value = text.removesuffix("</").rsplit(">", 1)
    return _NAMED.search(name) is not None or looks_generated(value) or is_uuid(value)


def _is_made_of(text: str) -> bool:
    """The same as `_is_made`; behind a mere `key` the value is a generated one."""
    value = re.split(r"[\s\"']", text.rstrip("\\"))[-1]
    return _is_made(text) and (_NAMED.search(text) is not None or looks_generated(value))


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
    form=rf"[<>][\w:. =\"'-]{{0,60}}?(?:{_NAME}|(?i:key))[\"']?(?:</key>\s{{0,16}}<string)?>(?P<secret>[^<>]{{4,2000}})</",
    hint=rf"(?:{_NAME}|(?i:key))[\"']?(?:>|</key)",
    opening=rf"[<>][\w:. =\"'-]{{0,60}}?(?:{_NAME}|(?i:key))[\"']?(?:</key>\s{{0,16}}<string)?>(?P<secret>[^<>]{{0,2000}}+)<?\Z",
    onset=rf"(?:<[\w:. =\"'-]*$|(?:{_NAME}|(?i:key))[\"']?(?:>|</key>))",
    check=_is_element,
    sign=rf"(?:{_NAME}|(?i:key))[\"']?(?:>|</key)",
    marks=(*_WORDS, "key"),
    delimited=True,
)
# "the password for staging is", "was set to", "lautet", "for x:", "(new):"
_SAID = r"(?:is|ist|es|est|lautet|(?:was|has been|is now)(?: (?:re)?set| changed| updated)? to|(?:(?:re)?set|changed|updated) to|(?:from [^\s:]{1,40} )?to)"
_INTRODUCES = rf"(?:(?i:{_SAID}):?|(?i:for|of)\s[^\s:]{{1,64}}(?::|\s(?i:{_SAID}):?)|\([a-z]{{1,10}}\):)"
_PHRASE = r"(?i:[a-z ]{0,24}):?"  # what may become one
_BEGUN = rf"(?:{_PHRASE}|(?i:for|of)\s[^\s:]{{0,64}}(?::|\s{_PHRASE})?|\([a-z]{{0,10}}\)?:?)"
SENTENCE = SecretPattern(
    "sentence",
    form=rf"[pPtTsSaAkK](?<!\w[pPtTsSaAkK])(?:{_TAILS}|(?<=[kK])(?i:ey))\s{{1,4}}{_INTRODUCES}\s{{1,4}}(?P<secret>{_VALUE}{{6,}}+)",
    hint=rf"{_KEY_NAME}\s+(?i:is|for|of|was|has|lautet|from|to|set|reset|changed|updated|es|est|ist|\()",
    opening=rf"\b{_KEY_NAME}\s{{1,4}}(?:{_INTRODUCES}\s{{1,4}}(?P<secret>{_VALUE}*+)|{_BEGUN}?\s{{0,4}})\Z",
    onset=rf"{_KEY_NAME}(?:\s|$)",
    check=_is_made_of,
    sign=rf"{_KEY_NAME}\s",
    marks=(*_WORDS, "key"),
    delimited=True,
)
# `PASSWORD 'x'` as in SQL, and `set("token", "x")`.
_INSIDE = r"[^\s\"'`<>\\]"
QUOTED = SecretPattern(
    "quoted",
    form=rf"{_FAST_KEY}(?:\s{{1,4}}|\(|\\*[\"']?\s?,\s{{0,4}})\\*[\"'](?P<secret>{_INSIDE}{{8,}}+)(?=\\*[\"'])",
    hint=rf"{_KEY_NAME}(?:\s|\(|\\*[\"']\s?,\s*)\s*\\*[\"']",
    opening=rf"{_KEY_NAME}(?:\s{{1,4}}|\(|\\*[\"']\s?(?:,\s{{0,4}})?|\\*)(?:\\*(?:[\"'](?P<secret>{_INSIDE}*+)\\*)?)?\Z",
    onset=rf"{_KEY_NAME}(?:\s|\(|\\|[\"']|$)",
    check=_is_made_of,
    sign=rf"{_KEY_NAME}(?:\s|\(|\\|[\"']|$)",
    marks=(*_WORDS, "key"),
    delimited=True,
)
# `auth_token 3f2a…`, "the key for staging: 3f2a…", `secret set API_KEY --body 3f2a…`; any other word after a name is prose.
_NEAR = r"(?<!ublic.key)(?<!che.key)(?<!mary.key)(?<!eign.key)(?<!ency.key)(?!:)[\s():*`>,\-]{1,4}(?:-{0,2}\w{1,12}[\s:*`\"']{1,3}){0,3}"
_RUN = r"[A-Za-z0-9_+/=-]"
SPACED = SecretPattern(
    "spaced",
    form=rf"{_FAST_KEY}{_NEAR}(?P<secret>{_RUN}{{20,}}+)(?![.\w@])",
    hint=rf"(?i:{_NAME}|key|access|private)[\s()*`>,\-]",
    opening=rf"(?:{_NAME}|(?i:key|access|private))(?:{_NEAR}(?P<secret>{_RUN}*+)|[\s()*`>,\-]{{0,4}})\Z",
    onset=rf"(?:(?i:{_NAME}|key|access|private)(?:[\s()*`>,\-]|$)|{_RESTS})",
    check=_is_machine_made,
    sign=rf"(?i:{_NAME}|key|access|private)(?:[\s()*`>,\-]|$)",
    marks=(*_WORDS, "key", "access", "private"),
    delimited=True,
)
# `{"name": "DB_PASSWORD", "value": "x"}`, in JSON, YAML or XML.
_NAMES = rf"(?:[nNkK](?:(?<=[nN])(?i:ame)|(?<=[kK])(?i:ey))\\*[\"']?\s{{0,4}}[:=]\s{{0,4}}\\*[\"']?|variable\s\\*\")[\w.-]{{0,40}}?(?:{_NAME}|(?i:key|pass|pw))\\*[\"']?"
_VALUES = r"\\*[\"']?\s{0,4}[:=]\s{0,4}\\*[\"']?"
_APART = r"(?:[,;{\s]|\\+[nrt]){1,16}"
_HELD = r"[^\s\"'\\<>,;{}&]"
PAIR = SecretPattern(
    "pair",
    form=rf"{_NAMES}{_APART}\\*[\"']?(?i:value|default){_VALUES}(?P<secret>{_HELD}{{4,}}+)",
    hint=rf"(?:{_NAME}|(?i:key|pass|pw))\\*[\"']?{_APART}\\*[\"']?(?i:value|default)",
    opening=rf"{_NAMES}\\*(?:{_APART}\\*[\"']?(?:(?i:value|default){_VALUES}(?P<secret>{_HELD}*+)"
    rf"|(?i:va?l?u?e?|de?f?a?u?l?t?)\\*[\"']?\s{{0,4}}(?:[:=]\s{{0,4}}\\*)?)?)?\Z",
    onset=rf"(?:{_NAME}|(?i:key|pass|pw))\\*[\"']?(?:[,;{{\s]|\\|$)",
    check=_is_given,
    sign=rf"(?:{_NAME}|(?i:key|pass|pw))\\*[\"']?(?:[,;{{\s]|\\|$)",
    marks=(*_WORDS, "key", "pass", "pw"),
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
_LETTER = r"(?:-p\s?|-[aPw]\s|-[A-Za-z]{0,3}b[A-Za-z]{0,3}\s[^\s]{1,64}\s[^\s]{1,64}\s)[\"']?"
_OPTIONS = r"[^\n|;&]{0,96}?(?<=\s)"
_PROGRAM_RESTS = "|".join(sorted({each[at:] for each in _PROGRAMS for at in range(1, len(each))}))
COMMAND = SecretPattern(
    "command",
    form=rf"{_PROGRAM}{_OPTIONS}{_LETTER}(?P<secret>(?!-){_VALUE}{{4,}}+)",
    hint=rf"(?:{'|'.join(_PROGRAMS)})\s-",
    opening=rf"(?:{'|'.join(_PROGRAMS)})\s(?:-[^\n|;&]{{0,128}})?\Z",
    onset=rf"(?:(?:{'|'.join(_PROGRAMS)})(?:\s-|\s?$))|^(?:{_PROGRAM_RESTS})(?:\s-|\s?$)",
    check=_is_made,
    sign=rf"(?:{'|'.join(_PROGRAMS)})",
    marks=tuple(sorted({f"{program} -" for program in _PROGRAMS})),
)
WRITTEN_FORMS = (FLAG, ELEMENT, SENTENCE, QUOTED, SPACED, PAIR, LOGIN, URL_TOKEN, NETRC, COMMAND)
