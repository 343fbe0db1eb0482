"""Case 47: stopping a run softly and hard, in a token, in a tool, at a step border, and by leaving."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import pytest
from ag_ui.core import UserMessage
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph

from runcast.adapters import UnknownRun
from runcast.adapters.langgraph import LangGraphAdapter, LangGraphOptions
from runcast.adapters.langgraph.options import Stream
from runcast.slim import fold
from runcast.slim.protocol.verifier import verify
from tests.adapters.langgraph.fakes import StreamingModel, calls, piece, say
from tests.adapters.langgraph.scenes.book import add, agent
from tests.adapters.langgraph.stage import Stage, over_both_streams
from tests.conftest import LONG


@tool
async def endless(text: str = "") -> str:
    """Never come back."""
    await asyncio.sleep(3600)
    return "back"


def two_steps() -> Any:
    """A step that takes a moment, and one that must not be reached."""

    async def first(state: MessagesState) -> Any:
        await asyncio.sleep(0.05)
        return {"messages": [AIMessage("first", id="a1")]}

    async def second(state: MessagesState) -> Any:
        return {"messages": [AIMessage("second", id="a2")]}

    builder = StateGraph(MessagesState).add_node("first", first).add_node("second", second)
    return builder.add_edge(START, "first").add_edge("first", "second").compile(checkpointer=InMemorySaver())


async def stopped_at(adapter: LangGraphAdapter, input: Any, wanted: str, *, hard: bool) -> list[Any]:
    """Run, and stop when an event of this type comes."""
    events = []
    async for event in adapter.run(input):
        events.append(event)
        if event.type == wanted and len([each for each in events if each.type == wanted]) == 1:
            await adapter.stop(input.run_id, hard=hard)
    assert not verify(events)
    assert adapter.stats()["active"] == 0
    return events


@over_both_streams
async def test_47_hard_in_a_token(stream: Stream):
    model = StreamingModel(turns=[say(*"abcdefgh")], delay=0.01)
    stage = Stage(stream=stream).play(_slow(model))
    events = await stopped_at(stage.adapter, stage.input("hi"), "TEXT_MESSAGE_CONTENT", hard=True)
    assert [event.type.value for event in events][-3:] == [
        "TEXT_MESSAGE_END",
        "STEP_FINISHED",
        "RUN_FINISHED",
    ]
    assert events[-1].outcome.type == "cancelled"
    assert events[-1].metadata["runcast"]["continuation"]["resolved_by"] == "user"


def _slow(model: Any) -> Any:
    async def answer(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    return builder.compile(checkpointer=InMemorySaver())


@over_both_streams
async def test_47_hard_in_a_tool(stream: Stream):
    stage = Stage(stream=stream).play(
        agent([calls(piece("endless", "{}", "c1"))], say("never"), tools=[endless])
    )
    events = await stopped_at(stage.adapter, stage.input("hi"), "TOOL_CALL_END", hard=True)
    assert events[-1].outcome.type == "cancelled"


@over_both_streams
async def test_47_soft_at_a_step_border_and_on_from_there(stream: Stream):
    stage = Stage(stream=stream).play(two_steps())
    events = await stopped_at(stage.adapter, stage.input("hi"), "STEP_STARTED", hard=False)
    assert events[-1].outcome.type == "cancelled"
    assert "first" in str(events)
    assert not [event for event in events if getattr(event, "delta", "") == "second"]
    events = [event async for event in stage.adapter.run(stage.input(messages=[]))]
    assert events[-1].outcome.type == "success"
    assert events[0].metadata["runcast"]["resumed_from"] == "checkpoint"
    assert [event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT"] == ["second"]


@over_both_streams
async def test_47_leaving_stops_the_graph(stream: Stream):
    reached = asyncio.Event()

    async def node(state: MessagesState) -> Any:
        get_stream_writer()("at work")
        try:
            await asyncio.sleep(3600)
        finally:
            reached.set()

    builder = StateGraph(MessagesState).add_node("node", node).add_edge(START, "node")
    stage = Stage(stream=stream).play(builder.compile(checkpointer=InMemorySaver()))
    run = stage.adapter.run(stage.input("hi"))
    async for event in run:
        if event.type == "CUSTOM":
            break
    await run.aclose()
    assert reached.is_set()
    assert stage.adapter.stats()["active"] == 0


@over_both_streams
async def test_47_a_cancelled_reader_still_gets_the_end(stream: Stream):
    stage = Stage(stream=stream).play(
        agent([calls(piece("endless", "{}", "c1"))], say("never"), tools=[endless])
    )
    events: list[Any] = []

    at_work = asyncio.Event()

    async def read() -> None:
        async for event in stage.adapter.run(stage.input("hi")):
            events.append(event)
            if event.type == "STEP_STARTED" and event.step_name == "tools":
                at_work.set()

    task = asyncio.create_task(read())
    await at_work.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events[-1].outcome.type == "cancelled"
    assert not verify(events)


async def test_stopping_a_run_nobody_knows():
    with pytest.raises(UnknownRun, match="nobody"):
        await Stage().play(two_steps()).adapter.stop("nobody")


class Away(InMemorySaver):
    """Fails once, before the checkpoint behind the first model step: what that step wrote stays pending."""

    failed = False

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        if metadata.get("step") == 1 and not self.failed:
            self.failed = True
            raise ConnectionError("the store is away")
        return await super().aput(config, checkpoint, metadata, new_versions)


@pytest.mark.parametrize("whole", [True, False])
async def test_a_call_whose_message_is_dropped_gets_no_result(whole: bool):
    graph = agent([calls(piece("endless", "{}", "c1"))], say("fine"), tools=[endless], checkpointer=Away())
    stage = Stage().play(graph, options=LangGraphOptions(durability="sync"))
    first = stage.input("hi")
    stage.took(first, [event async for event in stage.adapter.run(first)])
    assert (
        (await stage.graph.aget_state({"configurable": {"thread_id": "t"}})).values["messages"][-1].tool_calls
    )
    second = stage.input("again")
    if not whole:
        second.messages = second.messages[-1:]
    events = [event async for event in stage.adapter.run(second)]
    assert not verify(events)
    held = (await stage.graph.aget_state({"configurable": {"thread_id": "t"}})).values["messages"]
    assert [(each.type, each.content) for each in held] == [
        ("human", "hi"),
        ("human", "again"),
        ("ai", "fine"),
    ]


async def _broken(stage: Stage, said: list[Any]) -> list[Any]:
    """A run that takes two messages while it works, and breaks off in its answer to them."""
    events: list[Any] = []

    async def take() -> list[Any]:
        return said[1:]

    input = stage.input(messages=said[:1])
    run = stage.adapter.run(input)
    async for event in run:
        if event.type == "TOOL_CALL_START":
            await stage.adapter.steer(input.run_id, take)
        events.append(event)
        if event.type == "TEXT_MESSAGE_START" and event.role == "assistant":
            break
    await run.aclose()
    return events


@pytest.mark.parametrize("ended", [False, True])
@over_both_streams
async def test_messages_that_a_broken_run_took_may_be_sent_once_more(stream: Stream, ended: bool) -> None:
    """The log has less than the graph: wherever it ends, the graph goes on, and is shown as it is."""
    said = [UserMessage(id=text, content=text) for text in ("one", "two", "three")]
    tools = [piece("add", '{"a":1,"b":2}', "c1"), piece("add", '{"a":2,"b":2}', "c2", index=1)]
    for cut in count(1, 1 if LONG else 5):
        stage = Stage(stream=stream).play(
            agent([calls(*tools)], say("to ", "two"), say("later"), tools=[add])
        )
        events = await _broken(stage, said)
        if ended:
            await stage.graph.ainvoke(None, {"configurable": {"thread_id": "t"}})
        shown = fold(events[:cut])
        for message in [*said[1:], UserMessage(id="four", content="four")]:
            if message.id not in {each.id for each in shown.messages}:
                again = stage.input(messages=[*shown.messages, message])
                more = [each async for each in stage.adapter.run(again)]
                assert more[-1].type == "RUN_FINISHED", (cut, more[-1])
                shown = fold(more, shown)
        held = (await stage.graph.aget_state({"configurable": {"thread_id": "t"}})).values["messages"]
        assert [each.id for each in shown.messages] == [each.id for each in held], cut
        if cut >= len(events):
            break
