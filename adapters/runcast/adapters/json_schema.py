"""Whether a JSON value fits a JSON Schema, as far as questions to people need it.

Checks types, constants, enumerations, objects, arrays and alternatives, and follows references inside the schema. What
it does not know it accepts: the graph itself may check more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runcast.slim.values.type_guards import as_list, as_mapping, is_list, is_object


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": is_object,
    "array": is_list,
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: _is_number(value) and value == int(value),
    "number": _is_number,
}
DEEPEST = 64  # levels of nesting that are checked


def mismatch(value: Any, schema: Any) -> str | None:
    """Why the value does not fit, in a few words; None if it does."""
    return _mismatch(value, schema, as_mapping(schema), "the answer", 0)


def _mismatch(value: Any, schema: Any, root: Mapping[str, Any], at: str, depth: int) -> str | None:
    if schema is False:
        return f"{at} is not expected"
    rules = _resolved(as_mapping(schema), root)
    if depth > DEEPEST:
        return None
    return (
        _wrong_type(value, rules, at)
        or _wrong_choice(value, rules, root, at, depth)
        or (_wrong_object(value, rules, root, at, depth) if is_object(value) else None)
        or (_wrong_array(value, rules, root, at, depth) if is_list(value) else None)
    )


def _resolved(rules: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    for _ in range(DEEPEST):
        reference = rules.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return rules
        found: Any = root
        for key in reference[2:].split("/"):
            found = as_mapping(found).get(key.replace("~1", "/").replace("~0", "~"))
        rules = as_mapping(found)
    return {}


def _wrong_type(value: Any, rules: Mapping[str, Any], at: str) -> str | None:
    named = rules.get("type")
    allowed = [named] if isinstance(named, str) else as_list(named)
    known = [_TYPES[each] for each in allowed if each in _TYPES]
    if known and len(known) == len(allowed) and not any(fits(value) for fits in known):
        return f"{at} is not of type {' or '.join(allowed)}"
    return None


def _wrong_choice(
    value: Any, rules: Mapping[str, Any], root: Mapping[str, Any], at: str, depth: int
) -> str | None:
    if "const" in rules and value != rules["const"]:
        return f"{at} is not {rules['const']!r}"
    if "enum" in rules and value not in as_list(rules["enum"]):
        return f"{at} is not one of {', '.join(map(repr, as_list(rules['enum'])))}"
    for each in as_list(rules.get("allOf")):
        wrong = _mismatch(value, each, root, at, depth + 1)
        if wrong is not None:
            return wrong
    for keyword in ("anyOf", "oneOf"):
        wrongs = [_mismatch(value, each, root, at, depth + 1) for each in as_list(rules.get(keyword))]
        if wrongs and None not in wrongs:
            return "; or ".join(dict.fromkeys(str(wrong) for wrong in wrongs))
    return None


def _wrong_object(
    value: Mapping[str, Any], rules: Mapping[str, Any], root: Mapping[str, Any], at: str, depth: int
) -> str | None:
    absent = [key for key in as_list(rules.get("required")) if key not in value]
    if absent:
        return f"{at} has no {absent[0]!r}"
    properties = as_mapping(rules.get("properties"))
    others = rules.get("additionalProperties", True)
    for key, inner in value.items():
        wrong = _mismatch(inner, properties.get(key, others), root, f"{at}[{key!r}]", depth + 1)
        if wrong is not None:
            return wrong
    return None


def _wrong_array(
    value: Sequence[Any], rules: Mapping[str, Any], root: Mapping[str, Any], at: str, depth: int
) -> str | None:
    least, most = rules.get("minItems", 0), rules.get("maxItems", len(value))
    if not least <= len(value) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        return f"{at} has {len(value)} items instead of {wanted}"
    first = as_list(rules.get("prefixItems"))
    for number, inner in enumerate(value):
        each = first[number] if number < len(first) else rules.get("items", True)
        wrong = _mismatch(inner, each, root, f"{at}[{number}]", depth + 1)
        if wrong is not None:
            return wrong
    return None
