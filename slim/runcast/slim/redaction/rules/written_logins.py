"""Secrets without a name before them, as programs, tables and people write them: `auth=("joe", "x")`, `IDENTIFIED BY 'x'`,
`| api key | x |`, "use joe and the password x", "la contraseña es x".

Knows calls, statements and words of several languages; names before `:` or `=` are in `key_names.py`.
"""

from __future__ import annotations

import re

from runcast.slim.redaction.secret_pattern import SecretPattern
from runcast.slim.redaction.secret_values import is_reference, is_uuid, looks_generated, looks_random

_VALUE = r"[^\s\"'`<>;|&\\]"
# Words with a number that follow `password` in prose: "password sha256 hashes", "password oauth2 flow".
_VERSIONED = re.compile(
    r"(?i:sha|md|oauth|base|utf|argon|b?s?crypt|pbkdf|ntlm|http|level|step|rfc|win|ipv|v|p|s|x|arg|field|part|line|section)"
    r"-?[0-9.]{1,8}[a-z]?[:.,]?"
)


def _last(text: str) -> str:
    return re.split(r"[\s\"'`>|]+", text.rstrip("\"'`\\|"))[-1].strip("*.,!?\"'\\)(")


def is_password(text: str) -> bool:
    """Whether the last word of the match has letters and digits and is neither a reference nor a word with a number."""
    value = _last(text)
    both = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return both and not is_reference(value) and _VERSIONED.fullmatch(value) is None


def _is_strong_password(text: str) -> bool:
    """The same behind `pass`, which is a verb as well: the word is longer, and has a capital or a sign in it."""
    value = _last(text)
    return is_password(text) and len(value) > 7 and not (value.islower() and value.isalnum())


def _is_key(text: str) -> bool:
    """The same of a key, which is longer than a password: a UUID counts as well."""
    value = _last(text)
    return looks_generated(value) or is_uuid(value)


def _ends(words: tuple[str, ...], behind: str = "[^A-Za-z]") -> str:
    """What a delta begins with when the last part of one of the words is in it: nothing in `ret (` itself shows a secret."""
    rests = sorted({word[at:] for word in words for at in range(1, len(word))}, key=len, reverse=True)
    return rf"^(?i:{'|'.join(map(re.escape, rests))})(?:{behind}|$)"


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
)
_OPENS = r"\s?=?\s?\("
_CALL = "(?i:" + "|".join(_CALLS) + ")" + _OPENS
_STRING = r"\\*[\"']"
CALL = SecretPattern(
    "call",
    form=rf"{_CALL}(?:[^()\n]{{0,120}},\s?)?{_STRING}[^\"'\n()]{{1,64}}{_STRING},\s?{_STRING}(?P<secret>[^\s\"'`()\\]{{6,}}){_STRING}",
    hint=_CALL,
    opening=rf"{_CALL}[^()\n]{{0,256}}\Z",
    onset=rf"{_CALL}|(?:^|[a-z])\s?=?\s?\($|{_ends(_CALLS, _OPENS)}|(?i:{'|'.join(_CALLS)})\s?=?\s?$",
    check=is_password,
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
)
_MAKER = "(?i:" + "|".join(_MAKERS) + r")\("
CLIENT = SecretPattern(
    "client",
    form=rf"{_MAKER}{_STRING}(?P<secret>[A-Za-z0-9_.=+/-]{{16,}}){_STRING}",
    hint=rf"{_MAKER}{_STRING}",
    opening=rf"{_MAKER}\\*(?:[\"'](?P<secret>[A-Za-z0-9_.=+/-]*+)\\*)?\Z",
    onset=rf"{_MAKER}|(?:^|[a-z])\($|{_ends(_MAKERS, _OPENS)}|(?i:{'|'.join(_MAKERS)})$",
    check=lambda text: looks_random(re.split(r"[\"']", text)[1].rstrip("\\")),
    sign=_MAKER,
    marks=tuple(f"{call}(" for call in _MAKERS),
)
# `CREATE USER a IDENTIFIED BY 'x'`.
STATEMENT = SecretPattern(
    "statement",
    form=rf"(?i:identified)\s{{1,4}}(?:(?i:with)\s{{1,4}}[^\s;]{{1,40}}\s{{1,4}})?(?i:by|as)\s{{1,4}}(?:(?i:password)\s{{1,4}})?\\*[\"'`]?"
    rf"(?P<secret>{_VALUE}{{4,}}+)",
    hint=r"(?i:identified\s+(?:by|as|with))",
    opening=r"(?i:identified)(?:\s[^\n;]{0,120}+)?\Z",
    onset=rf"(?i:identified)|{_ends(('identified',))}",
    check=lambda text: not is_reference(_last(text)),
    sign=r"(?i:identified)",
    marks=("identified",),
    delimited=True,
)
# `| api key | x |`, and the same in a chat: "password x", "api key x".
_SECRETS = ("password", "passwort", "passwd", "passphrase", "passcode", "pwd", "pw")
_KEYS = ("apikey", "key", "token", "secret", "access", "private", "credential", "credentials")
_ENDS = r"[*_`\"]{0,3}\s{0,16}\|\s{0,16}[*_`\"]{0,3}"


def _cells(
    name: str, words: tuple[str, ...], between: str, sign: str, least: int, **options: object
) -> SecretPattern:
    word = "(?i:" + "|".join(words) + ")"
    starts = "".join(sorted({each[0] + each[0].upper() for each in words}))
    return SecretPattern(
        name,
        form=rf"[{starts}](?<=(?<![A-Za-z0-9])[{starts}])(?:{_tails(words)}){between}(?P<secret>{_VALUE}{{{least},}}+)",
        hint=rf"{word}{sign}",
        opening=rf"{word}(?:{between}(?P<secret>{_VALUE}*+)|[*_`\"\s|]{{0,40}})\Z",
        onset=rf"{word}(?:[*_`\"\s|]|$)|{_ends(words)}",
        sign=rf"{word}(?:[*_`\"\s|]|$)",
        marks=words,
        delimited=True,
        **options,  # type: ignore[arg-type]  # the rest of the pattern
    )


def _tails(words: tuple[str, ...]) -> str:
    by_letter: dict[str, list[str]] = {}
    for word in words:
        by_letter.setdefault(word[0], []).append(word[1:])
    return "|".join(
        rf"(?<=[{letter}{letter.upper()}])(?i:{'|'.join(sorted(rests, reverse=True))})"
        for letter, rests in by_letter.items()
    )


TABLE = _cells("table", _SECRETS, _ENDS, r"[*_`\"]*\s*\|", 6, check=is_password)
KEY_TABLE = _cells("key table", _KEYS, _ENDS, r"[*_`\"]*\s*\|", 12, check=_is_key)
CHAT = _cells("chat", _SECRETS, r"\s{1,4}[`\"']?", r"\s", 6, check=is_password)
PASS = _cells("pass", ("pass",), r"\s{1,4}[`\"']?", r"\s", 8, check=_is_strong_password)
# Passwords in other languages: a word, a verb or a sign, and a value with letters and digits.
_LATIN = (
    *(
        "mot de passe",
        "kennwort",
        "passwort",
        "contrasena",
        "clave",
        "senha",
        "palavra-passe",
        "parola d'ordine",
        "wachtwoord",
        "haslo",
        "adgangskode",
    ),
    *("passord", "salasana", "heslo", "parola", "sifre", "lozinka", "kata sandi"),
)
_OTHER = (
    *(
        "contraseña",
        "la password",
        "hasło",
        "lösenord",
        "jelszó",
        "parolă",
        "şifre",
        "пароль",
        "лозинка",
        "mật khẩu",
        "κωδικός",
    ),
    *(
        "パスワード",
        "暗証番号",
        "密码",
        "密碼",
        "口令",
        "비밀번호",
        "암호",
        "비번",
        "รหัสผ่าน",
        "पासवर्ड",
        "סיסמה",
        "كلمة المرور",
    ),
)
_VERBS = "est|es|e|ist|is|jest|je|er|on|to|adalah"


def _foreign(name: str, terms: tuple[str, ...], behind: str) -> SecretPattern:
    word = "(?i:" + "|".join(map(re.escape, terms)) + ")"
    return SecretPattern(
        name,
        form=rf"{word}(?:\s\w{{1,12}})?{behind}[`\"']?(?P<secret>{_VALUE}{{6,}}+)",
        hint=word,
        opening=rf"{word}(?:(?:\s\w{{1,12}})?{behind}[`\"']?(?P<secret>{_VALUE}*+)|[^\n]{{0,24}})\Z",
        onset=rf"{word}|{_ends(terms)}",
        check=is_password,
        sign=word,
        marks=terms,
    )


_COLON = "\N{FULLWIDTH COLON}"
FOREIGN = (
    _foreign("latin", _LATIN, rf"(?:\s?[:=]\s?|\s(?i:{_VERBS})(?:\s|:\s)|\s)"),
    _foreign(
        "foreign",
        (*_OTHER, *_LATIN),
        rf"(?:\s?[:{_COLON}=]\s?|は\s?|是\s?|为\s?|\s(?i:{_VERBS}|é|è|är|это|là)(?:\s|:\s)|\s)",
    ),
)
WRITTEN_LOGINS = (CALL, CLIENT, STATEMENT, TABLE, KEY_TABLE, CHAT, PASS, *FOREIGN)
