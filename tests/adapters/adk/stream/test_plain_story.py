"""What ADK does for itself is not shown: code fences, control calls, blank thoughts, machine sentences, twin steps."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.agents import LoopAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.code_executors.base_code_executor import BaseCodeExecutor
from google.adk.code_executors.code_execution_utils import CodeExecutionInput, CodeExecutionResult
from google.adk.planners import PlanReActPlanner
from google.adk.tools import exit_loop
from google.adk.workflow import START, Workflow
from google.genai import types

from runcast.adapters.adk import AdkOptions
from tests.adapters.adk.fakes import agent, call, calls, text, turn
from tests.adapters.adk.stage import Stage, brief, kinds, texts
from tests.e2e.oracle import Oracle

pytestmark = pytest.mark.oracle


class Calculator(BaseCodeExecutor):
    """Runs no code, and knows the answer."""

    def execute_code(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        return CodeExecutionResult(stdout="42\n")


def look(q: str = "") -> dict[str, Any]:
    """Look something up."""
    return {"found": q}


CODE = "```python\nprint(6 * 7)\n```\n"


@pytest.mark.parametrize("streaming", ["sse", "none"])
@pytest.mark.parametrize("rounds", [1, 2])
async def test_case_66_executed_code_is_shown_once_and_as_it_is_stored(
    oracle: Oracle, streaming: Any, rounds: int
):
    script = [text("Let me compute.\n", CODE) for _ in range(rounds)]
    root = agent("root", *script, text("It is ", "42."), code_executor=Calculator())
    stage = Stage(root, options=AdkOptions(streaming=streaming))
    run = await stage.say("six times seven?")
    client = await stage.check(oracle)
    told = [("assistant", "Let me compute.\n"), ("tool", "Code execution result:\n42\n\n")]
    assert texts(client) == [("user", "six times seven?"), *told * rounds, ("assistant", "It is 42.")]
    assert client["state"] == {}
    assert kinds(run).count("MESSAGES_SNAPSHOT") == (rounds if streaming == "sse" else 0)
    assert kinds(run).count("STEP_STARTED") == 2 * rounds + 1
    last = kinds(run).index("TOOL_CALL_RESULT")
    assert "MESSAGES_SNAPSHOT" not in kinds(run)[last + 1 :] or rounds == 2  # at once, not at the end


async def test_case_66_a_call_of_another_branch_that_streams_is_left_alone(oracle: Oracle):
    from google.adk.agents import ParallelAgent

    coder = agent("coder", text("Now.\n", CODE), text("42"), code_executor=Calculator(), pace=0.002)
    talker = agent("talker", text(*["word "] * 20), pace=0.002)
    stage = Stage(ParallelAgent(name="both", sub_agents=[coder, talker]))
    await stage.say("go")
    await stage.check(oracle, ordered=False)


async def test_case_67_leaving_a_loop_is_no_tool_call(oracle: Oracle):
    critic = agent("critic", text("not yet"), calls(call("exit_loop")), tools=[exit_loop])
    stage = Stage(LoopAgent(name="loop", sub_agents=[critic], max_iterations=5))
    run = await stage.say("go")
    client = await stage.check(oracle)
    assert texts(client) == [("user", "go"), ("assistant", "not yet")]
    assert "TOOL_CALL_START" not in kinds(run)
    assert kinds(run).count("SUBAGENT_STARTED") == 1


async def test_case_67_leaving_a_loop_after_a_last_word(oracle: Oracle):
    critic = agent("critic", turn(types.Part(text="good"), call("exit_loop")), tools=[exit_loop])
    stage = Stage(LoopAgent(name="loop", sub_agents=[critic], max_iterations=5))
    await stage.say("go")
    assert texts(await stage.check(oracle)) == [("user", "go"), ("assistant", "good")]


@pytest.mark.parametrize("streaming", ["sse", "none"])
async def test_case_68_a_blank_thought_of_a_planner_is_not_shown(oracle: Oracle, streaming: Any):
    script = [
        turn(types.Part(text="/*ACTION*/\n"), types.Part(text="/*ACTION*/ \n"), call("look")),
        turn(types.Part(text="/*REASONING*/\n"), types.Part(text="/*FINAL_ANSWER*/ It is 42.")),
    ]
    root = agent("root", *script, planner=PlanReActPlanner(), tools=[look])
    stage = Stage(root, options=AdkOptions(streaming=streaming))
    run = await stage.say("go")
    client = await stage.check(oracle)
    assert [role for role, _ in texts(client)] == ["user", "assistant", "tool", "assistant"]
    assert not [kind for kind in kinds(run) if kind.startswith("REASONING")]


@pytest.mark.parametrize("streaming", ["sse", "none"])
async def test_case_68_a_plan_is_shown_with_its_first_visible_character(oracle: Oracle, streaming: Any):
    script = [
        turn(types.Part(text="/*PLANNING*/\n"), types.Part(text="/*PLANNING*/ 1. look\n"), types.Part(text="/*FINAL_ANSWER*/ done"))
    ]  # fmt: skip
    stage = Stage(agent("root", *script, planner=PlanReActPlanner()), options=AdkOptions(streaming=streaming))
    await stage.say("go")
    client = await stage.check(oracle)
    assert [(role, words.strip()) for role, words in texts(client)] == [
        ("user", "go"),
        ("reasoning", "1. look"),
        ("assistant", "done"),
    ]


async def test_case_69_a_node_that_is_an_agent_has_one_step(oracle: Oracle):
    def route(node_input: Any) -> str:
        return "there"

    leaf = agent("leaf", calls(call("look")), text("an", "swer"), tools=[look])
    stage = Stage(Workflow(name="wf", edges=[(START, route, leaf)]))
    run = await stage.say("go")
    await stage.check(oracle)
    steps = [(it.step_name, it.subagent_run_id is not None) for it in run if it.type.value == "STEP_STARTED"]  # type: ignore[union-attr]
    assert steps == [("route", False), ("leaf", True), ("tools", True), ("leaf", True)]
    assert brief(run)[0] == "SUBAGENT_STARTED"
    assert [it.name for it in stage.adapter.capabilities().multi_agent.subagents] == ["leaf"]  # type: ignore[union-attr]
