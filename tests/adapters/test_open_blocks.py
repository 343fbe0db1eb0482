"""What is open, and what closes it: valid streams out of any order of calls."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest
from ag_ui.core import Event, TextMessageContentEvent
from pydantic import ValidationError

from runcast.adapters import OpenBlocks, RunFrame, RunIds
from runcast.slim.protocol.verifier import verify

STARTED = RunFrame(RunIds("t", "r")).started()


def types(events: list[Event]) -> list[str]:
    return [event.type.value for event in events]


def whole(events: list[Event]) -> list[Event]:
    return [*STARTED, *events, *RunFrame(RunIds("t", "r")).succeeded()]


MOVES: list[Callable[[OpenBlocks, random.Random], list[Event]]] = [
    lambda it, rng: it.text(some(rng, "m"), rng.choice(("", "x"))),
    lambda it, rng: it.close_text(some(rng, "m")),
    lambda it, rng: it.reasoning(some(rng, "r"), rng.choice(("", "x")), message_id=some(rng, "m")),
    lambda it, rng: it.close_reasoning(some(rng, "r")),
    lambda it, rng: it.call(some(rng, "c"), "add", message_id=rng.choice((None, some(rng, "m")))),
    lambda it, rng: it.args(some(rng, "c"), rng.choice(("", "{"))),
    lambda it, rng: it.close_call(some(rng, "c")),
    lambda it, rng: it.result(f"res-{rng.random()}", some(rng, "c"), "42"),
    lambda it, rng: it.close_message(some(rng, "m"), metadata={"k": 1}),
    lambda it, rng: it.step_started(some(rng, "s")),
    lambda it, rng: it.step_finished(some(rng, "s")),
    lambda it, rng: it.subagent_started(f"a{rng.randrange(3)}", "helper"),
    lambda it, rng: it.subagent_finished(f"a{rng.randrange(3)}"),
    lambda it, rng: it.subagent_failed(f"a{rng.randrange(3)}", "broke", code="x"),
]


def some(rng: random.Random, kind: str) -> str:
    return f"{kind}{rng.randrange(3)}"


def random_stream(seed: int) -> list[Event]:
    """Thirty random calls, and everything closed."""
    rng = random.Random(seed)
    blocks = OpenBlocks(clock=None if seed % 2 else lambda: 7)
    events = [event for _ in range(30) for event in rng.choice(MOVES)(blocks, rng)]
    return whole([*events, *blocks.close_all(error="broke" if seed % 3 == 0 else None)])


def test_any_order_of_calls_gives_a_valid_stream():
    for seed in range(300):
        assert not verify(random_stream(seed)), seed


@pytest.mark.oracle
def test_the_official_client_agrees(oracle: Any):
    streams = [random_stream(seed) for seed in range(300)]
    asked = [
        {"op": "pipeline", "events": [e.model_dump(mode="json", by_alias=True) for e in it]} for it in streams
    ]
    for seed, answer in enumerate(oracle.batch(asked)):
        assert answer["ok"], (seed, answer["error"])


@pytest.mark.parametrize("clock", [None, lambda: 5])
@pytest.mark.parametrize("speaker", [None, "sub"])
def test_text_opens_itself_and_keeps_its_owner(clock: Any, speaker: str | None):
    blocks = OpenBlocks(clock=clock)
    events = blocks.text("m", "a", role="assistant", name="ada", owner=speaker)
    events += blocks.text("m", "b") + blocks.text("m", "")
    assert blocks.is_open("m")
    events += blocks.close_text("m", metadata={"k": 1}) + blocks.close_text("m")
    assert types(events) == ["TEXT_MESSAGE_START", *["TEXT_MESSAGE_CONTENT"] * 2, "TEXT_MESSAGE_END"]
    assert {event.subagent_run_id for event in events} == {speaker}
    assert {event.timestamp for event in events} == {clock() if clock else None}
    assert (events[0].name, events[-1].metadata) == ("ada", {"k": 1})


def test_thought_comes_before_speech_and_calls():
    blocks = OpenBlocks()
    events = blocks.reasoning("r", "hm", message_id="m") + blocks.reasoning("q", "x", message_id="other")
    assert blocks.is_open_reasoning("r")
    events += (
        blocks.text("m", "so")
        + blocks.reasoning("r2", "mm", message_id="m")
        + blocks.call("c", "f", message_id="m")
    )
    assert not blocks.is_open_reasoning("r2")
    assert types(events).index("REASONING_END") < types(events).index("TEXT_MESSAGE_START")
    assert blocks.is_open_reasoning("q")
    assert blocks.call("c", "f") == []
    assert not verify(whole(events + blocks.close_all()))


def test_a_messages_last_word_carries_its_facts():
    blocks = OpenBlocks()
    blocks.text("m", "x")
    blocks.call("c1", "f", message_id="m")
    told = [(event.type.value, event.metadata) for event in blocks.close_message("m", metadata={"k": 1})]
    assert told == [("TEXT_MESSAGE_END", {"k": 1}), ("TOOL_CALL_END", None)]
    blocks.call("c2", "f", message_id="n")
    blocks.call("c3", "f", message_id="n")
    assert blocks.is_open_call("c2")
    told = [(event.type.value, event.metadata) for event in blocks.close_message("n", metadata={"k": 2})]
    assert told == [("TOOL_CALL_END", None), ("TOOL_CALL_END", {"k": 2})]


def test_calls_without_a_result_are_known():
    blocks = OpenBlocks()
    for call in ("c1", "c2", "c3"):
        blocks.call(call, "f")
    assert types(blocks.result("r", "c1", "1", metadata={"k": 1})) == ["TOOL_CALL_END", "TOOL_CALL_RESULT"]
    blocks.forget_call("c2")
    assert blocks.unanswered == ["c3"]


def test_a_provider_seals_what_was_opened():
    [event] = OpenBlocks(clock=lambda: 3).encrypted("c", "SIG", subtype="tool-call", owner="sub")
    assert (event.entity_id, event.encrypted_value, event.subtype, event.timestamp) == (
        "c",
        "SIG",
        "tool-call",
        3,
    )


def test_twins_share_a_step():
    blocks = OpenBlocks()
    assert types(blocks.step_started("n", metadata={"k": 1})) == ["STEP_STARTED"]
    assert blocks.step_started("n") == []
    assert blocks.step_finished("n") == []
    assert types(blocks.step_finished("n")) == ["STEP_FINISHED"]
    assert blocks.step_finished("n") == []


def test_a_subagent_takes_along_what_it_left_open():
    blocks = OpenBlocks()
    events = blocks.subagent_started(
        "a", "outer", description="d", tool_call_id="c", message_id="m", metadata={"k": 1}
    )
    events += blocks.subagent_started("b", "inner", parent="a")
    assert blocks.is_open_subagent("b")
    events += (
        blocks.text("x", "said", owner="b") + blocks.call("c", "f", owner="a") + blocks.text("mine", "words")
    )
    events += blocks.reasoning("r", "hm", message_id="z", owner="b") + blocks.step_started("n", owner="b")
    ended = blocks.subagent_finished("a", result={"r": 1}, suspended_by=["i1"])
    assert types(ended)[-2:] == ["TOOL_CALL_END", "SUBAGENT_FINISHED"]
    assert ended[-1].outcome.interrupt_ids == ["i1"]
    assert blocks.is_open("mine")
    assert not blocks.is_open("x")
    assert blocks.subagent_started("a", "again") == []
    assert blocks.subagent_finished("a") == []
    assert blocks.subagent_failed("a", "late") == []
    assert not verify(whole([*events, *ended, *blocks.close_all()]))


@pytest.mark.parametrize("error", [None, "broke"])
def test_close_all_leaves_nothing(error: str | None):
    blocks = OpenBlocks()
    events = blocks.subagent_started("a", "outer") + blocks.subagent_started("b", "inner", parent="a")
    events += blocks.text("m", "x", owner="b") + blocks.step_started("n") + blocks.step_started("n")
    closed = blocks.close_all(error=error, code="c")
    assert ("SUBAGENT_ERROR" in types(closed)) == (error is not None)
    assert not verify(whole([*events, *closed]))
    assert blocks.close_all() == []


def test_a_parent_that_ends_first_ends_its_children():
    blocks = OpenBlocks()
    events = blocks.subagent_started("b", "late") + blocks.subagent_started("a", "first", parent="b")
    closed = blocks.subagent_finished("b")
    assert types(closed) == ["SUBAGENT_FINISHED", "SUBAGENT_FINISHED"]
    assert not verify(whole([*events, *closed]))


def test_a_suspension_may_name_no_question():
    blocks = OpenBlocks()
    blocks.subagent_started("a", "x")
    assert blocks.subagent_finished("a", suspended_by=[])[-1].outcome.interrupt_ids is None


@pytest.mark.parametrize(
    "open_it",
    [
        lambda it: it.text(None, "x"),
        lambda it: it.text("m", 3),
        lambda it: it.reasoning(None, "x", message_id="m"),
        lambda it: it.call(None, "add"),
        lambda it: it.call("c", None),
    ],
)
def test_what_cannot_be_an_event_opens_nothing(open_it: Any):
    blocks = OpenBlocks()
    with pytest.raises(ValidationError):
        open_it(blocks)
    assert blocks.close_all() == []
    assert blocks.unanswered == []


def test_close_all_ends_each_subagent_once_whatever_order_they_came_in():
    blocks = OpenBlocks()
    blocks.subagent_started("child", "x", parent="late")
    blocks.subagent_started("late", "y")
    assert types(blocks.close_all()) == ["SUBAGENT_FINISHED", "SUBAGENT_FINISHED"]


def test_the_quick_way_of_a_token_makes_what_the_constructor_makes():
    blocks = OpenBlocks(clock=lambda: 7)
    blocks.text("m", "")
    assert blocks.growth("another", "one") is None
    first, second = (blocks.growth("m", delta) for delta in ("one", "two"))
    assert first is not None
    assert second is not None
    for event, delta in ((first, "one"), (second, "two")):
        made = TextMessageContentEvent(message_id="m", delta=delta, timestamp=7)
        assert event == made
        assert repr(event) == repr(made)
        assert list(vars(event)) == list(vars(made))
        assert event.model_fields_set == made.model_fields_set
        assert event.model_dump_json(exclude_unset=True) == made.model_dump_json(exclude_unset=True)
        assert pickle.loads(pickle.dumps(event)) == event.model_copy(deep=True) == made
    first.metadata = {"a": 1}
    assert second.metadata is None
    assert second.model_fields_set == {"message_id", "delta", "timestamp"}
    with pytest.raises(ValidationError):
        blocks.text("m", 3)  # type: ignore[arg-type]  # what a type checker would not let pass
