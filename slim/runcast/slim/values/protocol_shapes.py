"""The shapes of AG-UI 1.0 on the wire, derived from the protocol's own models.

For every event, message and part: the keys of its JSON, and the kind of value under each. `ag_ui.core` is the only source.
The compiled reader, the compiled writer and the strict checker use these shapes. Does not know how JSON is parsed.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias, Union, cast, get_args, get_origin

from ag_ui.core import Event, RunAgentInput
from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined


@dataclass(frozen=True, slots=True)
class Text:
    """A string, of a given form if there is a pattern."""

    pattern: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few strings, each with the Python value that stands for it."""

    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number within bounds."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""


@dataclass(frozen=True, slots=True)
class Free:
    """Any JSON value: the protocol carries it and does not look inside."""


@dataclass(frozen=True, slots=True)
class Object:
    """A JSON object with whatever keys."""


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of one kind of thing, at least so many."""

    item: Kind
    least: int


@dataclass(frozen=True, slots=True)
class Record:
    """An object the protocol describes."""

    model: type[BaseModel]


@dataclass(frozen=True, slots=True)
class Tagged:
    """One of several described objects, distinguished by the string under one key."""

    key: str
    records: Mapping[str, Record]


@dataclass(frozen=True, slots=True)
class Either:
    """A string, or a list of described objects."""

    parts: ListOf


Kind: TypeAlias = Text | Choice | Whole | Flag | Free | Object | ListOf | Record | Tagged | Either


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a shape. `optional` ones may be absent in Python; with a `default` of None they are never written."""

    name: str
    wire: str
    kind: Kind
    optional: bool
    nullable: bool  # the model takes None; the 1.0 schema does so only where the kind is free and required
    default: Any

    @property
    def omitted(self) -> bool:
        """Whether None means that nothing is written: an optional field without a value, never a null with meaning."""
        return self.optional and self.default is None


@dataclass(frozen=True, slots=True)
class Shape:
    """A described object: its model, its keys in the order they are written, and whether others are welcome."""

    model: type[BaseModel]
    fields: tuple[Field, ...]
    open: bool  # RFC 6902 wants members that an operation does not define ignored, not refused


@cache
def shape_of(model: type[BaseModel]) -> Shape:
    """The shape of one of the protocol's models."""
    fields = tuple(_field(name, info) for name, info in model.model_fields.items())
    return Shape(model, fields, open=any(field.name == "op" for field in fields))


def _field(name: str, info: FieldInfo) -> Field:
    annotation, nullable = _without_none(info.annotation)
    default = None if info.default is PydanticUndefined else info.default
    kind = _kind(annotation, info.metadata, info.discriminator)
    return Field(
        name=name,
        wire=info.alias or name,
        kind=kind,
        optional=not info.is_required(),
        nullable=nullable or isinstance(kind, Free),
        default=default,
    )


def _without_none(annotation: Any) -> tuple[Any, bool]:
    parts = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else ()
    if type(None) not in parts:
        return annotation, False
    rest = [part for part in parts if part is not type(None)]
    return (rest[0] if len(rest) == 1 else Union[tuple(rest)]), True  # noqa: UP007  built at run time


def _kind(annotation: Any, metadata: list[Any], discriminator: Any) -> Kind:
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        tag = next((found.discriminator for found in more if isinstance(found, FieldInfo)), None)
        return _kind(inner, [*metadata, *_constraints(more)], tag or discriminator)
    if annotation is Any:
        return Free()
    if annotation is str:
        pattern = next((found.pattern for found in metadata if hasattr(found, "pattern")), None)
        return Text(None if pattern is None else re.compile(pattern))
    if annotation is bool:
        return Flag()
    if annotation is int:
        return Whole(_bound(metadata, "ge"), _bound(metadata, "le"))
    return _compound(annotation, metadata, discriminator)


def _compound(annotation: Any, metadata: list[Any], discriminator: Any) -> Kind:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return Choice({str(part.value if isinstance(part, Enum) else part): part for part in parts})
    if origin is dict:
        return Object()
    if origin is list:
        least = next((found.min_length for found in metadata if hasattr(found, "min_length")), 0)
        return ListOf(_kind(parts[0], [], None), least)
    if origin is Union and discriminator is not None:
        return Tagged(discriminator, dict(_tags(parts, discriminator)))
    if origin is Union:
        return Either(cast(ListOf, _kind(parts[1], [], None)))
    return Record(annotation)


def _tags(models: tuple[type[BaseModel], ...], key: str) -> Iterator[tuple[str, Record]]:
    for model in models:
        for tag in get_args(model.model_fields[key].annotation):
            yield str(tag.value if isinstance(tag, Enum) else tag), Record(model)


def _constraints(more: list[Any]) -> list[Any]:
    return [
        entry for found in more for entry in (found.metadata if isinstance(found, FieldInfo) else [found])
    ]


def _bound(metadata: list[Any], side: str) -> int:
    return next(cast(int, getattr(found, side)) for found in metadata if hasattr(found, side))


class UnknownEvent(BaseModel):
    """An event of a type that AG-UI 1.0 does not have: every key is kept, so that a log loses nothing."""

    model_config = ConfigDict(extra="allow")

    type: str


EVENT_SHAPES: Mapping[str, Shape] = {
    tag: shape_of(record.model) for tag, record in cast(Tagged, _kind(Event, [], None)).records.items()
}
"""The shape of every event that AG-UI 1.0 has, by its `type`."""

INPUT_SHAPE: Shape = shape_of(RunAgentInput)
"""The shape of a run's input."""


def _models(kind: Kind) -> Iterator[type[BaseModel]]:
    """Every model that stands under a key of this kind, however deep."""
    match kind:
        case ListOf(item, _) | Either(ListOf(item, _)):
            yield from _models(item)
        case Tagged(_, records):
            for record in records.values():
                yield from _models(record)
        case Record(model):
            yield model
            for field in shape_of(model).fields:
                yield from _models(field.kind)
        case _:
            return


MODELS: frozenset[type[BaseModel]] = frozenset(
    model for shape in (*EVENT_SHAPES.values(), INPUT_SHAPE) for model in _models(Record(shape.model))
)
"""Every model of the protocol that an event or an input is or can hold."""
