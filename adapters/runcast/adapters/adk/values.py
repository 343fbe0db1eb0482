"""Python values as JSON: whatever a tool or a state holds, the wire gets something it can carry.

Knows JSON and ADK's prefixes for state keys; does not know events.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import PydanticSerializationError, from_json, to_json

from runcast.adapters.adk.options import AdkOptions

CUT = "..."
# Kept by ADK for itself; `temp:` lives for one invocation and is never stored.
PRIVATE = ("temp:", "_adk", "__")
SHARED = ("user:", "app:")


def dumps(value: Any) -> str:
    """JSON text. What JSON has no word for is told by its `repr`; NaN and the infinities become null."""
    try:
        return to_json(value, inf_nan_mode="null", serialize_unknown=True).decode()
    except (PydanticSerializationError, ValueError):  # half a surrogate pair, a circle
        return _escaped(value)


def _escaped(value: Any) -> str:
    try:
        return json.dumps(value, default=repr, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return json.dumps(repr(value))


def plain(value: Any) -> Any:
    """The value as its JSON text reads."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    return from_json(dumps(value))


def mapping(value: Any) -> Mapping[str, Any]:
    """A JSON object as it is; anything else as an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def cut(text: str, limit: int | None) -> str:
    """At most `limit` characters, marked when something is missing."""
    if limit is None or len(text) <= limit:
        return text
    return text[: max(0, limit - len(CUT))] + CUT


def shown(key: str, options: AdkOptions) -> bool:
    """Whether a key of session state may be seen by the client."""
    if options.state_keys is not None:
        return key in options.state_keys
    return not key.startswith(PRIVATE) and (options.shared_state or not key.startswith(SHARED))


def visible(state: Mapping[str, Any], options: AdkOptions) -> dict[str, Any]:
    """The part of a session's state that the client sees, as JSON."""
    return {key: plain(value) for key, value in state.items() if shown(key, options)}


def changes(wanted: Any, held: Mapping[str, Any], options: AdkOptions) -> dict[str, Any]:
    """What a client's state changes in the session: plain keys only, and only what differs."""
    if not options.accept_state:
        return {}
    return {
        key: value
        for key, value in mapping(wanted).items()
        if shown(key, options) and not key.startswith(SHARED) and (key not in held or held[key] != value)
    }


def pointer(key: str) -> str:
    """A top-level key as a JSON Pointer (RFC 6901)."""
    return "/" + key.replace("~", "~0").replace("/", "~1")


class Sent:
    """How much of a text went out, without keeping the text: its length and its digest."""

    __slots__ = ("_digest", "_length")

    def __init__(self) -> None:
        self._length = 0
        self._digest = hashlib.blake2b(digest_size=16)

    def add(self, delta: str) -> None:
        """These characters are out."""
        self._length += len(delta)
        self._digest.update(delta.encode("utf-8", "surrogatepass"))

    def rest(self, full: str) -> str | None:
        """What is missing to make `full`; None when what went out is not its beginning."""
        if not self._length:
            return full
        begun = hashlib.blake2b(full[: self._length].encode("utf-8", "surrogatepass"), digest_size=16)
        if len(full) < self._length or begun.digest() != self._digest.digest():
            return None
        return full[self._length :]
