"""Keys as 1.0 spells them: camelCase, and absent where there is nothing to say.

Python producers have written snake_case, and null for every optional they left unset. Walks parsed JSON along the
shapes of 1.0 and touches nothing that the shapes do not describe: states, payloads and metadata keep every key and
every null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runcast.slim.shapes import Either, Field, Kind, ListOf, Record, Shape, Tagged, shape_of
from runcast.slim.wire_json import is_list, is_object

__all__ = ["respelled"]


def respelled(found: Mapping[str, Any], shape: Shape) -> dict[str, Any]:
    """A described object with its keys spelled right and without nulls that mean absence."""
    fields = _by_spelling(shape, found)
    spelled: dict[str, Any] = {}
    for key, value in found.items():
        field = fields.get(key)
        if field is None:
            spelled[key] = value
        elif value is not None or not field.optional:
            spelled[field.wire] = _inside(value, field.kind)
    return spelled


def _by_spelling(shape: Shape, found: Mapping[str, Any]) -> dict[str, Field]:
    """Every spelling that counts here; where both are there the snake_case one is somebody's own key."""
    fields = {field.name: field for field in shape.fields if field.wire not in found}
    fields.update((field.wire, field) for field in shape.fields)
    return fields


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
