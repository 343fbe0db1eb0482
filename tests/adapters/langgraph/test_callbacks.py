"""Programs that run their graph themselves: the same events through callbacks, and a sink that never hurts them."""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from uuid import uuid4

import pytest
from ag_ui.core import Event
from langchain_core.callbacks import adispatch_custom_event
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt

from runcast.adapters.langgraph import LangGraphCallbacks, to_agui
from runcast.slim.protocol.verifier import verify
from tests.adapters.langgraph.fakes import StreamingModel, calls, piece, say
from tests.adapters.langgraph.scenes.book import add, agent, chat
from tests.adapters.langgraph.scenes.graphs import helper
from tests.adapters.langgraph.scenes.graphs import tasks as delegated
from tests.adapters.langgraph.stage import dumped, said, types

ASKED = [calls(piece("add", '{"a":1,"b":2}', "c1"), content="hm")]
TEXT = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]


def where(callbacks: Any, thread: str = "t") -> Any:
    return {"configurable": {"thread_id": thread}, "callbacks": [callbacks]}


def asks(*texts: str) -> Any:
    return {"messages": [HumanMessage(text, id=f"u-{text}") for text in texts]}


async def ainvoke(graph: Any, input: Any, config: Any) -> Any:
    return await graph.ainvoke(input, config)


async def astream(graph: Any, input: Any, config: Any) -> None:
    async for _ in graph.astream(input, config):
        pass


async def invoke(graph: Any, input: Any, config: Any) -> Any:
    return graph.invoke(input, config)


async def stream(graph: Any, input: Any, config: Any) -> None:
    list(graph.stream(input, config))


async def held(oracle: Any, graph: Any, events: list[Any]) -> None:
    """Valid, and the client holds what the graph holds."""
    assert not verify(events), verify(events)
    answer = oracle.apply(events, messages=dumped(to_agui(asks("hi")["messages"])))
    found = (await graph.aget_state({"configurable": {"thread_id": "t"}})).values["messages"]
    assert said(answer["messages"]) == said(dumped(to_agui(found)))


def sync_tool(graph_turns: Any, streams: bool = True) -> Any:
    """A graph whose nodes are plain functions, for both worlds."""
    model = StreamingModel(turns=graph_turns)

    def answer(state: MessagesState) -> Any:
        return {"messages": [model.invoke(state["messages"])]}

    builder = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    return builder.compile(checkpointer=InMemorySaver())


@pytest.mark.oracle
@pytest.mark.parametrize("way", [ainvoke, astream, invoke, stream])
async def test_text_whatever_way_a_graph_is_called(way: Any, oracle: Any):
    events: list[Any] = []
    callbacks = LangGraphCallbacks(events.append, thread_id="t", run_id="mine")
    graph = sync_tool([say("Hel", "lo", usage=(1, 2))])
    await way(graph, asks("hi"), where(callbacks))
    assert await callbacks.aflush(5)
    assert types(events) == ["RUN_STARTED", TEXT[0], TEXT[1], TEXT[1], TEXT[2], "RUN_FINISHED"]
    assert types(events, steps=True).count("STEP_FINISHED") == 1
    assert events[0].run_id == "mine"
    assert events[-1].usage[0].total_tokens == 3
    await held(oracle, graph, events)


@pytest.mark.oracle
async def test_tools_and_a_second_run(oracle: Any):
    events: list[Any] = []
    callbacks = LangGraphCallbacks(events.append, thread_id="t")
    graph = agent(ASKED, say("three"), say("again"), tools=[add])
    await graph.ainvoke(asks("hi"), where(callbacks))
    await callbacks.aflush(5)
    assert [name for name in types(events) if "TOOL" in name] == [
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
    ]
    await held(oracle, graph, events)
    await graph.ainvoke(asks("more"), where(callbacks))
    await callbacks.aflush(5)
    assert not verify(events)
    assert types(events).count("RUN_STARTED") == 2
    assert len({event.run_id for event in events if event.type == "RUN_STARTED"}) == 2


@pytest.mark.oracle
async def test_a_subagent(oracle: Any):
    events: list[Any] = []
    callbacks = LangGraphCallbacks(events.append, thread_id="t")
    graph = agent([delegated("x", "y")], say("done"), tools=[helper(say("a", "b"), say("1", "2"))])
    await graph.ainvoke(asks("hi"), where(callbacks))
    await callbacks.aflush(5)
    assert types(events).count("SUBAGENT_STARTED") == types(events).count("SUBAGENT_FINISHED") == 2
    await held(oracle, graph, events)


@pytest.mark.oracle
@pytest.mark.parametrize("streams", [True, False])
async def test_a_model_that_does_or_does_not_stream(streams: bool, oracle: Any):
    events: list[Any] = []
    callbacks = LangGraphCallbacks(events.append, thread_id="t")
    graph = chat(say("Hel", "lo"), streams=streams)
    await graph.ainvoke(asks("hi"), where(callbacks))
    await callbacks.aflush(5)
    await held(oracle, graph, events)


async def test_an_interrupt_and_its_answer():
    async def ask(state: MessagesState) -> Any:
        return {"messages": [("ai", f"told {interrupt('Really?')}")]}

    events: list[Any] = []
    callbacks = LangGraphCallbacks(events.append, thread_id="t")
    builder = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask")
    graph = builder.compile(checkpointer=InMemorySaver())
    await graph.ainvoke(asks("hi"), where(callbacks))
    await callbacks.aflush(5)
    [asked] = events[-1].outcome.interrupts
    assert asked.message == "Really?"
    assert events[-1].metadata["runcast"]["framework"]["checkpoint_id"]
    await graph.ainvoke(Command(resume={asked.id: "yes"}), where(callbacks))
    await callbacks.aflush(5)
    assert events[-1].outcome.type == "success"
    assert not verify(events)


async def test_errors_retries_and_custom_events():
    tried: list[int] = []

    async def fragile(state: MessagesState) -> Any:
        tried.append(1)
        await adispatch_custom_event("trying", len(tried))
        raise ConnectionError(f"attempt {len(tried)}")

    policy = RetryPolicy(initial_interval=0.01, jitter=False, max_attempts=2)
    builder = (
        StateGraph(MessagesState).add_node("fragile", fragile, retry_policy=policy).add_edge(START, "fragile")
    )
    events: list[Any] = []
    callbacks = LangGraphCallbacks(events.append, thread_id="t")
    with pytest.raises(ConnectionError):
        await builder.compile().ainvoke(asks("hi"), where(callbacks))
    await callbacks.aflush(5)
    assert events[-1].message == "ConnectionError: attempt 2"
    assert [event.value for event in events if event.type == "CUSTOM"] == [1, 2]
    assert [e.metadata["runcast"]["attempt"] for e in events if e.type == "STEP_STARTED"] == [1, 2]
    assert not verify(events)


async def test_a_state_at_the_end():
    class State(MessagesState):
        theme: str

    async def node(state: State) -> Any:
        return {"theme": "dark"}

    events: list[Any] = []
    callbacks = LangGraphCallbacks(events.append, thread_id="t")
    builder = StateGraph(State).add_node("node", node).add_edge(START, "node")
    await builder.compile().ainvoke(asks("hi"), where(callbacks))
    await callbacks.aflush(5)
    assert [event.snapshot for event in events if event.type == "STATE_SNAPSHOT"] == [{"theme": "dark"}]


async def test_many_runs_at_once():
    kept: dict[str, list[Any]] = {}

    async def one(name: str) -> None:
        callbacks = LangGraphCallbacks(kept.setdefault(name, []).append, thread_id=name)
        await chat(say(name, "!"), checkpointer=None).ainvoke(asks("hi"), where(callbacks, name))
        await callbacks.aflush(5)

    await asyncio.gather(*(one(f"t{n}") for n in range(8)))
    for name, events in kept.items():
        assert not verify(events)
        assert [e.delta for e in events if e.type == TEXT[1]] == [name, "!"]


async def test_one_handler_for_runs_side_by_side():
    events: list[Any] = []
    callbacks = LangGraphCallbacks(events.append, thread_id="t")
    graphs = [chat(say(f"{n}a", f"{n}b"), checkpointer=None) for n in range(4)]
    await asyncio.gather(*(graph.ainvoke(asks("hi"), where(callbacks)) for graph in graphs))
    await callbacks.aflush(5)
    assert types(events).count("RUN_FINISHED") == 4
    assert callbacks.stats()["delivered"] == len(events)


async def test_a_coroutine_sink_runs_on_the_loop():
    loop = asyncio.get_running_loop()
    events: list[Any] = []

    async def sink(event: Any) -> None:
        assert asyncio.get_running_loop() is loop
        await asyncio.sleep(0)
        events.append(event)

    callbacks = LangGraphCallbacks(sink, thread_id="t")
    await chat(say("Hel", "lo"), checkpointer=None).ainvoke(asks("hi"), where(callbacks))
    assert await callbacks.aflush(5)
    assert not verify(events)
    assert events[-1].type == "RUN_FINISHED"


def test_a_coroutine_sink_without_a_loop():
    events: list[Any] = []

    async def sink(event: Any) -> None:
        events.append(event)

    callbacks = LangGraphCallbacks(sink, thread_id="t")
    sync_tool([say("Hel", "lo")]).invoke(asks("hi"), where(callbacks))
    assert callbacks.flush(5)
    assert events[-1].type == "RUN_FINISHED"


def test_a_sink_that_raises_is_counted_and_goes_no_further():
    def sink(event: Any) -> None:
        raise RuntimeError("sink is broken")

    callbacks = LangGraphCallbacks(sink, thread_id="t")
    found = sync_tool([say("Hel", "lo")]).invoke(asks("hi"), where(callbacks))
    assert callbacks.flush(5)
    assert found["messages"][-1].content == "Hello"
    assert callbacks.stats()["failed"] > 0


def test_a_slow_sink_does_not_hold_the_graph_up():
    gate = threading.Event()
    events: list[Any] = []

    def sink(event: Any) -> None:
        gate.wait(60)
        events.append(event)

    callbacks = LangGraphCallbacks(sink, thread_id="t", max_waiting=8)
    sync_tool([say(*["x"] * 500)]).invoke(asks("hi"), where(callbacks))
    assert not events, "the graph has ended, and the sink still holds the first event"
    gate.set()
    assert callbacks.flush(60)
    assert not [violation for violation in verify(events) if "finish" not in str(violation).lower()]
    assert "".join(event.delta for event in events if event.type == TEXT[1]) == "x" * 500
    assert callbacks.stats()["merged"] > 400


def test_a_box_that_is_full_cuts_the_run_off():
    gate = threading.Event()
    events: list[Any] = []

    def sink(event: Any) -> None:
        gate.wait(10)
        events.append(event)

    callbacks = LangGraphCallbacks(sink, thread_id="t", max_waiting=2)
    sync_tool([say("Hel", "lo")]).invoke(asks("hi"), where(callbacks))
    gate.set()
    assert callbacks.flush(5)
    assert callbacks.stats()["dropped"] > 0
    assert types(events)[0] == "RUN_STARTED"


async def test_a_node_that_is_a_graph_of_its_own_name_is_one_step():
    helper = agent(say("he", "lped"), checkpointer=None, name="helper")
    builder = StateGraph(MessagesState).add_node("helper", helper).add_edge(START, "helper")
    events: list[Any] = []
    callbacks = LangGraphCallbacks(events.append, thread_id="t")
    await builder.compile().ainvoke(asks("hi"), where(callbacks))
    await callbacks.aflush(5)
    assert [e.step_name for e in events if e.type == "STEP_STARTED" and e.subagent_run_id is None] == [
        "helper"
    ]
    assert [e.metadata["runcast"]["attempt"] for e in events if e.type == "STEP_STARTED"] == [1, 1]
    assert types(events).count("SUBAGENT_STARTED") == 1


@pytest.mark.parametrize(
    "given",
    [
        [HumanMessage("old", id="u0"), AIMessage("was", id="a0"), HumanMessage("hi", id="u1")],
        ("user", "hi"),
        [{"role": "user", "content": "hi"}],
    ],
    ids=["messages", "pair", "dicts"],
)
def test_the_users_message_is_in_the_input(given: Any):
    seen: list[Event] = []
    callbacks = LangGraphCallbacks(seen.append, thread_id="t", run_id="r")
    graph = chat(say("hello"), checkpointer=None)
    messages = [given] if isinstance(given, tuple) else given
    asyncio.run(graph.ainvoke({"messages": messages}, {"callbacks": [callbacks]}))
    assert callbacks.flush(5)
    [asked] = seen[0].input.messages  # type: ignore[union-attr]
    assert (asked.role, asked.content) == ("user", "hi")
    assert asked.id in ("u1", "r:input:0")
    assert not verify(seen)


def test_a_conversation_of_the_graphs_own_kind_is_no_input():
    seen: list[Event] = []
    callbacks = LangGraphCallbacks(seen.append, thread_id="t")
    callbacks.on_chain_start(None, {"messages": [7]}, run_id=uuid4())
    assert callbacks.flush(5)
    assert seen[0].input.messages == []  # type: ignore[union-attr]
