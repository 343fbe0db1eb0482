"""UI message chunks: the AI SDK's own schema takes each, and its reader makes of them what ours does."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    AssistantMessage,
    CustomEvent,
    FunctionCall,
    Interrupt,
    MessagesSnapshotEvent,
    ReasoningMessage,
    ResumeEntry,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepStartedEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCall,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    ToolMessage,
    UserMessage,
)

from runcast.app.skins.ui_chunks import Chunk
from runcast.app.skins.ui_messages import Replay, reduce_chunks
from runcast.slim.wire.codec import decode
from tests.broadcast.goldens import recorded
from tests.conftest import missing
from tests.e2e import oracle


def read(streams: Sequence[Sequence[Chunk]]) -> list[Any]:
    """What the AI SDK makes of each stream."""
    node = shutil.which("node")
    if node is None or not (oracle.HERE / "node_modules" / "ai").is_dir():
        missing(oracle.MISSING)
    done = subprocess.run(
        [str(node), "ui_chunks.mjs"],
        cwd=oracle.HERE,
        input=json.dumps(streams).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    answers: list[Any] = json.loads(done.stdout)
    return answers


def chunks_of(events: Iterable[Any]) -> list[list[Chunk]]:
    """The chunks of each assistant's message."""
    replay, found = Replay(), list[list[Chunk]]()
    for event in events:
        chunks = replay.feed(event)
        if isinstance(event, RunStartedEvent) and not replay.continues:
            found.append([])
        found[-1].extend(chunks)
    return found


def begun(run: str = "r", say: str = "hello", **more: Any) -> RunStartedEvent:
    asked = [UserMessage(id=f"u-{run}", content=say)] if say else []
    given = RunAgentInput(
        thread_id="t", run_id=run, state={}, messages=asked, tools=[], context=[], forwarded_props={}, **more
    )
    return RunStartedEvent(thread_id="t", run_id=run, input=given)


def ended(run: str = "r", **more: Any) -> RunFinishedEvent:
    return RunFinishedEvent(thread_id="t", run_id=run, **more)


def said(key: str, *deltas: str, role: Any = "assistant") -> list[Any]:
    return [
        TextMessageStartEvent(message_id=key, role=role),
        *(TextMessageContentEvent(message_id=key, delta=each) for each in deltas),
        TextMessageEndEvent(message_id=key),
    ]


def called(key: str, arguments: str = '{"a": 1}', result: str | None = "done") -> list[Any]:
    events: list[Any] = [
        ToolCallStartEvent(tool_call_id=key, tool_call_name="find"),
        ToolCallArgsEvent(tool_call_id=key, delta=arguments),
        ToolCallEndEvent(tool_call_id=key),
    ]
    if result is not None:
        events.append(ToolCallResultEvent(message_id=f"m-{key}", tool_call_id=key, content=result))
    return events


def kinds(chunks: Iterable[Chunk]) -> list[str]:
    return [each["type"] for each in chunks]


def only(*events: Any) -> list[Chunk]:
    (chunks,) = chunks_of(events)
    return chunks


@pytest.mark.oracle
def test_every_recorded_run_is_a_stream_that_the_sdk_reads_as_we_do() -> None:
    streams: list[list[Chunk]] = []
    for path in recorded():
        events = [decode(line) for line in path.read_bytes().splitlines() if line.strip()]
        streams += chunks_of(events)
    answers = read(streams)
    assert len(answers) > 100
    for chunks, answer in zip(streams, answers, strict=True):
        assert answer["refused"] == []
        failed = any(each["type"] == "error" for each in chunks)
        assert bool(answer["errors"]) == failed
        assert _comparable(answer["message"]["parts"]) == _comparable(reduce_chunks(chunks))


def _comparable(parts: Iterable[Any]) -> list[Any]:
    """Without what the SDK keeps for itself, and without a step that has no parts: it may show that or not."""
    own = ("id", "rawInput", "preliminary")
    found = [
        {key: value for key, value in part.items() if key not in own or part["type"].startswith("data-")}
        for part in parts
    ]
    return [] if found == [{"type": "step-start"}] else found


def test_texts_calls_and_results_come_as_they_are_written() -> None:
    chunks = only(
        begun(),
        StepStartedEvent(step_name="s"),
        *said("m1", "a", "b"),
        *called("c1"),
        *said("m2", "c"),
        ended(),
    )
    assert kinds(chunks) == [
        "start",
        "start-step",
        "data-step",
        "text-start",
        "text-delta",
        "text-delta",
        "text-end",
        "tool-input-start",
        "tool-input-delta",
        "tool-input-available",
        "tool-output-available",
        "text-start",
        "text-delta",
        "text-end",
        "finish-step",
        "finish",
    ]
    assert chunks[0]["messageId"] == "r"
    assert chunks[9]["input"] == {"a": 1}
    assert chunks[9]["providerExecuted"]
    assert chunks[-1]["finishReason"] == "stop"


def test_chunk_events_custom_events_state_and_activities_are_parts_too() -> None:
    add = [{"op": "add", "path": "/n", "value": 2}]
    chunks = only(
        begun(),
        TextMessageChunkEvent(message_id="m", delta="whole"),
        StateSnapshotEvent(snapshot={"n": 1}),
        StateDeltaEvent(delta=add),
        ActivitySnapshotEvent(message_id="a", activity_type="PLAN", content={"n": 1}),
        ActivityDeltaEvent(message_id="a", activity_type="PLAN", patch=add),
        CustomEvent(name="ping", value=7),
        *said("u", "not the assistant's", role="user"),
        ended(),
    )
    assert [each["data"] for each in chunks if each["type"] == "data-state"] == [{"n": 1}, {"n": 2}]
    assert [each["data"]["content"] for each in chunks if each["type"] == "data-activity"] == [
        {"n": 1},
        {"n": 2},
    ]
    assert [each["data"] for each in chunks if each["type"] == "data-custom"] == [
        {"name": "ping", "value": 7}
    ]
    assert kinds(chunks).count("text-start") == 1


def test_results_that_are_json_come_as_values_and_broken_arguments_as_an_error() -> None:
    chunks = only(
        begun(),
        *called("c1", result='{"n": 1}'),
        *called("c2", result="[not json"),
        *called("c3", "{"),
        ended(),
    )
    outputs = [each["output"] for each in chunks if each["type"] == "tool-output-available"]
    assert outputs == [{"n": 1}, "[not json", "done"]
    (broken,) = [each for each in chunks if each["type"] == "tool-input-error"]
    assert (broken["toolCallId"], broken["input"]) == ("c3", "{")
    assert "not JSON" in broken["errorText"]


def test_an_error_and_a_stop_end_the_stream_with_what_was_open_closed() -> None:
    opened = TextMessageStartEvent(message_id="m")
    failed = only(begun(), opened, RunErrorEvent(message="no model", code="x"))
    assert kinds(failed)[-4:] == ["text-end", "error", "finish-step", "finish"]
    for end in (
        ended(outcome=RunFinishedCancelledOutcome()),
        RunErrorEvent(message="stopped", code="cancelled"),
    ):
        stopped = only(begun(), opened, end)
        assert kinds(stopped)[-4:] == ["text-end", "abort", "finish-step", "finish"]
    replay = Replay()
    for event in (begun(), opened):
        replay.feed(event)
    assert kinds(replay.cut("cut")) == ["text-end", "error", "finish-step", "finish"]
    assert replay.ended


def snapshot(*messages: Any) -> MessagesSnapshotEvent:
    return MessagesSnapshotEvent(messages=[UserMessage(id="u-r", content="hello"), *messages])


def call(key: str, arguments: str = "{}") -> ToolCall:
    return ToolCall(id=key, function=FunctionCall(name="find", arguments=arguments))


def test_a_snapshot_sends_only_what_the_client_lacks() -> None:
    whole = snapshot(
        ReasoningMessage(id="why", content="because"),
        AssistantMessage(id="m1", content="ab", tool_calls=[call("c1")]),
        ToolMessage(id="t1", tool_call_id="c1", content="4", error="too late"),
    )
    chunks = only(begun(), whole, whole, *said("m2", "c"), ended())
    assert kinds(chunks).count("reasoning-start") == 1
    assert kinds(chunks).count("tool-output-error") == 1
    assert "reset-step" not in kinds(chunks)
    grown = only(begun(), *said("m1", "a")[:2], snapshot(AssistantMessage(id="m1", content="abc")), ended())
    assert [each["delta"] for each in grown if each["type"] == "text-delta"] == ["a", "bc"]


@pytest.mark.oracle
def test_what_a_snapshot_takes_back_is_gone_for_the_sdk() -> None:
    taken = [
        begun(),
        StateSnapshotEvent(snapshot={"n": 1}),
        *said("m1", "first try"),
        snapshot(),
        *said("m2", "second try"),
        ended(),
    ]
    another = [begun(), *said("m1", "draft"), snapshot(AssistantMessage(id="m1", content="final")), ended()]
    spoken = AssistantMessage(id="m1", content="before", tool_calls=[call("c1")])
    first_call = ToolCallStartEvent(tool_call_id="c1", tool_call_name="find", parent_message_id="m1")
    earlier = [begun(), first_call, ToolCallEndEvent(tool_call_id="c1"), snapshot(spoken), ended()]
    streams = [only(*each) for each in (taken, another, earlier)]
    assert all("reset-step" in kinds(each) for each in streams)
    texts = [
        [part["text"] for part in answer["message"]["parts"] if part["type"] == "text"]
        for answer in read(streams)
    ]
    assert texts == [["second try"], ["final"], ["before"]]
    assert kinds(streams[2])[-6:-2] == [
        "text-end",
        "tool-input-start",
        "tool-input-delta",
        "tool-input-available",
    ]
    assert reduce_chunks(streams[0])[1]["data"] == {"n": 1}


APPROVE = {"type": "object", "properties": {"confirmed": {"type": "boolean"}}, "required": ["confirmed"]}


def asking(call_id: str | None = "c1", schema: Any = APPROVE) -> RunFinishedInterruptOutcome:
    asked = Interrupt(id="q", reason="tool_confirmation", tool_call_id=call_id, response_schema=schema)
    return RunFinishedInterruptOutcome(interrupts=[asked])


def answered(payload: Any) -> RunStartedEvent:
    return begun("r2", "", resume=[ResumeEntry(interrupt_id="q", status="resolved", payload=payload)])


@pytest.mark.oracle
@pytest.mark.parametrize("approved", [True, False])
def test_an_approval_is_asked_and_answered_within_one_message(approved: bool) -> None:
    result = ToolCallResultEvent(message_id="m", tool_call_id="c1", content="yes")
    chunks = only(
        begun(),
        *called("c1", result=None),
        ended(outcome=asking()),
        answered({"confirmed": approved}),
        result,
        *said("m2", "done"),
        ended("r2"),
    )
    (asked,) = [each for each in chunks if each["type"] == "tool-approval-request"]
    (reply,) = [each for each in chunks if each["type"] == "tool-approval-response"]
    assert (asked["approvalId"], reply["approved"]) == ("q", approved)
    (answer,) = read([chunks])
    assert answer["refused"] == []
    states = [part["state"] for part in answer["message"]["parts"] if part["type"] == "dynamic-tool"]
    assert states == ["output-available"]
    data = [part["data"] for part in answer["message"]["parts"] if part["type"] == "data-interrupt"]
    assert [each["answer"]["payload"] for each in data] == [{"confirmed": approved}]


@pytest.mark.parametrize(
    "outcome",
    [asking(None), asking("elsewhere"), asking(schema={"type": "string"})],
    ids=["no call", "unknown", "text"],
)
def test_a_question_that_yes_or_no_does_not_answer_comes_as_data(
    outcome: RunFinishedInterruptOutcome,
) -> None:
    chunks = only(
        begun(),
        *called("c1", result=None),
        ended(outcome=outcome),
        answered("well"),
        *said("m", "ok"),
        ended("r2"),
    )
    assert "tool-approval-request" not in kinds(chunks)
    assert "tool-approval-response" not in kinds(chunks)
    assert kinds(chunks).count("data-interrupt") == 2


def test_an_answer_to_a_question_of_an_earlier_message_adds_nothing() -> None:
    later = begun("r2", "more", resume=[ResumeEntry(interrupt_id="q", status="cancelled")])
    _, second = chunks_of([begun(), ended(outcome=asking()), later, *said("m", "ok"), ended("r2")])
    assert kinds(second) == [
        "start",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "finish-step",
        "finish",
    ]


def test_a_run_after_a_cut_takes_back_what_was_half_said() -> None:
    chunks = only(
        begun(),
        *said("m1", "whole"),
        *said("m2", "hal")[:2],
        begun("r2", ""),
        snapshot(AssistantMessage(id="m1", content="whole")),
        *said("m3", "half and more"),
        ended("r2"),
    )
    parts = reduce_chunks(chunks)
    assert [each["text"] for each in parts if each["type"] == "text"] == ["whole", "half and more"]
    assert kinds(chunks).count("start") == 1


def test_messages_of_earlier_runs_are_not_sent_again() -> None:
    first = [begun(), *said("m1", "one"), *called("c1"), ended()]
    both = snapshot(
        AssistantMessage(id="m1", content="one"),
        UserMessage(id="u-r2", content="more"),
        AssistantMessage(id="m2", content="two"),
    )
    late = ToolCallResultEvent(message_id="late", tool_call_id="c1", content="of an earlier message")
    one, two = chunks_of([*first, begun("r2", "more"), both, late, ended("r2")])
    assert [each.get("delta") for each in two if each["type"] == "text-delta"] == ["two"]
    assert "tool-output-available" not in kinds(two)
    assert (one[0]["messageId"], two[0]["messageId"]) == ("r", "r2")
