"""Activity: structured progress that is shown as a message of its own.

A node writes it to its StreamWriter: `writer(activity("plan-1", "PLAN", {"steps": [...]}))`, and changes it with
`writer(activity_patch("plan-1", "PLAN", [{"op": "replace", "path": "/steps/0/done", "value": True}]))`. Knows these two
shapes and their events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ag_ui.core import ActivityDeltaEvent, ActivitySnapshotEvent, Event

from runcast.adapters.langgraph.plain_values import plain
from runcast.slim.values.type_guards import as_mapping

KEY = "runcast.activity"


def activity(
    id: str, activity_type: str, content: Mapping[str, Any], *, replace: bool = True
) -> dict[str, Any]:
    """What to write to a StreamWriter so that the client shows, or replaces, an activity."""
    return {KEY: {"id": id, "type": activity_type, "content": dict(content), "replace": replace}}


def activity_patch(id: str, activity_type: str, patch: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What to write to a StreamWriter so that a shown activity changes, by JSON Patch."""
    return {KEY: {"id": id, "type": activity_type, "patch": [dict(each) for each in patch]}}


def activity_event(value: Any, tags: Mapping[str, Any]) -> Event | None:
    """The event of a custom value, if it is an activity."""
    asked = as_mapping(as_mapping(value).get(KEY))
    if not asked:
        return None
    named: dict[str, Any] = {"message_id": str(asked["id"]), "activity_type": str(asked["type"]), **tags}
    if "patch" in asked:
        return ActivityDeltaEvent.model_validate({**named, "patch": plain(asked["patch"])})
    replaced: dict[str, Any] = {} if asked.get("replace", True) else {"replace": False}
    return ActivitySnapshotEvent(content=plain(asked["content"]), **replaced, **named)
