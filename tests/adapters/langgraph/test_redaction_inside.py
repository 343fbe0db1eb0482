"""An agent inside another graph whose middleware keeps addresses from its streams: however it is run, and by every door."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ag_ui.core import Event
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, PIIMiddleware
from langchain_core.messages import AIMessage, RemoveMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Send

from runcast.adapters.langgraph import LangGraphCallbacks, LangGraphOptions, to_agui
from runcast.adapters.langgraph.options import Stream, Subagents
from runcast.adapters.langgraph.running.stream_rewriting import rewriting
from runcast.slim.protocol.verifier import verify
from tests.adapters.langgraph.fakes import calls, piece, say
from tests.adapters.langgraph.stage import dumped, over_both_streams, said
from tests.adapters.langgraph.test_redaction import ADDRESS, FINDING, PIECES, find, lines, lose, redacted
from tests.adapters.langgraph.wide.book import Act, Steady, WideStage
from tests.e2e.oracle import Oracle

pytestmark = pytest.mark.oracle

ASKING = [calls(piece("ask", '{"q":"x"}', "k1"))]


def redacting(name: str | None, *turns: Any, middleware: Any = (), tools: Any = (find,), **given: Any) -> Any:
    rules = {"apply_to_output": True, "apply_to_tool_results": True}
    return create_agent(
        Steady(turns=list(turns or ([FINDING], say(*PIECES)))),
        list(tools),
        name=name,
        middleware=[PIIMiddleware("email", **rules), *middleware],
        **given,
    )


def asked_by_a_tool(make: Callable[[], Any]) -> Any:
    @tool
    async def ask(q: str) -> str:
        """Ask another agent."""
        answer = await make().ainvoke({"messages": [("user", "who?")]})
        return str(answer["messages"][-1].text)

    boss = Steady(turns=[ASKING, say("done")])
    return create_agent(boss, [ask], name="boss", checkpointer=InMemorySaver())


def in_a_tool(name: str | None) -> Any:
    inner = redacting(name)

    @tool
    async def ask(q: str) -> str:
        """Ask another agent."""
        answer = await inner.ainvoke({"messages": [("user", "who?")]})
        return str(answer["messages"][-1].text)

    boss = Steady(turns=[ASKING, say("done")])
    return create_agent(boss, [ask], name="boss", checkpointer=InMemorySaver())


def made_in_a_tool(name: str | None) -> Any:
    return asked_by_a_tool(lambda: redacting(name))


def as_a_node(name: str | None, **given: Any) -> Any:
    inner = redacting(name, say("x"), [FINDING], say(*PIECES), **given)
    builder = StateGraph(MessagesState).add_node("first", lambda state: {"messages": [("ai", "so")]})
    builder.add_node("a", inner).add_edge(START, "first").add_edge("first", "a")
    return builder.compile(checkpointer=InMemorySaver())


def that_keeps_its_state(name: str | None) -> Any:
    return as_a_node(name, checkpointer=True)


def made_in_a_node(name: str | None) -> Any:
    async def answer(state: MessagesState) -> Any:
        found = await redacting(name).ainvoke({"messages": state["messages"][-1:]})
        return {"messages": found["messages"][1:]}

    builder = StateGraph(MessagesState).add_node("a", answer).add_edge(START, "a")
    return builder.compile(checkpointer=InMemorySaver())


def in_two_sends(name: str | None) -> Any:
    async def answer(state: Any) -> Any:
        found = await redacting(name).ainvoke({"messages": state["messages"][-1:]})
        return {"messages": [AIMessage(found["messages"][-1].text)]}

    builder = StateGraph(MessagesState).add_node("a", answer)
    builder.add_conditional_edges(START, lambda state: [Send("a", state), Send("a", state)], ["a"])
    return builder.compile(checkpointer=InMemorySaver())


def in_a_chain(name: str | None) -> Any:
    inner = redacting(name)
    builder = StateGraph(MessagesState).add_node("a", RunnableLambda(lambda state: state) | inner)
    return builder.add_edge(START, "a").compile(checkpointer=InMemorySaver())


PLACES = [
    in_a_tool,
    made_in_a_tool,
    as_a_node,
    that_keeps_its_state,
    made_in_a_node,
    in_two_sends,
    in_a_chain,
]
NAMED = [(place, None) for place in PLACES] + [(made_in_a_tool, "al"), (that_keeps_its_state, "al")]
every_place = pytest.mark.parametrize(("place", "name"), NAMED)
with_and_without_a_name = pytest.mark.parametrize("name", [None, "al"])


def opened(graph: Any, oracle: Oracle, stream: Stream, mode: Subagents = "attributed", **given: Any) -> Any:
    stage = WideStage(oracle, stream=stream)
    stage.checks = False
    stage.play(graph, options=LangGraphOptions(subagents=mode, **given))
    return stage


def shown(events: list[Event]) -> str:
    return "".join(str(getattr(each, "delta", "")) for each in events)


@over_both_streams
@every_place
async def test_no_address_of_an_agent_inside_leaves_a_run(
    oracle: Oracle, place: Any, name: str | None, stream: Stream
) -> None:
    stage = opened(place(name), oracle, stream)
    for words in ("hi", "again"):
        await stage.turn(words)
        assert lines(stage.runs[-1]) == []
    assert "[REDACTED_EMAIL]" in shown(stage.runs[0])
    stage.judge(oracle)


@with_and_without_a_name
async def test_nor_where_it_is_shown_as_its_parent_s_output(oracle: Oracle, name: str | None) -> None:
    for place in (in_a_tool, as_a_node):
        stage = opened(place(name), oracle, "v2", "inline")
        await stage.turn("hi")
        assert lines(stage.runs[-1]) == []
        assert "[REDACTED_EMAIL]" in shown(stage.runs[0])


@every_place
async def test_no_address_of_an_agent_inside_leaves_callbacks(place: Any, name: str | None) -> None:
    events: list[Any] = []
    graph = place(name)
    callbacks = LangGraphCallbacks(events.append, thread_id="t")
    where = {"configurable": {"thread_id": "t"}, "callbacks": [callbacks]}
    for words in ("hi", "again"):
        await graph.ainvoke({"messages": [("user", words)]}, where)
    assert await callbacks.aflush(60)
    assert lines(events) == []
    assert "[REDACTED_EMAIL]" in shown(events)
    assert not verify(events), verify(events)


async def test_callbacks_show_a_graph_as_its_stream_does(oracle: Oracle) -> None:
    events: list[Any] = []
    graph = redacting("boss", checkpointer=InMemorySaver())
    callbacks = LangGraphCallbacks(events.append, thread_id="t")
    where = {"configurable": {"thread_id": "t"}, "callbacks": [callbacks]}
    await graph.ainvoke({"messages": [("user", "who?")]}, where)
    assert await callbacks.aflush(60)
    assert lines(events) == []
    view = oracle.apply(events, messages=[], state={})["messages"]
    held = (await graph.aget_state({"configurable": {"thread_id": "t"}})).values["messages"]
    assert [each[1:] for each in said(view)] == [each[1:] for each in said(redacted(dumped(to_agui(held))))]


def test_callbacks_of_a_synchronous_graph_show_no_address() -> None:
    events: list[Any] = []

    @tool
    def look(name: str) -> str:
        """Look."""
        return f"{name} is {ADDRESS}"

    looking = [calls(piece("look", '{"name":"joe@example.com"}', "c1"), content=f"I ask {ADDRESS}")]
    graph = redacting("boss", looking, say(*PIECES), tools=[look])
    callbacks = LangGraphCallbacks(events.append, thread_id="t")
    sequence = RunnableLambda(lambda words: {"messages": [("user", words)]}) | graph
    sequence.invoke("who?", {"callbacks": [callbacks]})
    assert callbacks.flush(60)
    assert lines(events) == []
    assert "[REDACTED_EMAIL]" in shown(events)


@over_both_streams
@with_and_without_a_name
async def test_a_question_and_an_error_of_an_agent_inside_show_no_address(
    oracle: Oracle, name: str | None, stream: Stream
) -> None:
    asks = HumanInTheLoopMiddleware({"find": True})
    stage = opened(asked_by_a_tool(lambda: redacting(name, middleware=[asks])), oracle, stream)
    stage.decision = {"decisions": [{"type": "approve"}]}
    for words in ("hi", "yes", "again"):
        await stage.turn(words)
        assert lines(stage.runs[-1]) == []
    assert stage.runs[0][-1].outcome.type == "interrupt"  # type: ignore[union-attr]
    losing = [calls(piece("lose", '{"name":"joe@example.com"}', "c1"))]
    stage = opened(asked_by_a_tool(lambda: redacting(name, losing, tools=[lose])), oracle, stream)
    await stage.turn("hi")
    assert (stage.runs[0][-1].type, lines(stage.runs[0])) == ("RUN_ERROR", [])


@over_both_streams
async def test_an_agent_inside_keeps_its_words_where_the_messages_are_stated_again(
    oracle: Oracle, stream: Stream
) -> None:
    """Its messages of earlier runs have no name; what the graph's own node wrote is shown as it is."""
    inner = redacting(None, [FINDING], say(*PIECES))

    def forget(state: MessagesState) -> Any:
        old = [each for each in state["messages"][:-1] if each.type == "human"]
        word = AIMessage("ask jane@example.org", id=f"w{len(state['messages'])}")
        return {"messages": [*(RemoveMessage(str(each.id)) for each in old), word]}

    async def answer(state: MessagesState) -> Any:
        found = await inner.ainvoke({"messages": state["messages"][-1:]})
        return {"messages": found["messages"][1:]}

    builder = StateGraph(MessagesState).add_node("forget", forget).add_node("a", answer)
    builder.add_edge(START, "forget").add_edge("forget", "a")
    stage = opened(builder.compile(checkpointer=InMemorySaver()), oracle, stream)
    for words in ("one", "two", "three", Act.EDIT):
        await stage.turn(words)
        assert lines(stage.runs[-1]) == []
        assert "jane@example.org" in str(stage.view["messages"])
    assert "MESSAGES_SNAPSHOT" in [event.type for event in stage.runs[-1]]
    stage.judge(oracle)


@over_both_streams
async def test_without_its_subgraphs_a_graph_shows_no_address_of_theirs(
    oracle: Oracle, stream: Stream
) -> None:
    stage = opened(as_a_node(None), oracle, stream, subgraphs=False)
    for words in ("hi", "again"):
        await stage.turn(words)
        assert lines(stage.runs[-1]) == []
    stage.judge(oracle)


async def test_raw_events_show_no_address_of_an_agent_inside(oracle: Oracle) -> None:
    stage = WideStage(oracle, stream="v2")
    stage.play(as_a_node(None), options=LangGraphOptions(), raw=True)
    await stage.turn("hi")
    assert lines(stage.runs[-1]) == []


async def test_an_agent_that_rewrites_inside_one_that_does(oracle: Oracle) -> None:
    """Each rule holds for its own agent and for those inside."""

    @tool
    async def ask(q: str) -> str:
        """Ask another agent."""
        answer = await redacting(None).ainvoke({"messages": [("user", "who?")]})
        return str(answer["messages"][-1].text)

    outer = create_agent(
        Steady(turns=[ASKING, say("from 192.168.7.7")]),
        [ask],
        middleware=[PIIMiddleware("ip", apply_to_output=True)],
        checkpointer=InMemorySaver(),
    )
    stage = opened(outer, oracle, "v2")
    await stage.turn("hi")
    assert lines(stage.runs[-1]) == []
    assert "192.168" not in str(stage.runs[-1])
    assert "REDACTED_IP" in shown(stage.runs[-1])


def test_one_graph_is_asked_once() -> None:
    graph = redacting("al")
    assert rewriting(graph) is rewriting(graph) is not None
