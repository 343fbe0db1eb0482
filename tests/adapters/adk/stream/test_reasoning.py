"""Thoughts: one reasoning message a model call, before what it leads to (cases 10 to 15)."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from google.genai import types
from pydantic import BaseModel

from runcast.adapters.adk import AdkOptions
from tests.adapters.adk.fakes import agent, call, calls, thinks, turn
from tests.adapters.adk.stage import Stage, brief, kinds, texts
from tests.e2e.oracle import Oracle

pytestmark = pytest.mark.oracle
MODES = pytest.mark.parametrize("options", [AdkOptions(), AdkOptions(streaming="none")], ids=["sse", "none"])
THOUGHT = ["REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT"]
THOUGHT_END = ["REASONING_MESSAGE_END", "REASONING_END"]
CALL = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"]


def look(q: str) -> dict[str, Any]:
    """Look something up."""
    return {"found": q}


def thought(words: str, signature: bytes | None = None) -> types.Part:
    return types.Part(text=words, thought=True, thought_signature=signature)


async def test_case_10_thoughts_come_once_and_before_the_text(oracle: Oracle):
    stage = Stage(agent("root", thinks(("let me ", "think"), "an", "swer")))
    run = await stage.say("hi")
    assert brief(run) == [
        *THOUGHT,
        "REASONING_MESSAGE_CONTENT",
        *THOUGHT_END,
        "TEXT_MESSAGE_START",
        *["TEXT_MESSAGE_CONTENT"] * 2,
        "TEXT_MESSAGE_END",
    ]
    client = await stage.check(oracle)
    assert texts(client) == [("user", "hi"), ("reasoning", "let me think"), ("assistant", "answer")]
    assert client["messages"][1]["id"] == client["messages"][2]["id"] + "-reasoning"


async def test_case_11_each_model_call_has_its_own_thoughts(oracle: Oracle):
    one = turn(thought("plan A"), call("look", {"q": "x"}))
    root = agent("root", one, thinks(("plan B",), "done"), tools=[look])
    stage = Stage(root)
    run = await stage.say("hi")
    assert brief(run)[:9] == [*THOUGHT, *THOUGHT_END, *CALL, "TOOL_CALL_RESULT"]
    said = [(role, words) for role, words in texts(await stage.check(oracle)) if role == "reasoning"]
    assert said == [("reasoning", "plan A"), ("reasoning", "plan B")]


async def test_case_12_the_same_when_answers_come_whole(oracle: Oracle):
    one = turn(thought("plan A"), call("look", {"q": "x"}))
    root = agent("root", one, thinks(("plan B",), "done"), tools=[look])
    stage = Stage(root, options=AdkOptions(streaming="none"))
    run = await stage.say("hi")
    assert brief(run)[:9] == [*THOUGHT, *THOUGHT_END, *CALL, "TOOL_CALL_RESULT"]
    said = [(role, words) for role, words in texts(await stage.check(oracle)) if role == "reasoning"]
    assert said == [("reasoning", "plan A"), ("reasoning", "plan B")]


@MODES
async def test_case_13_a_turn_of_thoughts_alone(oracle: Oracle, options: AdkOptions):
    stage = Stage(agent("root", turn(thought("only thinking"))), options=options)
    await stage.say("hi")
    assert texts(await stage.check(oracle)) == [("user", "hi"), ("reasoning", "only thinking")]


class Plan(BaseModel):
    """What the agent must answer with."""

    title: str


@MODES
async def test_case_14_structured_output_after_thoughts_leaves_nothing_open(
    oracle: Oracle, options: AdkOptions
):
    root = agent("root", thinks(("hm",), '{"title": ', '"x"}'), output_schema=Plan, output_key="plan")
    stage = Stage(root, options=options)
    run = await stage.say("hi")
    assert kinds(run)[-1] == "RUN_FINISHED"
    client = await stage.check(oracle)
    assert texts(client)[1:] == [("reasoning", "hm"), ("assistant", '{"title": "x"}')]
    assert client["state"] == {"plan": {"title": "x"}}


async def test_case_14_a_partial_thought_without_a_final_is_closed(oracle: Oracle):
    stage = Stage(agent("root", [*turn(thought("hm"))[:1], RuntimeError("gone")]))
    run = await stage.say("hi")
    assert brief(run) == [*THOUGHT, *THOUGHT_END, "RUN_ERROR"]
    await stage.check(oracle, stored=False)


@MODES
async def test_case_15_signatures_come_once_each_after_what_they_sign(oracle: Oracle, options: AdkOptions):
    one = calls(thought("plan", b"sig-1"), call("look", {"q": "x"}, thought_signature=b"sig-2"))
    last = turn(types.Part(text="done", thought_signature=b"sig-3"))
    stage = Stage(agent("root", one, last, tools=[look]), options=options)
    run = await stage.say("hi")
    signed = [event for event in run if event.type.value == "REASONING_ENCRYPTED_VALUE"]
    assert len(signed) == 3
    client = await stage.check(oracle)
    by_role = {it["role"]: it for it in client["messages"]}
    assert base64.b64decode(by_role["reasoning"]["encryptedValue"]) == b"sig-1"
    assert base64.b64decode(client["messages"][2]["toolCalls"][0]["encryptedValue"]) == b"sig-2"
    assert base64.b64decode(client["messages"][-1]["encryptedValue"]) == b"sig-3"


@pytest.mark.parametrize(("first", "role"), [("text", "assistant"), ("thought", "reasoning")])
async def test_case_15_a_signature_on_an_empty_last_part_signs_what_came_before(
    oracle: Oracle, first: str, role: str
):
    said = types.Part(text="words", thought=True if first == "thought" else None)
    stage = Stage(agent("root", turn(said, types.Part(text="", thought_signature=b"late"))))
    await stage.say("hi")
    message = (await stage.check(oracle))["messages"][1]
    assert message["role"] == role
    assert base64.b64decode(message["encryptedValue"]) == b"late"


async def test_a_thought_after_text_keeps_its_place(oracle: Oracle):
    parts = (types.Part(text="one "), thought("hm "), types.Part(text="two"), thought("aha"))
    for options in (AdkOptions(), AdkOptions(streaming="none")):
        stage = Stage(agent("root", turn(*parts)), options=options)
        await stage.say("hi")
        client = await stage.check(oracle)
        assert texts(client)[1:] == [("assistant", "one two"), ("reasoning", "hm aha")]
