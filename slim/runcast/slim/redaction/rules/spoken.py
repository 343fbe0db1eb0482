"""Secrets in sentences: "the password is swordfish.", "OTP 123456", "creds: joe / x".

Knows English; words of other languages are in `written_logins.py`, and words before random characters in `written_forms.py`.
"""

from __future__ import annotations

import re

from runcast.slim.redaction.rules.written_forms import is_chosen
from runcast.slim.redaction.rules.written_logins import is_password, last_word
from runcast.slim.redaction.secret_pattern import SecretPattern, any_of

_VALUE = r"[^\s\"'`<>;|&\\]"
# "the password is swordfish." at the end of a sentence or of the text.
_PREDICATES = frozenset(
    {
        *(
            "wrong",
            "invalid",
            "incorrect",
            "correct",
            "empty",
            "blank",
            "strong",
            "short",
            "longer",
            "secret",
            "hidden",
        ),
        *(
            "known",
            "unknown",
            "valid",
            "secure",
            "unsafe",
            "never",
            "always",
            "plaintext",
            "string",
            "there",
            "where",
        ),
        *(
            "wrong",
            "right",
            "shown",
            "sensitive",
            "numeric",
            "public",
            "simple",
            "enough",
            "needed",
            "complex",
            "unset",
        ),
        *(
            "again",
            "missing",
            "null",
            "none",
            "true",
            "false",
            "below",
            "above",
            "changing",
            "hashed",
            "really",
            "private",
        ),
    }
)
_ENDINGS = ("ed", "ing", "able", "ible", "ly", "ful", "less", "ous", "ive", "ent", "ant", "ary", "al", "onal")


def _is_spoken(text: str) -> bool:
    value = last_word(text)
    plain = value.lower()
    return is_chosen(value) and plain not in _PREDICATES and not plain.endswith(_ENDINGS)


_SAYS = "(?i:is|was|=|will be|(?:was |is |has been )?(?:set|changed|reset|updated) to)"
_PASSWORD = "(?i:password|passphrase|passcode)"
SPOKEN = SecretPattern(
    "spoken",
    form=rf"[pP](?<![A-Za-z0-9_][pP])(?i:ass(?:word|phrase|code))\s{_SAYS}\s{{1,2}}[\"'`]?(?P<secret>[A-Za-z0-9_-]{{6,64}}+)(?=[.,!;\"'`\n]|\Z)",
    hint=rf"{_PASSWORD}\s{_SAYS}\s",
    opening=rf"{_PASSWORD}(?:\s(?:(?:{_SAYS}|(?i:[a-z ]{{0,24}}))(?:\s{{1,2}}[\"'`]?(?P<secret>[A-Za-z0-9_-]*+))?)?)?\Z",
    onset=rf"{_PASSWORD}(?:\s|$)",
    check=_is_spoken,
    sign=_PASSWORD,
    marks=("password", "passphrase", "passcode"),
    delimited=True,
)
# "my pin is 1234", "Your verification code is 123456", "OTP 123456".
_CODES = (
    *(
        "verification code",
        "security code",
        "login code",
        "access code",
        "confirmation code",
        "authentication code",
    ),
    *(
        "sms code",
        "2fa code",
        "mfa code",
        "one-time code",
        "one time code",
        "backup code",
        "otp",
        "pin",
        "passcode",
    ),
)
_CODE = f"(?i:{any_of(_CODES)})"
CODE = SecretPattern(
    "code",
    form=rf"(?<![A-Za-z0-9]){_CODE}(?:\s(?i:code|number))?(?:\s?:|\s(?i:is|was|to)(?:\snow)?:?)?\s{{1,2}}[`\"']?(?P<secret>[0-9]{{4,8}})(?![\w-])",
    hint=rf"{_CODE}[\sa-zA-Z:]{{1,20}}[`\"']?[0-9]{{4}}",
    opening=rf"{_CODE}(?:[\sa-zA-Z:]{{1,20}}[`\"']?(?P<secret>[0-9]*+)|[\sa-zA-Z:]{{0,20}})\Z",
    onset=rf"{_CODE}(?:[\sa-zA-Z:]|$)",
    check=lambda text: True,
    sign=_CODE,
    marks=_CODES,
    delimited=True,
)
# "admin:X", "creds: joe / X", "log in with admin and X": what follows is no word.
_PLACES = ("sftp", "ftp", "ssh", "wifi", "vpn", "smb")
_USERS = ("admin", "root", "administrator")
_ACCESS = ("creds", "credentials", "login", "log in", *_PLACES)
_HOLDER = f"(?i:{any_of((*_USERS, *_ACCESS))})"


def _is_account(text: str) -> bool:
    value = re.split(r"(?<=\w)[:/]|\s[/:]\s|:\s|\s(?i:and)\s", text)[-1].strip(",.`\"'")
    return is_password(value) and not re.search(r"[/:@()\[]|=(?=[^=])", value)


ACCOUNT = SecretPattern(
    "account",
    form=rf"(?<![\w/.@-])(?:(?i:{any_of(_USERS)})\s?[:/]\s?|(?i:{any_of(_ACCESS)})(?:\s(?i:are|is|with|as))?:?\s[\w.@+-]{{1,64}}(?:\s?[:/]\s?|\s(?i:and)\s))[`\"']?(?P<secret>{_VALUE}{{8,64}}+)",
    hint=rf"{_HOLDER}[:\s/]",
    opening=rf"{_HOLDER}(?:[:\s/][^\n]{{0,160}})?\Z",
    onset=rf"{_HOLDER}(?:[:\s/]|$)",
    check=_is_account,
    sign=_HOLDER,
    marks=(*_USERS, *_ACCESS),
    delimited=True,
)

SENTENCES = (SPOKEN, CODE, ACCOUNT)
