"""Corners of the pure parts: what the scenes do not reach, each by itself."""

from __future__ import annotations

import json
import operator
import random
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import jsonpatch
import pytest
from ag_ui.core import Interrupt, ResumeEntry, UserMessage
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.types import Command

from runcast.adapters import InvalidInput, RunIds
from runcast.adapters.langgraph import LangGraphOptions, LangGraphTranslator, to_agui
from runcast.adapters.langgraph.content.content_blocks import Piece, pieces
from runcast.adapters.langgraph.content.message_content import text_of, to_parts
from runcast.adapters.langgraph.content.plain_values import CUT, Encoder, plain
from runcast.adapters.langgraph.intake.answers import answers
from runcast.adapters.langgraph.intake.callback_parts import CallbackParts, messages_in
from runcast.adapters.langgraph.intake.plan import Plan, StoredMessage, Thread, held_back, plan, recalled
from runcast.adapters.langgraph.interrupts import to_interrupt
from runcast.adapters.langgraph.json_diff import diff, same
from runcast.adapters.langgraph.stream.graph_state import StateView
from runcast.adapters.langgraph.stream.parts import Aside, Namespaces, called_for, decode, messages_of
from runcast.slim.folding.conversation import fold
from runcast.slim.protocol.verifier import verify
from tests.adapters.langgraph.fakes import calls, piece
from tests.adapters.langgraph.stage import Stage

OPTIONS = LangGraphOptions()
META = {"langgraph_checkpoint_ns": "n:1"}


class Level(IntEnum):
    LOW = 1


class Word(Enum):
    A = "a"


class Color(Enum):
    RED = "red"


class Strict(str):
    """A string of another type."""


@dataclass
class Half:
    there: int


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (date(2026, 1, 2), "2026-01-02"),
        (time(1, 2), "01:02:00"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (timedelta(seconds=90), 90.0),
        (Strict("x"), "x"),
        (type("Int", (int,), {})(3), 3),
        (type("Float", (float,), {})(1.5), 1.5),
        (type("Float", (float,), {})("inf"), "inf"),
        (Decimal("1.5"), "1.5"),
        (UUID(int=1), str(UUID(int=1))),
        (PurePosixPath("a/b"), "a/b"),
        (ValueError("x"), "x"),
        (Word.A, "a"),
        (Level.LOW, 1),
        (operator.add, "<builtin_function_or_method>"),
        (int, "<int>"),
        ("\ud800x", "\ufffdx"),
        (bytearray(b"hi"), "aGk="),
        (b"x" * 70_000, "<70000 bytes>"),
        ({(1, "a"): 1, Word.A: 2, None: 3}, {"1.a": 1, "a": 2, "<NoneType>": 3}),
        (Half(1), {"there": 1}),
    ],
)
def test_values_become_json(value: Any, said: Any):
    assert plain(value) == said
    json.dumps(plain(value))


def test_encoding_has_bounds():
    deep: Any = []
    for _ in range(200):
        deep = [deep]
    assert CUT in json.dumps(plain(deep))
    ring: dict[str, Any] = {}
    ring["me"] = ring
    assert CUT in json.dumps(plain(ring))
    assert Encoder(max_nodes=3)([[1], [2], [3], [4]])[-1] == CUT


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("ab/~", max_size=2),
    lambda deeper: (
        st.lists(deeper, max_size=4) | st.dictionaries(st.text("ab/~", max_size=2), deeper, max_size=3)
    ),
    max_leaves=10,
)


@settings(max_examples=300, deadline=None)
@given(json_values, json_values)
def test_a_patch_leads_from_old_to_new(old: Any, new: Any):
    patched = jsonpatch.apply_patch({"it": old}, diff(old, new, "/it"))
    assert same(patched["it"], new)
    assert (diff(old, new) == []) == same(old, new)


@pytest.mark.parametrize(
    "make", [lambda n: {str(k): n for k in range(500)}, lambda n: [[k, n] for k in range(500)]]
)
def test_a_patch_too_long_is_one_replacement(make: Any):
    assert diff(make(1), make(2), "/x") == [{"op": "replace", "path": "/x", "value": make(2)}]


def test_a_list_may_shrink_grow_and_change_all_over():
    for old, new in (([1, 2, 3], [1, 3]), ([1, 3], [1, 2, 3]), ([1, 2, 3], [3]), ([1, 2], [3, 4, 5])):
        assert jsonpatch.apply_patch({"x": old}, diff(old, new, "/x")) == {"x": new}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_42_the_clients_state_is_the_graphs_after_any_steps(seed: int):
    rng = random.Random(seed)
    view, state, held = StateView(), {"a/b": 1, "list": [1], "d": {"x": {"y": 1}}}, {}
    for _ in range(12):
        key = rng.choice(("a/b", "list", "d", "new~key", "gone"))
        state = dict(state)
        match rng.randrange(4):
            case 0:
                state[key] = rng.choice((1, None, "x", [1, 2], {"k": [1]}))
            case 1:
                state.pop(key, None)
            case 2:
                state["list"] = (
                    [*(state.get("list") or ()), rng.randrange(9)] if state.get("list") != 1 else [1]
                )
            case _:
                state["d"] = {
                    **(state["d"] if isinstance(state.get("d"), dict) else {}),
                    str(rng.randrange(3)): seed,
                }
        view.written({key: None})
        for event in view.values(state):
            if event.type == "STATE_SNAPSHOT":
                held = event.snapshot
            else:
                held = jsonpatch.apply_patch(
                    held, [each.model_dump(mode="json", by_alias=True) for each in event.delta]
                )
        assert same(held, plain(state))


def test_a_state_that_is_empty_replaces_what_the_client_had():
    assert StateView().values({"messages": []}) == []
    [event] = StateView(client_has_state=True, clock=lambda: 4).values({"messages": []})
    assert (event.snapshot, event.timestamp) == ({}, 4)
    assert StateView().values("bare") == []


@pytest.mark.parametrize(
    ("content", "extra", "found"),
    [
        (None, None, []),
        ("", None, []),
        (["", "a", 7, {"type": "text", "text": ""}], None, [Piece("text", "a")]),
        ([{"type": "tool_use"}, {"type": "refusal", "refusal": "no"}], None, [Piece("text", "no")]),
        (
            [{"type": "text", "text": "a", "extras": {"signature": "S"}}],
            None,
            [Piece("text", "a"), Piece("text-signature", "S")],
        ),
        ([{"type": "reasoning_content", "reasoning_content": "hm"}], None, [Piece("reasoning", "hm")]),
        ("", {"reasoning": "hm"}, [Piece("reasoning", "hm", "beside")]),
        ("", {"reasoning_content": ""}, []),
    ],
)
def test_pieces_of_odd_messages(content: Any, extra: Any, found: list[Piece]):
    assert list(pieces(content, extra)) == found


def test_content_that_is_no_text():
    assert text_of(None) == ""
    assert to_parts({"a": 1}) == '{"a": 1}'
    assert [part.text for part in to_parts(["a"])] == ["a"]


def test_parts_of_every_form():
    part = {"type": "custom", "ns": (), "data": 1}
    assert decode(part) == part
    assert decode(((), "custom", 1)) == part
    assert decode({**part, "data": Aside("retry", {"x": 1})}) == {"type": "retry", "ns": (), "data": {"x": 1}}
    call = {"type": "tool_call", "id": "c"}
    assert called_for({"type": "tool_call_with_context", "tool_call": call}) == call
    assert called_for([call, call]) is None
    assert messages_of({"messages": [{"role": "user"}]}, "messages") is None
    assert messages_of({"messages": "text"}, "messages") is None


def test_interrupts_of_odd_shapes():
    assert to_interrupt({"id": "i", "value": {"action_requests": []}}).reason == "tool_approval"
    asked = {
        "action_requests": [
            {"name": "a", "args": {}, "description": "A?"},
            {"name": "b", "description": "B?"},
        ]
    }
    assert to_interrupt({"id": "i", "value": asked}).message == "A?\n\nB?"
    assert to_interrupt({"id": "i", "value": 7}).metadata == {"runcast": {"value": 7}}


def entry(key: str, status: Any = "resolved") -> ResumeEntry:
    return ResumeEntry(interrupt_id=key, status=status, payload=1)


def test_answers_by_policy_and_date():
    odd, late = (
        Interrupt(id="i", reason="r", expires_at="soon"),
        Interrupt(id="j", reason="r", expires_at="2001-01-01"),
    )
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert answers([entry("i")], [odd, late], OPTIONS, now=now) == {"i": 1}
    with pytest.raises(InvalidInput, match="expired"):
        answers([entry("j")], [odd, late], OPTIONS, now=now)
    with pytest.raises(InvalidInput, match="cancelled"):
        answers([entry("i", "cancelled")], [odd], LangGraphOptions(on_cancelled_answer="refuse"))


def asks(*messages: Any) -> Any:
    return Stage().input(messages=list(messages))


def user(key: str) -> UserMessage:
    return UserMessage(id=key, content=key)


TALK = [
    StoredMessage("u1", "user"),
    StoredMessage("a1", "assistant", ("c1",)),
    StoredMessage("t1", "tool", answers="c1"),
    StoredMessage("u2", "user"),
]


def test_plans_of_odd_threads():
    assert plan(asks(), Thread(unfinished=True), OPTIONS) == Plan("continue")
    assert plan(asks(user("u9")), Thread(), OPTIONS).ask == "start"
    assert plan(asks(user("u1"), user("u2")), Thread(TALK, unfinished=True), OPTIONS) == Plan("continue")
    assert plan(asks(), Thread(TALK), OPTIONS) == Plan("start")
    told = {"id": "x", "role": "tool", "toolCallId": "c1", "content": "again"}
    with pytest.raises(InvalidInput, match="already"):
        plan(asks(user("u2"), told), Thread(TALK), OPTIONS)
    called = {
        "id": "a",
        "role": "assistant",
        "toolCalls": [{"id": "c", "function": {"name": "f", "arguments": ""}}],
    }
    assert plan(asks(user("u"), called, {**told, "toolCallId": "c"}), None, OPTIONS).ask == "start"


def test_results_that_were_not_told():
    asked = StoredMessage("a", "assistant", ("c1", "c2", "c3"))
    assert held_back([asked, StoredMessage("t2", "tool", answers="c2")]) == {"t2"}
    assert held_back([asked, StoredMessage("t1", "tool", answers="c1")]) == set()
    assert held_back([asked, StoredMessage("a2", "assistant")]) == set()
    assert held_back([StoredMessage("t", "tool", answers="c")]) == set()


def translator(**settings: Any) -> LangGraphTranslator:
    it = LangGraphTranslator(RunIds("t", "r"), **settings)
    it.start()
    return it


def chunk(content: Any = "", *, id: str, **fields: Any) -> Any:
    return {"type": "messages", "ns": (), "data": (AIMessageChunk(content=content, id=id, **fields), META)}


def fed(it: LangGraphTranslator, *parts: Any) -> list[Any]:
    return [event for part in parts for event in it.feed(part)]


@pytest.mark.parametrize(("first", "then"), [("resp_1", "lc_run--x"), ("lc_run--x", "msg_1")])
def test_48_an_id_drifts_without_a_mark(first: str, then: str):
    it = translator()
    events = fed(it, chunk("a", id=first), chunk("b", id=then), chunk("c", id=then, chunk_position="last"))
    assert {event.message_id for event in events} == {first}
    assert "".join(event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT") == "abc"


def test_48_two_unmarked_messages_are_not_mixed():
    events = fed(translator(), chunk("a", id="lc_run--x"), chunk("b", id="lc_run--y"), chunk("c", id="msg_1"))
    assert len({event.message_id for event in events}) == 3


def test_a_call_whose_id_never_comes_gets_one():
    it = translator()
    events = fed(it, {"type": "messages", "ns": (), "data": (calls(piece("f", "{}"), id="m"), META)})
    assert events == []
    events = it.finish()
    assert events[0].type == "RUN_FINISHED"
    again = translator()
    last = calls(piece("f", '{"a":1}'), id="m", chunk_position="last")
    events = fed(again, {"type": "messages", "ns": (), "data": (last, META)})
    assert [event.type.value for event in events] == ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"]
    assert events[0].tool_call_id == "m:call:0"


def test_a_signed_text_seals_the_message():
    signed = [{"type": "text", "text": "so", "extras": {"signature": "S"}}]
    events = fed(translator(), chunk(signed, id="m", chunk_position="last"))
    assert [e.entity_id for e in events if e.type == "REASONING_ENCRYPTED_VALUE"] == ["m"]


def test_predicted_state_is_told_when_the_call_begins():
    told = [{"state_key": "doc", "tool": "write", "tool_argument": "text"}]
    events = fed(
        translator(options=LangGraphOptions(predict_state={"write": told})),
        {"type": "messages", "ns": (), "data": (calls(piece("write", "{}", "c"), id="m"), META)},
    )
    assert [(event.name, event.value) for event in events if event.type == "CUSTOM"] == [
        ("PredictState", told)
    ]
    noted = {**META, "predict_state": told}
    events = fed(
        translator(),
        {"type": "messages", "ns": (), "data": (calls(piece("write", "{}", "c"), id="m"), noted)},
    )
    assert [event.name for event in events if event.type == "CUSTOM"] == ["PredictState"]


def test_asides_are_taken_up_with_the_next_part_and_at_the_end():
    it = translator()
    it.asides.append(Aside("custom_event", {"name": "a", "data": 1}))
    assert [event.name for event in fed(it, {"type": "unheard of", "ns": (), "data": 0})] == ["a"]
    it.asides.append(Aside("custom_event", {"name": "b", "data": 1}))
    assert it.finish()[0].name == "b"


def test_a_soft_stop_that_leaves_the_stream_is_a_cancellation():
    drained = type("GraphDrained", (Exception,), {})()
    assert translator().fail(drained)[-1].outcome.type == "cancelled"


def test_a_task_that_failed_elsewhere_has_only_a_text():
    it = translator()
    begun = {"id": "1", "name": "n", "input": {}, "triggers": ()}
    ended = {"id": "1", "name": "n", "error": "broke there", "interrupts": []}
    fed(it, {"type": "tasks", "ns": (), "data": begun}, {"type": "tasks", "ns": (), "data": ended})
    assert not verify([*translator().start(), *translator().fail(RuntimeError("x"))])


def test_a_retry_of_a_task_nobody_knows_is_nothing():
    assert fed(translator(), {"type": "retry", "ns": (), "data": {"task_id": "9"}}) == []


def test_a_models_end_nobody_heard_counts_all_the_same():
    it = translator()
    message = AIMessage(
        "x", id="m", usage_metadata={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    )
    fed(
        it, {"type": "llm_end", "ns": (), "data": {"run_id": "9", "message": message, "checkpoint_ns": "n:1"}}
    )
    assert it.finish()[-1].usage[0].total_tokens == 2


def test_without_a_conversation_every_open_call_is_the_clients():
    it = translator()
    last = calls(piece("f", "{}", "c1"), id="m", chunk_position="last")
    events = fed(
        it,
        {"type": "messages", "ns": (), "data": (last, META)},
        {"type": "values", "ns": (), "data": {"x": 1}},
    )
    assert fold([*events, *it.finish()]).pending_tool_call_ids == ["c1"]


def test_a_node_may_give_messages_in_any_wrapping():
    message = ToolMessage("x", tool_call_id="c", id="t")
    for output in (
        message,
        [message],
        {"messages": message},
        {"messages": [message]},
        Command(update={"messages": [message]}),
    ):
        assert list(messages_in(output)) == [message]
    assert list(messages_in({"x": [1], "y": 2})) == []


def test_a_replay_tells_an_interrupt_once():
    replay = CallbackParts()
    asked = {"__interrupt__": [Interrupt(id="i", reason="r")], "x": 1}
    assert [part["type"] for part in replay.ended(asked)] == ["updates", "values"]
    assert [part["type"] for part in replay.ended(asked)] == ["values"]
    assert [part["type"] for part in replay.interrupted([], "cp")] == []
    unsaved = CallbackParts().message(AIMessage("x"), META)
    assert unsaved[0]["type"] == "messages"


def test_the_namespace_around_a_graph_called_again():
    names = Namespaces()
    assert names.enclosing(("tools:1", "1")) == ()
    assert names.enclosing(("outer:1", "tools:2", "3")) == ("outer:1",)


def test_keys_may_be_enums():
    assert plain({Level.LOW: 1, Color.RED: 2}) == {"1": 1, "red": 2}


def whole_part(message: Any, ns: Any = ()) -> Any:
    return {"type": "messages", "ns": ns, "data": (message, META)}


def test_system_messages_stay_at_home_unless_wanted():
    prompt = SystemMessage("be kind", id="s1")
    assert fed(translator(), whole_part(prompt)) == []
    events = fed(
        translator(options=LangGraphOptions(system_messages=True)), whole_part(prompt), whole_part(prompt)
    )
    assert (events[0].type, events[0].role) == ("TEXT_MESSAGE_START", "system")
    assert len(events) == 3


def test_a_rewritten_conversation_keeps_its_prompts_at_home():
    old = [SystemMessage("be kind", id="s1"), HumanMessage("hi", id="u1"), AIMessage("x", id="a1")]
    for wanted in (True, False):
        it = translator(to_messages=to_agui, options=LangGraphOptions(system_messages=wanted))
        parts = [{"type": "values", "ns": (), "data": {"messages": each}} for each in (old, old[:2])]
        [snapshot] = [event for event in fed(it, *parts) if event.type == "MESSAGES_SNAPSHOT"]
        assert [message.role for message in snapshot.messages] == (["system", "user"] if wanted else ["user"])


def test_a_removal_is_told_by_the_values_after_it():
    assert fed(translator(), whole_part(RemoveMessage(id="a1"))) == []


def test_a_hidden_subagent_says_nothing_at_all():
    it = translator(options=LangGraphOptions(subagents="hidden"))
    begun = {"id": "9", "name": "n", "input": {}, "triggers": (), "metadata": {"lc_agent_name": "helper"}}
    ns = ("tools:1",)
    fed(it, {"type": "tasks", "ns": ns, "data": begun})
    assert fed(it, {"type": "custom", "ns": ns, "data": 1}, whole_part(AIMessage("x", id="a"), ns)) == []


def test_a_tool_error_in_a_task_nobody_knows_is_only_a_result():
    failed = ToolMessage("no", tool_call_id="c", id="t", status="error")
    assert [event.type.value for event in fed(translator(), whole_part(failed))] == ["TOOL_CALL_RESULT"]


def test_a_state_without_a_conversation_waits_with_results_while_it_asks():
    it = translator()
    asked = {"type": "updates", "ns": (), "data": {"__interrupt__": ({"id": "i", "value": 1},)}}
    assert fed(it, asked, {"type": "values", "ns": (), "data": {"x": 1}})[-1].type == "STATE_SNAPSHOT"


def test_what_a_snapshot_remembers_comes_before_what_is_sent():
    sent = asks(user("u2"))
    point = SimpleNamespace(
        messages=[user("u1"), user("u2")], state={}, interrupts=[], history=None, framework={}
    )
    assert recalled(sent, None) is sent
    assert [message.id for message in recalled(sent, point).messages] == ["u1", "u2"]


def test_a_model_that_failed_before_its_first_chunk_leaves_nothing():
    it = translator()
    assert fed(it, {"type": "llm_error", "ns": (), "data": {"run_id": "unheard of"}}) == []


def test_nothing_is_taken_back_from_an_unknown_view():
    """Without the messages that the client shows, the correction at the start of a run cannot be expressed."""
    it = translator(gone=["m1"])
    assert [event.type for event in it.start()] == ["RUN_STARTED"]
