"""What an entry tells a watcher, kind by kind."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    AssistantMessage,
    CustomEvent,
    Event,
    Interrupt,
    MessagesSnapshotEvent,
    RawEvent,
    ReasoningMessageContentEvent,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentFinishedSuspendedOutcome,
    SubagentStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TextPart,
    TokenUsage,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.broadcast import BroadcastConfig, Budget, EnvelopeMapper
from runcast.broadcast.envelopes.event_payloads import event_handlers
from runcast.broadcast.envelopes.text_payloads import text_handlers
from runcast.broadcast.reader import Reader, Take
from runcast.slim.wire.codec import decode
from tests.broadcast.entries import Thread, mapped, payloads


def started(run_id: str = "r1", **more: object) -> Event:
    return RunStartedEvent(thread_id="t1", run_id=run_id, **more)


def finished(outcome: object = None, run_id: str = "r1", **more: object) -> Event:
    return RunFinishedEvent(thread_id="t1", run_id=run_id, outcome=outcome, **more)


def text(message_id: str, *deltas: str, **start: object) -> list[Event]:
    return [
        TextMessageStartEvent(message_id=message_id, **start),
        *(TextMessageContentEvent(message_id=message_id, delta=delta) for delta in deltas),
        TextMessageEndEvent(message_id=message_id),
    ]


def call(call_id: str, name: str, args: str, **more: object) -> list[Event]:
    return [
        ToolCallStartEvent(tool_call_id=call_id, tool_call_name=name, **more),
        ToolCallArgsEvent(tool_call_id=call_id, delta=args),
        ToolCallEndEvent(tool_call_id=call_id),
    ]


def test_the_envelope_is_the_documented_one() -> None:
    envelope = mapped([started(), *call("call_1", "search", '{"query": "dbplus"}')])[-1]
    assert json.loads(envelope.encode()) == {
        "type": "agent.tool.started",
        "session_id": "t1",
        "execution_id": "r1",
        "seq": 4,
        "prev": 1,
        "epoch": "k3f9x2",
        "timestamp": "2026-01-16T10:05:05.163Z",
        "payload": {"tool_name": "search", "tool_call_id": "call_1", "args_summary": "query: 'dbplus'"},
    }


def test_two_parallel_calls_of_one_tool_are_told_apart() -> None:
    events = [
        started(),
        *call("a", "search", '{"q": 1}'),
        *call("b", "search", '{"q": 2}'),
        ToolCallResultEvent(message_id="m2", tool_call_id="b", content="two"),
        ToolCallResultEvent(
            message_id="m1", tool_call_id="a", content="boom", metadata={"runcast": {"error": True}}
        ),
    ]
    done = payloads(mapped(events), "agent.tool.completed")
    assert [(each["tool_call_id"], each["tool_name"]) for each in done] == [("b", "search"), ("a", "search")]
    assert done[0] == {
        "tool_name": "search",
        "tool_call_id": "b",
        "success": True,
        "error": None,
        "duration_ms": 10,
        "result_summary": "two",
    }
    assert (done[1]["success"], done[1]["error"], done[1]["result_summary"]) == (False, "boom", None)


def test_a_result_of_an_earlier_runs_call_names_its_tool_where_the_event_does() -> None:
    result = ToolCallResultEvent(
        message_id="m",
        tool_call_id="old",
        content=[TextPart(text="x")],
        metadata={"runcast": {"tool_name": "f"}},
    )
    (done,) = payloads(mapped([started(), result]), "agent.tool.completed")
    assert (done["tool_name"], done["duration_ms"], done["result_summary"]) == ("f", None, "x")


def test_arguments_themselves_travel_only_when_asked_for() -> None:
    events = [started(), *call("c", "f", '{"a": "b"}')]
    assert "args" not in payloads(mapped(events), "agent.tool.started")[0]
    assert payloads(mapped(events, BroadcastConfig.debug()), "agent.tool.started")[0]["args"] == '{"a": "b"}'


def test_a_call_is_told_once_and_orphans_are_passed_over() -> None:
    events = [
        started(),
        *call("c", "f", "{}"),
        ToolCallEndEvent(tool_call_id="c"),
        ToolCallArgsEvent(tool_call_id="ghost", delta="x"),
        ToolCallEndEvent(tool_call_id="ghost"),
        TextMessageContentEvent(message_id="ghost", delta="x"),
        TextMessageEndEvent(message_id="ghost"),
        RawEvent(event={}),
    ]
    kinds = [envelope.type for envelope in mapped(events)]
    assert kinds == ["agent.status", "agent.tool.started"]


def test_huge_arguments_are_summarised_from_their_beginning() -> None:
    events: list[Event] = [started(), ToolCallStartEvent(tool_call_id="c", tool_call_name="f")]
    events += [ToolCallArgsEvent(tool_call_id="c", delta="x" * 40_000) for _ in range(4)]
    (told,) = payloads(mapped([*events, ToolCallEndEvent(tool_call_id="c")]), "agent.tool.started")
    assert told["args_summary"] == "x" * 97 + "..."


def test_minimal_has_no_text_but_the_last_response_in_the_status() -> None:
    events = [started(), *text("m1", "old"), *text("m2", "new ", "answer"), finished()]
    envelopes = mapped(events, BroadcastConfig.minimal())
    assert [envelope.type for envelope in envelopes] == ["agent.status", "agent.status"]
    assert envelopes[-1].payload["last_response"] == "new answer"


def test_the_last_response_is_the_agents_own_and_bounded() -> None:
    events = [started(), *text("m", "x" * 600, "y"), *text("s", "sub", subagent_run_id="s1"), finished()]
    assert mapped(events)[-1].payload["last_response"] == "x" * 497 + "..."


def test_status_is_told_once_each_and_knows_where_it_came_from() -> None:
    usage = [TokenUsage(input_tokens=5, output_tokens=3), TokenUsage(input_tokens=1, total_tokens=9)]
    envelopes = mapped([started(), started(), finished(usage=usage), finished()])
    told = payloads(envelopes, "agent.status")
    assert [(each["status"], each["previous_status"]) for each in told] == [
        ("in_progress", None),
        ("completed", "in_progress"),
    ]
    assert told[1]["usage"] == {"prompt": 6, "completion": 3, "total": 17}


def test_an_error_after_the_end_overrules_and_stays() -> None:
    events = [
        started(),
        finished(RunFinishedSuccessOutcome()),
        RunErrorEvent(message="no", code="x"),
        finished(),
    ]
    told = payloads(mapped(events), "agent.status")
    assert [each["status"] for each in told] == ["in_progress", "completed", "failed"]
    assert (told[-1]["error_message"], told[-1]["error_code"]) == ("no", "x")


def test_cancelled_and_a_second_attempt() -> None:
    events = [started(metadata={"runcast": {"attempt": 2}}), finished(RunFinishedCancelledOutcome())]
    told = payloads(mapped(events), "agent.status")
    assert told[0]["attempt"] == 2
    assert told[1]["status"] == "cancelled"


def test_an_interrupt_gives_question_and_status_back_to_back() -> None:
    asked = Interrupt(id="i1", reason="confirm", message="sure?", metadata={"runcast": {"value": {"n": 1}}})
    plain = Interrupt(id="i2", reason="input", response_schema={"type": "string"}, tool_call_id="c")
    first, second = mapped([started(), finished(RunFinishedInterruptOutcome(interrupts=[asked, plain]))])[1:]
    assert (first.type, second.type) == ("agent.interrupt", "agent.status")
    assert (first.seq, first.prev, first.part) == (2, 1, (1, 2))
    assert (second.seq, second.prev, second.part) == (2, 1, (2, 2))
    assert second.payload["status"] == "interrupted"
    assert first.payload["interrupts"] == [
        {
            "id": "i1",
            "reason": "confirm",
            "message": "sure?",
            "tool_call_id": None,
            "response_schema": None,
            "value": {"n": 1},
        },
        {
            "id": "i2",
            "reason": "input",
            "message": None,
            "tool_call_id": "c",
            "response_schema": {"type": "string"},
        },
    ]


def test_a_second_interrupt_after_the_end_is_not_told() -> None:
    again = finished(RunFinishedInterruptOutcome(interrupts=[Interrupt(id="i", reason="r")]))
    assert len(mapped([started(), finished(), again])) == 2


def test_steps_with_what_the_adapter_knows() -> None:
    decision = {"should_continue": False, "stop_reason": "completed", "resolved_by": "ToolCalls"}
    start = {"step_number": 4, "attempt": 2, "message_count": 5, "available_tools": ["f"]}
    end = {
        "step_number": 4,
        "has_tool_calls": True,
        "errors": 0,
        "finish_reason": "tool_calls",
        "usage": {"total": 5},
        "continuation": decision,
    }
    events = [
        started(),
        StepStartedEvent(step_name="plan", metadata={"runcast": start}),
        StepFinishedEvent(step_name="plan", metadata={"runcast": end}),
        finished(metadata={"runcast": {"continuation": decision}}),
    ]
    envelopes = mapped(events, BroadcastConfig.debug())
    assert payloads(envelopes, "agent.step.started") == [
        {"step_number": 4, "step_name": "plan", "attempt": 2, "message_count": 5, "available_tools": ["f"]}
    ]
    (done,) = payloads(envelopes, "agent.step.completed")
    assert (done["duration_ms"], done["usage"], done["continuation"]) == (10, {"total": 5}, decision)
    assert payloads(envelopes, "agent.continuation") == [
        {"step_number": 4, "evaluations": [], **decision},
        {"step_number": 1, "evaluations": [], **decision},
    ]
    assert "continuation" not in payloads(mapped(events), "agent.step.completed")[0]


def test_steps_of_foreign_streams_are_counted_here() -> None:
    events = [
        started(),
        StepStartedEvent(step_name="a"),
        *call("c", "f", "{}"),
        ToolCallResultEvent(
            message_id="m", tool_call_id="c", content="x", metadata={"runcast": {"error": True}}
        ),
        StepStartedEvent(step_name="s", subagent_run_id="sub"),
        *call("d", "f", "{}"),
        StepFinishedEvent(step_name="s", subagent_run_id="sub"),
        StepFinishedEvent(step_name="a"),
        StepFinishedEvent(step_name="ghost"),
        StepStartedEvent(step_name="b", metadata={"other": 1}),
        *text("m", "x"),
        finished(),
    ]
    envelopes = mapped(events)
    done = payloads(envelopes, "agent.step.completed")
    assert [(each["step_number"], each["has_tool_calls"], each["errors"]) for each in done] == [
        (2, False, 0),
        (1, True, 1),
        (3, False, 0),
    ]
    assert done[0]["subagent_run_id"] == "sub"
    assert done[2]["duration_ms"] is None
    assert payloads(envelopes, "agent.step.started")[-1]["step_number"] == 3
    assert {each["step_number"] for each in payloads(envelopes, "agent.stream.chunk")} == {3}
    assert envelopes[-1].payload["step_count"] == 3


def test_a_tool_error_of_one_agent_is_not_a_step_error_of_another() -> None:
    failed = ToolCallResultEvent(
        message_id="m",
        tool_call_id="c",
        content="x",
        subagent_run_id="sub",
        metadata={"runcast": {"error": True}},
    )
    events = [started(), StepStartedEvent(step_name="a"), failed, StepFinishedEvent(step_name="a")]
    assert payloads(mapped(events), "agent.step.completed")[0]["errors"] == 0


def test_subagents_have_a_life_of_their_own() -> None:
    events = [
        started(),
        SubagentStartedEvent(subagent_run_id="s1", name="scout", parent_tool_call_id="c"),
        SubagentFinishedEvent(subagent_run_id="s1"),
        SubagentStartedEvent(subagent_run_id="s2", name="digger"),
        SubagentErrorEvent(subagent_run_id="s2", message="lost"),
        SubagentStartedEvent(subagent_run_id="s3", name="asker"),
        SubagentFinishedEvent(subagent_run_id="s3", outcome=SubagentFinishedSuspendedOutcome()),
        SubagentFinishedEvent(subagent_run_id="ghost"),
    ]
    envelopes = mapped(events)
    assert payloads(envelopes, "agent.subagent.started")[0] == {
        "subagent_run_id": "s1",
        "name": "scout",
        "parent_tool_call_id": "c",
    }
    done = payloads(envelopes, "agent.subagent.completed")
    assert [(each["name"], each["success"], each["error"], each["suspended"]) for each in done] == [
        ("scout", True, None, False),
        ("digger", False, "lost", False),
        ("asker", True, None, True),
        (None, True, None, False),
    ]


def test_a_patch_with_half_a_surrogate_pair_in_a_key_travels() -> None:
    operation = b'{"op":"add","path":"/a","value":{"\\ud83d":1},"\\ud83d":2}'
    delta = decode(b'{"type":"STATE_DELTA","delta":[%s]}' % operation)
    activity = decode(
        b'{"type":"ACTIVITY_DELTA","messageId":"x","activityType":"plan","patch":[%s]}' % operation
    )
    state, plan = mapped([started(), delta, activity], BroadcastConfig.debug())[1:]
    shown = json.loads(operation.replace(rb"\ud83d", rb"\ufffd"))
    assert [json.loads(each.encode())["payload"] for each in (state, plan)] == [
        {"delta": [shown]},
        {"message_id": "x", "activity_type": "plan", "patch": [shown]},
    ]


def test_state_activity_and_custom_as_they_were_given() -> None:
    events = [
        started(),
        StateSnapshotEvent(snapshot={"a": None}),
        StateDeltaEvent(delta=[{"op": "add", "path": "/b", "value": None}]),
        ActivitySnapshotEvent(message_id="x", activity_type="plan", content={"n": 1}, replace=False),
        ActivitySnapshotEvent(message_id="x", activity_type="plan", content={"n": 1}),
        ActivityDeltaEvent(
            message_id="x", activity_type="plan", patch=[{"op": "add", "path": "/n", "value": 2}]
        ),
        CustomEvent(name="note", value=None, subagent_run_id="s"),
    ]
    envelopes = mapped(events, BroadcastConfig.debug())
    assert [dict(envelope.payload) for envelope in envelopes[1:]] == [
        {"snapshot": {"a": None}},
        {"delta": [{"op": "add", "path": "/b", "value": None}]},
        {"message_id": "x", "activity_type": "plan", "content": {"n": 1}, "replace": False},
        {"message_id": "x", "activity_type": "plan", "content": {"n": 1}},
        {"message_id": "x", "activity_type": "plan", "patch": [{"op": "add", "path": "/n", "value": 2}]},
        {"name": "note", "value": None, "subagent_run_id": "s"},
    ]
    types = [envelope.type for envelope in mapped(events)]
    assert types == ["agent.status", *["agent.activity"] * 3, "agent.custom"]


def test_seq_has_holes_and_prev_bridges_them() -> None:
    envelopes = mapped([started(), RawEvent(event={}), *text("m", "a"), finished()])
    assert [(each.seq, each.prev) for each in envelopes] == [(1, 0), (4, 1), (5, 4), (6, 5)]


def test_mapping_again_from_a_runs_start_gives_the_same_envelopes() -> None:
    thread = Thread()
    first = thread.entries([started(), *text("m", "a"), finished()])
    second = thread.entries([started("r2"), *text("n", "b"), *call("c", "f", "{}"), finished(run_id="r2")])
    live = EnvelopeMapper()
    seen = [envelope for entry in first + second for envelope in live.feed(entry)]
    again = EnvelopeMapper(prev=first[-1].seq)
    assert [envelope for entry in second for envelope in again.feed(entry)] == seen[-5:]
    assert again.position == live.position == second[-1].seq


def test_a_run_that_another_worker_told_is_stepped_over() -> None:
    thread = Thread()
    one, two = EnvelopeMapper(), EnvelopeMapper()
    first = [thread.entry(event) for event in (started("r1"), finished(run_id="r1"))]
    second = [thread.entry(event) for event in (started("r2"), *text("m", "x"), finished(run_id="r2"))]
    third = [thread.entry(event) for event in (started("r3"), finished(run_id="r3"))]
    told = [envelope for entry in first for envelope in one.feed(entry)]
    two.feed(first[0])
    told += [envelope for entry in second for envelope in two.feed(entry)]
    told += [envelope for entry in third for envelope in one.feed(entry)]
    assert [each.prev for each in told] == [0, *(each.seq for each in told[:-1])]


def test_two_runs_interleaved_in_one_thread_keep_apart() -> None:
    thread = Thread()
    one, two = started("r1"), started("r2")
    mapper = EnvelopeMapper()
    entries = [thread.entry(one), thread.entry(two)]
    entries += [thread.entry(finished(run_id="r1")), thread.entry(finished(run_id="r2"))]
    told = [envelope for entry in entries for envelope in mapper.feed(entry)]
    assert [(each.execution_id, each.payload["status"]) for each in told] == [
        ("r1", "in_progress"),
        ("r2", "in_progress"),
        ("r1", "completed"),
        ("r2", "completed"),
    ]


def test_old_runs_are_forgotten() -> None:
    mapper = EnvelopeMapper()
    thread = Thread()
    for number in range(100):
        mapper.feed(thread.entry(started(f"r{number}")))
    assert mapper.feed(thread.entry(started("r0")))
    assert not mapper.feed(thread.entry(started("r99")))


@pytest.mark.parametrize("sample", ["a", '"', "\n", "ż", "漢", "😀", "👨‍👩‍👧‍👦", "e\u0301"])
def test_a_huge_delta_is_split_on_whole_characters_and_nothing_is_lost(sample: str) -> None:
    whole = sample * (60_000 // len(sample.encode()))
    mapper = EnvelopeMapper(budget=Budget(2_000))
    thread = Thread()
    told = [
        envelope
        for entry in thread.entries([started(), *text("m", whole)])
        for envelope in mapper.feed(entry)
        if envelope.type == "agent.stream.chunk"
    ]
    chunks = [str(envelope.payload["chunk"]) for envelope in told]
    assert "".join(chunks) == whole
    assert all(len(envelope.encode()) <= 2_000 for envelope in told)
    assert all(chunk == sample * (len(chunk) // len(sample)) for chunk in chunks)
    assert [envelope.payload["chunk_index"] for envelope in told] == list(range(len(told)))
    parts = [envelope.part for envelope in told[:-1]]
    assert parts == [(n, len(parts)) for n in range(1, len(parts) + 1)]


def test_a_snapshot_corrects_what_an_earlier_run_said():
    """A mapper that begins with this run says the same: the snapshot names what it takes back."""
    noted = {"runcast": {"corrects": {"messages": ["old", "half"], "reasoning": ["t"]}}}
    restated = MessagesSnapshotEvent(
        messages=[AssistantMessage(id="half", content="half and whole")], metadata=noted
    )
    told = payloads(mapped([restated], BroadcastConfig(reasoning=True)), "agent.stream.chunk")
    assert [(each["message_id"], each["chunk"], each["replace"]) for each in told] == [
        ("old", "", True),
        ("half", "half and whole", True),
    ]
    [thought] = payloads(mapped([restated], BroadcastConfig(reasoning=True)), "agent.reasoning.chunk")
    assert (thought["message_id"], thought["replace"]) == ("t", True)
    assert len(mapped([restated])) == 2


def test_a_mapper_that_begins_inside_a_run_chains_over_nothing_that_it_cannot_map():
    """A reader that goes from the whole run's envelopes to its own has everything, or sees a hole."""
    events = [
        RunStartedEvent(thread_id="t1", run_id="r1"),
        StepStartedEvent(step_name="one"),
        TextMessageStartEvent(message_id="m"),
        *[TextMessageContentEvent(message_id="m", delta=text) for text in "abc"],
        TextMessageEndEvent(message_id="m"),
        StepFinishedEvent(step_name="one"),
        RunFinishedEvent(thread_id="t1", run_id="r1"),
    ]
    entries = [replace(entry, mark="1.a") for entry in Thread().entries(events)]
    whole = EnvelopeMapper()
    right = [envelope for entry in entries for envelope in whole.feed(entry)]
    for cut in range(1, len(entries)):
        reader = Reader(last=0)
        taken = [each for each in right if each.seq <= cut and reader.take(each) is Take.APPLY]
        mapper = EnvelopeMapper(prev=cut)
        late = [envelope for entry in entries[cut:] for envelope in mapper.feed(entry)]
        for envelope in late:
            take = reader.take(envelope)
            taken += [envelope] if take is Take.APPLY else []
            if take is Take.FETCH:
                taken += [each for each in right if each.seq > (reader.last or 0)]
                break
        assert [(each.seq, each.type) for each in taken] == [(each.seq, each.type) for each in right], cut


def test_kinds_that_are_switched_off_have_no_handler() -> None:
    plain, every = BroadcastConfig(), BroadcastConfig.debug()
    optional = {StateSnapshotEvent, StateDeltaEvent, ReasoningMessageContentEvent}
    assert not optional & (event_handlers(plain) | text_handlers(plain)).keys()
    assert optional <= (event_handlers(every) | text_handlers(every)).keys()
    assert ActivityDeltaEvent not in event_handlers(replace(every, activity=False))
