"""Reads JSON exactly, slowly and with reasons.

Text keeps its code units, also half a surrogate pair; whole numbers keep their digits; of doubled keys the last one
counts, as in JavaScript. A number that no double can hold, a word that is not JSON and a depth that no encoder writes
are refused with the byte where they stand. Knows nothing of events.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final, NoReturn

from runcast.slim.errors import WireError
from runcast.slim.values.type_guards import is_list, is_object

MAX_DEPTH: Final = 256
"""How many objects and lists may stand inside each other, the event itself counted; orjson writes 254."""

# As the scanner reads them: all text before a refused token is JSON, so no other token matters.
_TOKENS: Final = re.compile(
    r'"(?:[^"\\]|\\.)*+"|NaN|-?Infinity|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?[0-9]++)?+', re.DOTALL
)
_WHOLE: Final = re.compile(r"-?[0-9]+")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_BOM: Final = b"\xef\xbb\xbf"
_QUOTE: Final = "\ue000"  # introduces the escape of a code unit that pydantic refuses in a string
_QUOTED: Final = re.compile("\ue000(\ue000|[0-9a-f]{4})")


class _Refused(ValueError):
    """A token that the scanner reads and JSON does not have."""


def parse(data: bytes | str) -> Any:
    """The value of a JSON text; WireError with the byte where it is not JSON."""
    text, before = (data.removeprefix("\ufeff"), 0) if isinstance(data, str) else _text(data)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise _not_json(text, error.pos, before, error.msg.lower()) from None
    except RecursionError:
        raise _deep() from None
    except ValueError:  # a number or a word: neither parse_float nor int() has its position
        problem, at = _number(text)
        raise _not_json(text, at, before, problem) from None
    if too_deep(value):
        raise _deep()
    return value


def _text(data: bytes) -> tuple[str, int]:
    before = len(_BOM) if data.startswith(_BOM) else 0
    try:
        return data[before:].decode(), before
    except UnicodeDecodeError as error:
        raise WireError("not UTF-8", expected="JSON in UTF-8", position=before + error.start) from None


def _not_json(text: str, at: int, before: int, problem: str) -> WireError:
    position = before + len(text[:at].encode("utf-8", "surrogatepass"))
    return WireError(f"not JSON ({problem})", expected="one JSON object", position=position)


def _deep() -> WireError:
    return WireError("nested too deep", expected=f"at most {MAX_DEPTH} objects and lists inside each other")


def _number(text: str) -> tuple[str, int]:
    """The refused number or word, and its position: strings are skipped whole."""
    tokens = ((_refusal(token.group()), token.start()) for token in _TOKENS.finditer(text))
    return next((problem, at) for problem, at in tokens if problem)


def _refusal(token: str) -> str:
    if token in ("NaN", "Infinity", "-Infinity"):
        return f"{token} is no JSON value"
    is_number = token[-1] in "0123456789"
    return "a number that cannot be held" if is_number and _overflows(token) else ""


def _overflows(token: str) -> bool:
    if _WHOLE.fullmatch(token) is None:
        return not isfinite(float(token))
    try:
        int(token)
    except ValueError:  # more digits than Python turns into a whole number
        return True
    return False


def _no_word(word: str) -> NoReturn:
    raise _Refused(word)


def _double(digits: str) -> float:
    found = float(digits)
    if not isfinite(found):
        raise _Refused(digits)
    return found


_DECODER: Final = json.JSONDecoder(parse_constant=_no_word, parse_float=_double)


def spelled(value: Mapping[str, Any]) -> bytes:
    """A mapping as JSON, so that it is read by the rules for bytes and shares nothing with the caller."""
    try:
        return json.dumps(dict(value), allow_nan=False, separators=(",", ":")).encode()
    except RecursionError:
        raise _deep() from None
    except (TypeError, ValueError) as error:
        raise WireError(f"not JSON ({error})", expected="a mapping of JSON values") from None


def too_deep(value: Any) -> bool:
    """Whether more than MAX_DEPTH containers stand inside each other."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for found in level for child in _children(found)]
        if not level:
            return False
    return True


def _children(found: Any) -> list[Any]:
    inside = list(found.values()) if is_object(found) else found if is_list(found) else []
    return [child for child in inside if isinstance(child, dict | list)]


def quoted(value: Any) -> Any:
    """The value with every lone surrogate escaped in characters that any string can hold; `unquoted` undoes it."""
    return _mapped(value, lambda text: _SURROGATE.sub(_quote, text.replace(_QUOTE, _QUOTE * 2)))


def unquoted(value: Any) -> Any:
    """The value as it was before `quoted`."""
    return _mapped(value, lambda text: _QUOTED.sub(_unquote, text) if _QUOTE in text else text)


def _quote(found: re.Match[str]) -> str:
    return f"{_QUOTE}{ord(found.group()):04x}"


def _unquote(found: re.Match[str]) -> str:
    return _QUOTE if found.group(1) == _QUOTE else chr(int(found.group(1), 16))


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if type(value) is str:
        return change(value)
    if is_list(value):
        return [_mapped(item, change) for item in value]
    if is_object(value):
        return {change(key): _mapped(item, change) for key, item in value.items()}
    return value
