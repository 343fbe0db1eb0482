"""Drops the parts of newer producers' events that 1.0 cannot hold, as the official client's boundary does.

A part is an object of a list whose kind 1.0 does not have: a patch operation, a content part, a message. An unknown
outcome is no such part: without it a run would read as a success. Unknown keys stay. Knows parsed JSON and shapes; whether
the rest is valid is for the reader to find out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runcast.slim.values.protocol_shapes import Either, Kind, ListOf, Record, Shape, Tagged, shape_of
from runcast.slim.values.type_guards import is_list, is_object

_UNKNOWN: Any = object()


def without_unknown_parts(found: Mapping[str, Any], shape: Shape) -> tuple[dict[str, Any], list[str]]:
    """An event or an input without parts of unknown kinds, and the places of those."""
    dropped: list[str] = []
    return _record(found, shape, "", dropped), dropped


def _record(found: Mapping[str, Any], shape: Shape, path: str, dropped: list[str]) -> Any:
    kept = dict(found)
    for field in shape.fields:
        if field.wire not in kept:
            continue
        place = f"{path}.{field.wire}" if path else field.wire
        value = _part(kept[field.wire], field.kind, place, dropped)
        if value is not _UNKNOWN:
            kept[field.wire] = value
        elif not field.optional:
            return _UNKNOWN
    return kept


def _part(value: Any, kind: Kind, path: str, dropped: list[str]) -> Any:
    match kind:
        case ListOf(item, _) | Either(ListOf(item, _)) if is_list(value):
            return _items(value, item, path, dropped)
        case Record(model) if is_object(value):
            return _record(value, shape_of(model), path, dropped)
        case Tagged(key, records) if is_object(value):
            record = records.get(str(value.get(key)))
            return _UNKNOWN if record is None else _record(value, shape_of(record.model), path, dropped)
        case _:
            return value


def _items(values: list[Any], item: Kind, path: str, dropped: list[str]) -> list[Any]:
    kept: list[Any] = []
    for at, value in enumerate(values):
        part = _part(value, item, f"{path}.{at}", dropped)
        if part is _UNKNOWN:
            dropped.append(f"{path}.{at}")
        else:
            kept.append(part)
    return kept
