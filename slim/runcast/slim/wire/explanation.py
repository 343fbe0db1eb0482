"""Explains in a sentence why parsed JSON is no event.

Turns pydantic's errors into a WireError with the path, the kind of value and the expected one. Names kinds of values,
never the values: an error text may end in a log, and the value may be a secret.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from runcast.slim.errors import WireError
from runcast.slim.values.type_guards import is_list, is_object

_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def kind_of(value: Any) -> str:
    """The kind of a parsed JSON value, with its article."""
    return _KINDS.get(value.__class__, "something that is not JSON")


def why(error: ValidationError, found: dict[str, Any], tag: str) -> WireError:
    """The first error of this object."""
    # Where a string or a list is allowed, pydantic reports both; the deeper error is about the intended one.
    detail = max(error.errors(include_url=False, include_input=False), key=lambda found: len(found["loc"]))
    path = _path(detail, found)
    if detail["type"] == "missing":
        return WireError(f"no `{path}`", type=tag, expected=f"`{path}` to be there")
    return WireError(f"`{path}` is {kind_of(_at(found, path))}", type=tag, expected=_wanted(detail))


def _wanted(detail: ErrorDetails) -> str:
    context = detail.get("ctx", {})
    match detail["type"]:
        case "union_tag_invalid":
            return f"an object with a {context['discriminator']} of {context['expected_tags']}"
        case "union_tag_not_found":
            return f"an object with a {context['discriminator']}"
        case "string_pattern_mismatch":
            return f"a string like {context['pattern']}"
        case "model_type" | "model_attributes_type" | "dict_type":
            return "an object"
        case _:
            return detail["msg"].removeprefix("Input should be ")


def _path(detail: ErrorDetails, found: Any) -> str:
    """The keys that lead to the error, without the names of alternatives that pydantic puts between them."""
    steps: list[str] = []
    for left, step in enumerate(detail["loc"], 1 - len(detail["loc"])):
        inside = _step(found, step)
        if inside is not _NOWHERE or (left == 0 and detail["type"] == "missing"):
            steps.append(str(step))
            found = inside
    return ".".join(steps)


_NOWHERE: Any = object()


def _step(found: Any, step: str | int) -> Any:
    if is_object(found):
        return found.get(str(step), _NOWHERE)
    if is_list(found) and isinstance(step, int):
        return found[step]
    return _NOWHERE


def _at(found: Any, path: str) -> Any:
    for step in path.split("."):
        found = _step(found, int(step) if is_list(found) else step)
    return found
