"""The messages of a thread that go into a snapshot.

A unit is a message, or an assistant's message with the results of its calls; a unit is kept or dropped as a whole.
Reads a thread from its end and never all of it. Does not know how messages are written, nor their size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ag_ui.core import AssistantMessage, Message, ToolMessage

from runcast.slim.snapshots.slim_config import SlimConfig

REACH = 1_024  # messages read beyond the kept ones
SMALLEST_CALL = len('{"id":"","name":""},')  # bytes
PIN_REACH = 64  # messages at the beginning that are searched for a pinned one

Placed = tuple[int, Message]


@dataclass(frozen=True, slots=True)
class Unit:
    """Messages that are kept or dropped together."""

    messages: tuple[Message, ...]
    at: int  # its position in the thread
    pinned: bool = False  # dropped last


def excerpt(history: Sequence[Message], config: SlimConfig) -> list[Unit]:
    """The latest units of at most `max_messages` messages together, oldest first; pinned ones before them.

    They begin with a user's message if one is in reach, because models require that.
    """
    limit = config.max_messages
    if limit == 0 or not len(history):
        return []
    latest = _latest(history, config)
    units = _possible(_units(_window(latest, limit)), config.max_bytes)
    pins = _pins(history, config, before=units[0].at if units else len(history))
    units = _shortened(units, limit - len(pins))
    room = limit - len(pins) - 1
    if units and not any(unit.messages[0].role == "user" for unit in (*pins, units[0])):
        question = next((placed for placed in islice(latest, REACH) if placed[1].role == "user"), None)
        if question is not None and len(units[-1].messages) <= room:
            pins.append(Unit((question[1],), question[0], pinned=True))
            units = _shortened(units, room)
    return [*pins, *units]


def _latest(history: Sequence[Message], config: SlimConfig) -> Iterator[Placed]:
    """The messages that may be kept, the latest first."""
    left_out = set[str]()
    if not config.include_reasoning:
        left_out.add("reasoning")
    if not config.include_system:
        left_out |= {"system", "developer"}
    looked_at = config.max_messages + 2 * REACH
    for back, message in enumerate(islice(reversed(history), looked_at)):
        if message.role not in left_out:
            yield len(history) - 1 - back, message


def _window(latest: Iterator[Placed], limit: int) -> list[Placed]:
    """The last messages in order; above the limit only to keep results together with their calls."""
    window: list[Placed] = []
    for placed in latest:
        window.append(placed)
        if len(window) >= limit and (placed[1].role != "tool" or len(window) > limit + REACH):
            break
    return window[::-1]


def _pins(history: Sequence[Message], config: SlimConfig, *, before: int) -> list[Unit]:
    wanted = [
        role
        for role, pinned in (("system", config.pin_first_system), ("user", config.pin_first_user))
        if pinned
    ]
    pins: list[Unit] = []
    for at, message in enumerate(islice(history, min(before, PIN_REACH))):
        if message.role in wanted and len(pins) < config.max_messages:
            wanted.remove(message.role)
            pins.append(Unit((message,), at, pinned=True))
    return pins


def _units(window: list[Placed]) -> list[Unit]:
    """The messages as units; a result without its call is left out."""
    holders: dict[str, int] = {}
    places: list[int] = []
    groups: list[list[Message]] = []
    for at, message in window:
        if isinstance(message, ToolMessage):
            if message.tool_call_id in holders:
                groups[holders[message.tool_call_id]].append(message)
            continue
        if isinstance(message, AssistantMessage):
            holders |= {call.id: len(groups) for call in message.tool_calls or ()}
        places.append(at)
        groups.append([message])
    return [Unit(tuple(group), at) for at, group in zip(places, groups, strict=True)]


def _possible(units: list[Unit], max_bytes: int) -> list[Unit]:
    """The units behind the last one whose calls alone are larger than a snapshot: it is not written to be left out."""
    most = max_bytes // SMALLEST_CALL
    large = [
        at
        for at, unit in enumerate(units)
        if isinstance(head := unit.messages[0], AssistantMessage) and len(head.tool_calls or ()) > most
    ]
    return units[large[-1] + 1 :] if large else units


def _shortened(units: list[Unit], limit: int) -> list[Unit]:
    """The units without the oldest above the limit; if the last one alone is too big, it loses its oldest calls."""
    total = sum(len(unit.messages) for unit in units)
    kept = list(units)
    while kept and total > limit and len(kept) > 1:
        total -= len(kept.pop(0).messages)
    if kept and total > limit:
        kept = _narrowed(kept[0], limit)
    return kept


def _narrowed(unit: Unit, limit: int) -> list[Unit]:
    """The unit with only its last results and their calls."""
    head, results = unit.messages[0], unit.messages[1:]
    kept = results[len(results) - max(limit - 1, 0) :]
    answered = {result.tool_call_id for result in kept if isinstance(result, ToolMessage)}
    if limit < 1 or not isinstance(head, AssistantMessage) or not (answered or head.content):
        return []
    calls = [call for call in head.tool_calls or () if call.id in answered]
    return [Unit((head.model_copy(update={"tool_calls": calls or None}), *kept), unit.at, unit.pinned)]
