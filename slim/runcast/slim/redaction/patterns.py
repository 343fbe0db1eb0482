"""The forms of secrets that are searched by default, and two that are not.

Knows credentials that many programs share; those of one service each are in `rules/services.py`.
"""

from __future__ import annotations

from runcast.slim.redaction.key_names import DEFAULT_KEYS
from runcast.slim.redaction.rules.addresses import WEBHOOK
from runcast.slim.redaction.rules.calls import CALLS
from runcast.slim.redaction.rules.columns import COLUMNS
from runcast.slim.redaction.rules.program_arguments import COMMANDS
from runcast.slim.redaction.rules.service_names import SERVICE_NAME
from runcast.slim.redaction.rules.services import SERVICES
from runcast.slim.redaction.rules.shapes import SHAPES
from runcast.slim.redaction.rules.spoken import SENTENCES
from runcast.slim.redaction.rules.written_forms import WRITTEN_FORMS
from runcast.slim.redaction.rules.written_logins import WRITTEN_LOGINS
from runcast.slim.redaction.secret_pattern import RUN_CLASS, SecretPattern, announced, luhn, prefixed
from runcast.slim.redaction.secret_values import is_reference

__all__ = ["CARD_NUMBER", "DEFAULT_KEYS", "DEFAULT_PATTERNS", "EMAIL", "SecretPattern"]

# Base64 in lines, and the headers of encrypted keys. A quote or a bracket ends a key that has no END line.
_BROKEN = r"\\++(?![\"'])"  # of an escaped line break; before a quote it is of the JSON around the key
# Between the lines of a key that a program joins: `"MII…\n" + "…"`.
_JOINED = r"\\*+[\"']\s{0,8}[+.,]?(?:\\+n|\s){0,40}[+.,]?\s{0,8}\\*+[\"']"
_PEM_BODY = rf"(?:[A-Za-z0-9+/=\s:,.]|{_BROKEN}|-(?!----END)|{_JOINED}(?=[A-Za-z0-9+/=]{{32}})){{0,16384}}+"
_PEM_GROWS = r"(?:\\*+[\"'][\s+.,\\n]{0,60}+(?:[\"'][A-Za-z0-9+/=]{0,31}+)?)?"
_PUTTY_BODY = rf"(?:[A-Za-z0-9+/=\s]|{_BROKEN}){{0,16384}}+"
_PEM_BEGIN = r"-----BEGIN [A-Za-z0-9 ]{0,40}(?:PRIVATE KEY(?: BLOCK)?|NKEY SEED|Static key V1)-----"
PRIVATE_KEY = SecretPattern(
    "private_key",
    form=rf"{_PEM_BEGIN}(?P<secret>{_PEM_BODY})",
    hint="(?:PRIVATE KEY|NKEY SEED|Static key V1)",
    opening=rf"{_PEM_BEGIN}(?P<secret>{_PEM_BODY}){_PEM_GROWS}\Z",
    onset="(?:^-|--)",  # its first line may end in any dash
    sign="(?:PRIVATE KEY|NKEY SEED|Static key V1)",
    marks=("private key", "nkey seed", "static key"),
)
PUTTY_KEY = SecretPattern(
    "putty_key",
    form=rf"Private-Lines: [0-9]{{1,3}}(?P<secret>{_PUTTY_BODY})",
    hint="Private-Lines",
    opening=rf"Private-Lines: [0-9]{{1,3}}(?P<secret>{_PUTTY_BODY})\Z",
    onset="Private-Lines",
    sign="Private-Lines",
    marks=("private-lines",),
)
_NUMBERED = rf"(?={RUN_CLASS}*?[0-9=]){RUN_CLASS}"  # words have no digits
# Forms that are a secret in any text.
DEFAULT_PATTERNS: tuple[SecretPattern, ...] = (
    announced("bearer", ("bearer",), rf"{_NUMBERED}{{15,}}+"),
    announced("basic", ("basic",), rf"{_NUMBERED}{{11,}}+"),
    *SERVICES,
    WEBHOOK,
    SERVICE_NAME,
    *SHAPES,
    *WRITTEN_FORMS,
    *COLUMNS,
    *COMMANDS,
    *CALLS,
    *WRITTEN_LOGINS,
    *SENTENCES,
    prefixed(
        "jwt",
        ("eyJ",),
        r"[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{4,16384}+\.[A-Za-z0-9_-]*+",
        dead="[A-Za-z0-9_-]{8,}+",
    ),
    PRIVATE_KEY,
    PUTTY_KEY,
    SecretPattern(
        "url_password",
        form=r"://[^\s/@:\"'\\]{0,100}+(?:@[^\s/@:\"'\\]{1,100}+)?:(?P<secret>[^\s/@\"'\\]{1,200})@",
        hint=r"://[^\s/@:\"'\\]*(?:@[^\s/@:\"'\\]+)?:[^\s/@\"'\\]+@",
        opening=r"://[^\s/@:\"'\\]{0,100}+(?:@[^\s/@:\"'\\]{0,100}+)?(?::(?P<secret>[^\s/@\"'\\]{0,200}+))?\Z",
        onset="(?:://|(?::/?)$)",
        sign="://",
        marks=("://",),
        check=lambda text: not is_reference(text.rpartition(":")[2].removesuffix("@")),
    ),
)

# Mail addresses; not a default, since many are no secret.
EMAIL = SecretPattern(
    "email",
    form=r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}+@[A-Za-z0-9-]{1,63}+(?:\.[A-Za-z0-9-]{1,63}+){1,8}",
    hint="@",
    opening=r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}+(?:@[A-Za-z0-9.-]{0,255}+)?\Z",
    onset="[A-Za-z0-9._%+@-]$",
)
# Payment card numbers with a valid check digit; not a default, since other long numbers may pass the check too.
CARD_NUMBER = SecretPattern(
    "card_number",
    form=r"(?<![0-9])[0-9](?:[ -]?[0-9]){12,18}(?![0-9])",
    hint="[0-9]",
    opening=r"(?<![0-9])[0-9](?:[ -]?[0-9]){0,18}[ -]?\Z",
    onset="[0-9][ -]?$",
    check=luhn,
)
