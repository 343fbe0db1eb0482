"""Compacts a run from stored bytes to stored bytes, with the result of decoding, `compact` and encoding.

A delta of an open stream costs a look at the head of its line: the bytes before its text, without the timestamp. An event
that no rule looks into, and every other kept one, keeps its bytes. The rest is decoded. Knows how `encode` spells an
event, and is only slower with other spellings; does not know times or stores.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import orjson
from ag_ui.core import ToolCallArgsEvent

from runcast.slim.compaction.compactor import KEPT, Compactor
from runcast.slim.compaction.groups import Delta
from runcast.slim.wire.codec import AnyEvent, decode, encode

_DELTA = b'"delta":"'
_OPENING = len(b'{"type":"')
_NONE = b"-"  # no line begins so
_TIME = re.compile(rb'"timestamp":[0-9]+,')
_KEPT = frozenset(tag.encode() for tag in KEPT)
_HEAD = frozenset({"type", "subagentRunId"})

Place = tuple[int, bytes]
"""The number of a line, and the line."""

Take = Callable[[bytes], None]


def compact_lines(lines: Iterable[bytes]) -> list[Place]:
    """Lines with the same effect, each with the number of the line whose place it has."""
    compactor = Compactor()
    decoded: dict[int, tuple[Place, AnyEvent]] = {}  # by the event's id(), unique while the event is kept
    takes: dict[bytes, Take] = {}  # of every head, where its open group takes the rest of a line
    last = _NONE  # how the line before began
    take: Take = _nowhere  # of that line
    out: list[Any] = []
    for number, line in enumerate(lines):
        text = line.removeprefix(last)
        if text is not line:
            take(text)
            continue
        head, _, rest = line.partition(_DELTA)
        found = rest and (takes.get(head) or takes.get(head := _TIME.sub(b"", head, count=1)))
        if found:
            last, take = line[: -len(rest)], found
            take(rest)
            continue
        if b"\n" in line:
            line = encode(decode(line, legacy=False))  # foreign spelling must not break lines
        tag = line[_OPENING : line.find(b'"', _OPENING)]
        if tag in _KEPT and compactor.keep((number, line)):
            continue
        event = decode(line, legacy=False)
        decoded[id(event)] = (number, line), event
        group = compactor.group_of(event) if rest else None
        if group is not None:
            group.add(event)  # type: ignore[arg-type]  # only a delta has a group
        else:
            takes.clear()  # this event may bar any group
            last = _NONE
            out += compactor.feed(event)
            group = compactor.group_of(event) if rest else None
        if group is not None and _is_plain(head, group.first):
            takes[head] = group.stored.append
    return list(_placed(out + compactor.close(), decoded))


def _nowhere(rest: bytes) -> None:
    """No line begins as the one before did."""


def _is_plain(head: bytes, delta: Delta) -> bool:
    """Whether a line that begins so is a delta of this one's stream, without metadata."""
    field = "toolCallId" if isinstance(delta, ToolCallArgsEvent) else "messageId"
    key = delta.tool_call_id if isinstance(delta, ToolCallArgsEvent) else delta.message_id
    try:
        found = orjson.loads(head[:-1] + b"}")
    except orjson.JSONDecodeError:
        return False
    return found.keys() <= {field, *_HEAD} and (found.get("type"), found.get(field)) == (
        delta.type.value,
        key,
    )


def _placed(out: list[Any], decoded: dict[int, tuple[Place, AnyEvent]]) -> Iterator[Place]:
    """The kept lines, and those of new events. No kept event moves: a new one takes the place of the next old one."""
    at = 0
    for item in out:
        if type(item) is tuple:
            at, line = cast("Place", item)
        elif id(item) in decoded:
            at, line = decoded[id(item)][0]
        else:
            line = encode(item)
        yield at, line
        at += 1
