"""A graph that holds nothing of a thread is told what the snapshot remembers: messages and state, and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ag_ui.core import Interrupt, ResumeEntry, RunAgentInput, UserMessage
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from runcast.adapters.langgraph import LangGraphAdapter
from runcast.slim.snapshots.agent_state import AgentState
from runcast.slim.snapshots.serializer import SlimSerializer


class Counting(MessagesState):
    count: int


def adapter(seen: list[Any], checkpointer: Any = None) -> LangGraphAdapter:
    def model(state: Counting) -> dict[str, Any]:
        seen.append(([message.content for message in state["messages"]], state.get("count", 0)))
        return {"messages": [AIMessage(f"answer {len(seen)}")], "count": state.get("count", 0) + 1}

    builder = StateGraph(Counting).add_node("model", model).add_edge(START, "model")
    return LangGraphAdapter(builder.compile(checkpointer=checkpointer))


def asks(run: str, *messages: UserMessage) -> RunAgentInput:
    return RunAgentInput(
        thread_id="t", run_id=run, messages=list(messages), state={}, tools=[], context=[], forwarded_props={}
    )


FIRST, SECOND = UserMessage(id="u1", content="one"), UserMessage(id="u2", content="two")


async def remembered(events: list[Any]) -> AgentState:
    """What a snapshot of these events gives back."""
    serializer = SlimSerializer()
    return serializer.deserialize(serializer.serialize(AgentState.from_events(events, "agent")))


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
async def test_without_a_checkpointer_a_thread_goes_on_from_its_snapshot(sync: bool):
    seen: list[Any] = []
    agent = adapter(seen)
    state = await remembered([event async for event in agent.run(asks("r1", FIRST))])
    if sync:
        events = list(agent.run_sync(asks("r2", SECOND), resume=state))
    else:
        events = [event async for event in agent.run(asks("r2", SECOND), resume=state)]
    assert seen[1] == (["one", "answer 1", "two"], 1)
    assert events[0].metadata["runcast"]["resumed_from"] == "snapshot"
    assert [message.id for message in events[0].input.messages] == ["u2"]
    assert [event.type.value for event in events].count("TEXT_MESSAGE_START") == 1
    after = AgentState.from_events(events, base=state)
    assert [message.content for message in after.messages] == ["one", "answer 1", "two", "answer 2"]


async def played(
    agent: LangGraphAdapter, input: RunAgentInput, point: AgentState, *, sync: bool
) -> list[Any]:
    if sync:
        return list(agent.run_sync(input, resume=point))
    return [event async for event in agent.run(input, resume=point)]


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize("unfinished", [None, False, True], ids=["as it is", "finished", "unfinished"])
async def test_a_thread_whose_checkpoint_is_gone_goes_on_from_its_snapshot(
    sync: bool, unfinished: bool | None
):
    """It is looked for however the thread ended: its checkpoints may be pruned, or the checkpointer be new."""
    seen: list[Any] = []
    point = await remembered([event async for event in adapter(seen, InMemorySaver()).run(asks("r1", FIRST))])
    if unfinished is not None:
        point = replace(point, framework={**point.framework, "unfinished": unfinished})
    saver = InMemorySaver()
    events = await played(adapter(seen, saver), asks("r2", SECOND), point, sync=sync)
    assert seen[1] == (["one", "answer 1", "two"], 1)
    assert events[0].metadata["runcast"]["resumed_from"] == "snapshot"
    assert [message.id for message in events[0].input.messages] == ["u2"]
    kept = adapter(seen, saver).graph.get_state({"configurable": {"thread_id": "t"}}).values
    assert [message.content for message in kept["messages"]] == ["one", "answer 1", "two", "answer 2"]
    assert kept["count"] == 2


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
async def test_a_thread_whose_checkpoints_were_pruned_goes_on_from_its_snapshot(sync: bool):
    seen: list[Any] = []
    saver = InMemorySaver()
    agent = adapter(seen, saver)
    point = await remembered([event async for event in agent.run(asks("r1", FIRST))])
    await saver.adelete_thread("t")
    events = await played(agent, asks("r2", SECOND), point, sync=sync)
    assert seen[1] == (["one", "answer 1", "two"], 1)
    assert events[0].metadata["runcast"]["resumed_from"] == "snapshot"


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
async def test_a_thread_whose_checkpoint_is_there_goes_on_from_it(sync: bool):
    seen: list[Any] = []
    agent = adapter(seen, InMemorySaver())
    point = await remembered([event async for event in agent.run(asks("r1", FIRST))])
    point = replace(point, state={"count": 40})  # the checkpoint is the truth
    events = await played(agent, asks("r2", SECOND), point, sync=sync)
    assert seen[1] == (["one", "answer 1", "two"], 1)
    assert events[0].metadata["runcast"]["resumed_from"] == "checkpoint"


async def test_a_client_that_cut_its_history_back_is_not_shown_what_it_cut():
    seen: list[Any] = []
    agent = adapter(seen, InMemorySaver())
    first = [event async for event in agent.run(asks("r1", FIRST))]
    point = await remembered([*first, *[event async for event in agent.run(asks("r2", SECOND))]])
    edited = UserMessage(id="u3", content="two, in other words")
    held = [*point.messages[:2], edited]
    await played(adapter(seen, InMemorySaver()), asks("r3", *held), point, sync=False)
    assert seen[2][0] == ["one", "answer 1", "two, in other words"]


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
async def test_an_answer_to_a_checkpoint_that_is_gone_is_refused(sync: bool):
    """A node waits for it in the middle of its work, and where that was nothing but a checkpoint tells."""
    asked = Interrupt(id="i1", reason="ask")
    point = AgentState(agent_id="a", history=[FIRST], interrupts=[asked], framework={"checkpoint_id": "c1"})
    input = asks("r2").model_copy(update={"resume": [ResumeEntry(interrupt_id="i1", status="resolved")]})
    events = await played(adapter([], InMemorySaver()), input, point, sync=sync)
    assert [event.type.value for event in events] == ["RUN_STARTED", "RUN_ERROR"]
    assert events[-1].code == "invalid_input"
    assert "the thread's checkpoint is gone; send a message instead of `resume`" in events[-1].message
