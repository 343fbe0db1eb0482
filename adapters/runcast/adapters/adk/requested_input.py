"""The answer to a question that a workflow asks with a schema, in the form that ADK reads.

ADK checks the stored answer whenever it resumes the invocation, and an answer that does not fit ends each of these runs
with an error. So one is refused before it is stored. As in ADK, pydantic decides, which reads "3" as a number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from runcast.slim.values.type_guards import as_list, as_mapping

_TYPES: Mapping[str, TypeAdapter[Any]] = {
    "integer": TypeAdapter(int),
    "number": TypeAdapter(float),
    "string": TypeAdapter(str),
    "boolean": TypeAdapter(bool),
    "array": TypeAdapter(list[Any]),
    "object": TypeAdapter(dict[str, Any]),
}
REFUSED: Mapping[str, Any] = {"error": "The user cancelled this request."}


def requested(payload: Any, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """The response for ADK; raises `ValueError`, in a few words, where the payload does not fit the schema."""
    body = dict(as_mapping(payload)) if isinstance(payload, Mapping) else {"result": payload}
    if isinstance(payload, str) and as_mapping(schema).get("type") == "string" and _read(body) != payload:
        body = {"result": json.dumps(payload)}  # ADK reads JSON in a text, so a text that is JSON is quoted
    wrong = _misfit(_read(body), as_mapping(schema))
    if wrong is not None:
        raise ValueError(wrong)
    return body


def refusal(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The response to a cancelled question: no, or an error; None where the schema lets neither pass."""
    asks_yes_or_no = as_mapping(schema).get("type") == "boolean"
    body = {"result": False} if asks_yes_or_no else dict(REFUSED)
    return body if _misfit(_read(body), as_mapping(schema)) is None else None


def _read(body: Mapping[str, Any]) -> Any:
    """What ADK reads of a response."""
    if list(body) != ["result"]:
        return body
    value = body["result"]
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _misfit(value: Any, schema: Mapping[str, Any]) -> str | None:
    wanted = schema.get("type")
    if not _is(value, wanted):
        return f"it is no {wanted}"
    if wanted != "object":
        return None
    return _wrong_field(
        as_mapping(value), as_mapping(schema.get("properties")), as_list(schema.get("required"))
    )


def _wrong_field(given: Mapping[str, Any], fields: Mapping[str, Any], required: Sequence[Any]) -> str | None:
    for name, field in fields.items():
        kind = as_mapping(field).get("type")
        if given.get(name) is None and name not in required:
            continue
        if name not in given:
            return f"{name!r} is missing"
        if not _is(given[name], kind):
            return f"{name!r} is no {kind}"
    return None


def _is(value: Any, kind: Any) -> bool:
    """Whether pydantic reads the value as this type; ADK does not check what it does not know."""
    known = _TYPES.get(kind) if isinstance(kind, str) else None
    if known is None:
        return True
    try:
        known.validate_python(value)
    except ValidationError:
        return False
    return True
