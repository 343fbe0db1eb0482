"""Scenes of graphs in graphs and agents in agents, of every kind of graph there is, and of custom streams."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Annotated, Any
from typing import TypedDict as StandardTypedDict

from langchain_core.callbacks import adispatch_custom_event
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
)
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph, add_messages
from langgraph.runtime import Runtime

from runcast.adapters.langgraph import LangGraphOptions, activity, activity_patch
from tests.adapters.langgraph.fakes import StreamingModel, calls, piece, say
from tests.adapters.langgraph.scenes.book import agent, answering, chat, echo, scene
from tests.adapters.langgraph.stage import Stage, types


@scene("36_declared_subgraph")
async def declared_subgraph(stage: Stage) -> None:
    inner = chat(say("in", "side"), checkpointer=None)
    builder = StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner")
    stage.play(builder.compile(checkpointer=InMemorySaver()))
    events = await stage.send("hi")
    assert not [event for event in events if event.type == "SUBAGENT_STARTED"]
    await stage.holds()


@scene("36_subgraphs_switched_off")
async def subgraphs_off(stage: Stage) -> None:
    inner = chat(say("in", "side"), checkpointer=None)
    builder = StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner")
    stage.play(builder.compile(checkpointer=InMemorySaver()), options=LangGraphOptions(subgraphs=False))
    await stage.send("hi")
    await stage.holds()


@scene("37_subgraph_called_in_a_node")
async def called_subgraph(stage: Stage) -> None:
    inner = chat(say("in", "side"), checkpointer=None)

    async def call(state: MessagesState) -> Any:
        found = await inner.ainvoke({"messages": [HumanMessage("other words", id="inner-1")]})
        return {"messages": [AIMessage("I heard: " + found["messages"][-1].content, id="a1")]}

    builder = StateGraph(MessagesState).add_node("call", call).add_edge(START, "call")
    stage.play(builder.compile(checkpointer=InMemorySaver()))
    events = await stage.send("hi")
    inner_id = next(event.message_id for event in events if event.type == "TEXT_MESSAGE_START")
    await stage.holds(without=[inner_id])  # it was said, and is in no state


def helper(*turns: Any, tools: Any = ()) -> Any:
    """A tool that is an agent of its own."""
    inner = agent(*turns, tools=tools, checkpointer=None, name="helper")

    @tool("task")
    async def delegate(text: str) -> str:
        """Let another agent do it."""
        found = await inner.ainvoke({"messages": [HumanMessage(text)]})
        return str(found["messages"][-1].content)

    return delegate


def tasks(*texts: str) -> Any:
    return calls(*(piece("task", f'{{"text":"{text}"}}', f"c{at}", at) for at, text in enumerate(texts)))


@scene("38_subagent_in_a_tool")
async def subagent(stage: Stage) -> None:
    stage.play(agent([tasks("x")], say("done"), tools=[helper(say("su", "b"))]))
    events = await stage.send("hi")
    begun = next(event for event in events if event.type == "SUBAGENT_STARTED")
    assert (begun.name, begun.parent_tool_call_id) == ("helper", "c0")
    spoke = [event for event in events if getattr(event, "delta", "") in ("su", "b")]
    assert {event.subagent_run_id for event in spoke} == {begun.subagent_run_id}
    await stage.holds()


@scene("38_two_subagents_at_once")
async def two_subagents(stage: Stage) -> None:
    stage.play(agent([tasks("x", "y")], say("done"), tools=[helper(say("a", "b", "c"), say("1", "2", "3"))]))
    events = await stage.send("hi")
    assert types(events).count("SUBAGENT_STARTED") == types(events).count("SUBAGENT_FINISHED") == 2
    await stage.holds()


@scene("38_nested_subagents")
async def nested_subagents(stage: Stage) -> None:
    innermost = agent(say("deep"), checkpointer=None, name="innermost")

    @tool
    async def deeper(text: str) -> str:
        """Go deeper."""
        return str((await innermost.ainvoke({"messages": [HumanMessage(text)]}))["messages"][-1].content)

    middle = helper([calls(piece("deeper", '{"text":"z"}', "c9"))], say("mid"), tools=[deeper])
    stage.play(agent([tasks("x")], say("done"), tools=[middle]))
    events = await stage.send("hi")
    outer, inner = [event for event in events if event.type == "SUBAGENT_STARTED"]
    assert inner.parent_subagent_run_id == outer.subagent_run_id
    assert (inner.name, inner.parent_tool_call_id) == ("innermost", "c9")
    await stage.holds()


@scene("38_subagent_that_fails")
async def failing_subagent(stage: Stage) -> None:
    stage.play(agent([tasks("x")], say("done"), tools=[helper([*say("su"), ConnectionError("the net")])]))
    events = await stage.send("hi")
    assert types(events)[-2:] == ["SUBAGENT_ERROR", "RUN_ERROR"]


@scene("38_agents_as_nodes")
async def agents_as_nodes(stage: Stage) -> None:
    writer = agent(say("writ", "ten"), checkpointer=None, name="writer")
    builder = StateGraph(MessagesState).add_node("writer", writer).add_edge(START, "writer")
    stage.play(builder.compile(checkpointer=InMemorySaver()))
    events = await stage.send("hi")
    assert next(event.name for event in events if event.type == "SUBAGENT_STARTED") == "writer"


for mode, started in (("inline", 0), ("hidden", 0)):

    @scene(f"38_subagents_{mode}")
    async def other_modes(stage: Stage, mode: Any = mode, started: int = started) -> None:
        options = LangGraphOptions(subagents=mode)
        stage.play(agent([tasks("x")], say("done"), tools=[helper(say("su", "b"))]), options=options)
        events = await stage.send("hi")
        assert types(events).count("SUBAGENT_STARTED") == started
        heard = [event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT"]
        assert heard == (["su", "b", "done"] if mode == "inline" else ["done"])


@scene("50_no_checkpointer")
async def no_checkpointer(stage: Stage) -> None:
    stage.play(chat(say("one"), say("two"), checkpointer=None))
    await stage.send("hi")
    events = await stage.send("more")
    assert events[-1].outcome.type == "success"
    if stage.oracle:
        assert [message["role"] for message in stage.view["messages"]] == ["user", "assistant"] * 2


class Standard(StandardTypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    count: int


@scene("51_standard_typed_dict")
async def standard_typed_dict(stage: Stage) -> None:
    stage.play(chat(say("one"), state=Standard))
    await stage.send("hi")
    await stage.holds()


class Odd:
    def __init__(self) -> None:
        self.secret = "never shown"


class Unschemable(StandardTypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    odd: Odd
    hook: Any


@scene("51_state_without_a_schema")
async def unschemable(stage: Stage) -> None:
    async def answer(state: Any) -> Any:
        return {"messages": [AIMessage("ok", id="a1")], "odd": Odd(), "hook": len}

    builder = StateGraph(Unschemable).add_node("answer", answer).add_edge(START, "answer")
    stage.play(builder.compile())
    events = await stage.send("hi")
    assert events[-1].type == "RUN_FINISHED"
    assert "never shown" not in str(stage.runs)


@dataclass
class Context:
    user: str


@scene("52_context_schema")
async def context_schema(stage: Stage) -> None:
    async def answer(state: MessagesState, runtime: Runtime[Context]) -> Any:
        return {"messages": [AIMessage(f"hello {runtime.context.user}", id="a1")]}

    builder = (
        StateGraph(MessagesState, context_schema=Context).add_node("answer", answer).add_edge(START, "answer")
    )
    stage.play(builder.compile(checkpointer=InMemorySaver()), context=Context("Ada"))
    await stage.send("hi")
    assert "hello Ada" in str(stage.runs)
    await stage.holds()


@scene("53_functional_api")
async def functional(stage: Stage) -> None:
    model = StreamingModel(turns=[say("ja", "wohl")])

    @task
    async def think(text: str) -> Any:
        return await model.ainvoke(text)

    @entrypoint(checkpointer=InMemorySaver())
    async def flow(values: Any) -> Any:
        said = await think(values["messages"][-1].content)
        return {"words": said.content}

    stage.play(flow)
    events = await stage.send("hi")
    assert [event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT"] == ["ja", "wohl"]
    if stage.oracle:
        assert stage.view["state"] == {"words": "jawohl"}


@scene("53_functional_api_bare_value")
async def functional_bare(stage: Stage) -> None:
    @entrypoint()
    async def flow(values: Any) -> str:
        return "just words"

    stage.play(flow)
    events = await stage.send("hi")
    assert events[-1].result == "just words"


@scene("54_synchronous_nodes")
async def synchronous(stage: Stage) -> None:
    model = StreamingModel(turns=[say("sy", "nc")])

    def answer(state: MessagesState) -> Any:
        time.sleep(0.001)
        return {"messages": [model.invoke(state["messages"])]}

    builder = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    stage.play(builder.compile(checkpointer=InMemorySaver()))
    await stage.send("hi")
    await stage.holds()


@scene("55_stream_writers_and_custom_events")
async def writers(stage: Stage) -> None:
    async def inside(state: MessagesState) -> Any:
        get_stream_writer()({"name": "inner", "value": 3})
        return {}

    inner = StateGraph(MessagesState).add_node("inside", inside).add_edge(START, "inside").compile()

    @tool
    async def working(text: str) -> str:
        """Work."""
        get_stream_writer()({"name": "tool", "value": 2})
        return "worked"

    async def before(state: MessagesState) -> Any:
        get_stream_writer()({"progress": 1})
        await adispatch_custom_event("dispatched", {"at": 0})
        await working.ainvoke({"text": "x"})
        await inner.ainvoke(state)
        return {}

    builder = StateGraph(MessagesState).add_node("before", before).add_edge(START, "before")
    stage.play(builder.compile(checkpointer=InMemorySaver()))
    events = await stage.send("hi")
    told = [
        (event.name, event.value) for event in events if event.type == "CUSTOM" and "tool-" not in event.name
    ]
    assert told == [
        ("langgraph.custom", {"progress": 1}),
        ("dispatched", {"at": 0}),
        ("tool", 2),
        ("inner", 3),
    ]


@scene("55_activity")
async def activities(stage: Stage) -> None:
    async def plan(state: MessagesState) -> Any:
        tell = get_stream_writer()
        tell(activity("plan-1", "PLAN", {"steps": [{"what": "look", "done": False}]}))
        tell(activity_patch("plan-1", "PLAN", [{"op": "replace", "path": "/steps/0/done", "value": True}]))
        tell(activity("plan-1", "PLAN", {"steps": []}, replace=False))
        return {}

    builder = StateGraph(MessagesState).add_node("plan", plan).add_edge(START, "plan")
    stage.play(builder.compile(checkpointer=InMemorySaver()))
    await stage.send("hi")
    if stage.oracle:
        assert stage.view["messages"][-1]["content"] == {"steps": [{"what": "look", "done": True}]}


@scene("58_old_message_types")
async def old_types(stage: Stage) -> None:
    async def answer(state: MessagesState) -> Any:
        old = [
            ChatMessage("old words", role="assistant", id="o1"),
            FunctionMessage("42", name="add", id="o2"),
        ]
        return {"messages": [*old, AIMessage("new words", id="a1")]}

    builder = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    stage.play(builder.compile(checkpointer=InMemorySaver()))
    await stage.send("hi")
    await stage.holds()
    await stage.send("again")
    assert stage.runs[-1][-1].type == "RUN_FINISHED"


@scene("39_messages_removed")
async def removed(stage: Stage) -> None:
    model = StreamingModel(turns=[say("first"), say("second")])

    async def answer(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    async def forget(state: MessagesState) -> Any:
        return {"messages": [RemoveMessage(id=str(message.id)) for message in state["messages"][:-2]]}

    builder = StateGraph(MessagesState).add_node("answer", answer).add_node("forget", forget)
    builder.add_edge(START, "answer").add_edge("answer", "forget")
    stage.play(builder.compile(checkpointer=InMemorySaver()))
    assert "MESSAGES_SNAPSHOT" not in types(await stage.send("hi"))
    await stage.holds()
    assert "MESSAGES_SNAPSHOT" in types(await stage.send("more"))
    await stage.holds()


@scene("39_message_rewritten")
async def rewritten(stage: Stage) -> None:
    model = StreamingModel(turns=[say("rude words")])

    async def answer(state: MessagesState) -> Any:
        said = await model.ainvoke(state["messages"])
        return {"messages": [said.model_copy(update={"content": "kind words"})]}

    async def polish(state: MessagesState) -> Any:
        return {"messages": [AIMessage("kinder words", id=state["messages"][-1].id)]}

    builder = StateGraph(MessagesState).add_node("answer", answer).add_node("polish", polish)
    builder.add_edge(START, "answer").add_edge("answer", "polish")
    stage.play(builder.compile(checkpointer=InMemorySaver()))
    assert types(await stage.send("hi")).count("MESSAGES_SNAPSHOT") == 2
    await stage.holds()


async def never() -> None:
    await asyncio.sleep(3600)


__all__ = ["answering", "echo", "never"]
