"""Type guards for JSON-like values: the one set that all houses share.

Knows shapes only. A guard narrows a value; a reader (`as_…`) replaces a value of another shape by an empty one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard, cast

MAPPING = (dict, Mapping)  # nearly every one is a dict, which is found in a third of the time


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether the value is a list."""
    return isinstance(value, list)


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether the value is a dict, as a parser makes it from a JSON object."""
    return isinstance(value, dict)


def is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether the value is any mapping."""
    return isinstance(value, MAPPING)


def as_list(value: Any) -> list[Any]:
    """The items of a list or tuple; none for any other value."""
    return list(cast("list[Any]", value)) if isinstance(value, list | tuple) else []


def as_object(value: Any) -> dict[str, Any]:
    """A dict as it is; an empty one for any other value."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_mapping(value: Any) -> Mapping[str, Any]:
    """A mapping as it is; an empty one for any other value."""
    return cast("Mapping[str, Any]", value) if isinstance(value, MAPPING) else {}
