"""Events of the application itself: what nodes write to a StreamWriter, dispatched events, tools' own progress, and model
calls of middleware.

A value `{"name", "value"}` becomes a CUSTOM event of that name, an activity an ACTIVITY event, and any other value CUSTOM
`langgraph.custom`. A tool's start and end are left out if a model asked for the call: the call and its result show them
already.

An activity is structured progress that is shown as a message of its own. A node writes it to its StreamWriter:
`writer(activity("plan-1", "PLAN", {"steps": [...]}))`, and changes it with
`writer(activity_patch("plan-1", "PLAN", [{"op": "replace", "path": "/steps/0/done", "value": True}]))`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ag_ui.core import ActivityDeltaEvent, ActivitySnapshotEvent, CustomEvent, Event

from runcast.adapters.langgraph.content.message_content import text_of
from runcast.adapters.langgraph.content.plain_values import plain
from runcast.adapters.langgraph.stream.open_message import Emission
from runcast.adapters.langgraph.stream.parts import Namespace
from runcast.adapters.langgraph.stream.subagents import Scopes
from runcast.slim.values.type_guards import as_mapping

ACTIVITY = "runcast.activity"


def activity(
    id: str, activity_type: str, content: Mapping[str, Any], *, replace: bool = True
) -> dict[str, Any]:
    """What to write to a StreamWriter so that the client shows, or replaces, an activity."""
    return {ACTIVITY: {"id": id, "type": activity_type, "content": dict(content), "replace": replace}}


def activity_patch(id: str, activity_type: str, patch: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What to write to a StreamWriter so that a shown activity changes, by JSON Patch."""
    return {ACTIVITY: {"id": id, "type": activity_type, "patch": [dict(each) for each in patch]}}


def activity_event(value: Any, tags: Mapping[str, Any]) -> Event | None:
    """The event of a custom value, if it is an activity."""
    asked = as_mapping(as_mapping(value).get(ACTIVITY))
    if not asked:
        return None
    named: dict[str, Any] = {"message_id": str(asked["id"]), "activity_type": str(asked["type"]), **tags}
    if "patch" in asked:
        return ActivityDeltaEvent.model_validate({**named, "patch": plain(asked["patch"])})
    replaced: dict[str, Any] = {} if asked.get("replace", True) else {"replace": False}
    return ActivitySnapshotEvent(content=plain(asked["content"]), **replaced, **named)


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
        call_id = self._emission.results.shown_as(str(data["tool_call_id"]), scope.owner)
        event = data["event"]
        if scope.hidden or (event != "tool-output-delta" and self._model_asked(call_id)):
            return []
        fields = {
            key: plain(value) for key, value in data.items() if key not in ("event", "tool_call_id", "output")
        }
        value = {"toolCallId": call_id, **fields}
        return [CustomEvent(name=f"langgraph.{event}", value=value, **self._emission.tags(scope.owner))]

    def internal(self, data: Mapping[str, Any], message: Any) -> list[Event]:
        """A model call that middleware made for itself, as an activity if that is wished."""
        if self._emission.options.internal_calls == "hidden":
            return []
        shown = activity(f"{data['run_id']}:internal", data["source"], {"text": text_of(message.content)})
        event = activity_event(shown, self._emission.tags(None))
        return [] if event is None else [event]

    def _model_asked(self, call_id: str) -> bool:
        return self._emission.results.knows(call_id, None) or self._scopes.works_for(call_id)

    def _emit(self, name: str, value: Any, ns: Namespace) -> list[Event]:
        scope = self._scopes.scope(ns)
        if scope.hidden:
            return []
        tags = self._emission.tags(scope.owner)
        shown = activity_event(value, tags)
        return [shown or CustomEvent(name=name, value=plain(value), **tags)]
