"""The fast writers: one compiled for every event, and one for every model that an event can hold.

A writer names the keys as the wire does, leaves unset optional fields out and keeps every null that carries meaning, as
the protocol's own encoder does with a wrapping function on each model. For a value that a fast writer cannot write (half a
surrogate pair, a number beyond 64 bits, keys that are not text) the thorough writer is used, or raises the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final

import orjson
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from runcast.slim.errors import WireError
from runcast.slim.values.exact_json import MAX_DEPTH
from runcast.slim.values.protocol_shapes import (
    EVENT_SHAPES,
    MODELS,
    Field,
    Shape,
    Text,
    UnknownEvent,
    shape_of,
)

Writer = Callable[[Any], bytes]
"""Writes one event as bytes; raises TypeError or KeyError for a value it was not compiled for."""

_dumps: Final = orjson.dumps
# Dates and dataclasses are written as pydantic writes them, so that both encoders agree on every value.
_OPTIONS: Final = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
_JSON: Final = frozenset({str, int, bool, type(None)})


def _plain(value: Any) -> Any:
    """The replacement of a value that JSON does not have: orjson's hook, and a step of the thorough writer."""
    fields = _FIELDS.get(value.__class__)
    return to_jsonable_python(value, by_alias=True) if fields is None else fields(value)


def _fields(shape: Shape) -> Callable[[Any], dict[str, Any]]:
    """The keys and values of a model, as they go on the wire."""
    pairs = tuple((field.name, field.wire) for field in shape.fields)
    nulls = _meaningful_nulls(shape)

    def fields(made: Any) -> dict[str, Any]:
        values = made.__dict__
        found: dict[str, Any] = {}
        for name, wire in pairs:
            value = values[name]
            if value is not None:
                found[wire] = value
        for name, wire in nulls:
            if values[name] is None:
                found[wire] = None
        if made.__pydantic_extra__:
            found.update(made.__pydantic_extra__)
        return found

    return fields


def _meaningful_nulls(shape: Shape) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, field.wire) for field in shape.fields if field.nullable and not field.optional)


def _writer(shape: Shape) -> Writer:
    needed = [field for field in shape.fields if not field.optional]
    others = [field for field in shape.fields[2:] if field.optional]
    if len(others) == 3 and [field.kind for field in needed] == [Text(), Text()]:
        return _pair_writer(shape, needed, others)
    return _general_writer(shape)


def _general_writer(shape: Shape) -> Writer:
    tag = shape.fields[0].default.value
    pairs = tuple((field.name, field.wire) for field in shape.fields[1:])
    nulls = _meaningful_nulls(shape)

    # The loop of `_fields` inlined: a call less is a tenth of the cost of the smallest events.
    def write(event: Any) -> bytes:
        values = event.__dict__
        found: dict[str, Any] = {"type": tag}
        for name, wire in pairs:
            value = values[name]
            if value is not None:
                found[wire] = value
        for name, wire in nulls:
            if values[name] is None:
                found[wire] = None
        if event.__pydantic_extra__:
            found.update(event.__pydantic_extra__)
        return _dumps(found, _plain, _OPTIONS)

    return write


def _pair_writer(shape: Shape, needed: list[Field], others: list[Field]) -> Writer:
    """For the deltas that make up most of a stream: an id and a text, often a timestamp, seldom more."""
    general = _general_writer(shape)
    one, two = needed
    first, second, third = (field.name for field in others)

    # Defaults, because Python reads a local faster than the variable of a function around it.
    def write(
        event: Any,
        dumps: Callable[[Any], bytes] = _dumps,
        tag: str = shape.fields[0].default.value,
        one: str = one.name,
        one_wire: str = one.wire,
        two: str = two.name,
        two_wire: str = two.wire,
        first: str = first,
        second: str = second,
        third: str = third,
    ) -> bytes:
        found = event.__dict__
        if (
            found[first] is not None
            or found[second] is not None
            or found[third] is not None
            or event.__pydantic_extra__
        ):
            return general(event)
        at = found["timestamp"]
        if at is None:
            return dumps({"type": tag, one_wire: found[one], two_wire: found[two]})
        return dumps({"type": tag, "timestamp": at, one_wire: found[one], two_wire: found[two]})

    return write


_FIELDS: Final[Mapping[type, Callable[[Any], dict[str, Any]]]] = {
    model: _fields(shape_of(model)) for model in MODELS | {UnknownEvent}
}

WRITERS: Final[Mapping[type, Writer]] = {shape.model: _writer(shape) for shape in EVENT_SHAPES.values()}
"""The compiled writer of every event, by its class."""


def dumped(made: BaseModel) -> bytes | None:
    """Any model as JSON; None when it takes the thorough writer."""
    try:
        return _dumps(made, _plain, _OPTIONS)
    except TypeError:
        return None


def write_thoroughly(made: BaseModel) -> bytes:
    """An event that no fast writer can write, or a WireError with the reason why it cannot be written."""
    try:
        text = json.dumps(_ready(made, 0), ensure_ascii=False, separators=(",", ":"))
    except KeyError as error:
        raise WireError(f"{error} was never set", type=_type_of(made), expected="a complete event") from None
    except RecursionError:
        raise _too_deep(made) from None
    except (PydanticSerializationError, ValueError) as error:
        raise WireError(f"not JSON ({error})", type=_type_of(made), expected="JSON values") from None
    # The one thing that UTF-8 cannot hold is half a surrogate pair, and this escapes it as JSON does.
    return text.encode("utf-8", "backslashreplace")


def in_json_types(made: BaseModel) -> dict[str, Any]:
    """Any model as the JSON that is written of it, parsed; half a surrogate pair stays, which pydantic refuses in a key."""
    found: dict[str, Any] = _ready(made, 0)
    return found


def _ready(value: Any, depth: int) -> Any:
    """The value in JSON types, every number exact; NaN and the infinities become null."""
    kind = value.__class__
    if kind in _JSON:
        return value
    if kind is float:
        return value if isfinite(value) else None
    if depth >= MAX_DEPTH:
        raise RecursionError
    if kind is dict:
        return {_key(key): _ready(found, depth + 1) for key, found in value.items()}
    if kind is list or kind is tuple:
        return [_ready(found, depth + 1) for found in value]
    return _ready(_plain(value), depth)


def _key(key: Any) -> str:
    if type(key) is str:
        return key
    (spelled,) = to_jsonable_python({key: None})
    return str(spelled)


def _type_of(made: BaseModel) -> str | None:
    found = made.__dict__.get("type")
    return None if found is None else str(getattr(found, "value", found))


def _too_deep(made: BaseModel) -> WireError:
    limit = f"at most {MAX_DEPTH} objects and lists inside each other"
    return WireError("nested too deep", type=_type_of(made), expected=limit)
