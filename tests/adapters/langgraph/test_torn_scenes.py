"""What people build with middleware, deepagents, supervisors and swarms, killed after every event and gone on."""

from __future__ import annotations

import operator
import warnings
from typing import Annotated, Any

import pytest
from ag_ui.core import Event
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    ModelFallbackMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
)
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Send
from langgraph.warnings import LangGraphDeprecatedSinceV10
from langgraph_supervisor import create_supervisor
from langgraph_swarm import create_handoff_tool, create_swarm

from runcast.adapters.langgraph.intake.messages import to_agui
from runcast.adapters.langgraph.options import Stream
from tests.adapters.harness import torn_at_every_event
from tests.adapters.langgraph.fakes import calls, piece, say
from tests.adapters.langgraph.scenes.book import add
from tests.adapters.langgraph.stage import Stage, dumped, said
from tests.adapters.langgraph.wide.book import Scene, Steady
from tests.e2e.oracle import Oracle

pytestmark = pytest.mark.oracle


class TornStage(Stage):
    """A thread whose questions are answered with `decision`."""

    decision: Any = True

    async def turn(self, words: str) -> list[Event]:
        waiting = [(each.id, self.decision) for each in self.interrupts]
        return await (self.answer(*waiting) if waiting else self.send(words))


def steady(*turns: Any, tools: Any = (), **settings: Any) -> Any:
    settings.setdefault("checkpointer", InMemorySaver())
    settings.setdefault("name", "boss")
    return create_agent(Steady(turns=list(turns)), list(tools), **settings)


ADDING = [calls(piece("add", '{"a":1,"b":2}', "c1"))]


def approving() -> Any:
    return steady(
        ADDING,
        say("do", "ne"),
        say("more"),
        tools=[add],
        middleware=[HumanInTheLoopMiddleware({"add": True})],
    )


def decided(**decision: Any) -> Scene:
    return Scene(approving, ("hi", "yes", "again"), {"decisions": [decision]})


def summarising() -> Any:
    inner = Steady(turns=[say("a summary ", "of it all")])
    return steady(
        say("o", "ne"),
        say("two"),
        middleware=[SummarizationMiddleware(inner, trigger=("messages", 4), keep=("messages", 2))],
    )


def falling_back() -> Any:
    half = [*say("half ", "an"), RuntimeError("model down")]
    second = Steady(turns=[say("whole ", "answer"), say("next ", "answer")])
    return steady(half, middleware=[ModelFallbackMiddleware(second)])


def redacting() -> Any:
    mailing = [calls(piece("add", '{"a":1,"b":2}', "c1"), content="mail x@y.com")]
    return steady(
        mailing,
        say("write to ", "a@b.com"),
        say("do", "ne"),
        tools=[add],
        middleware=[PIIMiddleware("email", apply_to_output=True)],
    )


def deep() -> Any:
    helper: Any = {
        "name": "helper",
        "description": "helps",
        "system_prompt": "x",
        "model": Steady(turns=[say("sub ", "answer")]),
    }
    asked = [calls(piece("task", '{"description":"do","subagent_type":"helper"}', "t1"))]
    return create_deep_agent(
        model=Steady(turns=[asked, say("fin", "al"), say("bye")]),
        checkpointer=InMemorySaver(),
        name="deep",
        subagents=[helper],
    )


def supervised() -> Any:
    alice = steady(say("al", "pha"), name="alice", checkpointer=None)
    handoff = [calls(piece("transfer_to_alice", "{}", "h1"))]
    with warnings.catch_warnings():  # the package calls what LangGraph has moved
        warnings.simplefilter("ignore", LangGraphDeprecatedSinceV10)
        graph = create_supervisor([alice], model=Steady(turns=[handoff, say("all ", "done")]))
    return graph.compile(checkpointer=InMemorySaver())


def swarming() -> Any:
    handoff = [calls(piece("transfer_to_bob", "{}", "s1"))]
    alice = create_agent(Steady(turns=[handoff]), [create_handoff_tool(agent_name="bob")], name="alice")
    bob = create_agent(
        Steady(turns=[say("I am ", "bob"), say("I am ", "bob"), say("still bob")]), [], name="bob"
    )
    return create_swarm([alice, bob], default_active_agent="alice").compile(checkpointer=InMemorySaver())


def stateful() -> Any:
    inner = steady(say("fi", "rst"), say("second"), name="helper", checkpointer=True)

    @tool
    async def consult(question: str) -> str:
        """Ask the helper."""
        answer = await inner.ainvoke({"messages": [("user", question)]})
        return str(answer["messages"][-1].text)

    return steady(
        [calls(piece("consult", '{"question":"why?"}', "c1"))], say("do", "ne"), say("more"), tools=[consult]
    )


class Branches(MessagesState):
    done: Annotated[list[int], operator.add]


def branching() -> Any:
    model = Steady(turns=[say("a", "b")])

    async def work(values: Any) -> Any:
        return {"messages": [await model.ainvoke(values["messages"])], "done": [values["number"]]}

    def fan(values: Any) -> list[Send]:
        return [Send("work", {"messages": values["messages"][-1:], "number": number}) for number in range(2)]

    builder = StateGraph(Branches).add_node("work", work).add_conditional_edges(START, fan, ["work"])
    return builder.compile(checkpointer=InMemorySaver())


SCENES = {
    "an approval": decided(type="approve"),
    "a rejection": decided(type="reject", message="no"),
    "a summary": Scene(summarising, ("first", "second", "third")),
    "a fallback": Scene(falling_back),
    "a redaction": Scene(redacting),
    "a deep agent": Scene(deep),
    "a supervisor": Scene(supervised),
    "a swarm": Scene(swarming),
    "a stateful agent in a tool": Scene(stateful),
    "parallel branches": Scene(branching, ordered=False),
}


async def told(stage: Stage) -> list[tuple[Any, ...]]:
    """Role, text and calls of the graph's messages, which the client holds: ids are new in a run that goes on."""
    state = await stage.graph.aget_state({"configurable": {"thread_id": stage.thread}})
    found = said(dumped(to_agui(state.values["messages"])))
    return [(role, text, [call[1:] for call in calls]) for _, role, text, calls, _ in found]


@pytest.mark.parametrize(
    ("name", "stream"), [*((name, "v2") for name in SCENES), ("an approval", "v3"), ("a supervisor", "v3")]
)
async def test_a_run_that_is_torn_at_any_event_goes_on_to_the_same_end(
    oracle: Oracle, name: str, stream: Stream
):
    scene = SCENES[name]

    def opened() -> TornStage:
        stage = TornStage(oracle, stream=stream)
        stage.in_order, stage.decision = scene.ordered, scene.decision
        stage.play(scene.make())
        return stage

    async def end(stage: TornStage, oracle: Oracle) -> Any:
        stage.judge(oracle)
        stage.view = stage.client(oracle)
        await stage.holds()
        shown = await told(stage)
        if name == "a redaction":
            assert "@" not in str([event.model_dump() for run in stage.runs for event in run])
        return shown if scene.ordered else sorted(shown, key=str)

    await torn_at_every_event(opened, scene.turns, end, oracle)
