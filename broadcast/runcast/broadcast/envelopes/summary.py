"""Arguments and results in one short line, as a chip on a screen shows them.

The first arguments as `name: value`, each value cut; a result cut. Redaction has run before, in the log. Does not know
envelopes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from runcast.broadcast.json_bytes import dumps
from runcast.slim.values.truncation import clean, cut
from runcast.slim.values.type_guards import as_object

LONGEST_RAW = 100


def summarize_args(arguments: str, *, names: int = 3, chars: int = 30) -> str:
    """`query: 'dbplus', limit: 3` from the JSON text of a call's arguments; the text itself when it is not an object."""
    try:
        parsed: Any = orjson.loads(clean(arguments))
    except orjson.JSONDecodeError:
        return cut(arguments, LONGEST_RAW)
    if not isinstance(parsed, dict):
        return cut(arguments, LONGEST_RAW)
    pairs = list(as_object(parsed).items())[:names]
    return ", ".join(f"{cut(name, chars)}: {cut(_shown(value), chars)}" for name, value in pairs)


def _shown(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else dumps(value).decode()


def summarize_result(content: str | Sequence[Any], *, chars: int = 100) -> str:
    """The beginning of a result; media parts are named, not shown."""
    if isinstance(content, str):
        return cut(content, chars)
    return cut(" ".join(_part(part) for part in content), chars)


def _part(part: Any) -> str:
    text = getattr(part, "text", None)
    if isinstance(text, str):
        return text
    return f"[{getattr(part, 'type', 'part')}]"
