"""What a secret looks like, and what its name is.

Knows the forms of common credentials and the key names that announce one; does not know where they are looked for.
Each form is written four ways: what it is, what must stand in a text for it to be there (so that nearly every text
is passed by at once), what its beginning looks like at the end of a text that still grows, and what may begin it
there. Forms use classes that exclude their own end, possessive or bounded repeats, and starts that cannot follow
their own characters, so that no text makes them try twice: matching is linear.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

__all__ = [
    "CARD_NUMBER",
    "DEFAULT_KEYS",
    "DEFAULT_PATTERNS",
    "EMAIL",
    "RUN",
    "KeyNames",
    "SecretPattern",
    "luhn",
    "words",
]


@dataclass(frozen=True, slots=True)
class SecretPattern:
    """One form of secret. Where `form` has a group `secret`, only that part is replaced."""

    name: str
    form: str  # Python syntax
    hint: str  # linear syntax: stands in every text that holds the form
    opening: str  # Python syntax, matched up to the end of a text: the form may have begun; group `secret` as in `form`
    onset: str  # linear syntax, matched up to the end of a text: what may become an opening
    check: Callable[[str], bool] | None = None  # a last look at what was found
    unbroken: bool = False  # a run of `RUN` to the end of the text, and `opening` is what stands before it
    sign: str = ""  # linear syntax: stands in whatever `opening` matches; none: not known
    marks: tuple[str, ...] = ()  # lower case: one stands in every text that holds the form; none: not known


def luhn(text: str) -> bool:
    """Whether the digits in the text add up as those of a card number do."""
    digits = [int(each) for each in text if each.isdecimal()]
    doubled = [sum(divmod(digit * 2, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0 and any(digits)


def _begun(literal: str) -> str:
    """A pattern for the literal's proper beginnings: `sk-` gives `s(?:k)?`."""
    escaped = [re.escape(each) for each in literal[:-1]]
    return "(?:".join(escaped) + ")?" * (len(escaped) - 1)


RUN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+/=~-"  # what credentials are made of
_RUN = r"[A-Za-z0-9_.+/=~-]"
_BOUND = r"(?<![A-Za-z0-9])"
_EDGE = r"(?:^|[^A-Za-z0-9]|\\[nrtbf]|\\u[0-9A-Fa-f]{4})"  # the same where JSON escapes may stand before


def _prefixed(name: str, literals: Iterable[str], rest: str, marks: tuple[str, ...] = ()) -> SecretPattern:
    """A credential that begins with one of these literals, which stay: they only say what it was."""
    heads = [*literals]
    head = "|".join(map(re.escape, heads))
    begun = "|".join(_begun(each) for each in heads)
    hint = rf"{_EDGE}(?:{head})"
    return SecretPattern(
        name,
        form=rf"{_BOUND}(?:{head})(?P<secret>{rest})",
        hint=hint,
        opening=rf"{_BOUND}(?:{head})(?={_RUN}*+\Z)",
        onset=rf"(?:{hint}|(?:^|[^A-Za-z0-9])(?:{begun})$)",
        unbroken=True,
        sign=hint,
        marks=marks or tuple(each.lower() for each in heads),
    )


def _announced(name: str, schemes: tuple[str, ...], value: str) -> SecretPattern:
    """A credential announced by a word before it, which stays: `Bearer …`."""
    heads = "|".join(schemes)
    begun = "|".join(_begun(each) for each in schemes)
    hint = rf"(?i:{heads})"
    return SecretPattern(
        name,
        form=rf"{_BOUND}{hint}\s{{1,8}}(?P<secret>{value})",
        hint=hint,
        opening=rf"{_BOUND}{hint}\s{{1,8}}(?P<secret>{_RUN}*+)\Z",
        onset=rf"(?i:{heads}|(?:^|[^a-z0-9])(?:{begun})$)",
        sign=hint,
        marks=(*schemes, *(each.replace("s", "\N{LATIN SMALL LETTER LONG S}") for each in schemes)),
    )


_PEM_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"

_PEM_BEGIN = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
PRIVATE_KEY = SecretPattern(
    "private_key",
    form=rf"{_PEM_BEGIN}(?P<secret>(?s:.)*?)(?:{_PEM_END}|\Z)",
    hint="PRIVATE KEY",
    opening=rf"{_PEM_BEGIN}(?P<secret>(?s:.)*)\Z",
    onset="(?:^-|--)",  # its first line may end in any dash
    sign="PRIVATE KEY",
    marks=("private key",),
)
_NUMBERED = rf"(?={_RUN}*?[0-9=]){_RUN}"  # words do not look like this
# Forms that mean a secret wherever they stand.
DEFAULT_PATTERNS: tuple[SecretPattern, ...] = (
    _announced("bearer", ("bearer",), rf"{_NUMBERED}{{15,}}+"),
    _announced("basic", ("basic",), rf"{_NUMBERED}{{11,}}+"),
    _prefixed("openai_or_anthropic", ("sk-",), r"[A-Za-z0-9_-]{16,}+"),
    _prefixed(
        "stripe",
        ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "pk_live_", "whsec_"),
        r"[A-Za-z0-9]{10,}+",
        marks=("_live_", "_test_", "whsec_"),
    ),
    _prefixed("github", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"), r"[A-Za-z0-9_]{20,}+"),
    _prefixed(
        "slack",
        ("xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"),
        r"[A-Za-z0-9-]{10,}+",
        marks=("xox", "xapp-"),
    ),
    _prefixed("aws", ("AKIA", "ASIA"), r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _prefixed("google", ("AIza", "ya29.", "GOCSPX-"), r"[A-Za-z0-9_-]{20,}+"),
    _prefixed("gitlab", ("glpat-", "gldt-", "glrt-"), r"[A-Za-z0-9_-]{16,}+"),
    _prefixed("registry", ("npm_", "pypi-", "hf_", "dckr_pat_"), r"[A-Za-z0-9_-]{16,}+"),
    _prefixed("sendgrid", ("SG.",), r"[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+"),
    _prefixed("jwt", ("eyJ",), r"[A-Za-z0-9_-]{8,1024}+\.[A-Za-z0-9_-]{4,16384}+\.[A-Za-z0-9_-]*+"),
    PRIVATE_KEY,
    SecretPattern(
        "url_password",
        form=r"://[^\s/@:\"'\\]{0,100}+:(?P<secret>[^\s/@\"'\\]{1,200})@",
        hint=r"://[^\s/@:\"'\\]*:[^\s/@\"'\\]+@",
        opening=r"://[^\s/@:\"'\\]{0,100}+(?::(?P<secret>[^\s/@\"'\\]{0,200}+))?\Z",
        onset="(?:://|(?::/?)$)",
        sign="://",
        marks=("://",),
    ),
)

# Mail addresses; not among the defaults, since many are no secret.
EMAIL = SecretPattern(
    "email",
    form=r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}+@[A-Za-z0-9-]{1,63}+(?:\.[A-Za-z0-9-]{1,63}+){1,8}",
    hint="@",
    opening=r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}+(?:@[A-Za-z0-9.-]{0,255}+)?\Z",
    onset="[A-Za-z0-9._%+@-]$",
)
# Payment card numbers whose digits add up; not among the defaults, since other long numbers may add up too.
CARD_NUMBER = SecretPattern(
    "card_number",
    form=r"(?<![0-9])[0-9](?:[ -]?[0-9]){12,18}(?![0-9])",
    hint="[0-9]",
    opening=r"(?<![0-9])[0-9](?:[ -]?[0-9]){0,18}[ -]?\Z",
    onset="[0-9][ -]?$",
    check=luhn,
)

# Words in a row at the end of a key name, in whatever way they are joined there: api_key, apiKey, X-Api-Key.
DEFAULT_KEYS: tuple[str, ...] = (
    *("password", "passwords", "passwd", "passphrase", "passcode", "pwd"),
    *("secret", "secrets", "client secret", "secret key", "secret access key"),
    *("token", "api key", "apikey", "api keys", "api token", "auth token", "access token", "refresh token"),
    *("access key", "private key", "signing key", "encryption key", "master key", "service key"),
    *("authorization", "proxy authorization", "auth header", "credential", "credentials"),
    *("cookie", "cookies", "set cookie", "jwt", "bearer"),
    *("card number", "credit card", "cardnumber", "cvv", "cvc", "cvv2", "ssn", "social security number"),
)
# Names that end like a secret and are none: places in a list, and the marks of a tokenizer.
_HARMLESS = frozenset(
    f"{word} token"
    for word in (
        "page",
        "next",
        "sync",
        "continuation",
        "max",
        "eos",
        "bos",
        "pad",
        "stop",
        "mask",
        "unk",
        "sep",
    )
)
_COMMON = frozenset({"number"})  # in names of the protocol's and ours: of no use to pass texts by
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
LONGEST_NAME = 80


@lru_cache(maxsize=4096)
def words(name: str) -> tuple[str, ...]:
    """The words of a key name in lower case: `X-ApiKey` gives `x api key`."""
    return tuple(word.lower() for word in _WORD.findall(name[-LONGEST_NAME:]))


class KeyNames:
    """The key names whose values are secrets."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(dict.fromkeys(" ".join(words(name)) for name in names))
        if "" in self.names:
            raise ValueError("a key name needs at least one letter or digit")
        self._known = frozenset(self.names)
        self._longest = max((name.count(" ") + 1 for name in self.names), default=0)

    def __contains__(self, name: str) -> bool:
        parts = words(name)
        if " ".join(parts[-2:]) in _HARMLESS:
            return False
        return any(" ".join(parts[-count:]) in self._known for count in range(1, self._longest + 1))

    def marks(self) -> dict[str, str]:
        """Few words, in lower case, of which every name has one; and what a name may have right behind that word."""
        left = [name.split(" ") for name in self.names]
        found: list[str] = []
        while left:
            every = [word for name in left for word in name if word not in _COMMON or len(name) == 1]
            best = max(every, key=lambda word: (every.count(word), len(word), word))
            found.append(best)
            left = [name for name in left if best not in name]
        least = [word for word in found if not any(other != word and other in word for other in found)]
        joined = [name.replace(" ", "") for name in self.names]
        return {word: "".join(sorted(set(_behind(word, joined)))) for word in sorted(least)}

    def pattern(self) -> str:
        """Any of the names as it may be written in a text, without regard to case; both engines read it."""
        return "|".join(
            r"[_\-. ]?".join(map(re.escape, name.split(" "))) for name in sorted(self.names, reverse=True)
        )


def _behind(word: str, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        for at in range(len(name)):
            if name.startswith(word, at):
                yield name[at + len(word) : at + len(word) + 1]
