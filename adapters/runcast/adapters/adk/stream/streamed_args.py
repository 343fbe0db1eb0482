"""Arguments that a model streams by JSON path, written as one growing JSON text.

Gemini sends `{json_path: "$.a.b[0]", string_value: "…", will_continue}`; the protocol needs pieces of JSON text. The
writer keeps a stack of open containers; a piece for another path closes the containers that both paths do not share.
A growing text cannot set a key twice or enter a container again: then the writing stops, and the final arguments
decide whether the sent text can be completed.

Does not know events or calls.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from runcast.adapters.adk.plain_values import dumps

if TYPE_CHECKING:
    from google.genai import types

Step = str | int
_TOKEN = re.compile(
    r"""\[\s*(\d+)\s*\] | \['((?:[^'\\]|\\.)*)'\] | \["((?:[^"\\]|\\.)*)"\] | \.?((?:[^.\[\]\\]|\\.)+)""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\(.)")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_MISSING = object()


class ArgsWriter:
    """The JSON text of one call's arguments. `feed` and `finish` return the text to send."""

    def __init__(self) -> None:
        self._sent: list[str] = []
        self._open: list[Container] = []  # containers from the outermost in
        self._string: list[Step] | None = None  # the path of an unfinished string
        self._broken = False

    def feed(self, piece: types.PartialArg) -> str:
        """The text that one piece adds."""
        value = _value(piece)
        if self._broken or value is _MISSING or not piece.json_path:
            return ""
        path = steps(piece.json_path)
        if not path:
            self._broken = True
            return ""
        return self._put(self._write(path, value))

    def finish(self, args: str) -> str | None:
        """The rest of the text up to `args` (JSON text); None when the sent text is no beginning of it."""
        if not self._sent:
            return args
        text = "".join(self._sent)
        tail = ('"' if self._string is not None else "") + "".join(c.closer for c in reversed(self._open))
        if json.loads(text + tail) == json.loads(args):
            return tail
        return args[len(text) :] if args.startswith(text) else None

    def _write(self, path: list[Step], value: Any) -> str:
        if self._string is not None:
            if path == self._string:
                if isinstance(value, str):
                    return _inside(value)
                self._broken = True
                return ""
            ended = '"'
            self._string = None
        else:
            ended = ""
        moved, arrived = self._enter(path)
        if not arrived:
            self._broken = True
            return ended + moved
        if isinstance(value, str):
            self._string = path
            return f'{ended}{moved}"{_inside(value)}'
        return ended + moved + dumps(value)

    def _enter(self, path: list[Step]) -> tuple[str, bool]:
        """The text up to the value of `path`, and whether that place can still be reached."""
        text = ""
        if not self._open:
            text = self._push(path[0])
        shared = 0
        while (
            shared < len(self._open) - 1
            and shared < len(path) - 1
            and self._open[shared].last == path[shared]
        ):
            shared += 1
        while len(self._open) > shared + 1:
            text += self._open.pop().closer
        for depth in range(shared, len(path)):
            separator = self._open[-1].next(path[depth])
            if separator is None:
                return text, False
            text += separator
            if depth + 1 < len(path):
                text += self._push(path[depth + 1])
        return text, True

    def _push(self, first: Step) -> str:
        self._open.append(Container(isinstance(first, int)))
        return self._open[-1].opener

    def _put(self, text: str) -> str:
        if text:
            self._sent.append(text)
        return text


class Container:
    """An open object or array."""

    __slots__ = ("_array", "_keys", "closer", "last", "opener")

    def __init__(self, array: bool) -> None:
        self._array = array
        self._keys: set[Step] = set()
        self.last: Step | None = None
        self.opener, self.closer = ("[", "]") if array else ("{", "}")

    def next(self, key: Step) -> str | None:
        """The text before the value of `key`; None when the key is of the wrong kind or already written."""
        if isinstance(key, int) != self._array or key in self._keys:
            return None
        comma = "," if self._keys else ""
        if isinstance(key, int):
            have = len(self._keys)
            if key < have or key - have > 1000:
                return None
            self._keys.update(range(have, key + 1))
            comma += "null," * (key - have)  # ADK fills a hole with nulls too
        else:
            self._keys.add(key)
            comma += dumps(key) + ":"
        self.last = key
        return comma


def steps(json_path: str) -> list[Step]:
    """The keys and indexes of a path, as ADK reads it."""
    return [_step(match) for match in _TOKEN.finditer(json_path.removeprefix("$"))]


def _step(match: re.Match[str]) -> Step:
    index, single, double, bare = match.groups()
    if index is not None:
        return int(index)
    return _ESCAPE.sub(_unescape, next(it for it in (single, double, bare) if it is not None))


def _unescape(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else _ESCAPES.get(match[2], match[2])


def _value(piece: types.PartialArg) -> Any:
    if piece.string_value is not None:
        return piece.string_value
    if piece.number_value is not None:
        return piece.number_value
    if piece.bool_value is not None:
        return piece.bool_value
    return None if piece.null_value is not None else _MISSING


def _inside(text: str) -> str:
    """A string's JSON text without its quotes."""
    return dumps(text)[1:-1]
