"""Why a run goes on or stops: criteria with a meaning, at each model step and at the run's end."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.tools import LongRunningFunctionTool, request_input
from google.genai import types

from tests.adapters.adk.fakes import agent, call, calls, chunk, text, tokens
from tests.adapters.adk.stage import Stage
from tests.e2e.oracle import Oracle


def look(q: str = "") -> dict[str, Any]:
    """Look something up."""
    return {"found": q}


def ask(q: str = "") -> None:
    """Ask somebody, who takes a while."""


def decided(stage: Stage) -> list[list[tuple[str, str, str]]]:
    """The evaluations of each model step and of the end."""
    found = []
    for event in stage.runs[-1]:
        noted = (event.metadata or {}).get("runcast", {}).get("continuation")
        if noted is not None:
            found.append(
                [(it["criterion"], it["decision"], it["reason"]) for it in noted.get("evaluations", [])]
            )
    return found


async def test_pending_calls_continue_the_run():
    stage = Stage(agent("root", calls(call("look"), call("look")), text("done"), tools=[look]))
    await stage.say("hi")
    assert decided(stage) == [[("calls_pending", "continue", "look, look")], [], []]


async def test_a_question_stops_it():
    tools = [look, LongRunningFunctionTool(ask)]
    stage = Stage(agent("root", calls(call("look"), call("ask")), text("done"), tools=tools))
    await stage.say("hi")
    assert decided(stage)[0] == [("calls_pending", "continue", "look"), ("interrupt", "stop", "ask")]
    assert decided(stage)[-1] == [("interrupt", "stop", "tool")]


@pytest.mark.oracle
async def test_a_transfer_continues_it(oracle: Oracle):
    billing = agent("billing", text("paid"))
    root = agent("root", calls(call("transfer_to_agent", {"agent_name": "billing"})), sub_agents=[billing])
    stage = Stage(root)
    run = await stage.say("hi")
    await stage.check(oracle)
    assert run[-1].type.value == "RUN_FINISHED"
    assert decided(stage) == [[("transfer", "continue", "billing")], [], []]
    steps = [event for event in run if event.type.value == "STEP_FINISHED"]
    assert [(it.step_name, it.metadata["runcast"]["usage"]["total"]) for it in steps] == [
        ("root", 8),
        ("billing", 8),
    ]


@pytest.mark.oracle
async def test_a_question_alone_stops_it(oracle: Oracle):
    """A tool that waits, and one that a model itself asks by."""
    for tool, name in ((LongRunningFunctionTool(ask), "ask"), (request_input, "adk_request_input")):
        stage = Stage(agent("root", calls(call(name, {"message": "Which?"})), text("done"), tools=[tool]))
        run: Any = await stage.say("hi")
        await stage.check(oracle)
        step = next(event for event in run if event.type.value == "STEP_FINISHED")
        noted = step.metadata["runcast"]["continuation"]
        assert [it["reason"] for it in noted["evaluations"]] == [name]
        assert noted["should_continue"] is False


async def test_a_limit_stops_it():
    words = text("half an")
    stage = Stage(
        agent("root", [*words[:-1], chunk(*words[-1].candidates[0].content.parts, finish="MAX_TOKENS")])
    )
    await stage.say("hi")
    assert decided(stage)[0] == [("limit", "stop", "max_tokens")]
    stage = Stage(agent("root", calls(call("look")), tools=[look]))
    run: Any = await stage.say("hi")
    assert run[-1].code == "recursion_limit"
    assert decided(stage)[-1] == [("limit", "stop", "recursion_limit")]


async def test_tokens_are_noted_where_the_provider_streams_them():
    """A partial event has the tokens so far, thoughts included."""
    pieces = [chunk(types.Part(text=it), finish="STOP" if it == "c" else None) for it in "abc"]
    pieces[0].usage_metadata = tokens(candidates_token_count=1, thoughts_token_count=4)
    pieces[1].usage_metadata = tokens(candidates_token_count=2, thoughts_token_count=4)
    run = await Stage(agent("root", pieces)).say("hi")
    noted = [it.metadata for it in run if it.type.value == "TEXT_MESSAGE_CONTENT"]
    assert noted == [
        {"runcast": {"usage": {"completion": 5}}},
        {"runcast": {"usage": {"completion": 6}}},
        None,
    ]
