"""Snapshots: a thread, small enough for a database row and complete enough to resume.

`SlimSerializer` turns an `AgentState` into a snapshot and back. It keeps three promises: a snapshot never exceeds
`max_bytes` of UTF-8 JSON; its cost depends on the size of the snapshot, not of the thread; everything left out is
counted under `dropped`. If a snapshot is too big, the oldest activities become references; then parts are removed in
this order: the oldest messages, steps, the application's metadata, state, the text of the remaining messages, those
messages, interrupts, the framework's data.
A snapshot is partial and never sent as MESSAGES_SNAPSHOT, where an absent message is deleted.

Knows the schema; does not know where snapshots are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Protocol

from ag_ui.core import ActivityMessage, AssistantMessage, Message

from runcast.slim.redaction.redactor import Redactor
from runcast.slim.snapshots.agent_state import AgentState
from runcast.slim.snapshots.excerpt import Unit, excerpt
from runcast.slim.snapshots.message_weight import text_bytes
from runcast.slim.snapshots.renderer import Renderer
from runcast.slim.snapshots.slim_config import SlimConfig
from runcast.slim.snapshots.snapshot_reader import SCHEMA, read_snapshot
from runcast.slim.values.json_budget import TooBig, copied, fitting, size, surely_within
from runcast.slim.values.type_guards import is_mapping

SHORTER = (500, 100, 0)  # content lengths to try when one unit alone is too big
SLACK = 64  # bytes by which counters may grow while parts are removed
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class AgentSerializer(Protocol):
    """Turns a state into JSON data, and back."""

    def serialize(self, state: AgentState) -> dict[str, Any]:
        """The state as plain JSON data."""
        ...

    def deserialize(self, data: Mapping[str, Any]) -> AgentState:
        """The serialised state, as far as it was kept."""
        ...


class SlimSerializer:
    """The bounded serializer. It redacts secrets, with the default redactor unless one is given."""

    def __init__(self, config: SlimConfig | None = None, redactor: Redactor | None = None) -> None:
        self.config = config or SlimConfig()
        self.redactor = redactor or _default_redactor()

    def serialize(self, state: AgentState) -> dict[str, Any]:
        """The snapshot, a pure function of the state."""
        return _Draft(state, Renderer(self.config, self.redactor)).finished()

    def deserialize(self, data: Mapping[str, Any]) -> AgentState:
        """Read a snapshot of this, an older or a newer schema; `SnapshotError` names an unreadable part."""
        return read_snapshot(data)


@cache
def _default_redactor() -> Redactor:
    return Redactor()


class _Draft:
    """One snapshot while it is made."""

    def __init__(self, state: AgentState, renderer: Renderer) -> None:
        self._state = state
        self._renderer = renderer
        config = self._config = renderer.config
        self._units = excerpt(state.history, config)
        self._room = config.max_bytes // 2  # for activities, the newest first
        self._written = [self._rows(unit, None) for unit in reversed(self._units)][::-1]
        steps = list(state.steps)[-config.max_steps :] if config.include_steps and config.max_steps else []
        self._steps = [renderer.step(step) for step in steps]
        self._interrupts = list(self._waiting(config.max_bytes // 4))
        self._framework = fitting(self._plain(state.framework), config.max_bytes // 8)
        self._metadata = fitting(self._plain(state.metadata), config.max_metadata_bytes)
        self._extra = fitting(self._plain(state.extra), config.max_metadata_bytes)
        self._keys_left_out = 0
        self._shared = self._kept_state() if config.include_state and state.state_known else None
        self._continuation = self._trace() if config.include_continuation_trace else None

    def finished(self) -> dict[str, Any]:
        """The snapshot, without the parts that do not fit."""
        made, most = self._assembled(), self._config.max_bytes
        if surely_within(made, most):
            return made
        for shed in (
            self._shed_activities,
            self._shed_messages,
            self._shed_steps,
            self._shed_metadata,
            self._shed_state,
            *(self._shortener(length) for length in SHORTER),
            self._shed_last_messages,
            self._shed_interrupts,
            self._shed_framework,
        ):
            excess = size(made) - most
            if excess <= 0:
                return made
            shed(excess + SLACK)
            made = self._assembled()
        return made

    def _assembled(self) -> dict[str, Any]:
        state, render = self._state, self._renderer
        snapshot: dict[str, Any] = {
            "schema": SCHEMA,
            "agent_id": render.id(state.agent_id),
            "parent_agent_id": None if state.parent_agent_id is None else render.id(state.parent_agent_id),
            "status": render.id(state.status),
            "step_count": state.step_count,
            "usage": state.usage.row(),
            "execution": {
                "started_at": _time(state.started_at),
                "updated_at": _time(state.updated_at),
                "cumulative_seconds": state.cumulative_seconds,
            },
            "messages": [row for rows in self._written for row in rows],
            "steps": self._steps,
            "last_continuation": self._continuation,
        }
        if self._shared is not None:
            snapshot["state"] = self._shared[0]
        return snapshot | {
            "interrupts": self._interrupts,
            "resume": self._resume(),
            "metadata": self._metadata,
            "dropped": self._dropped(),
            **{key: value for key, value in self._extra.items() if key not in snapshot},
        }

    # ------------------------------------------------------------------ parts

    def _rows(self, unit: Unit, limit: int | None) -> list[dict[str, Any]]:
        names = {
            call.id: call.function.name
            for message in unit.messages
            if isinstance(message, AssistantMessage)
            for call in message.tool_calls or ()
        }
        return [self._row(message, names, limit) for message in unit.messages]

    def _row(self, message: Message, names: Mapping[str, str], limit: int | None) -> dict[str, Any]:
        if not isinstance(message, ActivityMessage):
            return self._renderer.message(message, names, limit)
        row = self._renderer.activity(message, self._room if limit is None else 0)
        self._room -= size(row["content"])
        return row

    def _plain(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        """The first entries as redacted JSON; entries that are too big alone are skipped."""
        if not value:
            return value
        room = self._config.max_bytes
        plain: Mapping[str, Any] = self._renderer.redactor.value(fitting(value, room))
        return plain

    def _waiting(self, room: int) -> Iterator[dict[str, Any]]:
        for interrupt in self._state.interrupts:
            row = self._renderer.interrupt(interrupt, room)
            if row is not None:
                room -= size(row) + 2
                yield row

    def _kept_state(self) -> tuple[Any] | None:
        """The state if it fits, or the entries of an object that fit; None if nothing fits."""
        given, room = self._state.state, self._config.max_state_bytes
        if given == {}:  # as in most threads
            return ({},)
        redact = self._renderer.redactor.value
        if is_mapping(given):
            kept = fitting(redact(fitting(given, room)), room)
            self._keys_left_out = len(given) - len(kept)
            return (kept,)
        try:
            return (copied(redact(copied(given, room)), room),)
        except TooBig:
            self._keys_left_out = 1
            return None

    def _trace(self) -> dict[str, Any] | None:
        given = self._state.last_continuation
        if given is None:
            return None
        row: dict[str, Any] = {}
        for key in ("should_continue", "stop_reason", "resolved_by"):
            value = given.get(key)
            if isinstance(value, str):
                row[key] = self._renderer.name(value)
            elif isinstance(value, bool):
                row[key] = value
        return row

    def _resume(self) -> dict[str, Any]:
        state, render = self._state, self._renderer
        resume: dict[str, Any] = {"seq": state.seq, "run_id": state.run_id and render.id(state.run_id)}
        if state.thread_id is not None:
            resume["thread_id"] = render.id(state.thread_id)
        resume["framework"] = self._framework
        if state.run_usage.total:
            resume["run_usage"] = state.run_usage.row()
        waiting = {
            call["id"]
            for rows in self._written
            for row in rows
            for call in row["metadata"].get("tool_calls", ())
        }
        pending = [call_id for call_id in map(render.id, state.pending_tool_call_ids) if call_id in waiting]
        written = {row["metadata"].get("id") for rows in self._written for row in rows}
        half = [message_id for message_id in map(render.id, state.half_said) if message_id in written]
        lists = {"pending_tool_call_ids": pending, "half_said": half}
        return resume | {key: ids for key, ids in lists.items() if ids}

    def _dropped(self) -> dict[str, int]:
        before, state = self._state.dropped, self._state
        messages = [message for unit in self._units for message in unit.messages]
        kept = sum(
            text_bytes(row["content"]) + _argument_bytes(row)
            for rows in self._written
            for row in rows
            if row["role"] != "activity"
        )
        lost = {
            "messages": len(state.history) - len(messages),
            "steps": len(state.steps) - len(self._steps),
            "bytes": max(0, state.content_bytes - kept),
            "state_keys": self._keys_left_out,
            "interrupts": len(state.interrupts) - len(self._interrupts),
        }
        counted = {key: before.get(key, 0) + count for key, count in lost.items()}
        return {
            key: count for key, count in counted.items() if count or key in ("messages", "steps", "bytes")
        }

    # ------------------------------------------------------------------ leaving out

    def _shed_activities(self, excess: int) -> None:
        """Make references of the oldest activities."""
        for unit, rows in zip(self._units, self._written, strict=True):
            message = unit.messages[0]
            if excess > 0 and isinstance(message, ActivityMessage):
                excess -= size(rows[0])
                rows[0] = self._renderer.activity(message, 0)
                excess += size(rows[0])

    def _shed_messages(self, excess: int) -> None:
        """Remove the oldest units, but not the last one nor pinned ones."""
        at = 0
        while excess > 0 and at < len(self._units) - 1:
            if self._units[at].pinned:
                at += 1
                continue
            excess -= sum(size(row) + 2 for row in self._written[at])
            del self._units[at], self._written[at]

    def _shed_steps(self, excess: int) -> None:
        while excess > 0 and self._steps:
            excess -= size(self._steps.pop(0)) + 2

    def _shed_metadata(self, _: int) -> None:
        self._metadata, self._extra = {}, {}

    def _shed_state(self, excess: int) -> None:
        if self._shared is None or not is_mapping(self._shared[0]):
            self._keys_left_out += self._shared is not None
            self._shared = None
            return
        kept = dict(self._shared[0])
        self._shared = (kept,)
        while excess > 0 and kept:
            key, value = kept.popitem()
            excess -= size(key) + size(value) + 4
            self._keys_left_out += 1

    def _shortener(self, length: int) -> Callable[[int], None]:
        def shorten(_: int) -> None:
            self._written = [self._rows(unit, length) for unit in self._units]

        return shorten

    def _shed_last_messages(self, _: int) -> None:
        self._units, self._written = [], []

    def _shed_interrupts(self, excess: int) -> None:
        while excess > 0 and self._interrupts:
            excess -= size(self._interrupts.pop()) + 2

    def _shed_framework(self, _: int) -> None:
        self._framework, self._continuation = {}, None


def _argument_bytes(row: Mapping[str, Any]) -> int:
    return sum(text_bytes(call.get("arguments", "")) for call in row["metadata"].get("tool_calls", ()))


def _time(at: int | None) -> str | None:
    """UTC to the second or millisecond; None for a time beyond the calendar."""
    if at is None:
        return None
    try:
        moment = EPOCH + timedelta(milliseconds=at)
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds" if at % 1000 else "seconds").replace("+00:00", "Z")
