"""Agents that others build: supervisors, swarms and deepagents, with their real packages."""

from __future__ import annotations

import warnings
from typing import Any

from ag_ui.core import Event, SubagentStartedEvent
from deepagents import create_deep_agent
from deepagents.backends import StateBackend
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.warnings import LangGraphDeprecatedSinceV10
from langgraph_supervisor import create_supervisor
from langgraph_swarm import create_handoff_tool, create_swarm

from tests.adapters.langgraph.fakes import StreamingModel, calls, piece, say
from tests.adapters.langgraph.scenes.book import agent, scene
from tests.adapters.langgraph.stage import Stage

SECRET = "what AGENTS.md keeps to itself"


def steps(events: list[Event]) -> list[str]:
    return [
        event.step_name for event in events if event.type == "STEP_STARTED" and event.subagent_run_id is None
    ]


def subagents(events: list[Event]) -> list[str]:
    return [event.name for event in events if isinstance(event, SubagentStartedEvent)]


@scene("67_supervisor")
async def supervisor(stage: Stage) -> None:
    alice = agent(say("al", "pha"), name="alice", checkpointer=None)
    handoff = [calls(piece("transfer_to_alice", "{}", "h1"))]
    boss = StreamingModel(turns=[handoff, say("all ", "done"), say("nothing more")])
    with warnings.catch_warnings():  # the package calls what LangGraph has moved
        warnings.simplefilter("ignore", LangGraphDeprecatedSinceV10)
        graph = create_supervisor([alice], model=boss)
    stage.play(graph.compile(checkpointer=InMemorySaver()))
    events = await stage.send("hi")
    assert steps(events) == ["supervisor", "alice", "supervisor"]
    assert subagents(events) == ["alice"]
    await stage.holds()
    assert steps(await stage.send("again")) == ["supervisor"]
    await stage.holds()


@scene("67_swarm")
async def swarm(stage: Stage) -> None:
    handoff = [calls(piece("transfer_to_bob", "{}", "s1"))]
    alice = create_agent(
        StreamingModel(turns=[handoff]), [create_handoff_tool(agent_name="bob")], name="alice"
    )
    bob = create_agent(StreamingModel(turns=[say("I am ", "bob"), say("still bob")]), [], name="bob")
    stage.play(create_swarm([alice, bob], default_active_agent="alice").compile(checkpointer=InMemorySaver()))
    events = await stage.send("hi")
    assert (steps(events), subagents(events)) == (["alice", "bob"], ["alice", "bob"])
    await stage.holds()
    assert subagents(await stage.send("again")) == ["bob"]
    await stage.holds()


def deep(*turns: Any, **settings: Any) -> Any:
    model = StreamingModel(turns=list(turns))
    return create_deep_agent(model=model, checkpointer=InMemorySaver(), name="deep", **settings)


@scene("67_deep_agent_says_bye")
async def deep_bye(stage: Stage) -> None:
    stage.play(deep(say("bye")))
    events = await stage.send("hi")
    assert steps(events) == ["model"]
    assert len(events) == 8
    await stage.holds()


@scene("67_deep_agent_with_a_subagent")
async def deep_subagent(stage: Stage) -> None:
    helper = {
        "name": "helper",
        "description": "helps",
        "system_prompt": "x",
        "model": StreamingModel(turns=[say("sub ", "answer")]),
    }
    asked = [calls(piece("task", '{"description":"do","subagent_type":"helper"}', "t1"))]
    stage.play(deep(asked, say("final"), subagents=[helper]))
    events = await stage.send("hi")
    assert (steps(events), subagents(events)) == (["model", "tools", "model"], ["helper"])
    await stage.holds()


@scene("67_deep_agent_keeps_its_memory")
async def deep_memory(stage: Stage) -> None:
    written = [calls(piece("write_file", '{"file_path":"/plan.md","content":"a plan"}', "w1"))]
    graph = deep(written, say("done"), memory=["/AGENTS.md"], backend=StateBackend())
    stage.play(graph)
    await graph.aupdate_state(
        {"configurable": {"thread_id": "t"}}, {"memory_contents": {"/AGENTS.md": SECRET}}
    )
    events = await stage.send("hi")
    assert SECRET not in str([event.model_dump() for event in events])
    if stage.oracle:
        assert "/plan.md" in stage.view["state"]["files"]
    await stage.holds()
