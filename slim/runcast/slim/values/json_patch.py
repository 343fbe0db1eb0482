"""JSON Patch as an AG-UI client applies it: as a whole or not at all.

Knows the `jsonpatch` library and its differences to the client's `fast-json-patch`; knows nothing of events.

Where both libraries apply a patch, the results are equal. `jsonpatch` refuses a few that the client applies (see
`disputed`); only the client refuses to change `__proto__` and `constructor/prototype`, and to compare objects with a member
`hasOwnProperty`, and so does `Document`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, cast

from jsonpatch import JsonPatch, JsonPatchException
from jsonpointer import JsonPointer, JsonPointerException
from pydantic import BaseModel

from runcast.slim.errors import PatchRefused, PatchTooLarge
from runcast.slim.values.exact_json import MAX_DEPTH
from runcast.slim.values.type_guards import as_list, as_object

Operation = Mapping[str, Any]

# Inherited members of a JavaScript object: the client's library takes them for existing ones.
_INHERITED = frozenset(
    {
        "constructor",
        "hasOwnProperty",
        "isPrototypeOf",
        "propertyIsEnumerable",
        "toLocaleString",
        "toString",
        "valueOf",
        "__defineGetter__",
        "__defineSetter__",
        "__lookupGetter__",
        "__lookupSetter__",
    }
)


def clone(value: Any) -> Any:
    """A copy of a JSON value that shares nothing changeable with it."""
    if isinstance(value, dict):
        return {key: clone(each) for key, each in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [clone(each) for each in cast("list[object]", value)]
    return value


_STRAY = re.compile("~(?![01])")


def _readable(operation: Operation) -> dict[str, Any]:
    """The operation with each `~` that begins no escape written as `~0`, as the client reads it and `jsonpatch` does not."""
    pointers = {name: operation[name] for name in ("path", "from") if isinstance(operation.get(name), str)}
    return {**operation, **{name: _STRAY.sub("~0", pointer) for name, pointer in pointers.items()}}


def operations_of(patch: Iterable[BaseModel]) -> list[dict[str, Any]]:
    """The operations of a STATE_DELTA or ACTIVITY_DELTA as plain mappings, in the wire's spelling."""
    plain: list[dict[str, Any]] = []
    for operation in patch:
        fields: dict[str, Any] = dict(operation.__dict__)
        if "from_" in fields:
            fields["from"] = fields.pop("from_")
        plain.append(fields)
    return plain


class _Size(NamedTuple):
    """The size of a JSON value: its values, its characters, and how deep it nests. A tuple, because it is made often."""

    nodes: int = 0
    characters: int = 0
    depth: int = 0


# A patch may copy so much: `copy` alone makes more than its own size, and nested in itself it doubles each time.
_COPIES: Final = _Size(20_000, 1 << 20, MAX_DEPTH)
# A document may not grow beyond this by patches; an event around it has to be encodable.
_DOCUMENT: Final = _Size(1_000_000, 1 << 26, MAX_DEPTH - 6)
# The growth after which a document is measured again, so that a small patch does not cost a walk through it.
_SLACK: Final = _Size(_DOCUMENT.nodes // 16, _DOCUMENT.characters // 16, _DOCUMENT.depth)


class Document:
    """A JSON value that patches change in place, unless it was handed out."""

    __slots__ = ("_grown", "_mine", "_value")

    def __init__(self, value: Any) -> None:
        self.value = value

    @property
    def value(self) -> Any:
        """The current value; later patches work on a copy, so it does not change."""
        self._mine = False
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        self._value = value
        self._mine = False  # the value was not handed out, so it may be changed in place
        self._grown = _Size()  # by patches since it was measured

    def patch(self, operations: list[dict[str, Any]]) -> PatchRefused | None:
        """Apply all operations and return None, or none of them and return why."""
        if any("~" in operation["path"] or "~" in (operation.get("from") or "") for operation in operations):
            operations = [_readable(operation) for operation in operations]
        banned = _banned(operations)
        if banned is not None:
            return PatchRefused(banned)
        try:
            grown = self._fits(*_growth(operations))
            if any(operation["op"] == "copy" for operation in operations):
                self._value, copied = _patched_with_copies(clone(self._value), operations)
                grown = _sum(grown, copied)
            else:
                document = self._value if self._mine else clone(self._value)
                self._value = JsonPatch(operations).apply(document, in_place=True, atomic=True)
        except PatchTooLarge as failure:
            return failure
        except (JsonPatchException, JsonPointerException) as failure:
            return PatchRefused(_short(str(failure)))
        except RecursionError:
            return PatchTooLarge("the document is nested too deeply to be patched")
        self._mine, self._grown = True, grown
        return None

    def _fits(self, growth: _Size, rise: int) -> _Size:
        """The growth with this patch; the document is measured when that may exceed a limit."""
        grown = _sum(self._grown, growth)
        if rise == 0 and (growth.nodes == 0 or _within(grown, _SLACK)):
            return grown
        size = _measured(self._value, _DOCUMENT)
        deepest = max(size.depth, growth.depth) + rise
        if not _within(
            _Size(size.nodes + growth.nodes, size.characters + growth.characters, deepest), _DOCUMENT
        ):
            raise _too_large("make a document of", _DOCUMENT)
        return growth


def _growth(operations: Iterable[Operation]) -> tuple[_Size, int]:
    """The most that the written values add to a document, with their deepest level; and by how many levels values of
    the document may sink."""
    nodes = characters = depth = rise = 0
    for operation in operations:
        levels = operation["path"].count("/")
        if operation["op"] in ("add", "replace"):
            size = _measured(operation.get("value"), _DOCUMENT)
            nodes, characters = nodes + size.nodes, characters + size.characters
            depth = max(depth, levels + size.depth)
        elif operation["op"] in ("move", "copy"):
            rise += max(0, levels - (operation.get("from") or "").count("/"))
            nodes += operation["op"] == "copy"  # at least; it is measured when it is made
    return _Size(nodes, characters, depth), rise


def _patched_with_copies(document: Any, operations: Iterable[dict[str, Any]]) -> tuple[Any, _Size]:
    """The document patched in place, and the size of all that was copied; PatchTooLarge before a copy beyond it."""
    copied = _Size()
    for operation in operations:
        if operation["op"] == "copy":
            source = JsonPointer(operation["from"]).resolve(document)
            copied = _sum(copied, _measured(source, _COPIES))
            if not _within(copied, _COPIES):
                raise _too_large("copy", _COPIES)
        document = JsonPatch([operation]).apply(document, in_place=True)
    return document, copied


def _measured(value: Any, most: _Size) -> _Size:
    """The size of a value; PatchTooLarge as soon as it is over `most`."""
    nodes = characters = depth = 0
    level = [value]
    while level:
        nodes += len(level)
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                characters += sum(map(len, cast("dict[str, object]", each)))
                below.extend(cast("dict[str, object]", each).values())
            elif isinstance(each, list):
                below.extend(cast("list[object]", each))
            elif isinstance(each, str):
                characters += len(each)
        depth += bool(below)
        if nodes > most.nodes or characters > most.characters or depth > most.depth:
            raise _too_large("handle", most)
        level = below
    return _Size(nodes, characters, depth)


def _sum(one: _Size, other: _Size) -> _Size:
    return _Size(one.nodes + other.nodes, one.characters + other.characters, max(one.depth, other.depth))


def _within(size: _Size, most: _Size) -> bool:
    return size.nodes <= most.nodes and size.characters <= most.characters and size.depth <= most.depth


def _too_large(verb: str, most: _Size) -> PatchTooLarge:
    return PatchTooLarge(
        f"the patch would {verb} more than {most.nodes:,} values, {most.characters:,} characters or "
        f"{most.depth} levels; send a snapshot instead"
    )


def _short(reason: str) -> str:
    """A reason without the documents that the library prints into it."""
    return reason if len(reason) <= 300 else f"{reason[:297]}..."


def disputed(operations: list[dict[str, Any]], document: Any) -> bool:
    """Whether the client may take a patch of this document that `jsonpatch` refused.

    True for more patches than really differ, so that a caller need not guess. The known differences are removing
    the root; array indices that are empty, have leading zeros, or do not fit 32 bits; members of a document that is no container;
    members that JavaScript objects inherit; and moves and copies of the root, of a value that is missing from an
    array, into the value's own children, or to an index past the end of an array.
    """
    if not isinstance(document, dict | list):
        return True
    if _surely_refused(operations[0], document):
        return False
    alone = len(operations) == 1
    return any(_disputed(operation, alone) for operation in operations)


def idle(operations: list[dict[str, Any]], document: Any) -> bool:
    """Whether this patch changes no client, applied or refused: the document has no members."""
    return not isinstance(document, dict | list) and all(operation["path"] != "" for operation in operations)


def _surely_refused(operation: Operation, document: Any) -> bool:
    """Whether the client refuses this operation for certain, as `jsonpatch` does, if it is a patch's first."""
    path, source = operation["path"], operation.get("from")
    if path == "":
        return False
    return _walk(path, document) == "no index" or (
        source is not None and _walk(source, document) == "missing"
    )


def _walk(pointer: str, document: Any) -> Literal["missing", "no index", "unsure"]:
    """How the pointer first fails: at a missing member, or at an array without an index."""
    for token in _tokens(pointer):
        if _odd(token) or not isinstance(document, dict | list):
            return "unsure"
        if isinstance(document, list):
            return "unsure" if token == "-" or token.isdigit() else "no index"
        members = cast("dict[str, object]", document)
        if token not in members:
            return "missing"
        document = members[token]
    return "unsure"


def _disputed(operation: Operation, alone: bool) -> bool:
    kind, path = operation["op"], operation["path"]
    if kind in ("move", "copy"):
        return True
    if path == "":  # the root may turn into something that is no container before the next operation
        return kind == "remove" or not (kind == "test" or alone)
    return any(_odd(token) for token in _tokens(path))


def _odd(token: str) -> bool:
    long_index = token.isdigit() and len(token) > (1 if token[0] == "0" else 9)
    return token == "" or token in _INHERITED or long_index


def _tokens(pointer: str) -> list[str]:
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _banned(operations: list[dict[str, Any]]) -> str | None:
    """The reason why the client throws whatever the document is; None where it does not."""
    for operation in operations:
        for pointer in (operation.get("path"), operation.get("from")):
            if not isinstance(pointer, str) or "proto" not in pointer:
                continue
            tokens = _tokens(pointer)
            pairs = zip(["", *tokens], tokens, strict=False)
            if any(
                it == "__proto__" or (it == "prototype" and before == "constructor") for before, it in pairs
            ):
                return f"{pointer} would change a prototype"
        if operation["op"] == "test" and _hides_a_method(operation.get("value")):
            return f"{operation['path']} cannot be compared: a member is named hasOwnProperty"
    return None


def _hides_a_method(value: Any) -> bool:
    """Whether the client's library, which calls the method of that name to compare objects, finds a member in its place."""
    level: list[Any] = [value]
    while level:
        if any("hasOwnProperty" in as_object(each) for each in level):
            return True
        level = [below for each in level for below in (*as_object(each).values(), *as_list(each))]
    return False
