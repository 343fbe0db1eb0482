"""Secrets as people and command lines write them: `--token x`, `<password>x</password>`, "the password is x".

Knows the words that introduce a secret without `:` or `=`; names before those are in `key_names.py`.
"""

from __future__ import annotations

import re

from runcast.slim.redaction.secret_pattern import SecretPattern, any_of
from runcast.slim.redaction.secret_values import (
    is_harmless,
    is_reference,
    is_uuid,
    looks_generated,
    looks_random,
    looks_unlike_a_word,
)

_WORDS = (
    *("password", "passwd", "passphrase", "passwort", "token", "secret", "api key", "access key"),
    *("secret key", "account key", "private key", "storepass", "securestring", "passcode", "pwd", "pw"),
)
_NAME = f"(?i:{any_of(_WORDS)})".replace(r"\ ", "[-_ ]?")
_KEY_NAME = f"(?:{_NAME}|(?i:key))"
_NAMED = re.compile(_NAME)
# The same for Python's engine, which skips to a class that a pattern begins with; and with `key`.
_TAILS = (
    r"(?<=[pP])(?i:ass(?:wor[dt]|wd|phrase|code)|wd?|rivate[-_ ]?key)|(?<=[tT])(?i:oken)|(?<=[aA])(?i:pi[-_ ]?key|cc(?:es|oun)[st][-_ ]?key)"
    r"|(?<=[sS])(?i:ecret(?:[-_ ]?key)?|ecurestring|torepass)"
)
_FAST = rf"[pPtTsSaA](?:{_TAILS})"
_FAST_KEY = rf"[pPtTsSaAkK](?:{_TAILS}|(?<=[kK])(?i:ey)|(?<=[aA])(?i:ccess)|(?<=[pP])(?i:rivate))"
_VALUE = r"[^\s\"'`<>;|&\\]"


_PLACEHOLDERS = frozenset(
    {"password", "passwd", "pass", "token", "secret", "api_key", "pwd", "users", "staff", "docker"}
    | {"passphrase", "username", "user", "mypassword", "expected", "string", "redacted", "[redacted]"}
)


# Words that follow the name of an option in its description.
_DESCRIBES = frozenset(
    {
        *(
            "flag",
            "option",
            "options",
            "argument",
            "arguments",
            "parameter",
            "value",
            "values",
            "to",
            "for",
            "with",
        ),
        *(
            "from",
            "instead",
            "must",
            "should",
            "will",
            "when",
            "that",
            "this",
            "then",
            "your",
            "string",
            "text",
        ),
        *(
            "file",
            "path",
            "required",
            "optional",
            "prompt",
            "stdin",
            "here",
            "name",
            "default",
            "none",
            "null",
        ),
        *(
            "parameters",
            "switch",
            "setting",
            "which",
            "also",
            "only",
            "have",
            "does",
            "either",
            "using",
            "before",
        ),
    }
)
# Names of a password alone: a word behind them is one. Words behind `token` and `secret` are mostly prose.
_CHOSEN = re.compile(r"(?i:pass|pwd|pw\b|securestring)")


def is_chosen(value: str) -> bool:
    """Whether a word that stands for a password may be one: no reference, no code, no placeholder."""
    plain = value.lower()
    return not (
        is_harmless(value)
        or is_reference(value)
        or plain in _PLACEHOLDERS
        or plain in _DESCRIBES
        or (value.isupper() and value.replace("_", "").isalpha())
    )


def _is_made(text: str) -> bool:
    """Whether the last word of the match is no word of prose, and no reference."""
    value = re.split(r"[\s>]+", text.removesuffix("</"))[-1].strip(".,!?\"'\\")
    return (any(map(str.isdigit, value)) or looks_unlike_a_word(value)) and not is_reference(value)


def _is_flagged(text: str) -> bool:
    """The same behind an option; behind one for a password any word counts that describes no option."""
    name, value = re.split(r"[\s\"']+", text, maxsplit=1)
    chosen = _CHOSEN.search(name) is not None and len(value) > 3 and is_chosen(value.rstrip(".,\\"))
    return (chosen and value[:1] not in "[({$%" and not value.endswith(":")) or _is_made(text)


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
    value = re.split(rf"(?i:value|default|content){_VALUES}", text)[-1]
    if is_reference(value) or ("ontent" in text and not looks_unlike_a_word(value)):
        return False
    return _NAMED.search(text) is not None or _PASS.search(text) is not None or looks_generated(value)


_PASS = re.compile(r"(?i:pass|pw)\\*[\"']?[,;{\s\\]")


# Elements that show a text: their attributes say what it is about, and it is no value.
_SHOWN = re.compile(
    r"<(?:label|span|a|p|h[1-6]|li|t[dh]|div|button|option|title|legend|strong|em|b|i|small|param|summary)\s"
)


def _is_element(text: str) -> bool:
    """Whether an element that is only a key of something has a generated value."""
    name, value = text.removesuffix("</").rsplit(">", 1)
    if is_reference(value) or value.lower() in ("null", "none", "true", "false"):
        return False
    if _SHOWN.match(name) or value.lower() in _PLACEHOLDERS:
        return looks_unlike_a_word(value) and " " not in value
    return _NAMED.search(name) is not None or looks_generated(value) or is_uuid(value)


def _is_made_of(text: str) -> bool:
    """The same as `_is_made`; behind a mere `key` the value is a generated one."""
    value = re.split(r"[\s\"']", text.rstrip("\\"))[-1]
    made = looks_generated(value) or (len(value) > 15 and looks_random(value))
    return _is_made(text) and (_NAMED.search(text) is not None or made)


def _is_stated(text: str) -> bool:
    """The same in quotes; with a blank between a name of a password and its quotes any word counts: `PASSWORD 'x'`."""
    name, value = re.split(r"[\"']", text.rstrip("\\"), maxsplit=1)
    stated = name[-1:].isspace() or name.endswith("PASSWORD(")
    chosen = stated and _CHOSEN.search(name) is not None and is_chosen(value) and value[-1:].isalnum()
    return chosen or (len(value) > 7 and _is_made_of(text))


_OPTION = rf"(?:{_NAME}|(?i:bearer))"  # `--oauth2-bearer x`
FLAG = SecretPattern(
    "flag",
    form=rf"-(?<![\w-]-)-?[a-z0-9-]{{0,30}}?{_OPTION}\s{{1,4}}[\"']?(?P<secret>(?!-){_VALUE}{{4,}}+)",
    hint=rf"-[a-z0-9-]*{_OPTION}\s",
    opening=rf"(?<![\w-])--?[a-z0-9-]{{0,30}}?{_OPTION}(?:\s{{1,4}}[\"']?(?P<secret>{_VALUE}*+))?\Z",
    onset=rf"(?:^-|--|(?:^|\s)-[a-z0-9-]*$|-[a-z0-9-]*{_OPTION})",
    check=_is_flagged,
    sign="-",
    marks=(*_WORDS, "bearer"),
    delimited=True,
)
# `<key>API_KEY</key><string>x</string>`, `<setting name="Password" serializeAs="String"><value>x</value>`
_INNER = r"(?:</key>\s{0,16}<(?:string|value)|(?:\s\w{1,24}=[\"'][^\"'<>]{0,40}[\"']){0,3}>\s{0,16}<value)?"
_ELEMENT = rf"(?:(?i:passwords)|{_NAME}|(?i:key))"
ELEMENT = SecretPattern(
    "element",
    form=rf"[<>][\w:. =\"'-]{{0,60}}?{_ELEMENT}[\"']?{_INNER}>(?P<secret>[^<>]{{4,2000}})</(?!key>)",
    hint=rf"{_ELEMENT}[\"']?(?:>|</key|\s[A-Za-z]+=)",
    opening=rf"[<>][\w:. =\"'-]{{0,60}}?{_ELEMENT}[\"']?{_INNER}>(?P<secret>[^<>]{{0,2000}}+)(?:</?k?e?y?)?\Z",
    onset=rf"(?:<[\w:. =\"'-]*$|{_ELEMENT}[\"']?(?:>|</key>|\s[A-Za-z]))",
    check=_is_element,
    reach=2_560,
    sign=rf"{_ELEMENT}[\"']?(?:>|</key|\s[A-Za-z])",
    marks=(*_WORDS, "key", "passwords"),
    delimited=True,
)
# "the password for staging is", "was set to", "lautet", "for x:", "(new):"
_SAID = r"(?:is|ist|es|est|lautet|(?:was|has been|is now)(?: (?:re)?set| changed| updated)? to|(?:(?:re)?set|changed|updated) to|(?:from [^\s:]{1,40} )?to)"
_INTRODUCES = rf"(?:(?i:{_SAID}):?|(?i:for|of)\s(?:[^\s:]{{1,24}}\s){{0,3}}[^\s:]{{1,64}}(?::|\s(?i:{_SAID}):?)|\([a-z]{{1,10}}\):)"
_PHRASE = r"(?i:[a-z ]{0,24}):?"  # what may become one
_BEGUN = rf"(?:{_PHRASE}|(?i:for|of)\s(?:[^\s:]{{1,24}}\s){{0,3}}[^\s:]{{0,64}}(?::|\s{_PHRASE})?|\([a-z]{{0,10}}\)?:?)"
SENTENCE = SecretPattern(
    "sentence",
    form=rf"[pPtTsSaAkK](?<!\w[pPtTsSaAkK])(?:{_TAILS}|(?<=[kK])(?i:ey))\s{{1,4}}{_INTRODUCES}(?:\s{{1,4}}|(?<=:))(?P<secret>{_VALUE}{{6,}}+)",
    hint=rf"{_KEY_NAME}\s+(?i:is|for|of|was|has|lautet|from|to|set|reset|changed|updated|es|est|ist|\()",
    opening=rf"\b{_KEY_NAME}\s{{1,4}}(?:{_INTRODUCES}(?:\s{{1,4}}|(?<=:))(?P<secret>{_VALUE}*+)|{_BEGUN}?\s{{0,4}})\Z",
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
    form=rf"{_FAST_KEY}(?:\s{{1,4}}(?:--?\s)?|\(|\\*[\"']?\s?,\s{{0,4}})\\*[\"'](?P<secret>{_INSIDE}{{6,}}+)(?=\s?\\*[\"'])",
    hint=rf"{_KEY_NAME}(?:\s|\(|\\*[\"']?\s?,\s*)\s*(?:--?\s)?\\*[\"']",
    opening=rf"{_KEY_NAME}(?:\s{{1,4}}(?:--?\s?)?|\(|\\*[\"']?\s?(?:,\s{{0,4}})?|\\*)(?:\\*(?:[\"'](?P<secret>{_INSIDE}*+)\s?\\*)?)?\Z",
    onset=rf"{_KEY_NAME}(?:[\s,]|\(|\\|[\"']|$)",
    check=_is_stated,
    sign=rf"{_KEY_NAME}(?:[\s,]|\(|\\|[\"']|$)",
    marks=(*_WORDS, "key"),
    delimited=True,
)
# `auth_token 3f2a…`, "the key for staging: 3f2a…", `secret set API_KEY --body 3f2a…`; any other word after a name is prose.
_NEAR = r"(?<!ublic.key)(?<!che.key)(?<!mary.key)(?<!eign.key)(?<!ency.key)(?!:)[\s():*`>,\-]{1,4}(?:-{0,2}\w{1,12}[\s:*`\"']{1,3}){0,4}"
_RUN = r"[A-Za-z0-9_+/=-]"
SPACED = SecretPattern(
    "spaced",
    form=rf"{_FAST_KEY}{_NEAR}(?!(?i:key)[_/+=-])(?P<secret>{_RUN}{{20,}}+)(?![.\w@])",
    hint=rf"(?i:{_NAME}|key|access|private)[\s()*`>,\-]",
    besides=rf"[0-9]{_RUN}{{10}}|{_RUN}{{10}}[0-9]",  # it has a digit
    opening=rf"(?:{_NAME}|(?i:key|access|private))(?:{_NEAR}(?P<secret>{_RUN}*+)|[\s()*`>,\-]{{0,4}})\Z",
    onset=rf"(?i:{_NAME}|key|access|private)(?:[\s()*`>,\-]|$)",
    check=_is_machine_made,
    sign=rf"(?i:{_NAME}|key|access|private)(?:[\s()*`>,\-]|$)",
    marks=(*_WORDS, "key", "access", "private"),
    delimited=True,
)
# `{"name": "DB_PASSWORD", "value": "x"}`, in JSON, YAML or XML.
_NAMES = rf"(?:[nNkKfFlLhH](?:(?<=[nN])(?i:ame)|(?<=[kK])(?i:ey)|(?<=[fF])(?i:ield)|(?<=[lL])(?i:abel)|(?<=[hH])(?i:eader))\\*[\"']?\s{{0,4}}[:=]\s{{0,4}}\\*[\"']?|variable\s\\*\")[\w.-]{{0,40}}?(?:{_NAME}|(?i:key|pass|pw))\\*[\"']?"
_VALUES = r"\\*[\"']?\s{0,4}[:=]\s{0,4}\\*[\"']?"
_APART = r"(?:[,;{\s]|\\+[nrt]){1,16}"
_HELD = r"[^\s\"'\\<>,;{}&]"
# Other fields between the two: `type="password"`, `"secure": "yes",`.
_ALSO = rf"(?:\\*[\"']?[\w-]{{1,16}}\\*[\"']?\s{{0,4}}[:=]\s{{0,4}}\\*[\"'][^\"'\\\n]{{0,24}}\\*[\"']{_APART}){{0,2}}"
PAIR = SecretPattern(
    "pair",
    form=rf"{_NAMES}{_APART}{_ALSO}\\*[\"']?(?i:(?:parameter)?value|default|content){_VALUES}(?P<secret>{_HELD}{{4,}}+)",
    hint=rf"(?:{_NAME}|(?i:key|pass|pw))\\*[\"']?{_APART}\\*[\"']?[A-Za-z-]{{1,16}}\\*[\"']?\s*[:=]",
    opening=rf"{_NAMES}\\*(?:{_APART}{_ALSO}\\*[\"']?(?:(?i:(?:parameter)?value|default|content){_VALUES}(?P<secret>{_HELD}*+)"
    rf"|(?i:p?a?r?a?m?e?t?e?r?v?a?l?u?e?|de?f?a?u?l?t?|co?n?t?e?n?t?)\\*[\"']?\s{{0,4}}(?:[:=]\s{{0,4}}\\*)?|[\w-]{{0,16}}[^\w\n]{{0,8}}[\w]{{0,24}}[^\w\n]{{0,8}})?)?\Z",
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
    form=r"://(?P<secret>[A-Za-z0-9_-]{20,400}+)(?::(?:x-oauth-basic)?)?@",
    hint=r"://[A-Za-z0-9_-]{20,400}(?::(?:x-oauth-basic)?)?@",
    opening=r"://(?P<secret>[A-Za-z0-9_-]*+)(?::[a-z-]{0,13})?\Z",
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
# `Password: &quot;x&quot;`: quotes as HTML and XML write them.
_ENTITY = "&(?:quot|apos|#34|#39|#x27);"
ENTITY = SecretPattern(
    "entity",
    form=rf"{_FAST_KEY}(?:{_ENTITY})?(?:\s(?:is|was)|\s?[:=])?\s{{0,4}}{_ENTITY}(?P<secret>(?:(?!{_ENTITY})[^\s\"'<>\\]){{4,200}}+)(?={_ENTITY})",
    hint=_ENTITY,
    opening=rf"{_KEY_NAME}(?:{_ENTITY})?(?:\s(?:i?s?|w?a?s?)|\s?[:=])?\s{{0,4}}(?:{_ENTITY}(?P<secret>[^\s\"'<>\\]*+)|&[a-z#0-9]{{0,4}})?\Z",
    onset=rf"{_KEY_NAME}(?:&[a-z#0-9]*;?)?\s?(?:i?s?|w?a?s?|[:=])\s*(?:&[^\s]*)?$",
    check=lambda text: not is_reference(re.split(_ENTITY, text)[-1]),
    sign=_KEY_NAME,
    marks=("&quot;", "&apos;", "&#34;", "&#39;", "&#x27;"),
)
# `<input type="password" value="x">`, `WIFI:T:WPA;S:home;P:x;;`
_FIELD = r"type\\*[\"']?\s?[:=]\s?\\*[\"'](?i:password)\\*[\"']"
FIELD = SecretPattern(
    "field",
    form=rf"{_FIELD}[^<>{{}}\n]{{0,120}}?[\s,\"']value\\*[\"']?\s?[:=]\s?\\*[\"'](?P<secret>{_HELD}{{4,}}+)",
    hint=_FIELD,
    opening=rf"{_FIELD}[^<>{{}}\n]{{0,200}}\Z",
    onset=rf"{_FIELD}|type\\*[\"']?\s?[:=]",
    check=lambda text: is_chosen(re.split(r"[\"']", text)[-1]),
    sign=_FIELD,
    marks=("password",),
)
NETWORK = SecretPattern(
    "network",
    form=r"WIFI:[^\n\"']{0,120}?;?P:(?P<secret>[^;\s\"'\\]{4,})",
    hint="WIFI:",
    opening=r"WIFI:(?P<secret>[^\n\"'\s]{0,200})\Z",
    onset="WIFI:|WIFI$",
    sign="WIFI:",
    marks=("wifi:",),
)
WRITTEN_FORMS = (
    FIELD,
    NETWORK,
    FLAG,
    ELEMENT,
    SENTENCE,
    QUOTED,
    SPACED,
    PAIR,
    LOGIN,
    URL_TOKEN,
    NETRC,
    ENTITY,
)
