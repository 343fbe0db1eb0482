"""Secrets as arguments of calls: `auth=("joe", "x")`, `Client("3f2a…")`, `SecretStr("x")`, `jwt.sign(payload, "x")`.

Knows the names of calls; what a program assigns is found by its name.
"""

from __future__ import annotations

import re

from runcast.slim.redaction.rules.written_forms import is_chosen
from runcast.slim.redaction.rules.written_logins import is_password, last_word
from runcast.slim.redaction.secret_pattern import SecretPattern, any_of
from runcast.slim.redaction.secret_values import is_reference, is_uuid, looks_random

# `auth=("joe", "x")`, `login("joe", "x")`, `getConnection(url, "root", "x")`.
_CALLS = (
    "auth",
    "basicauth",
    "getconnection",
    "connect",
    "login",
    "authenticate",
    "credentials",
    "sequelize",
    "networkcredential",
    "pdo",
    "sign_in",
)
_OPENS = r"\s?=?\s?\("
_CALL = f"(?i:{any_of(_CALLS)})" + _OPENS
_STRING = r"\\*[\"']"
# The last string of these calls is a password; that of the others may be a table or a host.
_ACCOUNTS = re.compile(r"(?i:login|auth|getconnection|networkcredential|pdo|sign_in)")


def _is_passed(text: str) -> bool:
    return is_password(text) or (_ACCOUNTS.match(text) is not None and is_chosen(last_word(text)))


CALL = SecretPattern(
    "call",
    form=rf"{_CALL}(?:[^()\n]{{0,120}},\s?)?{_STRING}[^\"'\n()]{{1,64}}{_STRING},\s?{_STRING}(?P<secret>[^\s\"'`()\\]{{6,}}){_STRING}(?=\s?[,)])",
    hint=_CALL,
    opening=rf"{_CALL}[^()\n]{{0,256}}\Z",
    onset=rf"{_CALL}|(?:^|[a-z])\s?=?\s?\($|(?i:{any_of(_CALLS)})\s?=?\s?$",
    check=_is_passed,
    sign=_CALL,
    marks=tuple(f"{call}{rest}" for call in _CALLS for rest in ("(", "=(", " (", " = (", "= (", " =(")),
)
# `Client("3f2a…")`, `bot.login("3f2a…")`: the one argument looks generated.
_MAKERS = (
    *_CALLS,
    "client",
    "api",
    "bot",
    "authorize",
    "sdk",
    "configure",
    "init",
    "setup",
    "token",
    "key",
    "secret",
    "minio",
    "load",
    "reader",
    "loader",
    "wrapper",
    "actor",
    "provider",
)
_MAKER = f"(?i:{any_of(_MAKERS)})" + r"\("


def _is_argument(text: str) -> bool:
    """Whether the argument is random; as one of several, a hash counts as well."""
    *before, value, _ = re.split(r"\\*[\"']", text)
    hexadecimal = _HEX.fullmatch(value) is not None or is_uuid(value)
    return looks_random(value) or (hexadecimal and (len(before) > 2 or _OWN.match(text) is not None))


_HEX = re.compile(r"[0-9a-f]{32,64}")
# These calls make a client: their one argument is no id of a thing.
_OWN = re.compile(
    "(?i:client|bot|authorize|sdk|configure|setup|login|authenticate|reader|wrapper|actor|provider)"
)
# `Password: config.NewSecret([]byte("x"))`, `token = SecretStr("x")`: a call that only wraps.
_WRAPPERS = (
    "newsecret",
    "secretstr",
    "securestring",
    "buffer.from",
    "b64decode",
    "fromstring",
    "from_str",
    "new string",
    "[]byte",
    "fromhex",
)
_WRAPPER = f"(?i:{any_of(_WRAPPERS)})" + r"\("
WRAPPED = SecretPattern(
    "wrapped",
    form=rf"(?i:passw(?:or)?d|secret|token|key)[\"']?\s?(?::?=|:)\s{{0,24}}[\w.]{{0,24}}?{_WRAPPER}(?:\[\]byte\()?{_STRING}(?P<secret>[^\s\"'\\]{{6,}}){_STRING}",
    hint=_WRAPPER,
    opening=rf"{_WRAPPER}[^()\n]{{0,256}}\Z",
    onset=rf"{_WRAPPER}|(?:^|[a-z])\($|(?i:{any_of(_WRAPPERS)})$",
    check=lambda text: not is_reference(last_word(text)),
    sign=_WRAPPER,
    marks=tuple(f"{each}(" for each in _WRAPPERS),
)
CLIENT = SecretPattern(
    "client",
    form=rf"{_MAKER}(?:{_STRING}[^\"'\n()]{{1,64}}{_STRING},\s?(?=\\*[\"'])){{0,2}}+{_STRING}(?P<secret>[A-Za-z0-9_.=+/-]{{16,}}){_STRING}(?=\s?[,)])",
    hint=rf"{_MAKER}{_STRING}",
    opening=rf"{_MAKER}[^()\n]{{0,320}}\Z",
    onset=rf"{_MAKER}|(?:^|[a-z])\($|(?i:{any_of(_MAKERS)})$",
    check=_is_argument,
    sign=_MAKER,
    marks=tuple(f"{call}(" for call in _MAKERS),
)
# `jwt.sign(payload, "x")`, `hmac.new(b"x", …)`
_CIPHERS = (
    "jwt.sign",
    "jwt.verify",
    "jwt.encode",
    "jwt.decode",
    "createhmac",
    "hmac.new",
    "fernet",
    "aes.new",
    "cookieparser",
    "createcipheriv",
)
_CIPHER = f"(?i:{any_of(_CIPHERS)})" + r"\("
CIPHER = SecretPattern(
    "cipher",
    form=rf"{_CIPHER}(?:[^()\n]{{0,80}},\s?)??b?{_STRING}(?P<secret>[^\s\"'\\]{{8,}}){_STRING}",
    hint=_CIPHER,
    opening=rf"{_CIPHER}[^()\n]{{0,256}}\Z",
    onset=rf"{_CIPHER}|(?:^|[a-z])\($|(?i:{any_of(_CIPHERS)})$",
    check=lambda text: is_password(text) and len(last_word(text)) > 11,
    sign=_CIPHER,
    marks=tuple(f"{each}(" for each in _CIPHERS),
)

# `process.env.API_TOKEN || "x"`, `os.getenv("DB_PASSWORD") or "x"`, `${DB_PASSWORD:-x}`
_KINDS = r"(?i:passw(?:or)?d|pass|pwd|secret|token|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key)"
_ENDED = r"\\*[\"']?[\])]?"
_ELSE = rf"(?:\s{{0,2}}(?:\|\||\?\?|\?:|//)=?\s{{0,2}}|(?<=\))\s[?:]\s|\s(?:or)\s|:-){_STRING}"
_STRINGED = rf"(?:{_ELSE}|:-|=[\"']?\$\{{\w{{1,40}}:-)"
_CHOSEN = re.compile("(?i:pass|pwd)")  # behind other names a word is a kind or a default
FALLBACK = SecretPattern(
    "fallback",
    form=rf"{_KINDS}{_ENDED}{_STRINGED}(?P<secret>[^\s\"'`()\\{{}}]{{6,}})",
    hint=rf"{_KINDS}{_ENDED}\s{{0,2}}(?:\|\||\?\?|\?:|//|or\s|:-|[?:]\s|=[\"']?\$\{{)",
    opening=rf"{_KINDS}{_ENDED}(?:{_STRINGED}(?P<secret>[^\s\"'`()\\{{}}]*+)|\s{{0,2}}[|?:/o-]{{0,2}}r?\s{{0,2}}\\*|=[\"']?(?:\$(?:\{{\w{{0,40}}:?)?)?)\Z",
    onset=rf"{_KINDS}{_ENDED}(?:$|[\s|?/]|:-|:$|=[\"']?(?:$|\$))",
    check=lambda text: is_password(text) or (_CHOSEN.match(text) is not None and is_chosen(last_word(text))),
    sign=_KINDS,
    marks=(
        "passw",
        "pass",
        "pwd",
        "secret",
        "token",
        "api key",
        "api_key",
        "api-key",
        "apikey",
        "access",
        "private",
    ),
)

# `user, password = "joe", "x"`
_SECOND = rf",\s?[\w.$]{{0,24}}{_KINDS}[0-9]{{0,2}}(?:\sstring)?\s{{0,2}}:?="
_FIRST = rf"\s{{0,2}}{_STRING}[^\"'\n\\]{{1,64}}{_STRING},\s?"
TUPLE = SecretPattern(
    "tuple",
    form=rf"{_SECOND}{_FIRST}{_STRING}(?P<secret>[^\s\"'`()\\{{}}]{{4,}}){_STRING}",
    hint=rf"{_KINDS}[0-9]*(?:\sstring)?\s*:?=\s*{_STRING}",
    opening=rf"{_SECOND}{_FIRST}\\*(?:[\"'](?P<secret>[^\s\"'`()\\{{}}]*+)\\*)?\Z",
    onset=rf",\s?[A-Za-z0-9_.$]*{_KINDS}[0-9]*(?:\s?[string]*\s?:?$|(?:\sstring)?\s?:?=)",
    check=lambda text: is_chosen(last_word(text)),
    sign=_KINDS,
    marks=FALLBACK.marks,
)

# `setPassword("x")`, `props.put("db.password", "x")`, `password.equals("x")`, `password string = "x"`
_PASSWORDS = "(?i:password|passwd|passphrase|pwd)"
_SETTERS = ("put", "set", "property", "item", "get", "getenv", "default", "append", "add", "value", "header")
_SETTER = rf"(?i:{any_of(_SETTERS)})\(\s?{_STRING}[\w.-]{{0,40}}?{_PASSWORDS}{_STRING},"
_TAKES = rf"(?:(?:[sS]et|[wW]ith)_?{_PASSWORDS}\(|{_PASSWORDS}\w{{0,8}}\.equals(?:IgnoreCase)?\(|{_SETTER}|{_PASSWORDS}[0-9]{{0,2}}\s(?:string|\[\]byte)\s?=)"
_TAKEN = (
    rf"{_PASSWORDS}(?:\(|[A-Za-z0-9_]*\.equals|\\*[\"'],|[0-9]*\s(?:string|\[\]byte))"  # in linear syntax
)
PASSED = SecretPattern(
    "passed",
    form=rf"{_TAKES}\s?{_STRING}(?P<secret>[^\s\"'`()\\{{}}]{{4,}}){_STRING}",
    hint=_TAKEN,
    opening=rf"{_TAKES}\s?\\*(?:[\"'](?P<secret>[^\s\"'`()\\{{}}]*+)\\*)?\Z",
    onset=rf"{_TAKEN}|{_PASSWORDS}[A-Za-z0-9_]*(?:$|\.[a-zA-Z]*$|\\*[\"']?$|\s[\[\]a-z]*\s?$)",
    check=lambda text: is_chosen(last_word(text)),
    sign=_PASSWORDS,
    marks=("password", "passwd", "passphrase", "pwd"),
)
# `password = ["x", "y"]`
_LIST = rf"{_PASSWORDS}s?\s?[:=]\s?\["
_item = re.compile(rf"{_STRING}(?P<value>[^\"'\n\\,]{{4,80}}){_STRING}")
LISTED = SecretPattern(
    "listed",
    form=rf"{_LIST}\s{{0,8}}(?:{_STRING}[^\"'\n\\]{{1,80}}{_STRING}[,\s]{{0,8}}){{1,20}}\]",
    hint=_LIST,
    reach=2_048,
    opening=rf"{_LIST}(?P<secret>[^\]\n]{{0,800}}+)\Z",
    onset=rf"{_PASSWORDS}s?(?:\s?[:=]\s?\[|\s?[:=]\s?$)",
    sign=_LIST,
    marks=PASSED.marks,
    parts=lambda text: (match.span("value") for match in _item.finditer(text) if is_chosen(match["value"])),
)

CALLS = (CALL, WRAPPED, CLIENT, CIPHER, FALLBACK, TUPLE, PASSED, LISTED)
