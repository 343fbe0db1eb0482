"""A checkpoint that a run stores when it is over: its worker slept past its lease, and woke when another had its run."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import RunAgentInput, UserMessage
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from runcast.adapters import Adapter, Anchored
from runcast.adapters.langgraph import LangGraphAdapter, LangGraphOptions
from runcast.app import Cast
from runcast.app.tenants.tenant_adapter import ForTenant
from runcast.slim.folding.run_metadata import metadata_of
from tests.adapters.langgraph.test_savers import sqlite
from tests.app.agents import parrot


def talk(saver: Any) -> Any:
    """Two nodes that speak and one that may ask."""

    def first(state: MessagesState) -> Any:
        return {"messages": [AIMessage("one", id=f"one-{len(state['messages'])}")]}

    def second(state: MessagesState) -> Any:
        told = interrupt("Good?") if "ask" in str(state["messages"][-2].content) else "two"
        return {"messages": [AIMessage(str(told), id=f"two-{len(state['messages'])}")]}

    builder = StateGraph(MessagesState).add_node("first", first).add_node("second", second)
    return builder.add_edge(START, "first").add_edge("first", "second").compile(checkpointer=saver)


async def shown(cast: Cast) -> list[str]:
    state = await cast.threads.state("t1")
    assert state is not None
    return [str(getattr(each, "content", "")) for each in state.history]


async def held(graph: Any) -> list[str]:
    state = await graph.aget_state({"configurable": {"thread_id": "t1"}})
    return [str(each.content) for each in state.values["messages"]]


async def wakes(graph: Any, run: str) -> None:
    """Go on as this run's worker would that slept within its last step."""
    stored = [
        each
        async for each in graph.checkpointer.alist({"configurable": {"thread_id": "t1"}})
        if each.metadata.get("runcast_run_id") == run
    ]
    own = {key: value for key, value in stored[1].metadata.items() if key.startswith("runcast_")}
    await graph.ainvoke(None, {"configurable": dict(stored[1].config["configurable"]), "metadata": own})
    newest = await graph.checkpointer.aget_tuple({"configurable": {"thread_id": "t1"}})
    assert newest.metadata["runcast_run_id"] == run


async def goes_on(saver: Any) -> None:
    graph = talk(saver)
    async with Cast.open("memory://", agents=[LangGraphAdapter(graph, name="talk"), parrot]) as cast:
        first = await (await cast.say("t1", "a", agent="talk")).result()
        await (await cast.say("t1", "b", agent="talk")).result()
        before = await shown(cast)
        assert before == ["a", "one", "two", "b", "one", "two"]
        await wakes(graph, first.run_id)
        assert await held(graph) == before[:3]
        await (await cast.say("t1", "c", agent="talk")).result()
        assert await shown(cast) == [*before, "c", "one", "two"]
        assert await held(graph) == await shown(cast)
        await (
            await cast.say("t1", "d", agent="talk")
        ).result()  # by what this process remembers, and nothing is passed over
        assert (await shown(cast))[9:] == ["d", "one", "two"]


async def test_the_next_turn_goes_on_from_the_last_run_and_not_from_one_that_was_over() -> None:
    await goes_on(InMemorySaver())


async def test_so_it_does_over_sqlite(tmp_path: Path) -> None:
    async with sqlite(tmp_path) as saver:
        await goes_on(saver)


async def test_an_answer_goes_to_the_question_that_is_open() -> None:
    graph = talk(InMemorySaver())
    async with Cast.open("memory://", agents=[LangGraphAdapter(graph, name="talk")]) as cast:
        first = await (await cast.say("t1", "a")).result()
        asked = await (await cast.say("t1", "ask me")).result()
        assert asked.status == "interrupted"
        await wakes(graph, first.run_id)
        [question] = asked.interrupts
        answered = await cast.resume("t1", {question.id: "fine"})
        assert (await answered.result()).status == "completed"
        assert await shown(cast) == ["a", "one", "two", "ask me", "one", "fine"]
        assert await held(graph) == await shown(cast)


def beside(saver: Any) -> Any:
    """A node that may ask, one beside it that counts its calls, and one after both."""
    calls = count(1)

    def asks(state: MessagesState) -> Any:
        told = interrupt("Good?") if "ask" in str(state["messages"][-1].content) else "fine"
        return {"messages": [AIMessage(str(told), id=f"asks-{len(state['messages'])}")]}

    def counts(state: MessagesState) -> Any:
        return {"messages": [AIMessage(f"call {next(calls)}", id=f"counts-{len(state['messages'])}")]}

    builder = StateGraph(MessagesState).add_node("asks", asks).add_node("counts", counts)
    return builder.add_edge(START, "asks").add_edge(START, "counts").compile(checkpointer=saver)


async def test_an_answer_repeats_nothing_that_is_done_beside_its_question() -> None:
    graph = beside(InMemorySaver())
    async with Cast.open("memory://", agents=[LangGraphAdapter(graph, name="talk")]) as cast:
        first = await (await cast.say("t1", "a")).result()
        asked = await (await cast.say("t1", "ask me")).result()
        await wakes(graph, first.run_id)
        [question] = asked.interrupts
        assert (await (await cast.resume("t1", {question.id: "good"})).result()).status == "completed"
        assert await held(graph) == ["a", "fine", "call 1", "ask me", "good", "call 2"] == await shown(cast)


async def test_what_the_program_itself_has_stored_counts() -> None:
    graph = talk(InMemorySaver())
    async with Cast.open("memory://", agents=[LangGraphAdapter(graph, name="talk")]) as cast:
        await (await cast.say("t1", "a")).result()
        place = {"configurable": {"thread_id": "t1"}}
        await graph.aupdate_state(place, {"messages": [AIMessage("by hand", id="hand")]})
        await (await cast.say("t1", "b")).result()
        assert await held(graph) == ["a", "one", "two", "by hand", "b", "one", "two"]


@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_a_run_that_stored_nothing_before_it_slept_is_late_too(durability: Any) -> None:
    """With `exit` no run stores anything before its end; with the others it may sleep before its first checkpoint."""
    sleeps, wakes = asyncio.Event(), asyncio.Event()

    async def sleep() -> None:
        if not sleeps.is_set():
            sleeps.set()
            await wakes.wait()

    class Sleeping(InMemorySaver):
        async def aput(self, config: Any, *given: Any) -> Any:
            if durability == "sync":
                await sleep()
            return await super().aput(config, *given)

    async def speak(state: MessagesState) -> Any:
        if durability == "exit":
            await sleep()
        return {"messages": [AIMessage("one", id=f"one-{len(state['messages'])}")]}

    builder = StateGraph(MessagesState).add_node("speak", speak).add_edge(START, "speak")
    graph = builder.compile(checkpointer=Sleeping())
    said = [UserMessage(id=text, content=text) for text in "abc"]

    def asked(number: int) -> RunAgentInput:
        return RunAgentInput(
            thread_id="t1", run_id=f"r{number}", messages=said[:number], tools=[], context=[]
        )

    async def runs(number: int, place: Any) -> Any:
        adapter = LangGraphAdapter(graph, options=LangGraphOptions(durability=durability))  # another worker's
        events = [each async for each in adapter.run_after(place, asked(number))]
        return metadata_of(events[-1])["framework"]

    asleep = asyncio.create_task(runs(1, {}))
    await sleeps.wait()
    place = await runs(2, {})
    before = await held(graph)
    wakes.set()
    await asleep
    assert await held(graph) != before
    await runs(3, place)
    assert await held(graph) == [*before, "c", "one"]


async def test_what_the_program_puts_on_top_of_a_late_one_goes_with_it() -> None:
    """A turn that people saw is worth more: `update_state` stands on the conversation without it."""
    graph = talk(InMemorySaver())
    async with Cast.open("memory://", agents=[LangGraphAdapter(graph, name="talk")]) as cast:
        first = await (await cast.say("t1", "a")).result()
        await (await cast.say("t1", "b")).result()
        before, place = await shown(cast), {"configurable": {"thread_id": "t1"}}
        await wakes(graph, first.run_id)
        for n in range(2):
            await graph.aupdate_state(place, {"messages": [AIMessage("by hand", id=f"hand-{n}")]})
            await wakes(graph, first.run_id)
        await graph.aupdate_state(place, {"messages": [AIMessage("by hand", id="hand")]})
        await (await cast.say("t1", "c")).result()
        assert await shown(cast) == [*before, "c", "one", "two"] == await held(graph)
        await graph.aupdate_state(place, {"messages": [AIMessage("by hand", id="hand")]})
        await (await cast.say("t1", "d")).result()
        assert await shown(cast) == [*before, "c", "one", "two", "by hand", "d", "one", "two"]


async def test_a_last_run_that_left_no_place_takes_none_away() -> None:
    """The log has the first run's place; the graph went on in a second, which died before it told one."""
    graph = talk(InMemorySaver())
    adapter = LangGraphAdapter(graph)
    said = [UserMessage(id=text, content=text) for text in "abc"]
    places: list[Any] = []
    for at in (1, 2, 3):
        input = RunAgentInput(thread_id="t1", run_id=f"r{at}", messages=[*said[:at]], tools=[], context=[])
        events = [each async for each in adapter.run_after(places[0] if places else {}, input)]
        places.append(metadata_of(events[-1])["framework"])
    assert places[0]["checkpoint_id"] != places[1]["checkpoint_id"]
    assert [each for each in await held(graph) if len(each) == 1] == ["a", "b", "c"]


@pytest.mark.parametrize("agent", [parrot, LangGraphAdapter(talk(InMemorySaver()))])
async def test_a_tenants_adapter_takes_a_place_whether_its_agent_does_or_not(agent: Any) -> None:
    async with Cast.open("memory://", agents=[agent]) as root:
        cast = root.for_tenant("acme")
        adapter: Adapter = next(iter(cast.agents.values()))
        assert isinstance(adapter, ForTenant)
        assert isinstance(adapter, Anchored)
        for text in ("a", "b"):
            assert (await (await cast.say("t1", text)).result()).status == "completed"
