"""The fast readers: AG-UI's own models, validated by rules compiled from the wire shapes.

An accepted event is read exactly: no text, number or boolean is coerced, and a number that no double can hold is refused
instead of becoming infinity. A refused one is not necessarily wrong (an older dialect, half a surrogate pair, a byte
order mark); the caller then uses the slow and thorough reader. So nothing here explains or repairs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from math import isfinite
from typing import Any, Final

import orjson
from pydantic import BaseModel
from pydantic_core import CoreSchema, SchemaValidator, core_schema

from runcast.slim.values.exact_json import MAX_DEPTH, too_deep
from runcast.slim.values.linear_regex import finder
from runcast.slim.values.protocol_shapes import (
    EVENT_SHAPES,
    INPUT_SHAPE,
    MODELS,
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

SMALL: Final = 224
"""Up to so many bytes `read_small` is the fastest: it checks each free value in Python."""

MIDDLE: Final = 320
"""An event of so many bytes has no number of 300 digits: only an exponent of two digits makes one overflow."""

has_exponent = finder(r"[0-9][eE][+0-9][0-9]+[ \t\r\n,\]}]|NaN|Infinity")
"""Whether such an exponent may stand in these bytes, or a word that pydantic takes for a number."""

# Where an unknown key may be of an older dialect: an `interrupt` beside the outcome, instead of in it.
_SUSPECT: Final = frozenset({"RUN_FINISHED"})
# One large value is parsed faster by orjson, many small models faster by pydantic. How an event opens is a good guess
# at which it is; a wrong guess costs time and nothing else.
_LARGE: Final = 2048
_ONE_VALUE: Final = tuple(
    b'{"type":"%s"' % tag for tag in (b"STATE_SNAPSHOT", b"CUSTOM", b"RAW", b"ACTIVITY_SNAPSHOT")
)
_MANY_MODELS: Final = tuple(
    b'{"type":"%s"' % tag for tag in (b"MESSAGES_SNAPSHOT", b"STATE_DELTA", b"RUN_STARTED", b"ACTIVITY_DELTA")
)
_TEN: Final = frozenset(b"0123456789")
_DIGITS: Final = bytes(0x30 if 0x30 <= byte <= 0x39 else 0x20 for byte in range(256))
_LONG: Final = b"0" * 19
_LONG_WHOLE: Final = re.compile(rb"(?<![0-9.])[0-9]{19,}(?![0-9.eE])")
_SCALAR: Final = frozenset({str, int, bool, type(None)})


def _finite(value: Any) -> Any:
    """The value as it is, unless a number in it has overflowed."""
    kind = value.__class__
    if kind in _SCALAR:
        return value
    if kind is dict:
        for found in value.values():
            if type(found) not in _SCALAR:
                break
        else:
            return value
    try:
        # Mostly enough, and faster than a walk: orjson writes a number that has overflowed as null.
        if "null" not in orjson.dumps(value).decode():
            return value
    except TypeError:  # a whole number of more than 64 bits
        pass
    return _walked(value)


def _walked(value: Any) -> Any:
    left = [value]
    for found in left:
        kind = found.__class__
        if kind is dict:
            left.extend(found.values())
        elif kind is list:
            left.extend(found)
        elif kind is float and not isfinite(found):
            raise ValueError("a number that no double can hold")
    return value


def _refuse(value: Any) -> Any:
    raise ValueError("an unknown key")


class _Compiler:
    """Turns shapes into validation rules; `free` is the rule for values without a shape."""

    def __init__(self, free: CoreSchema, suspect: frozenset[str] = frozenset()) -> None:
        self.free = free
        self.suspect = suspect

    def events(self) -> CoreSchema:
        rules = {tag: self.record(shape, tag in self.suspect) for tag, shape in EVENT_SHAPES.items()}
        return core_schema.tagged_union_schema(rules, "type")

    def record(self, shape: Shape, closed: bool = False) -> CoreSchema:
        rules = core_schema.model_fields_schema(
            {field.name: self.field(field) for field in shape.fields},
            model_name=shape.model.__name__,
            extra_behavior="allow",
            extras_schema=core_schema.no_info_plain_validator_function(_refuse) if closed else self.free,
        )
        config = core_schema.CoreConfig(validate_by_alias=True, validate_by_name=True)
        return core_schema.model_schema(shape.model, rules, config=config)

    def field(self, field: Field) -> core_schema.ModelField:
        rule = self.kind(field.kind)
        if field.nullable and not isinstance(field.kind, Free):
            rule = core_schema.nullable_schema(rule)
        if field.optional:
            rule = core_schema.with_default_schema(rule, default=field.default)
        # A name that is its own alias would be looked for twice wherever it is absent.
        return core_schema.model_field(
            rule, validation_alias=None if field.wire == field.name else field.wire
        )

    def kind(self, kind: Kind) -> CoreSchema:
        match kind:
            case Text(pattern):
                return core_schema.str_schema(strict=True, pattern=pattern and pattern.pattern)
            case Choice(values):
                return _one_of(list(values.values()))
            case Whole(low, high):
                return core_schema.int_schema(strict=True, ge=low, le=high)
            case Flag():
                return core_schema.bool_schema(strict=True)
            case Free():
                return self.free
            case Object():
                return core_schema.dict_schema(core_schema.str_schema(strict=True), self.free)
            case _:
                return self.compound(kind)

    def compound(self, kind: ListOf | Record | Tagged | Either) -> CoreSchema:
        match kind:
            case ListOf(item, least):
                # Only one error is told; a list of a million wrong items must not cost a million errors.
                return core_schema.list_schema(self.kind(item), min_length=least, fail_fast=True)
            case Record(model):
                return self.record(shape_of(model))
            case Tagged(key, records):
                rules = {tag: self.record(shape_of(record.model)) for tag, record in records.items()}
                return core_schema.tagged_union_schema(rules, key)
            case _:
                parts = self.kind(kind.parts)  # no value is both, so that the first that fits is the one
                return core_schema.union_schema(
                    [core_schema.str_schema(strict=True), parts], mode="left_to_right"
                )


def _one_of(values: list[Any]) -> CoreSchema:
    """One of these strings; an enum's members are found faster by their own rule than as literals."""
    if isinstance(values[0], Enum):
        return core_schema.enum_schema(type(values[0]), values, sub_type="str")
    return core_schema.literal_schema(values)


def _compiled(rule: CoreSchema) -> SchemaValidator:
    """The rule as given: pydantic would take a complete model's own validator in the place of ours."""
    for model in MODELS:
        model.__pydantic_complete__ = False
    try:
        return SchemaValidator(rule)
    finally:
        for model in MODELS:
            model.__pydantic_complete__ = True


_FINITE: Final = _Compiler(core_schema.no_info_plain_validator_function(_finite), suspect=_SUSPECT)
_TAME: Final = _Compiler(core_schema.any_schema(), suspect=_SUSPECT)
_PARSED: Final = _Compiler(core_schema.any_schema())

read_small: Callable[[Any], Any] = _compiled(_FINITE.events()).validate_json
"""The event in this JSON; ValidationError or ValueError when the thorough reader is needed."""

read_tame = _compiled(_TAME.events()).validate_json
"""The event in these bytes, in which no number overflows; ValidationError as above."""

read_event = _compiled(_PARSED.events()).validate_python
"""The event in this parsed JSON; ValidationError when it is none."""

read_input = _compiled(_PARSED.record(INPUT_SHAPE)).validate_python
"""The run's input in this parsed JSON; ValidationError when it is none."""


def read_large(data: bytes) -> Any:
    """The event in these bytes, however many; None or ValidationError when the thorough reader is needed."""
    if data.startswith(_ONE_VALUE) or (len(data) > _LARGE and not data.startswith(_MANY_MODELS)):
        return _read_value(data)
    # A number of 300 digits would cover one of these bytes.
    if _TEN.isdisjoint(data[299::300]) and not has_exponent(data):
        return read_tame(data)
    return read_small(data)


def _read_value(data: bytes) -> BaseModel | None:
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    event: BaseModel = read_event(found)
    is_suspect = event.__pydantic_extra__ and found["type"] in _SUSPECT
    if is_suspect or _has_long_number(data) or _is_too_deep(data, found):
        return None
    return event


def _has_long_number(data: bytes) -> bool:
    """Whether a whole number may stand here that does not fit 64 bits: orjson makes it a float, in silence."""
    return _LONG in data.translate(_DIGITS) and _LONG_WHOLE.search(data) is not None


def _is_too_deep(data: bytes, found: Any) -> bool:
    return len(data) > 2 * MAX_DEPTH and data.count(b"[") + data.count(b"{") > MAX_DEPTH and too_deep(found)


def settled(found: dict[str, Any], shape: Shape) -> dict[str, Any]:
    """The object with whole numbers as int where they have a fraction of zero: JSON does not distinguish the two."""
    changes = {
        field.wire: _settled(found[field.wire], field.kind) for field in shape.fields if field.wire in found
    }
    return {**found, **changes}


def _settled(value: Any, kind: Kind) -> Any:
    match kind:
        case Whole() if type(value) is float and value.is_integer():
            return int(value)
        case ListOf(Record(model), _) if is_list(value):
            shape = shape_of(model)
            return [settled(item, shape) if is_object(item) else item for item in value]
        case _:
            return value
