"""Ids of calls as they are shown, and as the model gave them."""

from __future__ import annotations

from typing import Any

from google.adk.auth.auth_tool import AuthConfig
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from runcast.adapters.adk.stream.distinct_calls import DistinctCalls
from tests.adapters.adk.fakes import call

ONE = "call_1"


def event(name: str, *parts: types.Part, author: str = "root", **given: Any) -> Event:
    return Event(id=name, author=author, content=types.Content(parts=list(parts)), **given)


def answer(call_id: str = ONE) -> types.Part:
    return types.Part(function_response=types.FunctionResponse(id=call_id, name="look", response={}))


def ids(events: list[Event]) -> list[list[str | None]]:
    return [
        [it.id for part in each.content.parts or () if (it := part.function_call or part.function_response)]
        for each in events
        if each.content is not None
    ]


def look(name: str, **given: Any) -> Event:
    return event(name, call("look", {}, id=ONE), **given)


def test_a_call_whose_id_is_taken_is_named_after_its_event():
    calls = DistinctCalls()
    stored = [look("e1"), event("r1", answer()), look("e2"), event("r2", answer()), Event(author="root")]
    shown = calls.all(stored)
    assert ids(shown) == [[ONE], [ONE], ["e2:call_1"], ["e2:call_1"]]
    assert ids(stored) == [[ONE]] * 4
    assert calls.models("e2:call_1") == calls.models(ONE) == ONE
    assert ids(DistinctCalls().all(shown)) == ids(shown)
    assert shown[0] is stored[0]


def test_two_calls_of_one_turn_have_their_results_in_order():
    calls = DistinctCalls()
    shown = calls.all(
        [
            event("e1", call("look", {}, id=ONE), types.Part(text="and"), call("look", {}, id=ONE)),
            event("r1", answer(), answer(), answer()),
        ]
    )
    second = "e1:call_1:2"
    assert ids(shown) == [[ONE, second], [ONE, second, second]]
    assert calls.models(second) == ONE


def test_results_go_to_the_call_of_their_agent_and_branch():
    left, right = {"author": "a", "branch": "p.a"}, {"author": "b", "branch": "p.b"}
    made = [look("e1", **left), look("e2", **right)]
    answers = [event("r1", answer(), **left), event("r2", answer(), **right)]
    users = [event("u1", answer(), author="user", branch="p.a"), event("u2", answer(), author="user")]
    unknown = event("r3", answer("other"), **left)
    shown = ids(DistinctCalls().all([*made, *answers, *users, unknown]))
    assert shown[2:] == [[ONE], ["e2:call_1"], [ONE], ["e2:call_1"], ["other"]]


def test_a_question_is_about_the_call_that_is_shown():
    wanted = ToolConfirmation(hint="?")
    args = {"originalFunctionCall": {"id": ONE, "name": "look"}, "toolConfirmation": {}}
    login = {"functionCallId": ONE, "authConfig": {}}
    asked = [
        event("p", answer(), actions=EventActions(requested_tool_confirmations={ONE: wanted})),
        event("q", call("adk_request_confirmation", args, id="adk-1"), long_running_tool_ids={"adk-1"}),
        event("l", call("adk_request_credential", login, id="adk-2"), long_running_tool_ids={"adk-2"}),
        event(
            "n", call("adk_request_credential", {}, id="adk-3"), call("adk_request_confirmation", id="adk-4")
        ),
        event("k", actions=EventActions(requested_auth_configs={ONE: _auth()})),
        event("x", call("ask", {}, id=ONE), long_running_tool_ids={ONE}),
    ]
    placeholder, question, credential, unknown, keyless, waiting = DistinctCalls().all(
        [look("e1"), look("e2"), *asked]
    )[2:]
    assert list(placeholder.actions.requested_tool_confirmations) == ["e2:call_1"]
    assert question.get_function_calls()[0].args == {
        **args,
        "originalFunctionCall": {"id": "e2:call_1", "name": "look"},
    }
    assert question.long_running_tool_ids == {"adk-1"}
    assert credential.get_function_calls()[0].args == {**login, "functionCallId": "e2:call_1"}
    assert unknown == asked[3]
    assert keyless is asked[4]
    assert waiting.long_running_tool_ids == {"x:call_1"}


def _auth() -> AuthConfig:
    scheme = {"type": "http", "scheme": "bearer"}
    return AuthConfig.model_validate({"authScheme": scheme, "credentialKey": "key"})


def test_inside_a_tool_only_ids_of_adk_stay():
    calls = DistinctCalls(within="inner:c")
    made = calls.all([look("e1"), look("e2"), event("e3", call("look", {}, id="adk-7"))])
    assert ids(made) == [["inner:c:call_1"], ["e2:call_1"], ["adk-7"]]
    assert calls.made_by("root", ONE) == "e2:call_1"
    assert calls.made_by("nobody", ONE) == "e2:call_1"
    assert calls.made_by("root", "none") == "none"


def test_a_call_that_streams_has_the_id_of_its_complete_event():
    calls = DistinctCalls()
    partial = look("e1", partial=True)
    assert calls.read(partial) is partial
    assert calls.while_streaming(partial, ONE) == ONE
    calls.read(look("e1"))
    assert calls.while_streaming(partial, ONE) == ONE
    assert calls.while_streaming(look("e2", partial=True), ONE) == "e2:call_1"


def test_code_and_its_result_are_a_call_and_its_answer():
    def code(name: str) -> Event:
        program = types.ExecutableCode(id=ONE, code="1", language=types.Language.PYTHON)
        result = types.CodeExecutionResult(id=ONE, outcome=types.Outcome.OUTCOME_OK, output="1")
        return event(name, types.Part(executable_code=program), types.Part(code_execution_result=result))

    made = DistinctCalls().all([code("e1"), code("e2")])
    parts = [part for each in made if each.content is not None for part in each.content.parts or ()]
    found = [part.executable_code or part.code_execution_result for part in parts]
    assert [None if it is None else it.id for it in found] == [ONE, ONE, "e2:call_1", "e2:call_1"]
