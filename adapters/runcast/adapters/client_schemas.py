"""What a client may send to an agent and see of it, as JSON Schemas from which it can build forms.

Pure. Reads classes as pydantic does, field by field, so that a field whose type no schema can express is any value and
hides no other. Knows types; does not know which fields a client may see: its callers decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NotRequired, Protocol, Required, get_origin, get_type_hints, runtime_checkable

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypedDict, is_typeddict

from runcast.slim.values.type_guards import as_list, as_mapping, is_mapping

DEFS = "#/$defs/"
_PART = "_Part"


class ClientSchema(TypedDict):
    """A JSON Schema, and the place in `RunAgentInput` for such values; without a place they can only be read.

    Places are `state`, `forwardedProps.input`, `forwardedProps.context`, and `message`: its text is the JSON.
    """

    schema: dict[str, Any]
    place: str | None


class AgentSchemas(TypedDict, total=False):
    """What is known of an agent's input beside messages, of its context and of the state it shows."""

    input: ClientSchema
    context: ClientSchema
    state: ClientSchema


@runtime_checkable
class Described(Protocol):
    """An adapter that knows its agent's schemas."""

    def schemas(self) -> AgentSchemas:
        """What a client may send and see."""
        ...


@runtime_checkable
class Askable(Protocol):
    """An adapter whose agent runs elsewhere and can be asked what it is."""

    async def ask(self) -> None:
        """Ask; `capabilities()` and `schemas()` answer with it from then on. Raises an `AdapterError`."""
        ...


class _Quiet(GenerateJsonSchema):
    """Leaves out defaults that are no JSON without a warning."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  pydantic's own way


def object_schema(classes: Iterable[Any], shows: Callable[[str], bool] = bool) -> dict[str, Any] | None:
    """The fields of these classes that `shows` names, later classes first; None where there is none.

    Fields are required as the last class says. Definitions that only hidden fields use are left out.
    """
    whole: dict[str, Any] = {}
    for kind in classes:
        found = _shown(kind, shows)
        names = ("properties", "$defs")
        merged = {name: {**as_mapping(whole.get(name)), **as_mapping(found.get(name))} for name in names}
        whole = {**found, **merged}
    fields = {name: each for name, each in as_mapping(whole.get("properties")).items() if shows(name)}
    if not fields:
        return None
    required = [name for name in as_list(whole.get("required")) if name in fields]
    about: dict[str, Any] = {name: whole[name] for name in ("title", "description") if name in whole}
    needed = _needed(fields, whole["$defs"])
    return {
        **about,
        "type": "object",
        "properties": fields,
        **({"required": required} if required else {}),
        **({"$defs": needed} if needed else {}),
    }


def value_schema(kind: Any) -> dict[str, Any]:
    """The schema of one value of any type; of one that no schema can express, any value. A schema stays as it is."""
    if is_mapping(kind):
        return dict(kind)
    try:
        return TypeAdapter(kind).json_schema(schema_generator=_Quiet)
    except (PydanticUserError, NameError):
        return {}


def _shown(kind: Any, shows: Callable[[str], bool]) -> dict[str, Any]:
    """The schema of a class, without the fields of a TypedDict that stay hidden: those of a graph's messages take a
    hundred times as long as all others."""
    config: Any = getattr(kind, "__pydantic_config__", None) or {}
    if not is_typeddict(kind) or config.get("use_attribute_docstrings"):  # they stand in the class's source
        return _whole(kind)
    try:
        hints = get_type_hints(kind, include_extras=True)
    except (NameError, TypeError):
        return _whole(kind)
    kept = {name: hint for name, hint in hints.items() if shows(name)}
    if not kept:
        return {}
    if len(kept) == len(hints):
        return _whole(kind)
    required = kind.__required_keys__
    fields = {
        name: hint if name in required or get_origin(hint) in (Required, NotRequired) else NotRequired[hint]
        for name, hint in kept.items()
    }
    # Under a name of its own: a field of the class itself refers to the whole class.
    make: Any = TypedDict
    part = make(_PART, fields)
    part.__doc__ = kind.__doc__
    part.__pydantic_config__ = config
    found = _whole(part)
    return {**found, "title": kind.__name__} if found.get("title") == _PART else found


def _whole(kind: Any) -> dict[str, Any]:
    whole = value_schema(kind)
    defs = as_mapping(whole.get("$defs"))
    if "$ref" in whole:  # a class that holds itself
        whole = {**defs[whole["$ref"].removeprefix(DEFS)], "$defs": defs}
    return whole or _by_field(kind)


def _by_field(kind: Any) -> dict[str, Any]:
    """The class with each field for itself."""
    try:
        hints, bare_hints = get_type_hints(kind, include_extras=True), get_type_hints(kind)
    except (NameError, TypeError):
        return {}
    found = {name: value_schema(hint) or value_schema(bare_hints[name]) for name, hint in hints.items()}
    defs = {name: each for schema in found.values() for name, each in as_mapping(schema.get("$defs")).items()}
    bare = {name: {key: schema[key] for key in schema if key != "$defs"} for name, schema in found.items()}
    keys = getattr(kind, "__required_keys__", ())
    required = [name for name in hints if name in keys and get_origin(hints[name]) is not NotRequired]
    return {"title": kind.__name__, "properties": bare, "required": required, "$defs": defs}


def _needed(schema: Any, defs: Mapping[str, Any]) -> dict[str, Any]:
    """The definitions that are reached from here."""
    needed: dict[str, Any] = {}
    waiting = list(_references(schema))
    while waiting:
        name = waiting.pop()
        if name in defs and name not in needed:
            needed[name] = defs[name]
            waiting += _references(defs[name])
    return needed


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, str) and schema.startswith(DEFS):
        yield schema.removeprefix(DEFS)
    inner = as_mapping(schema).values() if isinstance(schema, Mapping) else as_list(schema)
    for each in inner:
        yield from _references(each)
