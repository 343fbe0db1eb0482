"""Tool calls and their results (cases 16 to 23)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.events.event import Event
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from runcast.adapters.adk import AdkOptions
from tests.adapters.adk.fakes import agent, call, calls, text, turn
from tests.adapters.adk.stage import Stage, brief, kinds, texts, wire
from tests.e2e.oracle import Oracle

pytestmark = pytest.mark.oracle
MODES = pytest.mark.parametrize("options", [AdkOptions(), AdkOptions(streaming="none")], ids=["sse", "none"])
CALL = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"]


def look(q: str = "") -> dict[str, Any]:
    """Look something up."""
    return {"found": q}


def say(q: str) -> str:
    """Say something."""
    return f"said {q}"


def breaks(q: str) -> str:
    """Break."""
    raise ValueError("boom key=sk-1234567890abcdef")


def quiet(tool_context: ToolContext) -> dict[str, Any]:
    """Answer without another model call."""
    tool_context.actions.skip_summarization = True
    return {"shown": True}


def big(n: int) -> str:
    """A big answer."""
    return "x" * n


@MODES
async def test_case_16_a_call_stands_under_the_text_it_came_with(oracle: Oracle, options: AdkOptions):
    root = agent(
        "root", turn(types.Part(text="let me"), call("look", {"q": "a"})), text("done"), tools=[look]
    )
    stage = Stage(root, options=options)
    run = await stage.say("hi")
    opened = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TOOL_CALL_START", "TOOL_CALL_ARGS"]
    assert brief(run)[:6] == [*opened, "TEXT_MESSAGE_END", "TOOL_CALL_END"]
    client = await stage.check(oracle)
    assert texts(client) == [
        ("user", "hi"),
        ("assistant", "let me"),
        ("tool", '{"found":"a"}'),
        ("assistant", "done"),
    ]
    made = client["messages"][1]["toolCalls"]
    assert [(it["function"]["name"], json.loads(it["function"]["arguments"])) for it in made] == [
        ("look", {"q": "a"})
    ]


async def test_case_17_parallel_calls_and_results_in_any_order(oracle: Oracle):
    three = calls(call("look", {"q": "1"}), call("say", {"q": "2"}), call("look", {"q": "3"}))
    stage = Stage(agent("root", three, text("done"), tools=[look, say]))
    run = await stage.say("hi")
    assert brief(run)[:12] == [*CALL[:2] * 3, *CALL[2:] * 3, *["TOOL_CALL_RESULT"] * 3]
    client = await stage.check(oracle)
    assert [words for role, words in texts(client) if role == "tool"] == [
        '{"found":"1"}',
        "said 2",
        '{"found":"3"}',
    ]
    assert len(client["messages"][1]["toolCalls"]) == 3


class Doing(BaseAgent):
    """A custom agent that yields these contents, one an event."""

    done: list[types.Content] = []  # noqa: RUF012  # pydantic copies it

    async def _run_async_impl(self, ctx: Any) -> Any:
        for content in self.done:
            yield Event(
                author=self.name, invocation_id=ctx.invocation_id, content=content.model_copy(deep=True)
            )


def reply(call_id: str | None, name: str, response: dict[str, Any] | None) -> types.Part:
    return types.Part(function_response=types.FunctionResponse(id=call_id, name=name, response=response))


async def test_case_17_results_that_overtake_each_other(oracle: Oracle):
    done = [
        types.Content(role="model", parts=[call("a", id="c1"), call("b", id="c2")]),
        types.Content(role="user", parts=[reply("c2", "b", {"n": 2})]),
        types.Content(role="user", parts=[reply("c1", "a", {"n": 1})]),
        types.Content(role="user", parts=[reply("c1", "a", {"n": "again"})]),
    ]
    stage = Stage(Doing(name="custom", done=done))
    await stage.say("hi")
    client = await stage.check(oracle)
    assert [(it["toolCallId"], it["content"]) for it in client["messages"] if it["role"] == "tool"] == [
        ("c2", '{"n":2}'),
        ("c1", '{"n":1}'),
    ]


@MODES
async def test_case_18_a_call_without_arguments_has_an_empty_object(oracle: Oracle, options: AdkOptions):
    stage = Stage(agent("root", calls(call("look")), text("done"), tools=[look]), options=options)
    run = await stage.say("hi")
    assert brief(run)[:3] == CALL
    client = await stage.check(oracle)
    assert client["messages"][1]["toolCalls"][0]["function"]["arguments"] == "{}"


async def test_case_19_a_call_without_id_and_arguments_gets_an_id_of_its_event(oracle: Oracle):
    done = [
        types.Content(role="model", parts=[call("a"), call("a")]),
        types.Content(role="user", parts=[reply(None, "a", {"n": 1}), reply(None, "a", None)]),
    ]
    stage = Stage(Doing(name="custom", done=done))
    await stage.say("hi")
    client = await stage.check(oracle)
    owner = client["messages"][1]
    assert [it["id"] for it in owner["toolCalls"]] == [f"{owner['id']}:call:{n}" for n in (0, 1)]
    assert [it["toolCallId"] for it in client["messages"][2:]] == [it["id"] for it in owner["toolCalls"]]
    assert [it["content"] for it in client["messages"][2:]] == ['{"n":1}', ""]


async def test_case_20_a_tool_that_raises_ends_the_run_with_an_error(oracle: Oracle):
    root = agent("root", turn(types.Part(text="well"), call("breaks", {"q": "a"})), tools=[breaks])
    stage = Stage(root)
    run = await stage.say("hi")
    assert kinds(run)[-1] == "RUN_ERROR"
    assert run[-1].code == "tool_error"  # type: ignore[union-attr]
    assert "sk-1234567890abcdef" not in str(run)
    assert run[-1].usage is not None  # type: ignore[union-attr]
    await stage.check(oracle)


async def test_case_21_an_unknown_tool_is_an_error_result(oracle: Oracle):
    stage = Stage(agent("root", calls(call("nope", {"q": "a"})), text("sorry"), tools=[look]))
    run = await stage.say("hi")
    client = await stage.check(oracle)
    result = client["messages"][2]
    assert result["role"] == "tool"
    assert result["metadata"] == {"runcast": {"tool_name": "nope", "error": True}}
    assert texts(client)[-1] == ("assistant", "sorry")
    assert run[-1].outcome.type == "success"  # type: ignore[union-attr]


async def test_case_22_a_result_that_is_not_summarised_ends_the_run(oracle: Oracle):
    stage = Stage(agent("root", calls(call("quiet")), text("never"), tools=[quiet]))
    run = await stage.say("hi")
    assert texts(await stage.check(oracle))[-1] == ("tool", '{"shown":true}')
    assert run[-1].outcome.type == "success"  # type: ignore[union-attr]


async def test_case_23_a_big_result_is_cut_on_its_way_and_whole_in_the_session(oracle: Oracle):
    root = agent("root", calls(call("big", {"n": 300_000})), text("done"), tools=[big])
    stage = Stage(root, options=AdkOptions(max_result_length=2_000, messages_snapshot="end"))
    run = await stage.say("hi")
    assert len(json.dumps([wire(event) for event in run])) < 10_000
    client = await stage.check(oracle)
    assert client["messages"][2]["content"] == "x" * 1_997 + "..."
    session = await stage.session()
    assert session is not None
    held = [answer.response for event in session.events for answer in event.get_function_responses()]
    assert held == [{"result": "x" * 300_000}]


async def test_case_23_a_big_result_is_sent_once(oracle: Oracle):
    root = agent("root", calls(call("big", {"n": 300_000})), text("done"), tools=[big])
    stage = Stage(root)
    run = await stage.say("hi")
    assert json.dumps([wire(event) for event in run]).count("x" * 300_000) == 1
    await stage.check(oracle)
