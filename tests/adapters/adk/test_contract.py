"""The stories and refusals that every framework shares, played on ADK."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from ag_ui.core import RunAgentInput, ToolMessage, UserMessage
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.adk.workflow import START, Workflow
from google.genai import types

from runcast.adapters.adk import AdkOptions
from tests.adapters.adk.fakes import agent, call, calls, chunk, text, thinks, turn
from tests.adapters.adk.stage import Stage, kinds, strict
from tests.adapters.contract import BEGIN, REFUSALS, STORIES, TEXT, told


def look(q: str = "") -> dict[str, Any]:
    """Look something up."""
    return {"found": q}


def ask(q: str = "") -> None:
    """Ask somebody, who takes a while."""


def route(node_input: Any) -> str:
    return "there"


async def says(*script: Any, **given: Any) -> Stage:
    stage = Stage(agent("root", *script, **given))
    await stage.say("hi")
    return stage


async def approved() -> Stage:
    stage = await says(
        calls(call("look")), text("do", "ne"), tools=[FunctionTool(look, require_confirmation=True)]
    )
    await stage.answer({stage.interrupts[0].id: True})
    return stage


async def answered() -> Stage:
    stage = await says(calls(call("ask")), text("do", "ne"), tools=[LongRunningFunctionTool(ask)])
    await stage.answer({stage.interrupts[0].id: "yes"})
    return stage


async def cancelled() -> Stage:
    stage = Stage(agent("root", text(*["x "] * 50), pace=0.005))
    it = RunAgentInput(thread_id="t1", run_id="r1", messages=[UserMessage(id="u", content="hi")])
    events = []
    async for event in stage.adapter.run(it):
        events.append(event)
        if kinds(events).count("TEXT_MESSAGE_CONTENT") == 2 and kinds(events)[-1] == "TEXT_MESSAGE_CONTENT":
            await stage.adapter.stop("r1", hard=True)
    stage.runs.append(events)
    return stage


async def handed_over() -> Stage:
    stage = Stage(Workflow(name="wf", edges=[(START, route, agent("leaf", text("an", "swer")))]))
    await stage.say("hi")
    return stage


PLAYED: dict[str, list[Callable[[], Awaitable[Stage]]]] = {
    "text": [lambda: says(text("Hel", "lo"))],
    "tool": [lambda: says(calls(call("look")), text("do", "ne"), tools=[look])],
    "text and tool": [
        lambda: says(turn(types.Part(text="well"), call("look")), text("do", "ne"), tools=[look])
    ],
    "parallel tools": [lambda: says(calls(call("look"), call("look")), text("do", "ne"), tools=[look])],
    "thought then answer": [lambda: says(thinks(("h", "m"), "an", "swer"))],
    "interrupt and resume": [approved, answered],
    "error in mid text": [lambda: says([chunk(types.Part(text="half ")), ValueError("gone")])],
    "cancel": [cancelled],
    "subagent": [handed_over],
}


# A workflow's node that is an agent has that agent's steps, and none beside them.
AGENT_NODE = [
    *(*BEGIN, "STEP_FINISHED", "SUBAGENT_STARTED", "STEP_STARTED", *TEXT),
    *("STEP_FINISHED", "SUBAGENT_FINISHED", "RUN_FINISHED"),
]
EXPECTED = {**STORIES, "subagent": [AGENT_NODE]}


@pytest.mark.parametrize("story", STORIES)
async def test_a_story_is_told_as_by_every_framework(story: str):
    for play in PLAYED[story]:
        stage = await play()
        for events in stage.runs:
            strict(events)
        assert [told(kinds(events)) for events in stage.runs] == EXPECTED[story]


async def send(stage: Stage, wrong: str, waiting: str) -> Any:
    match wrong:
        case "answered twice":
            return await stage.answer({waiting: 1}, cancel=[waiting])
        case "new message":
            return await stage.say("never mind")
        case "unknown call":
            return await stage.send([ToolMessage(id="tm", tool_call_id="nope", content="x")])
        case "unknown role":
            strange = UserMessage.model_construct(id="m", role="wizard", content="hi")
            it = RunAgentInput.model_construct(thread_id="t1", run_id="r9", messages=[strange])
            return [event async for event in stage.adapter.run(it)]
        case _:
            return await stage.answer({"nope" if wrong == "unknown question" else waiting: 1})


@pytest.mark.parametrize("wrong", REFUSALS)
async def test_wrong_input_is_refused_as_by_every_framework(wrong: str):
    ttl = -1 if wrong == "too late" else None
    options = AdkOptions(on_new_message="refuse", interrupt_ttl=ttl)
    script = [text("fine")] if wrong == "no question" else [calls(call("ask")), text("done")]
    stage = Stage(agent("root", *script, tools=[LongRunningFunctionTool(ask)]), options=options)
    await stage.say("hi")
    waiting = stage.interrupts[0].id if stage.interrupts else "nope"
    run = await send(stage, wrong, waiting)
    last: Any = run[-1]
    assert (last.code, last.message) == ("invalid_input", REFUSALS[wrong].format(waiting=waiting))
