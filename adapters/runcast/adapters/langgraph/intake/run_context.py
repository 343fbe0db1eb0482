"""The input, context and configuration of one run: the host's values, then the client's, checked against the graph's schema.

The client sends them as `forwardedProps.input`, `.context` and `.configurable`, as it would to LangGraph's server.
Does not know graphs, only their schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ag_ui.core import RunAgentInput
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from runcast.adapters.client_schemas import AgentSchemas
from runcast.adapters.errors import InvalidInput
from runcast.slim.values.type_guards import as_mapping

HELD = frozenset(
    {"thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map", "ag_ui"}
)  # the adapter's own


def client_configurable(input: RunAgentInput) -> dict[str, Any]:
    """The keys of `configurable` that the client sets; what places a run in its thread stays the adapter's."""
    given = as_mapping(as_mapping(input.forwarded_props).get("configurable"))
    return {name: value for name, value in given.items() if name not in HELD and not name.startswith("__")}


def client_input(input: RunAgentInput, schemas: Callable[[], AgentSchemas]) -> Mapping[str, Any]:
    """The channels that the client sets; raises `InvalidInput` for one that the graph does not take."""
    given = as_mapping(as_mapping(input.forwarded_props).get("input"))
    if given:
        found = schemas().get("input")
        _known("input", given, frozenset() if found is None else frozenset(found["schema"]["properties"]))
    return given


def _known(what: str, given: Mapping[str, Any], fields: frozenset[str]) -> None:
    for name in given:
        if name not in fields:
            raise InvalidInput(
                f"{what} has no field {name!r}; its fields are {', '.join(sorted(fields)) or 'none'}"
            )


def run_context(schema: Any, fixed: Any, input: RunAgentInput | None) -> Any:
    """The context of a run; None without values. Raises `InvalidInput` with the field that does not fit.

    `fixed` are the host's values, of which a mapping is merged with the client's; `input` is None where the client may set
    nothing.
    """
    if fixed is not None and not isinstance(fixed, Mapping):
        return fixed
    sent: Mapping[str, Any] = {}
    configured: Mapping[str, Any] = {}
    if input is not None:
        sent = as_mapping(as_mapping(input.forwarded_props).get("context"))
        configured = client_configurable(input)
    values: dict[str, Any] = {**as_mapping(fixed), **sent}
    fields = _fields(schema)
    if not fields:
        return values or None
    _known("context", values, fields)
    return _checked(schema, {**{name: configured[name] for name in fields & configured.keys()}, **values})


def _fields(schema: Any) -> frozenset[str]:
    """The fields of a dataclass, a TypedDict or a model; none for any other schema."""
    if (model := getattr(schema, "model_fields", None)) is not None:
        return frozenset(model)
    classes: tuple[type, ...] = getattr(schema, "__mro__", ())
    return frozenset(name for cls in classes for name in vars(cls).get("__annotations__", {}))


def _checked(schema: Any, values: dict[str, Any]) -> Any:
    try:
        return TypeAdapter(schema).validate_python(values)
    except ValidationError as error:
        if not values:
            return None  # nothing was given, and the schema has fields without a default
        first = error.errors()[0]
        field = ".".join(str(each) for each in first["loc"])
        raise InvalidInput(f"context field {field!r}: {first['msg']}") from error
    except PydanticUserError:  # a type that pydantic does not know: LangGraph itself makes the context
        return values
