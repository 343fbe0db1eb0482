"""A snapshot is read back as it was meant, whoever wrote it, or refused with the path of what is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ag_ui.core import AssistantMessage, Interrupt, ToolMessage, UserMessage

from runcast.slim.errors import SnapshotError
from runcast.slim.folding.step_records import StepRecord, Usage
from runcast.slim.snapshots.agent_state import AgentState
from runcast.slim.snapshots.serializer import SlimSerializer

SERIALIZER = SlimSerializer()

# A snapshot as it was first proposed: no schema name, no ids, one field a line of its table.
FIRST: dict[str, Any] = json.loads("""
{
  "agent_id": "uuid-string",
  "parent_agent_id": "uuid-string|null",
  "status": "in_progress|completed|failed",
  "step_count": 3,
  "usage": { "prompt": 1200, "completion": 600, "total": 1800 },
  "execution": {
    "started_at": "2026-01-16T10:00:00Z",
    "updated_at": "2026-01-16T10:05:00Z",
    "cumulative_seconds": 45.2
  },
  "messages": [
    { "role": "user", "content": "...", "metadata": {} },
    { "role": "assistant", "content": "...", "metadata": { "tool_calls": [{"id": "...", "name": "..."}] } },
    { "role": "tool", "content": "...", "metadata": { "tool_call_id": "...", "tool_name": "..." } }
  ],
  "steps": [
    {
      "step_number": 1,
      "type": "tool_execution|final|error",
      "has_tool_calls": true,
      "finish_reason": "tool_calls|stop|length|error",
      "errors": 0,
      "usage": { "total": 500 },
      "duration_ms": 1250.5,
      "tool_calls": [{ "id": "...", "name": "..." }]
    }
  ],
  "last_continuation": {
    "should_continue": false,
    "stop_reason": "completed",
    "resolved_by": "ToolCallPresenceCheck"
  },
  "metadata": { "custom_key": "custom_value" }
}
""")


def test_the_first_proposal_of_a_snapshot_is_read_whole():
    state = SERIALIZER.deserialize(FIRST)
    assert (state.agent_id, state.parent_agent_id) == ("uuid-string", "uuid-string|null")
    assert (state.status, state.step_count) == ("in_progress|completed|failed", 3)
    assert state.usage == Usage(1_200, 600, 1_800)
    assert (state.started_at, state.updated_at) == (1_768_557_600_000, 1_768_557_900_000)
    assert state.cumulative_seconds == 45.2
    assert state.steps == (
        StepRecord(
            1, "tool_execution|final|error", None, True, "tool_calls|stop|length|error", 0,
            Usage(0, 0, 500), 1_250.5, (("...", "..."),),
        ),
    )  # fmt: skip
    assert state.last_continuation == FIRST["last_continuation"]
    assert state.metadata == {"custom_key": "custom_value"}
    assert not state.state_known


def test_its_tool_calls_are_not_lost_on_resume():
    question, asked, answer = SERIALIZER.deserialize(FIRST).messages
    assert isinstance(question, UserMessage)
    assert isinstance(asked, AssistantMessage)
    assert asked.tool_calls is not None
    assert (asked.id, asked.tool_calls[0].id, asked.tool_calls[0].function.arguments) == (
        "message-2",
        "...",
        "{}",
    )
    assert isinstance(answer, ToolMessage)
    assert answer.tool_call_id == "..."
    again = SERIALIZER.serialize(SERIALIZER.deserialize(FIRST))
    for field in ("agent_id", "parent_agent_id", "status", "step_count", "usage", "execution", "metadata"):
        assert again[field] == FIRST[field]
    assert again["steps"] == [{**FIRST["steps"][0], "usage": {"prompt": 0, "completion": 0, "total": 500}}]
    assert [row["content"] for row in again["messages"]] == ["..."] * 3
    assert again["messages"][2]["metadata"]["tool_name"] == "..."


def test_what_is_unknown_is_kept():
    newer = {
        **FIRST,
        "schema": "runcast.snapshot.v7",
        "mood": {"good": True},
        "messages": [{"role": "user", "content": "x", "metadata": {"lang": "eo"}}],
        "steps": [{"step_number": 4, "colour": "red"}],
    }
    again = SERIALIZER.serialize(SERIALIZER.deserialize(newer))
    assert again["schema"] == "runcast.snapshot.v1"
    assert again["mood"] == {"good": True}
    assert again["messages"][0]["metadata"] == {"id": "message-1", "lang": "eo"}
    assert again["steps"][0] == {
        "step_number": 4, "type": "final", "has_tool_calls": False, "errors": 0, "tool_calls": [], "colour": "red",
    }  # fmt: skip


def test_the_least_that_a_snapshot_says_is_who_and_how():
    state = SERIALIZER.deserialize(
        {"agent_id": "a", "status": "completed", "steps": [{}], "metadata": [], "usage": None}
    )
    assert state.steps == (StepRecord(1, "final"),)
    assert (state.usage, state.started_at, state.seq, state.interrupts) == (Usage(), None, None, ())


def test_everything_else_comes_back_too():
    state = AgentState(
        agent_id="a",
        history=[UserMessage(id="u", content="", name="Ada", encrypted_value="e", metadata={"id": "mine"})],
        interrupts=[Interrupt(id="i", reason="ask", response_schema={"type": "string"})],
        state=None,
        framework={"checkpoint_id": "c"},
        seq=5,
        thread_id="t",
        dropped={"messages": 4, "steps": 0, "bytes": 9},
    )
    back = SERIALIZER.deserialize(SERIALIZER.serialize(state))
    assert list(back.history) == list(state.history)
    assert back.interrupts == tuple(state.interrupts)
    assert (back.state, back.state_known, back.framework) == (None, True, {"checkpoint_id": "c"})
    assert (back.seq, back.thread_id, back.dropped) == (5, "t", state.dropped)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-01-16T10:00:00", 1_768_557_600_000),
        ("2026-01-16T11:00:00.250+01:00", 1_768_557_600_250),
        ("1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_a_time_without_a_zone_is_utc(text: str, at: int):
    state = SERIALIZER.deserialize({**FIRST, "execution": {"started_at": text}})
    assert state.started_at == at


WRONG: list[tuple[Any, str]] = [
    ([], "the snapshot: expected an object, found list"),
    ({}, "agent_id: expected a string, found missing"),
    ({"schema": "other.v1"}, "schema: expected 'runcast.snapshot.v1' or another version of it, found str 'other.v1'"),
    ({"schema": 1}, "schema: expected a string"),
    ({"agent_id": 5}, "agent_id: expected a string, found int 5"),
    ({"status": None}, "status: expected a string, found NoneType"),
    ({"step_count": -1}, "step_count: expected a whole number of 0 or more"),
    ({"step_count": True}, "step_count: expected a whole number"),
    ({"usage": {"total": "many"}}, "usage.total: expected a whole number"),
    ({"usage": 5}, "usage: expected an object"),
    ({"execution": "now"}, "execution: expected an object"),
    ({"execution": {"started_at": 12}}, "execution.started_at: expected a string"),
    ({"execution": {"started_at": "soon"}}, "execution.started_at: expected a time such as"),
    ({"execution": {"cumulative_seconds": "long"}}, "execution.cumulative_seconds: expected a number"),
    ({"execution": {"cumulative_seconds": float("nan")}}, "cumulative_seconds: expected a number that a clock"),
    ({"step_count": 10**30}, "step_count: expected a whole number"),
    ({"messages": {}}, "messages: expected a list"),
    ({"messages": ["hi"]}, "messages[0].role: expected a string, found missing"),
    ({"messages": [{"role": "clown"}]}, "messages[0].role: expected one of user, assistant"),
    ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content: expected a string"),
    ({"messages": [{"role": "tool", "content": ""}]}, "messages[0].metadata.tool_call_id: expected a string, found missing"),
    (
        {"messages": [{"role": "assistant", "content": "", "metadata": {"tool_calls": [{"name": "f"}]}}]},
        "messages[0].metadata.tool_calls[0].id: expected a string",
    ),
    ({"messages": [{"role": "user", "content": "", "metadata": {"original_length": "x"}}]}, "original_length"),
    ({"steps": [{"has_tool_calls": "yes"}]}, "steps[0].has_tool_calls: expected true or false"),
    ({"steps": [{"tool_calls": [{"id": "c"}]}]}, "steps[0].tool_calls[0].name: expected a string"),
    ({"steps": [5]}, "steps[0]: expected an object"),
    ({"interrupts": [{"id": "i"}]}, "interrupts[0].reason: not an interrupt: Field required"),
    ({"metadata": "x"}, "metadata: expected an object"),
    ({"resume": {"seq": "x"}}, "resume.seq: expected a whole number"),
    ({"dropped": {"messages": -4}}, "dropped.messages: expected a whole number"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "sentence"), WRONG, ids=[sentence[:50] for _, sentence in WRONG])
def test_what_cannot_be_read_is_named_by_its_path(change: Any, sentence: str):
    data = {**FIRST, **change} if change else change
    with pytest.raises(SnapshotError) as caught:
        SERIALIZER.deserialize(data)
    assert sentence in str(caught.value)
    assert caught.value.path
