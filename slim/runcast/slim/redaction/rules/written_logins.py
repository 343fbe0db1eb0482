"""Secrets without a name before them, as programs, tables and people write them: `auth=("joe", "x")`, `IDENTIFIED BY 'x'`,
`| api key | x |`, "use joe and the password x", "la contraseña es x".

Knows tables, statements and words of several languages; calls are in `calls.py`, sentences in `spoken.py`.
"""

from __future__ import annotations

import re

from runcast.slim.redaction.rules.written_forms import is_chosen
from runcast.slim.redaction.secret_pattern import SecretPattern, any_of
from runcast.slim.redaction.secret_values import (
    is_reference,
    is_uuid,
    looks_generated,
    looks_unlike_a_word,
)

_VALUE = r"[^\s\"'`<>;|&\\]"
# Words with a number that follow `password` in prose: "password sha256 hashes", "password oauth2 flow".
_VERSIONED = re.compile(
    r"(?i:sha|md|oauth|base|utf|argon|b?s?crypt|pbkdf|ntlm|http|level|step|rfc|win|ipv|v|p|s|x|arg|field|part|line|section)"
    r"-?[0-9.]{1,8}[a-z]?[:.,]?"
)


def last_word(text: str) -> str:
    """The last word of a match, without the quotes and signs around it."""
    return re.split(r"[\s\"'`>|]+", text.rstrip("\"'`\\|"))[-1].strip("*.,!?\"'\\)(")


def is_password(text: str) -> bool:
    """Whether the last word of the match is unlike one, and is neither a reference nor a word with a number."""
    value = last_word(text)
    return looks_unlike_a_word(value) and not is_reference(value) and _VERSIONED.fullmatch(value) is None


def _is_strong_password(text: str) -> bool:
    """The same behind `pass`, which is a verb as well: the word is longer, and has a capital or a sign in it."""
    value = last_word(text)
    return is_password(text) and len(value) > 7 and not (value.islower() and value.isalnum())


def _is_key(text: str) -> bool:
    """The same of a key, which is longer than a password: a UUID counts as well."""
    value = last_word(text)
    return looks_generated(value) or is_uuid(value)


# `CREATE USER a IDENTIFIED BY 'x'`.
STATEMENT = SecretPattern(
    "statement",
    form=rf"(?i:identified)\s{{1,4}}(?:(?i:with)\s{{1,4}}[^\s;]{{1,40}}\s{{1,4}})?(?i:by|as)\s{{1,4}}(?:(?i:password)\s{{1,4}})?\\*[\"'`]?"
    rf"(?P<secret>{_VALUE}{{4,}}+)",
    hint=r"(?i:identified\s+(?:by|as|with))",
    opening=r"(?i:identified)(?:\s[^\n;]{0,120}+)?\Z",
    onset=r"(?i:identified)",
    check=lambda text: not is_reference(last_word(text)),
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
    word = f"(?i:{any_of(words)})"
    starts = "".join(sorted({each[0] + each[0].upper() for each in words}))
    return SecretPattern(
        name,
        form=rf"[{starts}](?<=(?<![A-Za-z0-9])[{starts}])(?:{_tails(words)}){between}(?P<secret>{_VALUE}{{{least},}}+)",
        hint=rf"{word}{sign}",
        opening=rf"{word}(?:{between}(?P<secret>{_VALUE}*+)|[*_`\"\s|]{{0,40}})\Z",
        onset=rf"{word}(?:[*_`\"'\s|]|$)",
        sign=rf"{word}(?:[*_`\"'\s|]|$)",
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
CHAT = _cells("chat", _SECRETS, r"(?:'s)?\s{1,4}(?:--?>?\s{1,2})?[`\"']?", r"[\s']", 6, check=is_password)
PASS = _cells("pass", ("pass",), r"\s{1,4}[`\"']?", r"\s", 8, check=_is_strong_password)
_COLON = "\N{FULLWIDTH COLON}"
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


def _is_foreign(text: str) -> bool:
    """Behind a colon any word counts, as behind a name in English."""
    value = last_word(text)
    chosen = (
        text.removesuffix(value).rstrip(" `\"'")[-1:] in f":={_COLON}" and is_chosen(value) and len(value) > 5
    )
    return chosen or is_password(text)


def _foreign(name: str, terms: tuple[str, ...], behind: str) -> SecretPattern:
    word = f"(?i:{any_of(terms)})"
    return SecretPattern(
        name,
        form=rf"{word}(?:\s\w{{1,12}})?{behind}[`\"']?(?P<secret>{_VALUE}{{6,}}+)",
        hint=word,
        opening=rf"{word}(?:(?:\s\w{{1,12}})?{behind}[`\"']?(?P<secret>{_VALUE}*+)|[^\n]{{0,24}})\Z",
        onset=rf"{word}",
        check=_is_foreign,
        sign=word,
        marks=terms,
    )


FOREIGN = (
    _foreign("latin", _LATIN, rf"(?:\s?[:=]\s?|\s(?i:{_VERBS})(?:\s|:\s)|\s)"),
    _foreign(
        "foreign",
        (*_OTHER, *_LATIN),
        rf"(?:\s?[:{_COLON}=]\s?|は\s?|是\s?|为\s?|\s(?i:{_VERBS}|é|è|är|это|là)(?:\s|:\s)|\s)",
    ),
)
# A line of `.pgpass`, and the last column of a statement: `INSERT INTO users (name, password) VALUES ('joe', 'x')`.
_PORTS = "5432|5433|6432|3306|1433|\\*"
PGPASS = SecretPattern(
    "pgpass",
    form=rf"[\w.*-]:(?:{_PORTS}):[\w.*-]{{1,64}}:[\w.*-]{{1,64}}:(?P<secret>[^\s:\"'/\\]{{4,}}+)",
    hint=rf":(?:{_PORTS}):[A-Za-z0-9_.*-]+:[A-Za-z0-9_.*-]+:",
    opening=rf"[\w.*-]:(?:{_PORTS}):(?:[\w.*-]{{1,64}}:[\w.*-]{{1,64}}:(?P<secret>[^\s:\"'/\\]*+)|[\w.*:-]{{0,64}})\Z",
    onset=rf":(?:{_PORTS}):|:[0-9*]{{0,4}}$|^[0-9*]{{1,4}}:",
    check=lambda text: not is_reference(text.rpartition(":")[2]),
    sign=rf":(?:{_PORTS}):",
    marks=(":5432:", ":5433:", ":6432:", ":3306:", ":1433:", ":*:"),
)
INSERTED = SecretPattern(
    "inserted",
    form=r"(?i:passw(?:or)?d|token|secret|api_key)[\"`\]]?\s?\)\s{1,4}(?i:values)\s{0,4}\((?:[^()\n]{0,200},\s?)?'(?P<secret>[^'\s]{4,})'\s?\)",
    hint=r"[\"`\]]?\s?\)\s+(?i:values)",
    opening=r"(?i:passw(?:or)?d|token|secret|api_key)[\"`\]]?\s?(?:\)[^\n]{0,256})?\Z",
    onset=r"(?i:passw(?:or)?d|token|secret|api_key)[\"`\]]?\s?(?:\)|$)",
    check=lambda text: is_chosen(re.split("'", text)[-2]),
    sign=r"\)|(?i:passw|token|secret|api_key)",
    marks=(") values",),
)
WRITTEN_LOGINS = (PGPASS, INSERTED, STATEMENT, TABLE, KEY_TABLE, CHAT, PASS, *FOREIGN)
