"""A graph's state as the client holds it: one snapshot, then the smallest patches.

Knows channels, and that LangGraph hands them over by reference, so that an unchanged one is the same object. Does not
know reducers: they are already applied to the values. `messages` is never in it: the conversation has events of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from ag_ui.core import Event, StateDeltaEvent, StateSnapshotEvent
from pydantic import BaseModel

from runcast.adapters.langgraph.content.plain_values import plain
from runcast.adapters.langgraph.json_diff import Operation, diff, pointer
from runcast.adapters.open_blocks import Clock
from runcast.slim.values.type_guards import as_mapping

HIDDEN = "__"  # LangGraph's own channels begin with it


def is_shown(key: str, keys: Collection[str] | None, without: Collection[str]) -> bool:
    """Whether a client may see this channel; `keys` None allows all but LangGraph's own."""
    if keys is not None:
        return key in keys and key not in without
    return key not in without and not key.startswith(HIDDEN)


class StateView:
    """The state that the client holds. Feed it every root `values`, and the keys written in between."""

    def __init__(
        self,
        *,
        keys: Collection[str] | None = None,
        without: Collection[str] = ("messages",),
        client_has_state: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self._keys = None if keys is None else frozenset(keys)
        self._without = frozenset(without)
        self._client_has_state = (
            client_has_state  # then even an empty state must be sent, to replace the client's
        )
        self._clock = clock
        self._sent: dict[str, Any] | None = None  # JSON-ready, as the client holds it
        self._seen: dict[str, Any] = {}  # the graph's own objects, to recognise the unchanged ones
        self._written: set[str] = (
            set()
        )  # written since the last values: compared even when the object is the same

    def written(self, update: Any) -> None:
        """A node wrote these keys. It may have changed an object in place, which identity would not show."""
        self._written.update(as_state(update) or ())

    def lost(self) -> None:
        """Events may be lost: the next values send the whole state again."""
        self._client_has_state = self._client_has_state or self._sent is not None
        self._sent = None

    def intermediate(self, update: Mapping[str, Any]) -> list[Event]:
        """What a node shows of the state while it works; the values after its step are compared with it."""
        shown = {key: value for key, value in update.items() if is_shown(key, self._keys, self._without)}
        self._written.update(shown)
        if self._sent is None:
            return self._first(shown) if shown else []
        sent = self._sent
        return self._delta([each for key in shown for each in self._change(sent, key, plain(shown[key]))])

    def values(self, data: Any) -> list[Event]:
        """The reducer-applied state after a step."""
        state = as_state(data)
        if state is None:
            return []
        shown = {key: value for key, value in state.items() if is_shown(key, self._keys, self._without)}
        events = self._first(shown) if self._sent is None else self._next(self._sent, shown)
        self._seen = shown
        self._written.clear()
        return events

    def _first(self, shown: dict[str, Any]) -> list[Event]:
        if not shown and not self._client_has_state:
            return []
        self._sent = {key: plain(value) for key, value in shown.items()}
        return [StateSnapshotEvent(snapshot=dict(self._sent), **self._now())]

    def _next(self, sent: dict[str, Any], shown: dict[str, Any]) -> list[Event]:
        operations: list[Operation] = []
        for key in [key for key in sent if key not in shown]:
            del sent[key]
            operations.append({"op": "remove", "path": pointer(key)})
        for key, value in shown.items():
            if key in sent and key not in self._written and value is self._seen.get(key, sent):
                continue
            operations += self._change(sent, key, plain(value))
        return self._delta(operations)

    def _delta(self, operations: Sequence[Operation]) -> list[Event]:
        if not operations:
            return []
        return [StateDeltaEvent.model_validate({"delta": operations, **self._now()})]

    @staticmethod
    def _change(sent: dict[str, Any], key: str, value: Any) -> list[Operation]:
        if key not in sent:
            operations = [{"op": "add", "path": pointer(key), "value": value}]
        else:
            operations = diff(sent[key], value, pointer(key))
        sent[key] = value
        return operations

    def _now(self) -> dict[str, Any]:
        return {} if self._clock is None else {"timestamp": self._clock()}


def as_state(data: Any) -> Mapping[str, Any] | None:
    """A state or an update by its keys, whatever kind the graph declared; None for a bare value."""
    if isinstance(data, Mapping):
        return as_mapping(data)
    if isinstance(data, BaseModel):
        return {name: getattr(data, name) for name in type(data).model_fields if hasattr(data, name)}
    if is_dataclass(data) and not isinstance(data, type):
        return {field.name: getattr(data, field.name) for field in fields(data) if hasattr(data, field.name)}
    return None
