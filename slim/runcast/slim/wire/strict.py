"""Checks events against the letter of AG-UI 1.0.

The Python models accept more than the protocol: null for an absent field, unknown keys, a boolean for a number. The
protocol's schema does not, nor does the official client. This checker walks parsed JSON along the shapes and names
everything that the schema refuses; it agrees with the schemas of the TypeScript package on every shape.

Knows one event, message or input as parsed JSON; changes nothing and repairs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runcast.slim.errors import WireError
from runcast.slim.values.protocol_shapes import (
    EVENT_SHAPES,
    INPUT_SHAPE,
    Choice,
    Either,
    Field,
    Flag,
    Free,
    Kind,
    ListOf,
    Object,
    Record,
    Shape,
    Tagged,
    Text,
    Whole,
    shape_of,
)
from runcast.slim.values.type_guards import is_list, is_object
from runcast.slim.wire.codec import AnyEvent, Readable, as_json, event_in, parsed
from runcast.slim.wire.explanation import kind_of

# The one null that the schema allows for an optional field: a state that is null reads as no state.
_NULL_READS_AS_ABSENT = (INPUT_SHAPE.model, "state")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that the schema refuses: the place, the value found there and the expected one."""

    path: str  # keys and indices from the event down, joined by dots; empty for the event itself
    found: str
    expected: str

    def __str__(self) -> str:
        return f"`{self.path}` is {self.found}; expected {self.expected}"


def strict_problems(event: Mapping[str, Any]) -> list[Problem]:
    """Everything about this parsed event that AG-UI 1.0 does not allow; empty when it is valid to the letter."""
    tag = event.get("type")
    if not isinstance(tag, str) or tag not in EVENT_SHAPES:
        found = "missing" if "type" not in event else "unknown" if isinstance(tag, str) else kind_of(tag)
        return [Problem("type", found, "one of the event types of AG-UI 1.0")]
    return list(_record(dict(event), EVENT_SHAPES[tag], ""))


def decode_strict(data: Readable) -> AnyEvent:
    """Read one event that is valid to the letter; WireError names the first thing that is not."""
    found = parsed(as_json(data), "an event")
    problems = strict_problems(found)
    if problems:
        first = problems[0]
        tag = found.get("type")
        raise WireError(
            f"`{first.path}` is {first.found}",
            expected=first.expected,
            type=tag if isinstance(tag, str) else None,
        )
    return event_in(found)


def _record(value: Any, shape: Shape, path: str) -> Iterator[Problem]:
    if not is_object(value):
        yield Problem(path, kind_of(value), "an object")
        return
    for field in shape.fields:
        yield from _field(value, field, shape, _below(path, field.wire))
    if not shape.open:
        known = {field.wire for field in shape.fields}
        for key in value:
            if key not in known:
                yield Problem(_below(path, key), "unknown", "a key that AG-UI 1.0 has")


def _field(found: Mapping[str, Any], field: Field, shape: Shape, path: str) -> Iterator[Problem]:
    if field.wire not in found:
        if not field.omitted:
            yield Problem(path, "missing", _wanted(field.kind))
        return
    value = found[field.wire]
    if value is None and isinstance(field.kind, Free):
        if field.optional and (shape.model, field.name) != _NULL_READS_AS_ABSENT:
            yield Problem(path, "null", "no key at all, or a value")
        return
    yield from _value(value, field.kind, path)


def _value(value: Any, kind: Kind, path: str) -> Iterator[Problem]:
    match kind:
        case ListOf(item, least):
            yield from _list(value, item, least, path)
        case Record(model):
            yield from _record(value, shape_of(model), path)
        case Tagged(key, records):
            yield from _tagged(value, key, records, path)
        case Either(parts):
            if is_list(value):
                yield from _value(value, parts, path)
            elif not isinstance(value, str):
                yield Problem(path, kind_of(value), _wanted(kind))
        case _:
            if not _fits(value, kind):
                yield Problem(path, kind_of(value), _wanted(kind))


def _list(value: Any, item: Kind, least: int, path: str) -> Iterator[Problem]:
    if not is_list(value):
        yield Problem(path, kind_of(value), "a list")
        return
    if len(value) < least:
        yield Problem(path, f"a list of {len(value)}", f"at least {least}")
    for at, entry in enumerate(value):
        yield from _value(entry, item, _below(path, str(at)))


def _tagged(value: Any, key: str, records: Mapping[str, Record], path: str) -> Iterator[Problem]:
    if not is_object(value):
        yield Problem(path, kind_of(value), "an object")
        return
    tag = value.get(key)
    if not isinstance(tag, str) or tag not in records:
        found = "missing" if key not in value else "unknown" if isinstance(tag, str) else kind_of(tag)
        yield Problem(_below(path, key), found, _one_of(records))
        return
    yield from _record(value, shape_of(records[tag].model), path)


def _fits(value: Any, kind: Kind) -> bool:
    match kind:
        case Text(pattern):
            return isinstance(value, str) and (pattern is None or pattern.fullmatch(value) is not None)
        case Choice(values):
            return isinstance(value, str) and value in values
        case Whole(low, high):
            return _is_whole(value) and low <= value <= high
        case Flag():
            return isinstance(value, bool)
        case Object():
            return is_object(value)
        case _:  # free: any value
            return True


def _is_whole(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _wanted(kind: Kind) -> str:
    match kind:
        case Text(pattern):
            return "a string" if pattern is None else f"a string like {pattern.pattern}"
        case Choice(values):
            return _one_of(values)
        case Whole(low, high):
            return f"a whole number from {low} to {high}"
        case Flag():
            return "true or false"
        case Object() | Record() | Tagged():
            return "an object"
        case ListOf():
            return "a list"
        case Either():
            return "a string or a list of parts"
        case _:
            return "a value, which may be null"


def _one_of(values: Mapping[str, Any]) -> str:
    return " or ".join(repr(value) for value in values)


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
