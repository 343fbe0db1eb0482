"""JSON Patch as an AG-UI client applies it: a patch holds as a whole or changes nothing.

Knows the `jsonpatch` library and where it and the client's `fast-json-patch` part ways; knows nothing of events.

The two libraries never both apply a patch and differ. `jsonpatch` refuses a few that the client takes (`disputed`
says which); the client alone refuses to touch `__proto__` and `constructor/prototype`, and so does `Document`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

from jsonpatch import JsonPatch, JsonPatchException
from jsonpointer import JsonPointerException
from pydantic import BaseModel

__all__ = ["Document", "clone", "disputed", "idle", "operations_of"]

Operation = Mapping[str, Any]

# What a JavaScript object answers to without holding it: the client's library takes these for existing members.
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


def operations_of(patch: Iterable[BaseModel]) -> list[dict[str, Any]]:
    """The operations of a STATE_DELTA or ACTIVITY_DELTA as plain mappings, in the wire's spelling."""
    plain: list[dict[str, Any]] = []
    for operation in patch:
        fields: dict[str, Any] = dict(operation.__dict__)
        if "from_" in fields:
            fields["from"] = fields.pop("from_")
        plain.append(fields)
    return plain


class Document:
    """A JSON value that patches change in place, unless somebody else may hold it."""

    __slots__ = ("_mine", "_value")

    def __init__(self, value: Any) -> None:
        self._value = value
        self._mine = False  # nobody else holds the value, so it may be changed in place

    @property
    def value(self) -> Any:
        """The value as it stands; later patches work on a copy, so what was handed out stays as it was."""
        self._mine = False
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        self._value, self._mine = value, False

    def patch(self, operations: list[dict[str, Any]]) -> str | None:
        """Apply all operations and return None, or none of them and return why."""
        banned = _banned(operations)
        if banned is not None:
            return banned
        try:
            document = self._value if self._mine else clone(self._value)
            self._value = JsonPatch(operations).apply(document, in_place=True, atomic=True)
        except (JsonPatchException, JsonPointerException) as failure:
            return str(failure)
        except RecursionError:
            return "the document is nested too deeply to be patched"
        self._mine = True
        return None


def disputed(operations: list[dict[str, Any]], document: Any) -> bool:
    """Whether the client may take a patch of this document that `jsonpatch` refused.

    True for more patches than really differ: it is for those who must not guess. The known differences are removing
    the root; array indices that are empty or have leading zeros; members of a document that is no container;
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
    """Whether no client can be changed by this patch, applied or refused: there is nothing to reach into."""
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
    """Where the pointer first fails: at a member an object lacks, or at an array that it gives no index for."""
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
    return token == "" or token in _INHERITED or (len(token) > 1 and token[0] == "0" and token.isdigit())


def _tokens(pointer: str) -> list[str]:
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _banned(operations: list[dict[str, Any]]) -> str | None:
    """Why the client would throw rather than reach into an object's prototype, if it would."""
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
    return None
