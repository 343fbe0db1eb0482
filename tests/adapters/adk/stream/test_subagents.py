"""Many agents: attribution, parallel branches, workflows (cases 37 to 41)."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.agents import LoopAgent, ParallelAgent, SequentialAgent
from google.adk.workflow import START, JoinNode, Workflow
from google.genai import types

from runcast.adapters.adk import AdkOptions
from tests.adapters.adk.fakes import agent, call, calls, text, thinks, turn
from tests.adapters.adk.stage import Stage, kinds, texts, wire
from tests.e2e.oracle import Oracle

pytestmark = pytest.mark.oracle


def look(q: str = "") -> dict[str, Any]:
    """Look something up."""
    return {"found": q}


def of(events: Any, kind: str) -> list[dict[str, Any]]:
    return [wire(event) for event in events if event.type.value == kind]


async def test_case_37_parallel_agents_keep_their_messages_apart(oracle: Oracle):
    def worker(name: str) -> Any:
        asks = turn(types.Part(text=f"{name} plan", thought=True), call("look", {"q": name}))
        return agent(
            name, asks, thinks((f"{name} ", "hm"), f"{name}1 ", f"{name}2 ", f"{name}3"), tools=[look]
        )

    stage = Stage(ParallelAgent(name="par", sub_agents=[worker("a"), worker("b")]))
    run = await stage.say("go")
    client = await stage.check(oracle, ordered=False)
    for name in "ab":
        (started,) = [it for it in of(run, "SUBAGENT_STARTED") if it["name"] == name]
        mine = [it for it in client["messages"] if it.get("subagentRunId") == started["subagentRunId"]]
        assert [(it["role"], it.get("content", "")) for it in mine] == [
            ("reasoning", f"{name} plan"),
            ("assistant", ""),
            ("tool", f'{{"found":"{name}"}}'),
            ("reasoning", f"{name} hm"),
            ("assistant", f"{name}1 {name}2 {name}3"),
        ]
    deltas = [it["delta"] for it in of(run, "TEXT_MESSAGE_CONTENT")]
    assert deltas != sorted(deltas)  # they did speak at the same time


async def test_case_38_a_fan_out_and_its_join(oracle: Oracle):
    def join_up(node_input: Any) -> dict[str, Any]:
        return {"joined": sorted(node_input)}

    graph = [(START, (agent("a", text("a", "a")), agent("b", text("bb"))), JoinNode(name="join"), join_up)]
    for resumable in (True, False):
        stage = Stage(Workflow(name="wf", edges=graph), resumable=resumable)
        run = await stage.say("go")
        client = await stage.check(oracle, ordered=False)
        assert sorted(words for _, words in texts(client)[1:]) == ["aa", "bb"]
        assert sorted(it["name"] for it in of(run, "SUBAGENT_STARTED")) == ["a", "b"]
        steps = [it["stepName"] for it in of(run, "STEP_STARTED")]
        assert {"a", "b", "join", "join_up"} <= set(steps)
        assert steps.count("join") == steps.count("join_up") == 1
        assert run[-1].result == {"joined": ["a", "b"]}  # type: ignore[union-attr]


async def test_case_39_a_transfer_is_hidden_and_its_text_attributed(oracle: Oracle):
    moves = calls(call("transfer_to_agent", {"agent_name": "billing"}))
    billing = agent("billing", text("bill", "ing"), description="Bills people")
    stage = Stage(agent("root", moves, text("never"), sub_agents=[billing]))
    run = await stage.say("hi")
    client = await stage.check(oracle)
    assert texts(client) == [("user", "hi"), ("assistant", "billing")]
    assert "TOOL_CALL_START" not in kinds(run)
    (started,) = of(run, "SUBAGENT_STARTED")
    assert (started["name"], started["description"]) == ("billing", "Bills people")
    assert client["messages"][1]["subagentRunId"] == started["subagentRunId"]
    await stage.say("again")
    assert texts(await stage.check(oracle))[2:] == [("user", "again"), ("assistant", "billing")]


async def test_case_39_there_and_back_again(oracle: Oracle):
    there = calls(call("transfer_to_agent", {"agent_name": "billing"}))
    back = calls(call("transfer_to_agent", {"agent_name": "root"}))
    billing = agent(
        "billing",
        [
            *text("one moment")[:-1],
            *turn(types.Part(text="one moment"), back[0].candidates[0].content.parts[0]),
        ],
    )
    stage = Stage(agent("root", there, text("I am back"), sub_agents=[billing]))
    run = await stage.say("hi")
    client = await stage.check(oracle)
    assert texts(client)[1:] == [("assistant", "one moment"), ("assistant", "I am back")]
    assert "subagentRunId" not in client["messages"][2]
    assert kinds(run).index("SUBAGENT_FINISHED") < len(run) - 4


@pytest.mark.parametrize("resumable", [True, False], ids=["resumable", "plain"])
@pytest.mark.parametrize("options", [AdkOptions(), AdkOptions(streaming="none")], ids=["sse", "none"])
async def test_case_40_every_round_of_a_loop_is_a_subagent_of_its_own(
    oracle: Oracle, resumable: bool, options: AdkOptions
):
    inner = [
        agent("a", text("a")),
        agent("b", calls(call("look")), text("b"), calls(call("look")), text("b"), tools=[look]),
    ]
    stage = Stage(
        LoopAgent(name="loop", max_iterations=2, sub_agents=inner), resumable=resumable, options=options
    )
    run = await stage.say("go")
    started = of(run, "SUBAGENT_STARTED")
    assert [it["name"] for it in started] == ["a", "b", "a", "b"]
    assert len({it["subagentRunId"] for it in started}) == 4
    client = await stage.check(oracle)
    owners = [it["subagentRunId"] for it in client["messages"] if it.get("content") in ("a", "b")]
    assert owners == [it["subagentRunId"] for it in started]


async def test_case_40_a_lone_agent_in_a_loop_starts_anew_each_round(oracle: Oracle):
    stage = Stage(
        LoopAgent(name="loop", max_iterations=3, sub_agents=[agent("a", text("a"))]), resumable=False
    )
    run = await stage.say("go")
    assert len({it["subagentRunId"] for it in of(run, "SUBAGENT_STARTED")}) == 3
    await stage.check(oracle)


async def test_case_41_a_node_that_gives_output_and_no_content(oracle: Oracle):
    def double(node_input: Any) -> dict[str, Any]:
        return {"n": 2, "odd": None}

    stage = Stage(Workflow(name="wf", edges=[(START, double)]), resumable=False)
    run = await stage.say("go")
    assert kinds(run) == ["RUN_STARTED", "STEP_STARTED", "STEP_FINISHED", "CUSTOM", "RUN_FINISHED"]
    (said,) = of(run, "CUSTOM")
    assert (said["name"], said["value"]) == (
        "adk.output",
        {"node": "double", "output": {"n": 2, "odd": None}},
    )
    assert run[-1].result == {"n": 2, "odd": None}  # type: ignore[union-attr]
    await stage.check(oracle)


async def test_agents_in_sequences_are_told_with_their_steps(oracle: Oracle):
    inner = SequentialAgent(name="inner", sub_agents=[agent("b", text("b")), agent("c", text("c"))])
    stage = Stage(SequentialAgent(name="outer", sub_agents=[agent("a", text("a")), inner]))
    run = await stage.say("go")
    assert [it["name"] for it in of(run, "SUBAGENT_STARTED")] == ["a", "b", "c"]
    numbers = [it["metadata"]["runcast"]["step_number"] for it in of(run, "STEP_STARTED")]
    assert numbers == [1, 2, 3]
    assert run[-1].metadata["runcast"]["step_count"] == 3  # type: ignore[index]
    await stage.check(oracle)
