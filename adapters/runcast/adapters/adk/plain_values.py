"""Python values as JSON, and the keys of session state that are shown.

Knows JSON and ADK's prefixes for state keys; does not know events.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json

from runcast.adapters.adk.options import AdkOptions
from runcast.slim.values.type_guards import as_mapping

CUT = "..."
# Underscored keys are ADK's own; `temp:` lives for one invocation and is never stored.
PRIVATE = ("temp:", "_")
SHARED = ("user:", "app:")


def dumps(value: Any) -> str:
    """JSON text. A value that JSON cannot hold becomes its `repr`; NaN and the infinities become null."""
    try:
        return to_json(value, inf_nan_mode="null", serialize_unknown=True).decode()
    except (PydanticSerializationError, ValueError):  # a lone surrogate, or a cycle
        return _escaped(value)


def _escaped(value: Any) -> str:
    try:
        return json.dumps(value, default=repr, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return json.dumps(repr(value))


def plain(value: Any) -> Any:
    """The value as it reads back from JSON."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    return from_json(dumps(value))


def cut(text: str, limit: int | None) -> str:
    """At most `limit` characters, with a mark when some are missing."""
    if limit is None or len(text) <= limit:
        return text
    return text[: max(0, limit - len(CUT))] + CUT


def is_visible(key: str, options: AdkOptions) -> bool:
    """Whether the client may see a key of session state."""
    if options.state_keys is not None:
        return key in options.state_keys
    return not key.startswith(PRIVATE) and (options.shared_state or not key.startswith(SHARED))


def visible(state: Mapping[str, Any], options: AdkOptions) -> dict[str, Any]:
    """The visible part of a session's state, as JSON."""
    return {key: plain(value) for key, value in state.items() if is_visible(key, options)}


def changes(wanted: Any, held: Mapping[str, Any], options: AdkOptions) -> dict[str, Any]:
    """The plain keys of a client's state that differ from the session's."""
    if not options.accept_state:
        return {}
    return {
        key: value
        for key, value in as_mapping(wanted).items()
        if is_visible(key, options) and not key.startswith(SHARED) and (key not in held or held[key] != value)
    }


def pointer(key: str) -> str:
    """A top-level key as a JSON Pointer (RFC 6901)."""
    return "/" + key.replace("~", "~0").replace("/", "~1")


PIECES = 64  # that wait for their digest


class Sent:
    """The length and digest of the text that was sent, without the text but for its last pieces.

    A digest of many pieces at once costs what one of a single piece does.
    """

    __slots__ = ("_digest", "_length", "_pieces")

    def __init__(self) -> None:
        self._length = 0
        self._digest = hashlib.blake2b(digest_size=16)
        self._pieces: list[str] = []

    @property
    def started(self) -> bool:
        """Whether anything was sent."""
        return self._length > 0

    def add(self, delta: str) -> None:
        """Count these characters as sent."""
        self._length += len(delta)
        self._pieces.append(delta)
        if len(self._pieces) == PIECES:
            self._take_in()

    def _take_in(self) -> None:
        self._digest.update("".join(self._pieces).encode("utf-8", "surrogatepass"))
        self._pieces.clear()

    def rest(self, full: str) -> str | None:
        """The rest of `full`; None when the sent text is not its beginning."""
        if not self._length:
            return full
        self._take_in()
        begun = hashlib.blake2b(full[: self._length].encode("utf-8", "surrogatepass"), digest_size=16)
        if len(full) < self._length or begun.digest() != self._digest.digest():
            return None
        return full[self._length :]
