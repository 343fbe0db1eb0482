"""Models that count their calls anew in each turn (`call_1`): every call is one of its own, wherever its id goes.

Clients know a call by its id, and would add the arguments of both.
"""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import Message, Tool, ToolMessage, UserMessage
from google.adk.agents import LlmAgent, ParallelAgent, SequentialAgent
from google.adk.events.event import Event
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from pydantic import TypeAdapter

from runcast.adapters.adk import AdkOptions, AdkTranslator, messages_from_events
from runcast.adapters.run_frame import RunIds
from tests.adapters.adk.fakes import call, calls, steady, text
from tests.adapters.adk.scenes import ask, look
from tests.adapters.adk.stage import Act, Stage, kinds, strict
from tests.adapters.adk.test_agent_tools import helper, observed
from tests.conftest import LONG
from tests.e2e.oracle import Oracle

pytestmark = pytest.mark.oracle
ONE = "call_1"


def looks(q: str) -> Any:
    return calls(call("look", {"q": q}, id=ONE))


def script(name: str) -> list[Any]:
    return [looks(name), text("of a"), looks("b"), text("of b"), looks("c"), text("of c")]


def plain() -> LlmAgent:
    return steady("root", *script("a"), tools=[look])


def in_one_run() -> LlmAgent:
    return steady("root", looks("a"), looks("b"), text("both"), looks("c"), text("of c"), tools=[look])


def confirmed() -> LlmAgent:
    tools = [FunctionTool(look, require_confirmation=True)]
    return steady("root", looks("a"), text("of a"), looks("b"), text("of b"), tools=tools)


def twice_in_one_turn() -> LlmAgent:
    both = calls(call("look", {"q": "a"}, id=ONE), call("look", {"q": "b"}, id=ONE))
    return steady("root", both, text("both"), looks("c"), text("of c"), tools=[look])


def in_branches() -> ParallelAgent:
    branches = [steady(name, *script(name), tools=[look]) for name in ("left", "right")]
    return ParallelAgent(name="root", sub_agents=branches)


def in_a_sequence() -> SequentialAgent:
    return SequentialAgent(name="root", sub_agents=[steady("leaf", *script("leaf"), tools=[look])])


def asks(q: str) -> Any:
    return calls(call("ask", {"q": q}, id=ONE))


def questions() -> LlmAgent:
    told = [asks("a"), text("so a"), asks("b"), text("so b")]
    return steady("root", *told, tools=[LongRunningFunctionTool(ask)])


SCENES: dict[str, tuple[Any, tuple[str, ...], bool]] = {
    "turns": (plain, ("hi", "again", "on"), True),
    "one run": (in_one_run, ("hi", "again"), True),
    "a sequence": (in_a_sequence, ("hi", "again"), True),
    "confirmations": (confirmed, ("hi", "yes", "again", "yes"), True),
    "one turn": (twice_in_one_turn, ("hi", "again"), True),
    "branches": (in_branches, ("hi", "again"), False),
    "questions": (questions, ("hi", "yes", "again", "yes"), True),
    "an edit": (plain, ("hi", "again", Act.EDIT, "on"), True),
    "another answer": (plain, ("hi", "again", Act.AGAIN, "on"), True),
    "a cancelled question": (questions, ("hi", Act.CANCEL, "again", Act.CANCEL), True),
    "another message instead": (questions, ("hi", Act.INSTEAD, "yes", "again"), True),
}


def called(messages: list[Any]) -> list[tuple[str, str]]:
    """The calls of a client's messages, by id, with their arguments."""
    made = [each for it in messages for each in it.get("toolCalls") or ()]
    return [(it["id"], it["function"]["arguments"]) for it in made]


@pytest.mark.parametrize("options", [{}, {"messages_snapshot": "end"}], ids=["events", "snapshot"])
@pytest.mark.parametrize("name", SCENES)
async def test_every_call_is_one_of_its_own(oracle: Oracle, name: str, options: Any):
    make, turns, ordered = SCENES[name]
    stage = Stage(make(), options=AdkOptions(**options))
    for words in turns:
        run = await stage.turn(words)
        assert run[-1].type.value == "RUN_FINISHED", run[-1]
        client = await stage.check(oracle, ordered=ordered)
        found = [it for it, _ in called(client["messages"])]
        assert len(set(found)) == len(found)
        results = [it["toolCallId"] for it in client["messages"] if it["role"] == "tool"]
        assert set(results) <= set(found)
        assert len(set(results)) == len(results)
    assert called(stage.client(oracle, earlier=True)["messages"]) == called(client["messages"])


TORN = ("TOOL_CALL_END", "TOOL_CALL_RESULT", "TEXT_MESSAGE_START")


@pytest.mark.parametrize("name", SCENES if LONG else ["a sequence", "confirmations"])
async def test_a_run_that_is_torn_goes_on_to_the_same_end(oracle: Oracle, name: str):
    make, turns, ordered = SCENES[name]
    whole = Stage(make())
    for words in turns:
        await whole.turn(words)
    expected = await whole.same(oracle, ordered=ordered)
    last = whole.runs[-1]
    for until in [at for at, it in enumerate(last, 1) if it.type.value in TORN]:
        stage = Stage(make())
        for words in turns[:-1]:
            await stage.turn(words)
        stage.until = until
        await stage.turn(turns[-1])
        await stage.go_on()
        assert await stage.same(oracle, ordered=ordered) == expected, f"torn after {until} events"


async def test_a_clients_result_reaches_the_call_that_it_names(oracle: Oracle):
    stage = Stage(steady("root", asks("a"), text("so a"), asks("b"), text("so b")))
    tools = [Tool(name="ask", description="asks", parameters={})]
    for number, answer in enumerate(("first", "second"), 1):
        await stage.say("go", tools=tools)
        view = (await stage.check(oracle))["messages"]
        waiting, _ = called(view)[-1]
        shown = TypeAdapter(list[Message]).validate_python(view)
        result = ToolMessage(id=f"result-{number}", tool_call_id=waiting, content=answer)
        await stage.send([*shown, result], tools=tools)
    session = await stage.session()
    assert session is not None
    given = [(it.id, it.response) for event in session.events for it in event.get_function_responses()]
    assert given == [(ONE, {"result": "first"}), (ONE, {"result": "second"})]


async def test_the_plugin_names_them_alike(oracle: Oracle):
    events = await observed(plain(), turns=3)
    strict(events)
    made = [it.tool_call_id for it in events if it.type.value == "TOOL_CALL_START"]
    answered = [it.tool_call_id for it in events if it.type.value == "TOOL_CALL_RESULT"]
    assert len(set(made)) == 3
    assert made == answered
    assert made[0] == ONE


def inside() -> LlmAgent:
    inner = helper("inner", *[looks("in"), text("inner words")] * 2, tools=[look])
    first = calls(call("inner", {"request": "x"}, id=ONE))
    return steady(
        "root",
        first,
        text("one"),
        first,
        text("two"),
        looks("z"),
        text("three"),
        tools=[AgentTool(inner), look],
    )


@pytest.mark.parametrize("options", [{}, {"messages_snapshot": "end"}], ids=["events", "snapshot"])
async def test_an_agent_that_runs_as_a_tool_has_calls_of_its_own(oracle: Oracle, options: Any):
    stage = Stage(inside(), options=AdkOptions(**options))
    shown: list[Any] = []
    for words in ("hi", "again", "on"):
        held = TypeAdapter(list[Message]).validate_python(shown)
        run = await stage.send([*held, UserMessage(id=words, content=words)])
        assert run[-1].type.value == "RUN_FINISHED"
        shown = (await stage.check(oracle))["messages"]
    found = [it for it, _ in called(shown)]
    assert len(set(found)) == len(found) == 5
    started = [it for run in stage.runs for it in run if it.type.value == "SUBAGENT_STARTED"]
    assert [it.parent_tool_call_id in found for it in started] == [True, True]  # type: ignore[union-attr]
    assert len({it.subagent_run_id for it in started}) == 2  # type: ignore[union-attr]


def piece(event_id: str, **given: Any) -> Event:
    function = types.FunctionCall(id=ONE, name="look", **given)
    content = types.Content(role="model", parts=[types.Part(function_call=function)])
    partial = "args" not in given
    return Event(id=event_id, author="root", content=content, partial=partial)


def test_arguments_that_stream_are_those_of_their_own_call(oracle: Oracle):
    translator = AdkTranslator(RunIds("t", "r"), root="root", options=AdkOptions(stream_args=True))
    events, stored = translator.start(), list[Event]()
    for name in ("e1", "e2"):
        path = types.PartialArg(json_path="$.q", string_value=name, will_continue=False)
        events += translator.feed(piece(name, partial_args=[path], will_continue=True))
        stored.append(piece(name, args={"q": name}))
        events += translator.feed(stored[-1])
    events += translator.finish()
    strict(events)
    client = oracle.run({"events": events, "runId": "r"})
    assert called(client["messages"]) == [(ONE, '{"q":"e1"}'), (f"e2:{ONE}", '{"q":"e2"}')]
    assert called(
        [it.model_dump(by_alias=True) for it in messages_from_events(stored, root="root")]
    ) == called(client["messages"])
    assert "MESSAGES_SNAPSHOT" not in kinds(events)
