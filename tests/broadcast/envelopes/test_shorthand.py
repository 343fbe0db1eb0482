"""Chunk events, events of nobody's protocol, and streams that begin in the middle: told as far as they make sense."""

from __future__ import annotations

import pytest
from ag_ui.core import (
    CustomEvent,
    Event,
    ReasoningMessageChunkEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    StateSnapshotEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
    ToolCallChunkEvent,
    ToolCallResultEvent,
)

from runcast.broadcast import BroadcastConfig, EnvelopeMapper
from runcast.slim import UnknownEvent
from tests.broadcast.entries import Thread, mapped, payloads

START = RunStartedEvent(thread_id="t1", run_id="r1")
END = RunFinishedEvent(thread_id="t1", run_id="r1")


def test_text_chunks_are_a_message_that_the_next_event_ends() -> None:
    envelopes = mapped(
        [
            START,
            TextMessageChunkEvent(message_id="m", delta="Hel"),
            TextMessageChunkEvent(delta="lo"),
            CustomEvent(name="n", value=1),
        ]
    )
    assert [
        (each.seq, each.prev, each.part, each.payload.get("chunk"), each.payload.get("is_complete"))
        for each in envelopes[1:]
    ] == [
        (2, 1, None, "Hel", False),
        (3, 2, None, "lo", False),
        (4, 3, (1, 2), "", True),
        (4, 3, (2, 2), None, None),
    ]
    assert envelopes[-1].type == "agent.custom"


def test_a_call_in_chunks_is_told_when_it_is_over() -> None:
    envelopes = mapped(
        [
            START,
            ToolCallChunkEvent(tool_call_id="a", tool_call_name="search", delta='{"q":'),
            ToolCallChunkEvent(delta="1}"),
            ToolCallChunkEvent(tool_call_id="b", tool_call_name="search", delta='{"q":2}'),
            ToolCallResultEvent(message_id="m", tool_call_id="a", content="one"),
            END,
        ]
    )
    assert [
        (each["tool_call_id"], each["args_summary"]) for each in payloads(envelopes, "agent.tool.started")
    ] == [
        ("a", "q: 1"),
        ("b", "q: 2"),
    ]
    (done,) = payloads(envelopes, "agent.tool.completed")
    assert (done["tool_name"], done["success"]) == ("search", True)


def test_reasoning_in_chunks_is_told_when_asked_for() -> None:
    events: list[Event] = [START, ReasoningMessageChunkEvent(message_id="m", delta="hmm"), END]
    assert [each.type for each in mapped(events)] == ["agent.status", "agent.status"]
    thoughts = payloads(mapped(events, BroadcastConfig.debug()), "agent.reasoning.chunk")
    assert [(each["chunk"], each["is_complete"]) for each in thoughts] == [("hmm", False), ("", True)]


def test_chunks_of_two_runs_in_one_thread_do_not_mix() -> None:
    thread = Thread()
    mapper = EnvelopeMapper()
    told = []
    for event in (
        START,
        TextMessageChunkEvent(message_id="m", delta="one"),
        RunStartedEvent(thread_id="t1", run_id="r2"),
        TextMessageChunkEvent(message_id="n", delta="two"),
        END,
        RunFinishedEvent(thread_id="t1", run_id="r2"),
    ):
        told += mapper.feed(thread.entry(event))
    chunks = [
        (each.execution_id, each.payload["message_id"], each.payload["chunk"])
        for each in told
        if "chunk" in each.payload
    ]
    assert chunks == [("r1", "m", "one"), ("r2", "n", "two"), ("r1", "m", ""), ("r2", "n", "")]


def test_a_chunk_that_continues_nothing_is_passed_over_and_counted() -> None:
    mapper = EnvelopeMapper()
    thread = Thread()
    for event in (
        START,
        TextMessageChunkEvent(delta="whose?"),
        ToolCallChunkEvent(tool_call_id="c", delta="{}"),
    ):
        mapper.feed(thread.entry(event))
    assert mapper.passed_over == 2
    assert mapper.feed(thread.entry(END))[0].payload["status"] == "completed"


def test_one_message_id_may_be_thought_and_said() -> None:
    events = [
        START,
        ReasoningMessageChunkEvent(message_id="m", delta="think"),
        TextMessageChunkEvent(message_id="m", delta="say"),
        END,
    ]
    envelopes = mapped(events, BroadcastConfig.debug())
    assert [each["chunk_index"] for each in payloads(envelopes, "agent.stream.chunk")] == [0, 1]
    assert [each["chunk_index"] for each in payloads(envelopes, "agent.reasoning.chunk")] == [0, 1]


@pytest.mark.parametrize("config", [BroadcastConfig.standard(), BroadcastConfig.debug()])
def test_what_no_protocol_knows_is_passed_over(config: BroadcastConfig) -> None:
    mapper = EnvelopeMapper(config)
    thread = Thread()
    mapper.feed(thread.entry(START))
    unknown = UnknownEvent.model_validate({"type": "SHINY_NEW", "value": 1})
    entry = thread.entry(StateSnapshotEvent(snapshot={}))
    object.__setattr__(entry, "event", unknown)
    assert mapper.feed(entry) == []
    (end,) = mapper.feed(thread.entry(END))
    assert (end.prev, end.seq) == (1, 3)


def test_an_error_that_comes_first_is_a_run_that_failed() -> None:
    (told,) = mapped([RunErrorEvent(message="no agent")])
    assert (told.payload["status"], told.payload["previous_status"]) == ("failed", None)


def test_what_comes_before_the_run_is_told_all_the_same() -> None:
    envelopes = mapped(
        [
            TextMessageStartEvent(message_id="m"),
            TextMessageContentEvent(message_id="m", delta="early"),
            START,
            TextMessageContentEvent(message_id="m", delta="!"),
        ]
    )
    assert [each["chunk"] for each in payloads(envelopes, "agent.stream.chunk")] == ["early", "!"]
