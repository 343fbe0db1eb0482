"""The adapter as its host sees it: many runs on one object (case 49), what it hands to the graph, what it refuses."""

from __future__ import annotations

import asyncio
import gc
from types import SimpleNamespace
from typing import Any

import pytest
from ag_ui.core import AgentCapabilities, Context, RunAgentInput, Tool, UserMessage
from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from runcast.adapters import Adapter
from runcast.adapters.langgraph import LangGraphAdapter, LangGraphOptions
from runcast.slim.folding.conversation import fold
from runcast.slim.protocol.verifier import verify
from tests.adapters.langgraph.fakes import FakeModel, StreamingModel, calls, piece, say
from tests.adapters.langgraph.scenes.book import add, agent, answering, chat
from tests.adapters.langgraph.stage import Stage, types


def asks(text: str = "hi", *, thread: str = "t", run: str = "r1", **fields: Any) -> RunAgentInput:
    fields = {"messages": [UserMessage(id=f"u-{thread}-{run}", content=text)], **fields}
    return RunAgentInput(thread_id=thread, run_id=run, **fields)


async def played(adapter: LangGraphAdapter, input: RunAgentInput, **given: Any) -> list[Any]:
    events = [event async for event in adapter.run(input, **given)]
    assert not verify(events)
    return events


def said(events: list[Any]) -> str:
    return "".join(event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT")


def test_it_is_an_adapter():
    adapter = LangGraphAdapter(chat(say("x")), name="mine")
    assert isinstance(adapter, Adapter)
    found = adapter.capabilities()
    assert isinstance(found, AgentCapabilities)
    assert found.identity.name == "mine"
    assert found.human_in_the_loop.interrupts
    assert not LangGraphAdapter(chat(say("x"), checkpointer=None)).capabilities().state.memory


async def test_a_run_that_is_over_is_freed_without_the_collector():
    """Reference cycles would keep the whole run, and the collector would walk through hundreds of objects for each."""
    adapter = LangGraphAdapter(chat(say("one ", "two")))
    await played(adapter, asks(run="first"))  # what is made once is made
    gc.collect()
    gc.disable()
    try:
        await played(adapter, asks(run="second"))
        left = gc.collect()
    finally:
        gc.enable()
    assert left < 40, left


async def test_49_many_runs_at_once_on_one_adapter():
    class EchoModel(StreamingModel):
        def _next(self, messages: Any) -> Any:
            return say(*f"<{messages[-1].content}>")

    adapter = LangGraphAdapter(answering(EchoModel(turns=[], delay=0.001)))
    texts = [f"text {n}" for n in range(12)]
    runs = await asyncio.gather(*(played(adapter, asks(text, thread=text, run=text)) for text in texts))
    for text, events in zip(texts, runs, strict=True):
        assert said(events) == f"<{text}>"
        assert {event.thread_id for event in events if hasattr(event, "thread_id")} == {text}
    ids = [{event.message_id for event in events if hasattr(event, "message_id")} for events in runs]
    assert len(set.union(*ids)) == len(texts)
    assert adapter.stats()["active"] == 0


async def test_49_one_thread_runs_once_at_a_time():
    adapter = LangGraphAdapter(answering(StreamingModel(turns=[say(*"abc")], delay=0.01)))
    first, second, same = await asyncio.gather(
        played(adapter, asks(run="r1")), played(adapter, asks(run="r2")), played(adapter, asks(run="r1"))
    )
    assert said(first) == "abc"
    assert (second[-1].code, same[-1].code) == ("thread_busy", "thread_busy")
    assert adapter.stats()["active"] == 0
    assert said(await played(adapter, asks(run="r3"))) == "abc"


async def test_49_without_a_checkpointer_a_thread_is_only_a_name():
    adapter = LangGraphAdapter(answering(StreamingModel(turns=[say("ab")], delay=0.01), checkpointer=None))
    runs = await asyncio.gather(*(played(adapter, asks(run=f"r{n}")) for n in range(3)))
    assert [said(events) for events in runs] == ["ab"] * 3


async def test_what_the_client_sent_reaches_the_nodes():
    seen: dict[str, Any] = {}

    async def node(state: MessagesState, config: RunnableConfig) -> Any:
        seen.update(config["configurable"]["ag_ui"], user=config["configurable"]["user"])
        return {"messages": [AIMessage("ok", id="a1")]}

    builder = StateGraph(MessagesState).add_node("node", node).add_edge(START, "node")
    adapter = LangGraphAdapter(builder.compile(), config={"configurable": {"user": "ada"}, "tags": ["mine"]})
    sent = asks(
        tools=[Tool(name="pick", description="Pick one", parameters={"type": "object"})],
        context=[Context(description="page", value="home")],
        forwarded_props={"x": 1},
    )
    await played(adapter, sent)
    assert seen["user"] == "ada"
    assert seen["tools"][0]["name"] == "pick"
    assert seen["context"] == [{"description": "page", "value": "home"}]
    assert seen["forwarded_props"] == {"x": 1}


async def test_a_clients_tool_ends_the_run_and_its_result_begins_the_next():
    model = StreamingModel(turns=[[calls(piece("pick", '{"of":3}', "c1"))], say("you picked 2")])

    async def answer(state: MessagesState, config: RunnableConfig) -> Any:
        bound = model.bind_tools(config["configurable"]["ag_ui"]["tools"])
        return {"messages": [await bound.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    stage = Stage().play(builder.compile(checkpointer=InMemorySaver()))
    tools = [Tool(name="pick", description="Pick one", parameters={"type": "object"})]
    events = await stage.send("hi", tools=tools)
    assert fold(events).pending_tool_call_ids == ["c1"]
    assert [tool["name"] for tool in model.bound] == ["pick"]
    result = {"id": "r1", "role": "tool", "toolCallId": "c1", "content": "2"}
    stage.view["messages"] = [{"id": "u1", "role": "user", "content": "hi"}, result]
    events = await stage.send(None, tools=tools)
    assert said(events) == "you picked 2"
    assert fold(events).pending_tool_call_ids == []
    state = await stage.graph.aget_state({"configurable": {"thread_id": "t"}})
    assert [message.type for message in state.values["messages"]] == ["human", "ai", "tool", "ai"]


@pytest.mark.parametrize("manager", [True, False])
async def test_callbacks_of_the_user_are_kept(manager: bool):
    ends: list[str] = []

    class Mine(BaseCallbackHandler):
        run_inline = True

        def on_llm_end(self, response: Any, **kwargs: Any) -> None:
            ends.append("end")

    callbacks: Any = CallbackManager([], inheritable_handlers=[Mine()]) if manager else [Mine()]
    adapter = LangGraphAdapter(chat(say("x")), config={"callbacks": callbacks})
    await played(adapter, asks())
    assert ends == ["end"]


async def test_raw_parts_are_told_only_when_asked_for_and_bounded():
    graph = agent([calls(piece("add", '{"a":1,"b":2}', "c1"))], say("ok"), tools=[add])
    assert "RAW" not in types(await played(LangGraphAdapter(graph), asks(run="r1")))
    options = LangGraphOptions(max_raw_nodes=5)
    raws = [
        e
        for e in await played(LangGraphAdapter(graph, raw=True, options=options), asks(run="r2"))
        if e.type == "RAW"
    ]
    assert raws
    assert all(event.source == "langgraph" for event in raws)
    assert all(len(event.model_dump_json()) < 3_000 for event in raws)
    assert "[cut]" in str(raws)


async def test_run_facts_ride_on_the_ends():
    events = await played(
        LangGraphAdapter(chat(say("x", usage=(2, 3))), name="mine"), asks(parent_run_id="r0")
    )
    assert events[0].protocol_version == "1.0"
    assert events[0].parent_run_id == "r0"
    assert events[0].metadata["runcast"] == {"framework": "langgraph", "agent": "mine"}
    assert [message.id for message in events[0].input.messages] == ["u-t-r1"]
    facts = events[-1].metadata["runcast"]
    assert facts["step_count"] == 1
    assert facts["framework"]["checkpoint_id"]
    assert facts["continuation"] == {
        "should_continue": False,
        "stop_reason": "completed",
        "resolved_by": "graph",
    }
    assert all(event.timestamp for event in events)


async def test_the_input_told_holds_only_what_is_new():
    stage = Stage().play(chat(say("one"), say("two")))
    await stage.send("hi")
    held = [UserMessage(id="u1", content="hi"), UserMessage(id="u2", content="more")]
    events = await stage.send(None, messages=held)
    assert [message.id for message in events[0].input.messages] == ["u2"]


async def test_a_recursion_limit_and_a_broken_checkpointer_have_their_codes():
    builder = StateGraph(MessagesState).add_node("a", lambda state: {}).add_node("b", lambda state: {})
    builder.add_edge(START, "a").add_edge("a", "b").add_edge("b", "a")
    adapter = LangGraphAdapter(builder.compile(), config={"recursion_limit": 5})
    assert (await played(adapter, asks()))[-1].code == "recursion_limit"

    class Broken(InMemorySaver):
        async def aget_tuple(self, config: Any) -> Any:
            raise ConnectionError("postgresql://user:hunter2secret@db is gone")

    events = await played(LangGraphAdapter(chat(say("x"), checkpointer=Broken())), asks())
    assert [event.type.value for event in events] == ["RUN_STARTED", "RUN_ERROR"]
    assert "hunter2secret" not in events[-1].message


async def test_a_resume_point_costs_one_look_at_the_checkpoint():
    class Counting(InMemorySaver):
        reads = 0

        async def aget_tuple(self, config: Any) -> Any:
            Counting.reads += 1
            return await super().aget_tuple(config)

    stage = Stage().play(chat(say("one"), say("two"), checkpointer=Counting()))
    first = await stage.send("hi")
    facts = first[-1].metadata["runcast"]["framework"]
    point = SimpleNamespace(
        messages=[UserMessage(id="u1", content="hi")],
        history=None,
        state={},
        interrupts=[],
        framework={**facts, "unfinished": False},
    )
    stage.adapter.graph.aget_state = None  # no state is read
    before = Counting.reads
    events = await played(stage.adapter, asks(run="r9"), resume=point)
    assert events[0].metadata["runcast"]["resumed_from"] == "checkpoint"
    assert Counting.reads - before == 2  # the look, and LangGraph's own


async def test_a_late_id_finds_back_to_its_message_through_a_resume_point():
    from langchain_core.messages import AIMessageChunk

    model = StreamingModel(
        turns=[[*say("a"), AIMessageChunk(content="b", id="msg_9")], say("next")], heard=[]
    )
    stage = Stage().play(answering(model))
    events = await stage.send("hi")
    public = next(event.message_id for event in events if event.type == "TEXT_MESSAGE_START")
    facts = events[-1].metadata["runcast"]["framework"]
    assert facts["aliases"] == {public: "msg_9"}
    held = [
        {"id": "u1", "role": "user", "content": "hi"},
        {"id": public, "role": "assistant", "content": "ab"},
        {"id": "u2", "role": "user", "content": "more"},
    ]
    sent = RunAgentInput.model_validate({"threadId": "t", "runId": "r2", "messages": held})
    point = SimpleNamespace(
        messages=sent.messages[:2],
        history=None,
        state={},
        interrupts=[],
        framework={**facts, "unfinished": False},
    )
    await played(stage.adapter, sent, resume=point)
    assert [message.content for message in model.heard[-1]] == ["hi", "ab", "more"]


@pytest.mark.parametrize("model", [FakeModel, StreamingModel])
def test_54_run_sync(model: Any):
    def answer(state: MessagesState) -> Any:
        return {"messages": [model(turns=[say("Hel", "lo")]).invoke(state["messages"])]}

    builder = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    adapter = LangGraphAdapter(builder.compile(checkpointer=InMemorySaver()))
    events = list(adapter.run_sync(asks()))
    assert not verify(events)
    assert said(events) == "Hello"
    again = list(adapter.run_sync(asks(run="r2", messages=[UserMessage(id="u-t-r1", content="hi")])))
    assert again[0].metadata["runcast"]["resumed_from"] == "fork"
    wrong = list(adapter.run_sync(asks(run="r3", resume=[{"interruptId": "x", "status": "resolved"}])))
    assert wrong[-1].code == "invalid_input"
    assert adapter.stats()["active"] == 0


class Remote:
    """What a RemoteGraph gives: parts whose messages are JSON, no run control."""

    async def aget_state(self, config: Any) -> Any:
        return SimpleNamespace(values={}, config={}, interrupts=(), next=())

    async def astream(self, input: Any, config: Any, **given: Any) -> Any:
        assert "control" not in given
        meta = {"langgraph_checkpoint_ns": "n:1"}
        for content, last in (("Hel", None), ("lo", "last")):
            message = {"type": "AIMessageChunk", "content": content, "id": "m1", "chunk_position": last}
            yield {"type": "messages", "ns": (), "data": (message, meta)}
        whole = {"type": "ai", "content": "whole", "id": "m2"}
        yield {"type": "messages", "ns": (), "data": (whole, meta)}


async def test_a_remote_graph_where_its_stream_allows():
    events = await played(LangGraphAdapter(Remote()), asks())
    assert said(events) == "Hellowhole"
    assert events[-1].outcome.type == "success"
