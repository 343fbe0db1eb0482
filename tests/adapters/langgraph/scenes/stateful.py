"""Agents that keep their state between runs (`checkpointer=True`): their namespace has the nodes' names alone."""

from __future__ import annotations

from typing import Any

from ag_ui.core import Event, SubagentStartedEvent
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from tests.adapters.langgraph.fakes import calls, piece, say
from tests.adapters.langgraph.scenes.book import InMemorySaver, agent, scene
from tests.adapters.langgraph.stage import Stage


def helper(*turns: Any, **settings: Any) -> Any:
    return agent(*turns, checkpointer=True, name="helper", **settings)


def around(node: Any, name: str = "work") -> Any:
    return (
        StateGraph(MessagesState)
        .add_node(name, node)
        .add_edge(START, name)
        .compile(checkpointer=InMemorySaver())
    )


def asking(inner: Any, *turns: Any) -> Any:
    """An agent with a tool that asks the inner one."""

    @tool
    async def consult(question: str) -> str:
        """Ask the helper."""
        answer = await inner.ainvoke({"messages": [("user", question)]})
        return str(answer["messages"][-1].text)

    return agent(*turns, tools=[consult])


def call(number: int) -> Any:
    return [calls(piece("consult", '{"question":"why?"}', f"c{number}"))]


def started(events: list[Event]) -> list[str]:
    return [event.name for event in events if isinstance(event, SubagentStartedEvent)]


def texts(stage: Stage) -> list[str]:
    return [
        each["content"]
        for each in stage.view["messages"]
        if each["role"] == "assistant" and each.get("content")
    ]


@scene("62_stateful_agent_as_a_node")
async def as_node(stage: Stage) -> None:
    stage.play(around(helper(say("fi", "rst"), say("second")), "helper"))
    assert started(await stage.send("hi")) == ["helper"]
    await stage.send("again")
    assert texts(stage) == ["first", "second"]


@scene("62_stateful_agent_in_a_node")
async def in_node(stage: Stage) -> None:
    inner = helper(say("fi", "rst"), say("second"))

    async def work(state: MessagesState) -> Any:
        answer = await inner.ainvoke({"messages": state["messages"][-1:]})
        return {"messages": [("assistant", f"it was {answer['messages'][-1].text}")]}

    stage.play(around(work))
    await stage.send("hi")
    await stage.send("again")
    assert texts(stage) == ["first", "it was first", "second", "it was second"]
    await stage.holds()


@scene("62_stateful_agent_in_a_tool")
async def in_tool(stage: Stage) -> None:
    inner = helper(say("fi", "rst"), say("second"))
    stage.play(asking(inner, call(1), say("done"), call(2), say("done again")))
    events = await stage.send("hi")
    assert [event.parent_tool_call_id for event in events if isinstance(event, SubagentStartedEvent)] == [
        "c1"
    ]
    await stage.holds()
    await stage.send("again")
    assert texts(stage) == ["first", "done", "second", "done again"]
    await stage.holds()


@scene("62_stateful_agent_that_asks")
async def asks(stage: Stage) -> None:
    @tool
    async def approve() -> str:
        """Ask the user."""
        return f"approved: {interrupt('may I?')}"

    inner = helper([calls(piece("approve", "{}", "i1"))], say("first"), say("second"), tools=[approve])
    stage.play(asking(inner, call(1), say("done"), call(2), say("done again")))
    events = await stage.send("hi")
    [asked] = events[-1].outcome.interrupts  # type: ignore[union-attr]
    await stage.answer((asked.id, "yes"))
    assert texts(stage) == ["first", "done"]
    await stage.holds()
    await stage.send("again")
    assert texts(stage) == ["first", "done", "second", "done again"]
    await stage.holds()
