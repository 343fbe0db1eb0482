"""Whether the value behind a secret's name can be a secret: references, masks, code and words are none.

Knows values; does not know names, or where a value ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

# A place where a secret is to be put, or a secret that is hidden already.
_SCHEMES = ("bearer", "basic", "digest", "token")
_MODES = ("include", "omit", "same-origin")
_PLACEHOLDS = "cehimrstyCEHIMRSTY"  # how `your_key` and the like begin
_REFERENCE = re.compile(
    r"\${1,2}\w{1,80}|\$\([a-z][\w./-]{0,40}(?:\s.{0,160})?\)?|\${1,2}\{[^}]{0,120}\}?|[\w-]{0,24}\{\s?[A-Za-z_.]{0,60}\s?\}|(?:\w{1,12}-){1,3}x{3,}|\$\{\{[^}]{0,120}(?:\}\})?|\{{1,3}\w{1,60}|%\w{1,80}%|\{\{[^}]{0,120}\}\}|<[\w .:/-]{1,80}>?"
    r"|[*xy•.#-]{4,}|X{4,}|#[0-9a-fA-F]{6}|(?:os|process)\.env(?:iron)?/\w{1,80}|(?:[A-Za-z]{1,8}[_-]){0,2}(?:\.{3}|…)\w{0,4}|[\^~]\d{1,5}(?:\.[\dx*]{1,5}){0,2}"
    rf"|!(?i:vault|ref|sub|getatt|secret|env)(?:\s[^\n]{{0,80}})?|(?=[bdtBDT])(?i:{'|'.join(_SCHEMES)})\s*|{'|'.join(_MODES)}"
    rf"|(?=[{_PLACEHOLDS}])(?i:your|my|the|some|example|enter|insert|replace|change)[_ -](?:[\w -]{{0,40}}[_ -])?"
    r"(?i:key|token|secret|password|pass|credentials?|me|here|value)s?(?i:[_ -](?:here|goes[_ -]here))?"
)
# An expression of a program: a call, an index, an attribute, a keyword, a type, a constant.
_KEYWORDS = (
    "await",
    "new",
    "not",
    "lambda",
    "async",
    "return",
    "raise",
    "throw",
    "function",
    "typeof",
    "range",
)
_TYPES = (
    *("bool", "boolean", "str", "string", "int", "integer", "float", "number", "bytes", "object", "any"),
    *(
        "None",
        "null",
        "undefined",
        "default",
        "Final",
        "Optional",
        "self",
        "this",
        "String",
        "SecretStr",
        "Any",
    ),
)
_CODE = re.compile(
    r"[A-Za-z_]\w{0,60}+(?:\.[A-Za-z_]\w{0,60}+){0,8}+[(\[].{0,200}|(?:[A-Za-z_]{1,41}+\.){1,8}+[A-Za-z_]{1,40}"
    rf"|https?://[^\s@?]{{0,200}}|(?:{'|'.join(_KEYWORDS)})|(?:{'|'.join(_TYPES)})(?:\s*[|=?].{{0,40}})?"
)
_HARMLESS = re.compile(rf"{_REFERENCE.pattern}|{_CODE.pattern}")
_PLAIN = re.compile(r"[\w=-]*[0-9A-WZa-mo-wz_=-](?<![XYxyn]-)")  # no sign of a reference, and no mask
_HARMLESS_WORDS = frozenset((*_MODES, *_KEYWORDS, *_TYPES))
SHORTEST_GENERATED = 16
_GENERATED = re.compile(
    rf"(?:base64:)?(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9_.+/=~%-]{{{SHORTEST_GENERATED},4096}}"
)
_UUID = re.compile(r"(?i:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_HEX = re.compile(r"(?:0x)?[0-9a-fA-F-]+")
_CODE_NUMBER = re.compile(r"[0-9]{4,8}")
_FUNCTION_WORDS = frozenset(
    {
        *(
            "a",
            "an",
            "and",
            "are",
            "as",
            "at",
            "be",
            "been",
            "by",
            "can",
            "cannot",
            "could",
            "do",
            "does",
            "enter",
            "for",
        ),
        *(
            "from",
            "has",
            "have",
            "if",
            "in",
            "is",
            "it",
            "least",
            "may",
            "must",
            "no",
            "not",
            "of",
            "on",
            "or",
            "please",
        ),
        *(
            "should",
            "than",
            "that",
            "the",
            "this",
            "to",
            "too",
            "use",
            "was",
            "we",
            "will",
            "with",
            "you",
            "your",
        ),
    }
)
# Words of a JSON Schema that hold no value of their own; `default`, `const` and `examples` do.
_SCHEMA_WORDS = frozenset(
    {"type", "$ref", "required", "anyOf", "description", "title", "format", "pattern", "nullable"}
    | {"minLength", "maxLength", "min", "max"}
)
_SCHEMA_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_KEY = re.compile(r"\\*\"([\w$]{1,40})\\*\"\s*:(?:\s*\\*\"(\w*))?")


def is_reference(value: str) -> bool:
    """Whether the value only names a secret, or hides one: `${API_KEY}`, `<token>`, `********`, `YOUR_API_KEY`."""
    return _REFERENCE.fullmatch(value) is not None or is_sentence(value)


def is_sentence(value: str) -> bool:
    """Whether the value is prose of a form or an error, and no passphrase: "must be at least 8 characters"."""
    parts = value.lower().split() if value.count(" ") > 2 else ()
    return len(_FUNCTION_WORDS.intersection(parts)) > 1


def is_harmless(value: str) -> bool:
    """Whether an unquoted value is a reference, or an expression: `os.environ[`, `config.secret`, `bool`."""
    if value.isalnum():  # most values are one word, and few words are harmless
        masked = len(value) > 3 and not (value.strip("xy") and value.strip("X"))
        return masked or value in _HARMLESS_WORDS or value.lower() in _SCHEMES
    if value[:1] not in _PLACEHOLDS and _PLAIN.fullmatch(value):
        kind, _, default = value.partition("=")
        return kind in _TYPES and len(default) < 41
    return _HARMLESS.fullmatch(value) is not None


def is_uuid(value: str) -> bool:
    """Whether the value is a UUID: an identifier of anything, and some services' keys."""
    return _UUID.fullmatch(value) is not None


def looks_generated(value: str, *, digits: bool = False) -> bool:
    """Whether the value looks like a machine made it; with `digits`, a short number such as a PIN does as well."""
    if digits and _CODE_NUMBER.fullmatch(value):
        return True
    return _GENERATED.fullmatch(value) is not None and _UUID.fullmatch(value) is None and "/" not in value[:1]


def looks_random(value: str) -> bool:
    """Whether letters and digits alternate as in random characters, and not as in words, numbers and hashes."""
    kinds = ["d" if each.isdigit() else "u" if each.isupper() else "l" for each in value if each.isalnum()]
    changes = sum(one != other for one, other in pairwise(kinds))
    hexadecimal = _HEX.fullmatch(value) is not None
    return (
        changes * 4 >= len(kinds)
        and "d" in kinds
        and not (hexadecimal or is_uuid(value) or is_reference(value))
    )


_SIGNED = re.compile(r"[A-Za-z0-9][!#$%*~^]+[A-Za-z0-9]")
_VOWEL = re.compile("[aeiouyAEIOUY]")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def looks_unlike_a_word(value: str) -> bool:
    """Whether no word of prose or of a program reads like it: digits beside letters, signs inside, capitals without an
    order, or no vowel."""
    letters = [each for each in value if each.isalpha()]
    if len(letters) < 2 or not value.isascii():
        return len(letters) > 1 and any(map(str.isdigit, value))
    if any(map(str.isdigit, value)) or _SIGNED.search(value):
        return True
    pieces = _PIECE.findall(value)
    mute = [each for each in pieces if _VOWEL.search(each) is None]
    scattered = len(letters) < 3 * len(pieces) or len([each for each in mute if not each.isupper()]) > 1
    return (scattered and len(pieces) > 2 and not value.isupper()) or (
        len(letters) > 5 and len(mute) == len(pieces)
    )


def is_schema(fields: Iterable[tuple[str, object]]) -> bool:
    """Whether an object under a secret's name is a JSON Schema: it describes the secret and holds none."""
    pairs = list(fields)
    has_kind = any(name in ("type", "$ref", "anyOf", "required") for name, _ in pairs)
    return has_kind and all(
        name in _SCHEMA_WORDS and (name != "type" or (isinstance(value, str) and value in _SCHEMA_TYPES))
        for name, value in pairs
    )


def is_schema_text(text: str) -> bool:
    """The same of an object as JSON writes it, however often it is escaped; keys of objects inside count too."""
    return is_schema((match[1], match[2]) for match in _KEY.finditer(text))
