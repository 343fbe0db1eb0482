"""What a JSON-like value is, told to type checkers too. Knows shapes only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

__all__ = ["is_list", "is_mapping"]


def is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether it is an object."""
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether it is a list."""
    return isinstance(value, list)
