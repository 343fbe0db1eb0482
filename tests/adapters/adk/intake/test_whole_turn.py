"""What a dead worker left: whose turn stands open, what it still owes, and whether the invocation is whole."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.agents import LlmAgent, LoopAgent
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from runcast.adapters.adk.intake.whole_turn import begun_again, is_whole, latest_turns, places
from runcast.adapters.adk.interrupts import unasked
from tests.adapters.adk.fakes import call
from tests.adapters.adk.scenes import words

STOP = types.FinishReason.STOP


def event(author: str = "one", *parts: types.Part, **given: Any) -> Event:
    actions = EventActions(**given.pop("actions", {}))
    if parts:
        given["content"] = types.Content(role="model", parts=list(parts))
    return Event(author=author, invocation_id=given.pop("invocation", "i"), actions=actions, **given)


def said(author: str, text: str, **given: Any) -> Event:
    return event(author, content=words(text), finish_reason=STOP, **given)


def result(call_id: str, name: str = "look", author: str = "one", **given: Any) -> Event:
    answer = types.FunctionResponse(id=call_id, name=name, response={"ok": 1})
    return event(author, types.Part(function_response=answer), **given)


def team() -> LoopAgent:
    return LoopAgent(name="root", sub_agents=[LlmAgent(name="one"), LlmAgent(name="two")])


PLACED = {"agent_state": {"current_sub_agent": "one"}}
ASKS = event("one", call("ask", {}, id="a"), call("look", {}, id="b"), long_running_tool_ids={"a"})


def turns(*events: Event) -> dict[str, Any]:
    return {name: held for (name, _), held in latest_turns(events, "i", team()).items()}


def test_a_loop_that_moves_on_leaves_turns_behind():
    assert turns(event("root", actions=PLACED), said("one", "a"), event("root", actions=PLACED)) == {}
    assert turns(said("one", "a", invocation="other"), said("stranger", "b")) == {}


def test_a_loop_that_moves_on_begins_its_agents_again():
    note = event("one", actions={"end_of_agent": True})
    moved = event("root", actions=PLACED)
    other = event("root", invocation="other", actions=PLACED)
    assert begun_again([moved, note], "i", team()) == {"two"}
    assert begun_again([moved, note, moved, other], "i", team()) == {"one", "two"}
    assert begun_again([other, event("stranger", actions=PLACED)], "i", team()) == set()


def test_an_agent_has_ended_until_its_loop_moves_on():
    note, moved = event("one", actions={"end_of_agent": True}), event("root", actions=PLACED)
    events = [
        moved,
        note,
        said("one", "bye"),
        event("two", invocation="other", actions={"end_of_agent": True}),
    ]
    found = places(events, "i", team())
    assert (found.ended, found.states) == ({"one"}, {"root": PLACED["agent_state"]})
    assert places([*events, moved], "i", team()).ended == set()
    assert places([moved, said("one", "a"), said("stranger", "b")], "i", team()).states.keys() == {
        "root",
        "one",
    }
    assert places([*events, event("root", actions={"end_of_agent": True})], "i", team()).states == {}


def test_a_models_second_answer_is_a_second_turn_and_a_callbacks_word_is_not():
    (first, second) = turns(said("one", "a"), event("one", content=words("bye")), said("one", "b"))["one"]
    assert first.is_over(spoken_for=False)
    assert not second.is_over(spoken_for=True)
    assert second.answer is second.events[0]


@pytest.mark.parametrize(
    ("last", "over"),
    [(said("one", "a"), False), (event("one", content=words("instead")), True), (ASKS, False)],
    ids=["a model", "a callback", "a question"],
)
def test_a_callback_that_spoke_for_its_agent_ends_the_turn(last: Event, over: bool):
    (turn,) = turns(last)["one"]
    assert turn.is_over(spoken_for=True) is over
    assert not turn.is_over(spoken_for=False)


def test_an_agent_that_escalated_has_left_its_loop():
    (turn,) = turns(result("x", actions={"escalate": True, "skip_summarization": True}))["one"]
    assert turn.escalated
    assert turn.answer is not None


def test_a_result_that_waits_for_a_confirmation_ends_no_turn():
    wanted = {"requested_tool_confirmations": {"x": ToolConfirmation(hint="?")}, "skip_summarization": True}
    (turn,) = turns(event("one", call("look", {}, id="x")), result("x", actions=wanted))["one"]
    assert turn.answer is None


def test_a_structured_answer_is_taken_from_its_result():
    (turn,) = turns(result("x", actions={"set_model_response": {"a": "\u00e9"}}))["one"]
    assert turn.structured == '{"a": "\u00e9"}'
    (other,) = turns(said("one", "a"))["one"]
    assert other.structured is None
    assert other.awaits_a_word


def test_code_that_was_not_executed():
    code = types.Part(executable_code=types.ExecutableCode(code="1", language=types.Language.PYTHON))
    (turn,) = turns(event("one", types.Part(text="see"), code))["one"]
    assert turn.code is turn.events[-1]
    (other,) = turns(event("one", actions={"state_delta": {"x": 1}}))["one"]
    assert other.code is None


def test_a_call_beside_a_question_is_owed_until_somebody_answers_it():
    (turn,) = turns(ASKS)["one"]
    assert [it.id for it in turn.owed([ASKS])] == ["a", "b"]
    answer = result("b", author="user")
    (answered,) = turns(ASKS, answer)["one"]
    assert answered.owed([ASKS, answer]) == []  # and the long one has begun
    (plain,) = turns(event("one", call("look", {}, id="b"), id="e"))["one"]
    assert [it.id for it in plain.owed([])] == ["b"]
    assert plain.owed([answer]) == []  # of a task that ADK carried out meanwhile


def test_code_that_the_model_executed_is_an_answer_where_words_follow():
    parts = [
        types.Part(executable_code=types.ExecutableCode(code="1", language=types.Language.PYTHON)),
        types.Part(code_execution_result=types.CodeExecutionResult(output="1")),
        types.Part(text="it is 1"),
    ]
    (turn,) = turns(event("one", *parts))["one"]
    assert turn.answer is turn.events[0]
    (executed,) = turns(event("one", *parts[:2]))["one"]
    assert executed.answer is None


def test_a_later_answer_of_the_user_begins_the_turn_again():
    assert turns(ASKS, said("one", "wait"), result("a", author="user")) == {}
    assert set(turns(said("one", "wait"), result("a", author="user"))) == {"one"}


@pytest.mark.parametrize(
    ("events", "root", "adds", "whole"),
    [
        ([said("root", "a")], "root", False, True),
        ([said("root", "a")], "root", True, False),
        ([said("root", "a"), event("root", content=words("bye"))], "root", True, True),
        ([said("root", "a")], None, False, False),
        ([said("one", "a")], "root", False, False),
        ([event("root", actions={"transfer_to_agent": "one"}), said("one", "a")], "root", False, True),
        ([event("root", actions={"transfer_to_agent": "two"}), said("two", "a")], "root", False, False),
        ([event("model", content=words("closed"))], None, False, True),
        ([ASKS], "one", False, False),
        ([ASKS], None, False, False),
        ([ASKS, result("b")], "one", False, True),
        ([ASKS.model_copy(update={"invocation_id": "other"})], "one", False, True),
        ([], "root", False, False),
    ],
)
def test_what_is_whole(events: list[Event], root: str | None, adds: bool, whole: bool):
    assert is_whole(events, "i", root, speakers=("root", "one"), adds=adds) is whole


def test_results_without_their_question_are_asked_for_once():
    wanted = {"requested_tool_confirmations": {"x": ToolConfirmation(hint="sure?")}}
    events = [event("one", call("look", {"q": "1"}, id="x")), result("x", actions=wanted, branch="a.b")]
    (asked,) = unasked(events, "i")
    assert asked.long_running_tool_ids == {"x:confirmation"}
    assert (asked.author, asked.branch, asked.invocation_id) == ("one", "a.b", "i")
    (request,) = asked.get_function_calls()
    assert request.args is not None
    assert request.args["originalFunctionCall"] == {"id": "x", "name": "look", "args": {"q": "1"}}
    assert request.args["toolConfirmation"]["hint"] == "sure?"
    assert unasked([*events, asked], "i") == []
    assert unasked(events, "other") == []


def test_a_call_that_is_not_there_is_not_asked_about():
    wanted = {"requested_tool_confirmations": {"gone": ToolConfirmation(hint="sure?")}}
    assert unasked([result("gone", actions=wanted)], "i") == []


def test_a_result_before_a_call_answers_another_call_of_its_id():
    first, again = event("one", call("look", {}, id="call_1")), event("one", call("look", {}, id="call_1"))
    events = [first, result("call_1"), again]
    [turn] = turns(*events)["one"]
    assert [it.id for it in turn.owed(events)] == ["call_1"]
    assert turn.owed([*events, result("call_1")]) == []
