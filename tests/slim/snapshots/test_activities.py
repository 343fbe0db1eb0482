"""An activity in a snapshot is whole or a reference: whatever is drawn from it needs all of it."""

from __future__ import annotations

import random
from typing import Any

from ag_ui.core import ActivityMessage

from runcast.slim.snapshots.agent_state import AgentState
from runcast.slim.snapshots.slim_config import SlimConfig
from tests.slim.snapshots.test_serializer import STANDARD, check, told, user
from tests.slim.threads import nested


def surface(number: int, content: Any, **fields: Any) -> ActivityMessage:
    return ActivityMessage(id=f"s{number}", activity_type="a2ui-surface", content=content, **fields)


def drawn(state: AgentState, config: SlimConfig | None = None) -> dict[str, Any]:
    """What the snapshot has of each activity: its content, or None for a reference."""
    snapshot = check(state, config or SlimConfig())
    rows = [row for row in snapshot["messages"] if row["role"] == "activity"]
    return {
        row["metadata"]["id"]: None if row["metadata"].get("by_reference") else row["content"] for row in rows
    }


def test_an_activity_is_whole_however_long_its_texts_are():
    operations = [{"updateDataModel": {"value": "x" * 9_000}}, {"nothing": None, "list": []}]
    content = {"a2ui_operations": operations}
    state = told(user(1), surface(1, content, subagent_run_id="sub", metadata={"own": 1}))
    assert drawn(state) == {"s1": content}
    row = STANDARD.serialize(state)["messages"][1]
    assert row["metadata"] == {
        "id": "s1", "activity_type": "a2ui-surface", "subagent_run_id": "sub", "own": 1
    }  # fmt: skip
    (_, back) = STANDARD.deserialize(STANDARD.serialize(state)).history
    assert back == state.history[1]


def test_an_activity_that_does_not_fit_is_a_reference_the_oldest_first():
    big = {"text": "x" * 20_000}
    state = told(user(1), *(surface(n, big) for n in range(3)), user(2))
    assert drawn(state) == {"s0": None, "s1": None, "s2": big}
    words = [user(n, "word " * 300) for n in range(3, 40)]
    assert drawn(told(user(1), surface(1, big), *words)) == {"s1": None}
    assert drawn(told(surface(1, {"text": "x" * 900_000}))) == {"s1": None}
    assert drawn(told(user(1, "y" * 9_000), surface(1, {"a": 1})), SlimConfig(max_bytes=4_096)) == {
        "s1": {"a": 1}
    }


def test_an_activity_that_json_cannot_hold_is_a_reference():
    for value in (float("nan"), 2**70, "\ud800", nested(random.Random(1), 5_000)):
        assert drawn(told(surface(1, {"value": value}))) == {"s1": None}


def test_secrets_leave_an_activity_too():
    (content,) = drawn(told(surface(1, {"password": "hunter2", "label": "Name"}))).values()
    assert content == {"password": "[redacted]", "label": "Name"}
