"""The difference of two JSON-ready values as a short JSON Patch (RFC 6902).

Made for the way agents change their state: they append to lists, set keys, and replace the rest. Equal means equal in
JSON: True is not 1. The result is exact, and not always the shortest.
"""

from __future__ import annotations

from typing import Any

from runcast.slim.values.type_guards import is_list, is_object

Operation = dict[str, Any]
MOST_OPERATIONS = 200  # above it, one replacement is shorter


class _TooMany(Exception):
    """One replacement is shorter than the difference."""


def diff(old: Any, new: Any, path: str = "") -> list[Operation]:
    """Operations that turn `old` into `new`, at `path`; one `replace` when they would be many."""
    found: list[Operation] = []
    try:
        _compare(old, new, path, found)
    except _TooMany:
        return [{"op": "replace", "path": path, "value": new}]
    return found


def pointer(key: str) -> str:
    """One step of a JSON Pointer (RFC 6901)."""
    return "/" + key.replace("~", "~0").replace("/", "~1")


def same(old: Any, new: Any) -> bool:
    """Whether two JSON-ready values are equal as JSON."""
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if is_object(old):
        return _same_dicts(old, new)
    if is_list(old):
        return len(old) == len(new) and all(map(same, old, new))
    return bool(old == new)


def _same_dicts(old: dict[str, Any], new: dict[str, Any]) -> bool:
    return old.keys() == new.keys() and all(same(value, new[key]) for key, value in old.items())


def _compare(old: Any, new: Any, path: str, found: list[Operation]) -> None:
    if is_object(old) and is_object(new):
        _dicts(old, new, path, found)
    elif is_list(old) and is_list(new):
        _lists(old, new, path, found)
    elif not same(old, new):
        _add(found, {"op": "replace", "path": path, "value": new})


def _dicts(old: dict[str, Any], new: dict[str, Any], path: str, found: list[Operation]) -> None:
    for key in old:
        if key not in new:
            _add(found, {"op": "remove", "path": path + pointer(key)})
    for key, value in new.items():
        if key not in old:
            _add(found, {"op": "add", "path": path + pointer(key), "value": value})
        elif old[key] is not value:
            _compare(old[key], value, path + pointer(key), found)


def _lists(old: list[Any], new: list[Any], path: str, found: list[Operation]) -> None:
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if not same(old[at], new[at])), shorter)
    tail = next((at for at in range(shorter - head) if not same(old[-1 - at], new[-1 - at])), shorter - head)
    if head == len(old):  # appended: `-` needs no index, and is right whatever the reader's copy holds before
        for value in new[head:]:
            _add(found, {"op": "add", "path": path + "/-", "value": value})
    elif head + tail == len(old):
        for at in range(head, len(new) - tail):
            _add(found, {"op": "add", "path": f"{path}/{at}", "value": new[at]})
    elif head + tail == len(new):
        for at in reversed(range(head, len(old) - tail)):
            _add(found, {"op": "remove", "path": f"{path}/{at}"})
    elif len(old) == len(new):
        for at in range(head, len(new) - tail):
            _compare(old[at], new[at], f"{path}/{at}", found)
    else:
        _add(found, {"op": "replace", "path": path, "value": new})


def _add(found: list[Operation], operation: Operation) -> None:
    found.append(operation)
    if len(found) > MOST_OPERATIONS:
        raise _TooMany
