"""An agent whose middleware keeps addresses from its streams: none reaches a watcher, by any door and over both streams."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest
from ag_ui.core import Event
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
)
from langchain.agents.middleware.types import AgentState
from langchain_core.callbacks import adispatch_custom_event
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.warnings import LangGraphDeprecatedSinceV10
from langgraph_supervisor import create_supervisor

from runcast.adapters.langgraph import LangGraphOptions
from runcast.adapters.langgraph.intake.messages import to_agui
from runcast.adapters.langgraph.options import Stream
from runcast.adapters.langgraph.running.stream_rewriting import REFUSED, rewriting
from tests.adapters.harness import torn_at_every_event
from tests.adapters.langgraph.fakes import calls, piece, say
from tests.adapters.langgraph.stage import dumped, over_both_streams, said
from tests.adapters.langgraph.wide.book import Act, Scene, Steady, WideStage
from tests.e2e.oracle import Oracle

pytestmark = pytest.mark.oracle

ADDRESS = "joe@example.com"
PIECES = ("write to jo", "e@exam", "ple.com and wait ", "for the answer " * 20, "or ask jo", "e@example.com")
FINDING = calls(piece("find", '{"name":"joe@example.com"}', "c1"), content=f"I ask {ADDRESS}")


class Notes(AgentMiddleware[Any, Any, Any]):
    """Keeps what it reads in a channel that clients see."""

    class State(AgentState[Any]):
        note: str
        found: dict[str, list[str]]

    state_schema = State

    def after_model(self, state: Any, runtime: Any) -> Any:
        return {"note": f"for {ADDRESS}", "found": {"people": [ADDRESS] * len(state["messages"])}}


@tool
async def find(name: str) -> str:
    """Find somebody."""
    get_stream_writer()({"found": ADDRESS})
    await adispatch_custom_event("found", {"address": ADDRESS})
    return f"{name} is {ADDRESS}"


@tool
async def lose(name: str) -> str:
    """Fail."""
    raise KeyError(ADDRESS)


@tool
async def delegate(name: str) -> str:
    """Ask another agent, that redacts nothing."""
    helper = create_agent(Steady(turns=[[FINDING], say(*PIECES)]), [find], name="helper")
    answer = await helper.ainvoke({"messages": [("user", f"who is {name}?")]})
    return str(answer["messages"][-1].text)


def agent(*turns: Any, middleware: Any = (), **rule: Any) -> Any:
    rule = rule or {"apply_to_output": True}
    return create_agent(
        Steady(turns=list(turns)),
        [find, lose, delegate],
        name="boss",
        middleware=[PIIMiddleware("email", **rule), Notes(), *middleware],
        checkpointer=InMemorySaver(),
    )


def asking() -> Any:
    return agent([FINDING], say(*PIECES), middleware=[HumanInTheLoopMiddleware({"find": True})])


def losing() -> Any:
    return agent([calls(piece("lose", '{"name":"joe@example.com"}', "c1"))], say(*PIECES))


def delegating() -> Any:
    return agent([calls(piece("delegate", '{"name":"joe@example.com"}', "c1"))], say(*PIECES))


SAID = (f"I am {ADDRESS}", "and again")
SCENES = {
    "an answer": Scene(lambda: agent(say(*PIECES)), SAID),
    "a tool": Scene(lambda: agent([FINDING], say(*PIECES)), SAID),
    "results of tools alone": Scene(lambda: agent([FINDING], say("done"), apply_to_tool_results=True), SAID),
    "the input as it is": Scene(
        lambda: agent([FINDING], say("done"), apply_to_input=False, apply_to_output=True), SAID
    ),
    "a mask": Scene(lambda: agent([FINDING], say(*PIECES), apply_to_output=True, strategy="mask"), SAID),
    "a hash": Scene(lambda: agent([FINDING], say(*PIECES), apply_to_output=True, strategy="hash"), SAID),
    "a question": Scene(asking, (SAID[0], "yes", "again"), {"decisions": [{"type": "approve"}]}),
    "a question let go": Scene(asking, (SAID[0], Act.INSTEAD, "again"), {"decisions": [{"type": "approve"}]}),
    "a tool that fails": Scene(losing, SAID[:1]),
    "another agent in a tool": Scene(delegating, SAID),
    "an edit": Scene(lambda: agent([FINDING], say(*PIECES)), (*SAID, Act.EDIT)),
    "an answer again": Scene(lambda: agent([FINDING], say(*PIECES)), (*SAID, Act.AGAIN)),
}


def opened(scene: Scene, oracle: Oracle, stream: Stream, *, raw: bool = False) -> WideStage:
    stage = WideStage(oracle, stream=stream)
    stage.decision, stage.checks = scene.decision, False
    stage.play(scene.make(), options=LangGraphOptions(), raw=raw)
    return stage


def lines(events: list[Event]) -> list[str]:
    """The events that show the address."""
    every = [event.model_dump_json(by_alias=True) for event in events]
    return [line for line in every if "example.com" in line]


def redacted(messages: Any) -> Any:
    return json.loads(json.dumps(messages).replace(ADDRESS, "[REDACTED_EMAIL]"))


@over_both_streams
@pytest.mark.parametrize("name", SCENES)
async def test_no_address_leaves_a_run(oracle: Oracle, name: str, stream: Stream) -> None:
    for raw in (False, True):
        stage = opened(SCENES[name], oracle, stream, raw=raw)
        for words in SCENES[name].turns:
            await stage.turn(words)
            assert lines(stage.runs[-1]) == []
        stage.judge(oracle)


@over_both_streams
@pytest.mark.parametrize("name", ["a tool", "an answer", "results of tools alone"])
async def test_the_view_is_the_graph_s_as_its_stream_shows_it(
    oracle: Oracle, name: str, stream: Stream
) -> None:
    stage = opened(SCENES[name], oracle, stream)
    for words in SCENES[name].turns:
        await stage.turn(words)
        assert stage.view["state"]["note"] == "for [REDACTED_EMAIL]"
    found = (await stage.graph.aget_state({"configurable": {"thread_id": stage.thread}})).values
    assert said(stage.view["messages"]) == said(redacted(dumped(to_agui(found["messages"]))))


@pytest.mark.parametrize("name", ["a tool", "a question", "another agent in a tool"])
async def test_no_address_leaves_a_run_that_is_torn(oracle: Oracle, name: str) -> None:
    scene = SCENES[name]

    def open_it() -> WideStage:
        return opened(scene, oracle, "v2")

    async def end(stage: WideStage, oracle: Oracle) -> Any:
        stage.judge(oracle)
        assert [line for run in stage.runs for line in lines(run)] == []
        return [each[1:3] for each in said(stage.client(oracle)["messages"])]

    await torn_at_every_event(open_it, scene.turns, end, oracle)


def team() -> Any:
    """A supervisor of two, of whom one redacts; all they say comes to the state of the graph."""
    pii = PIIMiddleware("email", apply_to_output=True)
    alice = create_agent(
        Steady(turns=[say("x"), [FINDING], say(*PIECES)]), [find], name="alice", middleware=[pii]
    )
    bob = create_agent(
        Steady(turns=[say("x"), [FINDING], say("bob is ", "joe@bob.example")]), [find], name="bob"
    )
    to_alice = [calls(piece("transfer_to_alice", "{}", "h1"))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LangGraphDeprecatedSinceV10)
        built = create_supervisor(
            [alice, bob], model=Steady(turns=[to_alice, say("all done")]), output_mode="full_history"
        )
    return built.compile(checkpointer=InMemorySaver())


@over_both_streams
async def test_an_agent_inside_shows_no_address_in_its_calls_either(oracle: Oracle, stream: Stream) -> None:
    stage = opened(Scene(team), oracle, stream)
    for words in ("hi", "again"):
        await stage.turn(words)
        assert lines(stage.runs[-1]) == []
    stage.judge(oracle)


def test_a_text_that_middleware_refuses_is_withheld() -> None:
    rewrite = rewriting(agent(say("x"), apply_to_output=True, strategy="block"))
    assert rewrite is not None
    assert (rewrite("nothing"), rewrite(""), rewrite(f"to {ADDRESS}")) == ("nothing", "", REFUSED)


def test_a_graph_whose_middleware_rewrites_no_stream_is_shown_as_it_is() -> None:
    assert rewriting(agent(say("x"), apply_to_input=True)) is None
    summary = SummarizationMiddleware(Steady(turns=[say("x")]), trigger=("messages", 4))
    assert rewriting(create_agent(Steady(turns=[say("x")]), [], middleware=[summary])) is None
