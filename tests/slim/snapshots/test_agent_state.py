"""The whole picture: what a stream of events says about a thread, and what a model may be shown of it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from ag_ui.core import (
    AssistantMessage,
    CustomEvent,
    Event,
    FunctionCall,
    Interrupt,
    Message,
    MessagesSnapshotEvent,
    ReasoningMessageChunkEvent,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TextPart,
    TokenUsage,
    ToolCall,
    ToolCallArgsEvent,
    ToolCallChunkEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    ToolMessage,
    UserMessage,
)

from runcast.adapters import ResumePoint
from runcast.slim.entry import Entry
from runcast.slim.folding.conversation import Conversation, fold
from runcast.slim.folding.step_records import StepRecord, Usage
from runcast.slim.snapshots.agent_state import AgentState, StateBuilder
from runcast.slim.snapshots.message_weight import weight
from runcast.slim.snapshots.tool_pairs import valid_for_model
from tests.slim.threads import Teller
from tests.streams import adversarial, structured


def note(**said: Any) -> dict[str, Any]:
    return {"runcast": said}


def started(run_id: str = "r1", at: int | None = None, **fields: Any) -> RunStartedEvent:
    return RunStartedEvent(thread_id="t1", run_id=run_id, timestamp=at, **fields)


def finished(run_id: str = "r1", at: int | None = None, **fields: Any) -> RunFinishedEvent:
    return RunFinishedEvent(thread_id="t1", run_id=run_id, timestamp=at, **fields)


def step(number: int, begin: int, end: int, **said: Any) -> list[Event]:
    return [
        StepStartedEvent(step_name="agent", timestamp=begin, metadata=note(step_number=number, attempt=1)),
        StepFinishedEvent(step_name="agent", timestamp=end, metadata=note(step_number=number, **said)),
    ]


def test_a_thread_without_events_is_in_progress():
    state = AgentState.from_events([])
    assert (state.agent_id, state.status, state.step_count) == ("agent", "in_progress", 0)
    assert state.messages == []


def test_a_run_says_who_it_was_what_it_did_and_what_it_took():
    events: list[Event] = [
        started(at=1_000, metadata={**note(agent="helper", framework="langgraph"), "tenant": "acme"}),
        *step(
            1, 1_100, 1_350, has_tool_calls=True, finish_reason="tool_calls", errors=0, usage={"total": 500}
        ),
        *step(2, 1_400, 1_500, has_tool_calls=False, errors=1, continuation={"should_continue": True}),
        finished(
            at=2_500,
            usage=[TokenUsage(input_tokens=1_000, output_tokens=500), TokenUsage(total_tokens=300)],
            metadata=note(
                step_count=2,
                framework={"checkpoint_id": "c9"},
                continuation={"should_continue": False, "stop_reason": "completed", "resolved_by": "end"},
            ),
        ),
    ]
    state = AgentState.from_events(events, parent_agent_id="boss", metadata={"k": 1})
    assert (state.agent_id, state.parent_agent_id, state.thread_id, state.run_id) == (
        "helper",
        "boss",
        "t1",
        "r1",
    )
    assert (state.status, state.step_count) == ("completed", 2)
    assert state.usage == Usage(1_000, 500, 1_800)
    assert (state.started_at, state.updated_at, state.cumulative_seconds) == (1_000, 2_500, 1.5)
    assert list(state.steps) == [
        StepRecord(1, "tool_execution", "agent", True, "tool_calls", 0, Usage(0, 0, 500), 250.0),
        StepRecord(2, "error", "agent", False, None, 1, None, 100.0),
    ]
    assert state.last_continuation == {
        "should_continue": False,
        "stop_reason": "completed",
        "resolved_by": "end",
    }
    assert state.framework == {"checkpoint_id": "c9"}
    assert state.metadata == {"k": 1, "tenant": "acme"}


def test_seconds_and_steps_add_up_over_pauses_and_runs():
    asked = RunFinishedInterruptOutcome(interrupts=[Interrupt(id="i1", reason="ask")])
    builder = StateBuilder("a")
    for event in (started(at=0), *step(1, 100, 200), finished(at=1_500, outcome=asked)):
        builder.feed(event)
    paused = builder.state()
    assert (paused.status, [each.id for each in paused.interrupts]) == ("interrupted", ["i1"])
    for event in (started("r2", at=100_000), *step(1, 100_100, 100_300)):
        builder.feed(event)
    running = builder.state()
    assert (running.status, running.cumulative_seconds) == ("in_progress", 1.8)
    assert [each.number for each in running.steps] == [1, 2]
    builder.feed(finished("r2", at=101_000))
    assert (builder.state().cumulative_seconds, builder.state().step_count) == (2.5, 2)
    assert builder.state().interrupts == ()


def test_a_state_goes_on_from_another():
    first: list[Event] = [
        started(at=0),
        *step(1, 0, 10),
        StateSnapshotEvent(snapshot=None),
        finished(at=1_000),
    ]
    second: list[Event] = [started("r2", at=50_000), *step(1, 50_000, 50_010), finished("r2", at=52_000)]
    base = AgentState.from_events(first, "a", metadata={"k": 1})
    assert base.state is None
    assert replace(AgentState.from_events([], base=base), history=()) == replace(base, history=())
    state = AgentState.from_events(second, base=base)
    whole = AgentState.from_events([*first, *second], "a", metadata={"k": 1})
    assert (
        (state.step_count, state.cumulative_seconds)
        == (whole.step_count, whole.cumulative_seconds)
        == (2, 3.0)
    )
    assert (state.started_at, state.state, state.metadata) == (0, None, {"k": 1})
    assert [each.number for each in state.steps] == [1, 2]


def test_without_notes_the_state_counts_for_itself():
    events: list[Event] = [
        started(),
        StepStartedEvent(step_name="model"),
        TextMessageStartEvent(message_id="m", role="assistant"),
        TextMessageEndEvent(message_id="m", metadata=note(finish_reason="tool_calls", usage={"prompt": 3, "completion": 1})),
        ToolCallStartEvent(tool_call_id="c", tool_call_name="search"),
        ToolCallEndEvent(tool_call_id="c", metadata=note(usage={"prompt": 1, "completion": 1, "total": 9})),
        ToolCallChunkEvent(tool_call_id="d", tool_call_name="look", delta="{}"),
        StepFinishedEvent(step_name="model"),
        StepStartedEvent(step_name="tools"),
        ToolCallResultEvent(message_id="x", tool_call_id="c", content="no", metadata=note(error=True, tool_name="search")),
        StepFinishedEvent(step_name="tools"),
        StepStartedEvent(step_name="answer"),
        StepFinishedEvent(step_name="answer"),
        StepFinishedEvent(step_name="never opened"),
        TextMessageEndEvent(message_id="m", metadata=note(finish_reason=5, usage="odd")),
    ]  # fmt: skip
    state = AgentState.from_events(events)
    model, tools, answer = state.steps
    assert (model.type, model.has_tool_calls, model.finish_reason) == ("tool_execution", True, "tool_calls")
    assert model.tool_calls == (("c", "search"), ("d", "look"))
    assert model.usage == Usage(4, 2, 13)
    assert model.duration_ms is None
    assert (tools.type, tools.has_tool_calls, tools.errors) == ("error", False, 1)
    assert (answer.type, answer.number, state.step_count) == ("final", 3, 3)
    assert state.usage == Usage(4, 2, 13)
    assert (state.started_at, state.updated_at, state.cumulative_seconds) == (None, None, 0.0)


def test_a_failed_run_takes_its_open_steps_with_it():
    events: list[Event] = [
        started(at=0),
        StepStartedEvent(step_name="s", timestamp=5),
        RunErrorEvent(message="x", timestamp=9),
    ]
    state = AgentState.from_events(events)
    assert (state.status, state.step_count, state.steps[0].type, state.steps[0].errors) == (
        "failed",
        1,
        "error",
        1,
    )
    cancelled = AgentState.from_events([started(), finished(outcome=RunFinishedCancelledOutcome())])
    assert cancelled.status == "cancelled"


def test_a_run_that_was_cut_short_forgets_what_it_left_open():
    events: list[Event] = [
        started(at=0),
        StepStartedEvent(step_name="s"),
        CustomEvent(name="x", value=1, timestamp=900),
    ]
    state = AgentState.from_events([*events, started("r2", at=5_000), finished("r2", at=6_000)])
    assert state.step_count == 0
    assert state.cumulative_seconds == 1.9


def test_entries_give_the_time_and_the_place_in_the_log():
    builder = StateBuilder()
    for seq, event in enumerate([started(), finished()], start=7):
        builder.feed_entry(Entry("t1", seq, "e", "r1", 1_000 * seq, event))
    state = builder.state()
    assert (state.seq, state.started_at, state.updated_at, state.cumulative_seconds) == (8, 7_000, 8_000, 1.0)
    builder.feed(finished(), at=1)
    assert builder.state().updated_at == 8_000


def test_a_state_fits_the_shape_that_adapters_take_up_a_thread_in():
    assert isinstance(AgentState.from_events([]), ResumePoint)


def test_a_conversation_alone_tells_less():
    events = Teller(random.Random(3)).thread(4)
    state = AgentState.from_conversation(fold(events), "a", metadata={"k": 1})
    whole = AgentState.from_events(events, "a")
    assert (state.status, state.thread_id, state.run_id) == (whole.status, "t1", "r3")
    assert list(state.history) == list(whole.history)
    assert (state.content_bytes, state.state) == (whole.content_bytes, whole.state)
    empty = AgentState.from_conversation(Conversation())
    assert (empty.agent_id, empty.status, empty.run_id) == ("agent", "in_progress", None)


def test_what_messages_weigh_is_counted_as_they_come():
    for seed in range(60):
        events = Teller(random.Random(seed)).thread(3)
        state = AgentState.from_events(events)
        assert state.content_bytes == sum(map(weight, state.history))
    given = RunAgentInput(
        thread_id="t1", run_id="r1", state={}, tools=[], context=[], forwarded_props=None,
        messages=[UserMessage(id="u", content="héllo"), UserMessage(id="p", content=[TextPart(text="abc")])],
    )  # fmt: skip
    state = AgentState.from_events([started(input=given), finished(), started("r2", input=given)])
    assert state.content_bytes == 9
    more: list[Event] = [
        MessagesSnapshotEvent(messages=[UserMessage(id="u", content="12")]),
        ToolCallResultEvent(message_id="x", tool_call_id="c", content=[TextPart(text="345")]),
    ]
    assert AgentState.from_events([started(input=given), *more]).content_bytes == 5
    chunks: list[Event] = [
        started(),
        TextMessageChunkEvent(message_id="m", delta="abc", role="assistant"),
        ReasoningMessageChunkEvent(message_id="n", delta="de"),
        ReasoningMessageChunkEvent(),
    ]
    assert AgentState.from_events(chunks).content_bytes == 5


def test_a_history_is_read_from_either_end():
    for seed in range(150):
        rng = random.Random(seed)
        conversation = fold((adversarial if seed % 2 else structured)(rng))
        history, messages = conversation.history, conversation.messages
        assert len(history) == len(messages)
        assert list(history) == messages
        assert list(reversed(history)) == messages[::-1]
        assert history[1:-1] == messages[1:-1]
        for at in range(-len(messages), len(messages)):
            assert history[at] is messages[at]


def test_a_history_has_no_more_than_its_messages():
    history = fold([TextMessageStartEvent(message_id="m", role="user")]).history
    for at in (1, -2):
        with pytest.raises(IndexError, match="there are 1 messages"):
            history[at]


# ---------------------------------------------------------------------- valid for a model


def call(*ids: str, content: str | None = None, key: str = "a") -> AssistantMessage:
    calls = [ToolCall(id=each, function=FunctionCall(name="f", arguments="{}")) for each in ids]
    return AssistantMessage(id=key, content=content, tool_calls=calls)


def result(call_id: str, key: str = "x") -> ToolMessage:
    return ToolMessage(id=key, tool_call_id=call_id, content="done")


USER = UserMessage(id="u", content="hi")


def shape(messages: list[Message]) -> list[Any]:
    return [
        [each.id for each in message.tool_calls or ()] if isinstance(message, AssistantMessage)
        else message.tool_call_id if isinstance(message, ToolMessage) else message.role
        for message in messages
    ]  # fmt: skip


def test_a_model_sees_no_orphans():
    assert shape(valid_for_model([USER, result("z"), call("a", "b"), result("a")])) == ["user", ["a"], "a"]
    assert shape(valid_for_model([USER, call("a")])) == ["user"]
    assert shape(valid_for_model([USER, call("a", content="let me see")])) == ["user", []]


def test_a_result_stands_behind_its_call_once():
    history = [USER, call("a", "b"), USER, result("b"), result("a"), result("a", "y")]
    assert shape(valid_for_model(history)) == ["user", ["a", "b"], "a", "b", "user"]


def test_a_call_that_waits_for_its_answer_stays_while_nobody_has_spoken():
    assert shape(valid_for_model([USER, call("a", "b"), result("a")], {"b"})) == ["user", ["a", "b"], "a"]
    assert shape(valid_for_model([call("b"), USER], {"b"})) == ["user"]
    assert shape(valid_for_model([call("b"), call("c", key="d")], {"b"})) == []


def test_calls_left_to_the_client_or_to_a_person_wait():
    told: list[Event] = [
        started(),
        ToolCallStartEvent(tool_call_id="c", tool_call_name="ask"),
        ToolCallArgsEvent(tool_call_id="c", delta="{}"),
        ToolCallEndEvent(tool_call_id="c"),
    ]
    assert shape(AgentState.from_events(told).messages) == []
    outcome = RunFinishedSuccessOutcome(pending_tool_call_ids=["c"])
    left = AgentState.from_events([*told, finished(outcome=outcome)])
    assert (shape(left.messages), left.pending_tool_call_ids) == ([["c"]], ("c",))
    asked = RunFinishedInterruptOutcome(interrupts=[Interrupt(id="i", reason="ask", tool_call_id="c")])
    assert shape(AgentState.from_events([*told, finished(outcome=asked)]).messages) == [["c"]]


def test_any_thread_gives_a_history_without_orphans():
    for seed in range(300):
        rng = random.Random(seed)
        events = adversarial(rng) if seed % 2 else Teller(rng).thread(3)
        known: set[str] = set()
        answered: set[str] = set()
        messages = AgentState.from_events(events).messages
        for message in messages:
            assert message.role != "activity"
            if isinstance(message, AssistantMessage):
                known |= {each.id for each in message.tool_calls or ()}
            if isinstance(message, ToolMessage):
                assert message.tool_call_id in known - answered
                answered.add(message.tool_call_id)


def test_text_grows_while_a_state_looks_at_it():
    builder = StateBuilder()
    builder.feed(TextMessageStartEvent(message_id="m", role="user"))
    builder.feed(TextMessageContentEvent(message_id="m", delta="he"))
    assert builder.state().history[0].content == "he"
    builder.feed(TextMessageContentEvent(message_id="m", delta="llo"))
    assert builder.state().history[0].content == "hello"


def test_a_delta_of_a_class_of_ones_own_has_its_size() -> None:
    class Own(TextMessageContentEvent):
        """Whatever a producer adds."""

    builder = StateBuilder("a")
    builder.feed(TextMessageStartEvent(message_id="m", role="assistant"))
    builder.feed(Own(message_id="m", delta="four"))
    assert builder.state().content_bytes == 4
