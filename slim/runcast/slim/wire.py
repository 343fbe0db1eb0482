"""Events and their bytes.

An event is written as one line of compact JSON, as AG-UI 1.0 spells it, and read back as the same event. Bytes are
read exactly or not at all: `decode` gives the right event, or a `WireError` that says where and why. Of doubled keys
the last one counts, as in JavaScript; a leading byte order mark is skipped; half a surrogate pair stays what it is.
Numbers keep their value, also beyond 2^53; `NaN`, `1e400` and a nesting that no encoder writes are refused. Writing
turns NaN and the infinities into null, as every AG-UI encoder does.

Knows one event at a time; does not know streams, order or meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from ag_ui.core import Event, RunAgentInput
from pydantic import BaseModel, ValidationError

from runcast.slim.errors import WireError
from runcast.slim.legacy import upgrade, upgrade_input
from runcast.slim.shapes import EVENT_SHAPES, INPUT_SHAPE, UnknownEvent
from runcast.slim.wire_json import is_list, is_object, parse, quoted, spelled, unquoted
from runcast.slim.wire_read import (
    MIDDLE,
    SMALL,
    has_exponent,
    read_event,
    read_input,
    read_large,
    read_small,
    read_tame,
    settled,
)
from runcast.slim.wire_why import kind_of, why
from runcast.slim.wire_write import WRITERS, dumped, write_thoroughly

__all__ = [
    "AnyEvent",
    "UnknownEvent",
    "decode",
    "decode_input",
    "encode",
    "encode_input",
    "encode_sse",
    "is_known",
]

Readable: TypeAlias = bytes | bytearray | memoryview | str | Mapping[str, Any]
"""What an event can be read from: JSON as bytes or text, or JSON already parsed."""


Change: TypeAlias = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Turns the parsed JSON of older dialects into that of 1.0."""

AnyEvent: TypeAlias = Event | UnknownEvent
"""What a log holds: one of the 31 events of AG-UI 1.0, or one that it does not have."""


def is_known(event: AnyEvent) -> bool:
    """Whether AG-UI 1.0 has this event. Readers of streams count those it does not have."""
    return not isinstance(event, UnknownEvent)


def encode(event: AnyEvent) -> bytes:
    """The event as one line of compact JSON: wire names, unset optionals left out, meaningful nulls kept."""
    try:
        return WRITERS[type(event)](event)
    except (KeyError, TypeError):
        return _written(event)


def encode_input(input: RunAgentInput) -> bytes:
    """A run's input as one line of compact JSON, by the same rules as an event."""
    return _written(input)


def _written(made: Any) -> bytes:
    if not isinstance(made, BaseModel):
        raise WireError(f"a {type(made).__name__} is no event", expected="an AG-UI model")
    written = dumped(made)
    return write_thoroughly(made) if written is None else written


def encode_sse(event: AnyEvent, id: str | int | None = None) -> bytes:
    """The event as one server-sent event; an id becomes its `id:` line and comes back as `Last-Event-ID`."""
    if id is None:
        return b"data: %s\n\n" % encode(event)
    line = str(id)
    if any(end in line for end in "\r\n\0"):
        raise WireError("an id that would end its line", expected="an id without line breaks and NUL")
    return b"id: %s\ndata: %s\n\n" % (line.encode(), encode(event))


def decode(data: Readable, *, legacy: bool = True) -> AnyEvent:
    """Read one event; with `legacy`, from older dialects too. A type that 1.0 lacks comes back as `UnknownEvent`.

    Some older events lean on their neighbours for an id. Alone they are given the first one that comes to mind; the
    readers of streams remember, and give the right one.
    """
    try:  # the shortest way first; whatever it does not take is looked at below
        size = len(data)
        if size <= SMALL:
            return read_small(data)  # type: ignore[no-any-return]  # a compiled validator has no type of its own
        if size <= MIDDLE and type(data) is bytes and not has_exponent(data):
            return read_tame(data)  # type: ignore[no-any-return]  # nor has this one
    except (ValueError, TypeError):
        pass
    text = as_json(data)
    was_tried = text is data and len(text) <= SMALL
    event = None if was_tried else plainly(text)
    return thoroughly(text, upgrade if legacy else None) if event is None else event


def as_json(data: Readable) -> bytes | str:
    """The data as JSON in UTF-8, or as text where UTF-8 cannot hold it."""
    match data:
        case bytes():
            return data
        case str():
            try:
                return data.encode()
            except UnicodeEncodeError:
                return data
        case bytearray() | memoryview():
            return bytes(data)
        case Mapping():
            return spelled(data)
        case _:
            raise WireError(f"a {type(data).__name__} holds no JSON", expected="bytes, text or a mapping")


def plainly(text: bytes | str) -> AnyEvent | None:
    """The event, if it is spelled just as 1.0 does; None when it takes more thought."""
    if isinstance(text, str):
        return None
    try:
        return read_small(text) if len(text) <= SMALL else read_large(text)  # type: ignore[no-any-return]  # as above
    except ValidationError:
        return None


def thoroughly(text: bytes | str, change: Change | None) -> AnyEvent:
    """The event, after `change` turned its parsed JSON into that of 1.0; WireError when it is none even so."""
    try:
        found = parsed(text, "an event")
        return event_in(found if change is None else change(found))
    except RecursionError:
        raise WireError("nested too deep for the stack", expected="a call from a shallower place") from None


def parsed(text: bytes | str, what: str) -> dict[str, Any]:
    """The JSON object in this text."""
    found = parse(text)
    if not is_object(found):
        raise WireError(f"{kind_of(found)} is not {what}", expected="a JSON object")
    return found


def event_in(found: dict[str, Any]) -> AnyEvent:
    """The event that this parsed JSON spells."""
    tag = found.get("type")
    if not isinstance(tag, str):
        raise WireError(f"the event type is {kind_of(tag)}", expected="a JSON object with a string `type`")
    shape = EVENT_SHAPES.get(tag)
    if shape is None:
        return cast("UnknownEvent", _built(UnknownEvent.model_validate, found, tag))
    return cast("AnyEvent", _built(read_event, settled(found, shape), tag))


def decode_input(data: Readable, *, legacy: bool = True) -> RunAgentInput:
    """Read a run's input; with `legacy`, from older dialects too."""
    found = parsed(as_json(data), "a run's input")
    if legacy:
        found = upgrade_input(found)
    return cast("RunAgentInput", _built(read_input, settled(found, INPUT_SHAPE), "RunAgentInput"))


def _built(validate: Callable[[Any], BaseModel], found: dict[str, Any], tag: str) -> BaseModel:
    try:
        return validate(found)
    except ValidationError as error:
        if not _is_about_surrogates(error):
            raise why(error, found, tag) from None
    try:
        # Half a surrogate pair is a string in JSON and in Python; only pydantic will not have it.
        made: BaseModel = _restored(validate(quoted(found)))
    except ValidationError as error:
        raise why(error, found, tag) from None
    return made


def _is_about_surrogates(error: ValidationError) -> bool:
    return any(detail["type"] == "string_unicode" for detail in error.errors(include_url=False))


def _restored(value: Any) -> Any:
    if isinstance(value, BaseModel):
        vars(value).update({name: _restored(found) for name, found in vars(value).items()})
        value.__pydantic_extra__ = unquoted(value.__pydantic_extra__)
        return value
    if is_list(value):
        return [_restored(item) for item in value]
    return unquoted(value)
