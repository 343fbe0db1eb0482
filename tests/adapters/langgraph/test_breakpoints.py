"""No kill opens a gate: what a human must answer first does not run before, wherever the process dies.

Each gate guards a deed. The run is torn at every event before the answer, and resumed from its log without one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ag_ui.core import ResumeEntry, RunAgentInput, UserMessage
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt

from runcast.adapters.langgraph import LangGraphAdapter, LangGraphOptions
from runcast.adapters.langgraph.options import Stream
from tests.adapters.harness import asked
from tests.adapters.langgraph.fakes import calls, piece, say
from tests.adapters.langgraph.stage import over_both_streams
from tests.adapters.langgraph.wide.book import Steady, WideStage

pytestmark = pytest.mark.oracle

Deeds = list[str]


def chain(deeds: Deeds, **settings: Any) -> Any:
    """A node that speaks, and one that does the deed."""

    async def speak(state: Any) -> Any:
        return {"messages": [await Steady(turns=[say("shall ", "I?")]).ainvoke(state["messages"])]}

    async def do(state: Any) -> Any:
        deeds.append("done")
        return {"messages": [AIMessage("done")]}

    builder = StateGraph(MessagesState).add_node("speak", speak).add_node("do", do)
    return builder.add_edge(START, "speak").add_edge("speak", "do").add_edge("do", END).compile(**settings)


def before(deeds: Deeds) -> Any:
    return chain(deeds, interrupt_before=["do"], checkpointer=InMemorySaver())


def behind(deeds: Deeds) -> Any:
    return chain(deeds, interrupt_after=["speak"], checkpointer=InMemorySaver())


def everywhere(deeds: Deeds) -> Any:
    return chain(deeds, interrupt_after="*", checkpointer=InMemorySaver())


def around(inner: Any) -> Any:
    """A graph around a graph around this one."""
    middle = StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner").compile()
    outer = StateGraph(MessagesState).add_node("middle", middle).add_edge(START, "middle")
    return outer.compile(checkpointer=InMemorySaver())


def before_inside(deeds: Deeds) -> Any:
    return around(chain(deeds, interrupt_before=["do"]))


def behind_inside(deeds: Deeds) -> Any:
    return around(chain(deeds, interrupt_after=["speak"]))


def inside_with_memory(deeds: Deeds) -> Any:
    return around(chain(deeds, interrupt_before=["do"], checkpointer=True))


def in_a_call(deeds: Deeds) -> Any:
    first, named = chain([]), {"inner": chain(deeds, interrupt_after=["speak"])}

    async def work(state: Any) -> Any:
        await first.ainvoke({"messages": [("user", "first")]})
        return {"messages": (await named["inner"].ainvoke({"messages": state["messages"]}))["messages"]}

    builder = StateGraph(MessagesState).add_node("work", work).add_edge(START, "work")
    return builder.compile(checkpointer=InMemorySaver())


def in_a_tool(deeds: Deeds) -> Any:
    inner = chain(deeds, interrupt_before=["do"])

    @tool
    async def delegate() -> str:
        """Do it elsewhere."""
        return str((await inner.ainvoke({"messages": [("user", "do it")]}))["messages"][-1].text)

    model = Steady(turns=[[calls(piece("delegate", "{}", "c1"))], say("so it ", "is")])
    return create_agent(model, [delegate], checkpointer=InMemorySaver())


def question(deeds: Deeds) -> Any:
    async def ask(state: Any) -> Any:
        interrupt("really?")
        return {}

    builder = StateGraph(MessagesState).add_node("ask", ask).add_node("chain", chain(deeds))
    return builder.add_edge(START, "ask").add_edge("ask", "chain").compile(checkpointer=InMemorySaver())


def beside_a_question(deeds: Deeds) -> Any:
    """LangGraph names the question alone, and any answer to it goes past the breakpoint."""

    async def ask(state: Any) -> Any:
        interrupt("really?")
        return {}

    inner = chain(deeds, interrupt_before=["do"])
    builder = StateGraph(MessagesState).add_node("ask", ask).add_node("chain", inner)
    return builder.add_edge(START, "ask").add_edge(START, "chain").compile(checkpointer=InMemorySaver())


def approval(deeds: Deeds) -> Any:
    @tool
    def do() -> str:
        """Do it."""
        deeds.append("done")
        return "done"

    model = Steady(turns=[[calls(piece("do", "{}", "c1"), content="I do it")], say("so it ", "is")])
    asks = [HumanInTheLoopMiddleware(interrupt_on={"do": True})]
    return create_agent(model, [do], middleware=asks, checkpointer=InMemorySaver())


GATES = (
    before,
    behind,
    everywhere,
    before_inside,
    behind_inside,
    inside_with_memory,
    in_a_call,
    in_a_tool,
    question,
    beside_a_question,
    approval,
)
over_gates = pytest.mark.parametrize("gate", GATES)
Gate = Callable[[Deeds], Any]


def opened(gate: Gate, stream: Stream, oracle: Any) -> tuple[WideStage, Deeds]:
    deeds: Deeds = []
    stage = WideStage(oracle, stream=stream)
    stage.play(gate(deeds))
    stage.decision = {"decisions": [{"type": "approve"}]}
    return stage, deeds


@over_both_streams
@over_gates
async def test_a_kill_before_the_answer_leaves_the_gate_shut(oracle: Any, gate: Gate, stream: Stream):
    whole, _ = opened(gate, stream, oracle)
    for until in range(1, len(await whole.turn("hi"))):
        stage, deeds = opened(gate, stream, oracle)
        stage.until = until
        await stage.turn("hi")
        await stage.go_on()
        for _ in range(2):  # asked again, however often it is only resumed
            assert stage.interrupts, f"passed after {until} events"
            assert deeds == [], f"done without an answer after {until} events"
            await stage.send()
        stage.judge(oracle)
        while stage.interrupts:
            await stage.turn("yes")
        assert deeds == ["done"]
        await stage.holds()


@over_both_streams
@over_gates
async def test_what_is_torn_after_the_answer_ends_the_same(oracle: Any, gate: Gate, stream: Stream):
    whole, _ = opened(gate, stream, oracle)
    await whole.turn("hi")
    for until in range(1, len(await whole.turn("yes"))):
        stage, deeds = opened(gate, stream, oracle)
        await stage.turn("hi")
        stage.until = until
        await stage.turn("yes")
        await stage.go_on()
        while stage.interrupts:  # the answer was lost with its process
            await stage.turn("yes")
        assert "done" in deeds
        await stage.holds()


@over_both_streams
async def test_a_question_is_not_answered_without_the_breakpoint_beside_it(oracle: Any, stream: Stream):
    stage, deeds = opened(beside_a_question, stream, oracle)
    await stage.turn("hi")
    question, gate = stage.interrupts
    assert (question.message, gate.reason) == ("really?", "breakpoint")
    refused = await stage.answer((question.id, True))
    assert "go past 'breakpoint:" in refused[-1].message
    assert deeds == []
    asked_again = asked(await stage.answer((gate.id, True)))
    assert [each.message for each in asked_again] == ["really?"]
    await stage.turn("yes")
    assert deeds == ["done"]


@over_both_streams
async def test_two_breakpoints_in_one_subgraph_are_two_questions(oracle: Any, stream: Stream):
    stage, deeds = opened(lambda deeds: around(chain(deeds, interrupt_before="*")), stream, oracle)
    first = asked(await stage.turn("hi"))
    second = asked(await stage.turn("yes"))
    assert deeds == []
    assert [each.reason for each in (*first, *second)] == ["breakpoint", "breakpoint"]
    assert first[0].id != second[0].id
    await stage.turn("yes")
    assert deeds == ["done"]


@over_both_streams
async def test_a_breakpoint_behind_the_last_step_is_no_question(oracle: Any, stream: Stream):
    """LangGraph names it, and has nothing left that an answer could continue."""
    last = {"interrupt_after": ["do"], "checkpointer": InMemorySaver()}
    stage, deeds = opened(lambda deeds: chain(deeds, **last), stream, oracle)
    for words in ("hi", "again"):
        assert asked(await stage.turn(words)) == []
        await stage.holds()
    assert deeds == ["done", "done"]


async def test_a_breakpoint_is_not_asked_again_when_its_step_has_begun(oracle: Any):
    def agent(deeds: Deeds) -> Any:
        @tool
        def do() -> str:
            """Do it."""
            deeds.append("done")
            return "done"

        model = Steady(turns=[[calls(piece("do", "{}", "c1"))], say("so it ", "is")])
        return create_agent(model, [do], interrupt_before=["tools"], checkpointer=InMemorySaver())

    whole, _ = opened(agent, "v2", oracle)
    await whole.turn("hi")
    returned = 0
    for until in range(1, len(await whole.turn("yes"))):
        stage, deeds = opened(agent, "v2", oracle)
        await stage.turn("hi")
        stage.until = until
        await stage.turn("yes")
        torn = await stage.graph.aget_state({"configurable": {"thread_id": stage.thread}})
        await stage.go_on()
        if any(task.result for task in torn.tasks):  # the step is not stored, but what its task returned
            returned += 1
            assert stage.interrupts == []
            assert deeds == ["done"]
            await stage.holds()
    assert returned


@over_both_streams
@pytest.mark.parametrize("at", [{"interrupt_before": ["do"]}, {"interrupt_after": ["speak"]}])
def test_a_run_without_an_event_loop_is_asked_again_too(at: dict[str, Any], stream: Stream):
    deeds: Deeds = []

    def do(state: Any) -> Any:
        deeds.append("done")
        return {}

    builder = StateGraph(MessagesState).add_node("speak", lambda state: {"messages": [AIMessage("I?")]})
    builder.add_node("do", do).add_edge(START, "speak").add_edge("speak", "do")
    graph = builder.compile(checkpointer=InMemorySaver(), **at)
    adapter = LangGraphAdapter(graph, options=LangGraphOptions(stream=stream))
    hello = UserMessage(id="u1", content="hi")
    first, *again = (
        list(adapter.run_sync(RunAgentInput(thread_id="t", run_id=run, messages=messages)))
        for run, messages in (("r1", [hello]), ("r2", []), ("r3", []))
    )
    for events in again:
        assert asked(events) == asked(first) != []
        assert deeds == []
    answer = [ResumeEntry(interrupt_id=asked(first)[0].id, status="resolved", payload=True)]
    list(adapter.run_sync(RunAgentInput(thread_id="t", run_id="r4", messages=[], resume=answer)))
    assert deeds == ["done"]
