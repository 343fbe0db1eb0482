"""Events of the application itself: what nodes write to a StreamWriter, dispatched events, and tools' own progress.

A value `{"name", "value"}` becomes a CUSTOM event of that name, an activity (see `activity`) an ACTIVITY event, and any
other value CUSTOM `langgraph.custom`. A tool's start and end are left out if a model asked for the call: the call and
its result show them already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ag_ui.core import CustomEvent, Event

from runcast.adapters.langgraph.activity import activity_event
from runcast.adapters.langgraph.plain_values import plain
from runcast.adapters.langgraph.stream.open_message import Emission
from runcast.adapters.langgraph.stream.parts import Namespace
from runcast.adapters.langgraph.stream.subagents import Scopes
from runcast.slim.values.type_guards import as_mapping


class CustomEvents:
    """The application's own events of one run."""

    def __init__(self, emission: Emission, scopes: Scopes) -> None:
        self._emission = emission
        self._scopes = scopes

    def written(self, data: Any, ns: Namespace) -> list[Event]:
        """A node wrote to its StreamWriter."""
        named = as_mapping(data)
        if isinstance(named.get("name"), str) and "value" in named:
            return self._emit(named["name"], named["value"], ns)
        return self._emit("langgraph.custom", data, ns)

    def dispatched(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        """`dispatch_custom_event` was called."""
        return self._emit(str(data["name"]), data["data"], ns)

    def tool(self, data: Mapping[str, Any], ns: Namespace) -> list[Event]:
        """A tool started, ended, or sent a piece of its output."""
        scope = self._scopes.scope(ns)
        call_id = str(data["tool_call_id"])
        event = data["event"]
        if scope.hidden or (event != "tool-output-delta" and self._model_asked(call_id)):
            return []
        fields = {
            key: plain(value) for key, value in data.items() if key not in ("event", "tool_call_id", "output")
        }
        value = {"toolCallId": call_id, **fields}
        return [CustomEvent(name=f"langgraph.{event}", value=value, **self._emission.tags(scope.owner))]

    def _model_asked(self, call_id: str) -> bool:
        return self._emission.results.knows(call_id) or self._scopes.works_for(call_id)

    def _emit(self, name: str, value: Any, ns: Namespace) -> list[Event]:
        scope = self._scopes.scope(ns)
        if scope.hidden:
            return []
        tags = self._emission.tags(scope.owner)
        activity = activity_event(value, tags)
        return [activity or CustomEvent(name=name, value=plain(value), **tags)]
