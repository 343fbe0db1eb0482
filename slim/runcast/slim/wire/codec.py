"""Encodes events as bytes, and decodes them.

An event is one line of compact JSON, spelled as in AG-UI 1.0, and decodes to the same event. Bytes are read exactly or not
at all: `decode` returns the right event, or raises a `WireError` with the place and the reason. Of doubled keys the last
one counts, as in JavaScript; a leading byte order mark is skipped; half a surrogate pair is kept. Numbers keep their
value, also beyond 2^53; `NaN`, `1e400` and a nesting that no encoder writes are refused. Encoding turns NaN and the
infinities into null, as every AG-UI encoder does.

Knows one event at a time; does not know streams, order or meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar, cast

from ag_ui.core import Event, RunAgentInput
from pydantic import BaseModel, ValidationError

from runcast.slim.dialects.newer import without_unknown_parts
from runcast.slim.dialects.upgrade import upgrade, upgrade_input
from runcast.slim.errors import WireError
from runcast.slim.values.exact_json import parse, quoted, spelled, unquoted
from runcast.slim.values.protocol_shapes import EVENT_SHAPES, INPUT_SHAPE, Shape, UnknownEvent
from runcast.slim.values.type_guards import is_list, is_object
from runcast.slim.wire.decoders import (
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
from runcast.slim.wire.encoders import WRITERS, dumped, write_thoroughly
from runcast.slim.wire.explanation import kind_of, why

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
"""The sources of an event: JSON as bytes or text, or parsed JSON."""


Change: TypeAlias = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Turns parsed JSON of older dialects into that of 1.0."""

AnyEvent: TypeAlias = Event | UnknownEvent
"""An entry of a log: one of the 31 events of AG-UI 1.0, or one of an unknown type."""


T = TypeVar("T")


def is_known(event: AnyEvent) -> bool:
    """Whether AG-UI 1.0 has this event. Readers of streams count the others."""
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
    """Read one event; with `legacy`, from other dialects too. A type that 1.0 lacks comes back as `UnknownEvent`.

    Some older events take their id from their neighbours. Alone they get a default; the readers of streams remember and
    give the right one. Parts of newer producers that 1.0 cannot hold are dropped, as the client does; readers count them.
    """
    try:  # the fastest reader first; what it refuses is read below
        size = len(data)
        if size <= SMALL:
            return read_small(data)  # type: ignore[no-any-return]  # a compiled validator is untyped
        if type(data) is bytes:
            if size <= MIDDLE and not has_exponent(data):
                return read_tame(data)  # type: ignore[no-any-return]  # as above
            event = read_large(data)
            if event is not None:
                return event  # type: ignore[no-any-return]  # as above
    except (ValueError, TypeError):
        pass
    text = as_json(data)
    event = plainly(text) if isinstance(text, bytes) and text is not data else None  # bytes were tried above
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


def plainly(text: bytes) -> AnyEvent | None:
    """The event, if it is spelled exactly as in 1.0; None when the thorough reader is needed."""
    try:
        return read_small(text) if len(text) <= SMALL else read_large(text)  # type: ignore[no-any-return]  # as above
    except ValidationError:
        return None


def thoroughly(text: bytes | str, change: Change | None, dropped: list[str] | None = None) -> AnyEvent:
    """The event, after `change` turned its parsed JSON into that of 1.0; WireError when it is still none.

    With `change`, parts of unknown kinds are dropped, and their places added to `dropped`.
    """
    try:
        found = parsed(text, "an event")
        if change is None:
            return event_in(found)
        changed = change(found)
        shape = EVENT_SHAPES.get(str(changed.get("type")))
        return event_in(changed) if shape is None else _lenient(event_in, changed, shape, dropped)
    except RecursionError:
        raise WireError("nested too deep for the stack", expected="a call from a shallower place") from None


def _lenient(
    read: Callable[[dict[str, Any]], T], found: dict[str, Any], shape: Shape, dropped: list[str] | None
) -> T:
    """The model of this JSON, if need be without its parts of unknown kinds."""
    try:
        return read(found)
    except WireError:
        kept, places = without_unknown_parts(found, shape)
        if not places:
            raise
        if dropped is not None:
            dropped += places
        return read(kept)


def parsed(text: bytes | str, noun: str) -> dict[str, Any]:
    """The JSON object in this text."""
    found = parse(text)
    if not is_object(found):
        raise WireError(f"{kind_of(found)} is not {noun}", expected="a JSON object")
    return found


def event_in(found: dict[str, Any]) -> AnyEvent:
    """The event of this parsed JSON."""
    tag = found.get("type")
    if not isinstance(tag, str):
        raise WireError(f"the event type is {kind_of(tag)}", expected="a JSON object with a string `type`")
    shape = EVENT_SHAPES.get(tag)
    if shape is None:
        return cast("UnknownEvent", _built(UnknownEvent.model_validate, found, tag))
    return cast("AnyEvent", _built(read_event, settled(found, shape), tag))


def decode_input(data: Readable, *, legacy: bool = True, dropped: list[str] | None = None) -> RunAgentInput:
    """Read a run's input; with `legacy`, from other dialects too: the places of dropped parts are added to `dropped`."""
    found = parsed(as_json(data), "a run's input")
    return _lenient(_input_in, upgrade_input(found), INPUT_SHAPE, dropped) if legacy else _input_in(found)


def _input_in(found: dict[str, Any]) -> RunAgentInput:
    return cast("RunAgentInput", _built(read_input, settled(found, INPUT_SHAPE), "RunAgentInput"))


def _built(validate: Callable[[Any], BaseModel], found: dict[str, Any], tag: str) -> BaseModel:
    try:
        return validate(found)
    except ValidationError as error:
        if not _is_about_surrogates(error):
            raise why(error, found, tag) from None
    try:
        # Half a surrogate pair is a string in JSON and in Python; only pydantic refuses it.
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
