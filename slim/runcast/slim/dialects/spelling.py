"""Spells keys as 1.0 does: camelCase, and no key for an absent value.

Python producers have written snake_case, and null for every unset optional. Walks parsed JSON along the shapes of 1.0
and changes only what the shapes describe: states, payloads and metadata keep every key and every null.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from runcast.slim.values.protocol_shapes import Either, Field, Kind, ListOf, Record, Shape, Tagged, shape_of
from runcast.slim.values.type_guards import is_list, is_object


def respelled(found: Mapping[str, Any], shape: Shape) -> dict[str, Any]:
    """An object of this shape with the keys of 1.0 and without nulls that mean absence."""
    fields = _by_spelling(shape.model)
    spelled: dict[str, Any] = {}
    for key, value in found.items():
        field = fields.get(key)
        # Where both spellings are present, the snake_case one is a key of the application.
        if field is None or (key != field.wire and field.wire in found):
            spelled[key] = value
        elif value is not None or not field.optional:
            spelled[field.wire] = _inside(value, field.kind) if isinstance(value, dict | list) else value
    return spelled


@cache
def _by_spelling(model: type[BaseModel]) -> Mapping[str, Field]:
    fields = shape_of(model).fields
    return {**{field.name: field for field in fields}, **{field.wire: field for field in fields}}


def _inside(value: Any, kind: Kind) -> Any:
    match kind:
        case ListOf(item, _) | Either(ListOf(item, _)) if is_list(value):
            return [_inside(entry, item) for entry in value]
        case Record(model) if is_object(value):
            return respelled(value, shape_of(model))
        case Tagged(key, records) if is_object(value):
            record = records.get(str(value.get(key)))
            return value if record is None else respelled(value, shape_of(record.model))
        case _:
            return value
