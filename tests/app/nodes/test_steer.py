"""A message for an agent that works: handed to it before its next model call, once, and shown where the model reads it."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Literal, TypedDict, cast

import pytest
from ag_ui.core import (
    CustomEvent,
    RunAgentInput,
    TextMessageStartEvent,
    UserMessage,
)
from google.adk.agents import LlmAgent
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import create_react_agent

from runcast.adapters import Steerable, can_steer
from runcast.adapters.adk import AdkAdapter
from runcast.adapters.langgraph import LangGraphAdapter, LangGraphOptions
from runcast.app import Cast
from runcast.app.host.event_function import EventFunction
from runcast.broadcast import Broadcaster, MemoryPublisher, channel_for
from runcast.slim import MemoryStore, RunLog, verify
from tests.app.agents import Gated, parrot
from tests.app.mortal import Mortal, behind
from tests.app.nodes.stage import PATIENCE, until
from tests.app.nodes.test_queue import buried, idle, words
from tests.app.nodes.works import (
    AdkModel,
    Framework,
    GraphModel,
    Heard,
    Works,
    graph,
    is_paired,
    of_graph,
    shown,
)
from tests.app.serving import run_input, sent, serving
from tests.conftest import LONG

pytestmark = [
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK's own, once a process
    pytest.mark.filterwarnings("ignore:create_react_agent has been moved"),
]
FRAMEWORKS = ["langgraph", "adk"]


async def whole(run: Any) -> Any:
    async with asyncio.timeout(PATIENCE):
        return await run.result()


async def events_of(cast: Cast) -> list[Any]:
    return [each.event for each in await cast.log.entries("t1")]


@pytest.mark.parametrize("name", FRAMEWORKS)
async def test_a_message_is_read_before_the_next_model_call(name: str) -> None:
    works, framework = Works(), Framework(name)
    agent = framework.agent(works)
    async with Cast.open("memory://", agents=[agent], watch=False) as cast:
        first = await cast.say("t1", "one")
        await works.reaches(works.in_tool)
        second = await cast.say("t1", "two", on_busy="steer")
        third = await cast.say("t1", "three", on_busy="steer")
        assert [each.accepted for each in (first, second, third)] == ["started", "steering", "steering"]
        works.open()
        assert (await whole(second)).run_id == (await whole(first)).run_id == first.run_id
        assert (await whole(third)).status == "completed"
        assert [kind for kind, _ in works.heard[-1]] == [
            "user",
            "call",
            "call",
            "result",
            "result",
            "user",
            "user",
        ]
        assert [text for kind, text in works.heard[-1] if kind == "user"] == ["one", "two", "three"]
        assert all(is_paired(heard) for heard in works.heard)
        await until(lambda: _none_waits(cast))
        state = await cast.state("t1")
        assert state is not None
        assert shown(state.messages) == await framework.held(agent)
        assert [each.role for each in state.messages] == [
            "user",
            "assistant",
            "tool",
            "tool",
            "user",
            "user",
            "assistant",
        ]
        assert state.messages[-1].content == "saw one and two and three"
        assert [each.run_id for each in await cast.log.runs("t1")] == [first.run_id]
        events = await events_of(cast)
        assert not verify(events)
        told = [
            each.value for each in events if isinstance(each, CustomEvent) and each.name == "runcast.steered"
        ]
        said = [
            each.message_id
            for each in events
            if isinstance(each, TextMessageStartEvent) and each.role == "user"
        ]
        assert told == [
            {"run_id": run.run_id, "message_id": at} for run, at in zip((second, third), said, strict=True)
        ]
        assert (await whole(await cast.say("t1", "four"))).status == "completed"
        assert await words(cast) == ["one", "two", "three", "four"]


async def settled(cast: Cast, recover: str) -> None:
    """Nothing waits, and nothing runs or is to be resumed."""

    async def rests() -> bool:
        runs = await cast.log.runs("t1")
        return recover == "off" or runs[-1].status != "truncated"

    await idle(cast)
    await until(rests)
    await idle(cast)


def doomed(mortal: Mortal, agent: Any, recover: Literal["off", "continue"]) -> Cast:
    """A host whose process dies with its store."""
    return Cast(RunLog(cast("Any", mortal), clock=behind, patience_ms=0), agents=[agent], recover=recover)


def survived() -> Works:
    """What the host after it works with: nothing holds it up."""
    works = Works(name="again")
    works.open()
    return works


def people(messages: Heard) -> Heard:
    return [each for each in messages if each[0] == "user"]


async def _none_waits(cast: Cast) -> bool:
    return not await cast.queue.waiting("t1")


# ---------------------------------------------------------- graphs of all kinds


def plain_graph(works: Works, saver: Any) -> Any:
    """A graph of nodes alone, whose model is called twice."""
    model = GraphModel(works=works)

    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    async def act(state: MessagesState) -> dict[str, Any]:
        calls: Any = state["messages"][-1]
        results = {"at_once": works.at_once, "slow": works.slow}
        return {
            "messages": [
                ToolMessage(await results[call["name"]](), tool_call_id=call["id"])
                for call in calls.tool_calls
            ]
        }

    def goes_on(state: MessagesState) -> str:
        return "act" if getattr(state["messages"][-1], "tool_calls", None) else END

    made: Any = StateGraph(MessagesState)
    made.add_node("think", think)
    made.add_node("act", act)
    made.add_edge(START, "think")
    made.add_conditional_edges("think", goes_on)
    made.add_edge("act", "think")
    return made.compile(checkpointer=saver)


def supervisor(works: Works, saver: Any) -> Any:
    """An agent with tools as one node, and a model after it."""
    last = Works()
    last.open()
    model = GraphModel(works=last)

    async def closes(state: MessagesState) -> dict[str, Any]:
        works.heard += [[each for message in state["messages"] for each in of_graph(message)]]
        return {
            "messages": [await model.ainvoke([each for each in state["messages"] if each.type == "human"])]
        }

    made: Any = StateGraph(MessagesState)
    made.add_node("worker", graph(works, None))
    made.add_node("closes", closes)
    made.add_edge(START, "worker")
    made.add_edge("worker", "closes")
    return made.compile(checkpointer=saver)


def deep(works: Works, saver: Any) -> Any:
    """An agent whose tool is another agent, which waits."""
    inner = Works(tool=works.tool, answer=works.answer, in_tool=works.in_tool, name="below")
    below = graph(inner, None)

    async def at_once() -> str:
        """Do not wait."""
        return "quick done"

    async def slow() -> str:
        """Ask another agent."""
        inner.heard.clear()
        found = await below.ainvoke({"messages": [("user", "below")]})
        works.runs_below += 1
        return str(found["messages"][-1].content)

    return create_agent(GraphModel(works=works), [tool(at_once), tool(slow)], checkpointer=saver)


GRAPHS: dict[str, Any] = {
    "create_agent": graph,
    "create_react_agent": partial(graph, make=create_react_agent),
    "nodes alone": plain_graph,
    "an agent as a node": supervisor,
    "an agent as a tool": deep,
}


OPTIONS: list[Any] = [{}, {"durability": "exit"}, {"stream": "v3"}]
KINDS = [
    (kind, options) for kind in GRAPHS for options in OPTIONS if LONG or not options or kind == "create_agent"
]


@pytest.mark.parametrize(("kind", "options"), KINDS, ids=str)
async def test_every_graph_reads_it_between_two_of_its_steps(kind: str, options: Any) -> None:
    works, saver = Works(), InMemorySaver()
    agent = LangGraphAdapter(GRAPHS[kind](works, saver), options=LangGraphOptions(**options))
    async with Cast.open("memory://", agents=[agent], watch=False) as cast:
        first = await cast.say("t1", "one")
        await works.reaches(works.in_tool)
        second = await cast.say("t1", "two", on_busy="steer")
        assert second.accepted == "steering"
        works.open()
        assert (await whole(second)).run_id == first.run_id
        assert (await whole(first)).status == "completed"
        assert [text for name, text in works.heard[-1] if name == "user"] == ["one", "two"]
        assert all(is_paired(heard) for heard in works.heard)
        assert works.runs_below == (kind == "an agent as a tool")  # a tool is not run again
        state = await cast.state("t1")
        assert state is not None
        held = await agent.graph.aget_state({"configurable": {"thread_id": "t1"}})
        assert [each.id for each in state.messages if each.role == "user"] == [
            each.id for each in held.values["messages"] if each.type == "human"
        ]
        told = await events_of(cast)
        assert not verify(told)
        by_people = [each for each in told if isinstance(each, TextMessageStartEvent) and each.role == "user"]
        assert [each.metadata for each in by_people] == [None], "no node of the graph has said it"


async def test_where_an_agent_cannot_it_is_queued_and_the_answer_says_so() -> None:
    class Replaced(TypedDict):
        messages: list[Any]

    async def node(state: Any) -> dict[str, Any]:
        return {"messages": [AIMessage("done", id="a")]}

    replacing: Any = StateGraph(Replaced)
    replacing.add_node("node", node)
    replacing.add_edge(START, "node")
    remembering: Any = StateGraph(MessagesState)
    remembering.add_node("node", create_agent(GraphModel(works=Works()), [], checkpointer=True))
    remembering.add_edge(START, "node")
    alone = LlmAgent(name="alone", model=AdkModel(works=Works()), include_contents="none")
    adapters: list[Any] = [
        EventFunction(cast("Any", parrot), name="parrot"),
        LangGraphAdapter(graph(Works(), None)),
        LangGraphAdapter(replacing.compile(checkpointer=InMemorySaver())),
        LangGraphAdapter(remembering.compile(checkpointer=InMemorySaver())),
        AdkAdapter(alone, app_name="app"),
    ]
    assert [can_steer(each) for each in adapters] == [False] * 5
    assert [isinstance(each, Steerable) for each in adapters] == [False, True, True, True, True]
    works, gated = Works(), Gated(1)
    agent = Framework("langgraph").agent(works)
    async with Cast.open("memory://", agents=[agent], watch=False) as host:
        host.register(gated, name="gated")
        first = await host.say("t1", "one", agent="agent")
        other = await host.say("t1", "two", agent="gated", on_busy="steer")
        picture: Any = UserMessage.model_validate({"id": "p", "content": [{"type": "text", "text": "three"}]})
        shows = await host.say("t1", [picture], agent="agent", on_busy="steer")
        mine = await host.say("t1", "four", agent="agent", on_busy="steer")
        assert [each.accepted for each in (other, shows, mine)] == ["queued", "queued", "steering"]
        rows = [each.row()["on_busy"] for each in await host.queue.waiting("t1")]
        assert rows == ["queue", "queue", "steer"]
        await host.queue.edit("t1", mine.run_id, "vier")
        works.open()
        gated.open()
        assert (await whole(mine)).run_id == first.run_id
        for each in (other, shows):
            assert (await whole(each)).run_id == each.run_id
        assert await words(host) == ["one", "vier", "two", "three"]


@pytest.mark.parametrize("name", FRAMEWORKS)
async def test_a_message_that_was_steered_is_edited_or_the_answer_says_what_to_do(name: str) -> None:
    works, framework = Works(), Framework(name)
    agent = framework.agent(works)
    async with Cast.open("memory://", agents=[agent], watch=False) as cast:
        first = await cast.say("t1", "one")
        await works.reaches(works.in_tool)
        second = await cast.say("t1", "two", on_busy="steer")
        works.open()
        await whole(second)
        await whole(first)
        state = await cast.state("t1")
        assert state is not None
        said = list(state.messages)

        async def edited(words: str, to: str) -> Any:
            at = next(at for at, each in enumerate(said) if each.content == words)
            again: Any = [*said[:at], UserMessage(id=said[at].id, content=to)]
            input = run_input(to, run=f"edit {to}") | {
                "messages": [each.model_dump(by_alias=True, exclude_none=True) for each in again]
            }
            return await whole(await cast.start(agent, RunAgentInput.model_validate(input)))

        later = await edited("two", "zwei")
        if name == "adk":
            assert [text for kind, text in works.heard[-1] if kind == "user"] == ["one", "zwei"]
        else:
            assert (later.status, later.code) == ("failed", "invalid_input")
            assert "edit an earlier message, or send a new one" in (later.error or "")
        assert (await whole(await cast.say("t1", "three"))).status == "completed"
        assert (await edited("one", "uno")).status == "completed"
        assert [text for kind, text in works.heard[-1] if kind == "user"] == ["uno"]
        assert all(is_paired(heard) for heard in works.heard)


@pytest.mark.parametrize("name", FRAMEWORKS)
async def test_a_run_that_makes_no_more_model_call_takes_nothing(name: str) -> None:
    works = Works()
    works.tool.set()
    agent = Framework(name).agent(works)
    async with Cast.open("memory://", agents=[agent], watch=False) as cast:
        first = await cast.say("t1", "one")
        await works.reaches(works.in_answer)
        second = await cast.say("t1", "two", on_busy="steer")
        gone = await cast.say("t1", "three", on_busy="steer")
        await cast.queue.withdraw("t1", gone.run_id)
        works.open()
        assert (second.accepted, (await whole(first)).status) == ("steering", "completed")
        assert (await whole(second)).run_id == second.run_id
        assert (await whole(gone)).code == "withdrawn"
        assert await words(cast) == ["one", "two"]
        assert all(is_paired(heard) for heard in works.heard)


async def test_an_agui_client_steers_and_watchers_see_it() -> None:
    works, publisher = Works(), MemoryPublisher()
    agent = Framework("langgraph").agent(works)
    cast = Cast(RunLog(MemoryStore()), Broadcaster(publisher), agents=[agent])
    async with serving(cast) as host:
        first = await cast.say("t1", "one")
        await works.reaches(works.in_tool)
        async with host.http.stream(
            "POST", "/agents/agent?on_busy=steer", json=run_input("two", run="r2")
        ) as response:
            body = {"message": "three", "on_busy": "steer"}
            third = await host.http.post("/threads/t1/runs", json=body)
            assert (third.status_code, third.json()["status"]) == (202, "steering")
            works.open()
            events = [each.event async for each in sent(response)]
        assert [each["type"] for each in events] == ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]
        assert events[1]["value"] == {"run_id": "r2", "into": first.run_id}
        await whole(first)
        assert await words(cast) == ["one", "two", "three"]

        async def told() -> list[str]:
            return [
                each.payload["run_id"]
                for each in publisher.envelopes(channel_for("t1"))
                if each.type == "agent.steered"
            ]

        async def both() -> bool:
            return await told() == ["r2", third.json()["run_id"]]

        await until(both)
        refused = await host.http.post("/threads/t1/queue/r2", json={"message": "too late"})
        assert refused.status_code in (404, 409)


# ----------------------------------------------------------------------- kills


@pytest.mark.parametrize("recover", ["continue", "off"])
@pytest.mark.parametrize("name", FRAMEWORKS)
async def test_a_steered_message_is_neither_lost_nor_doubled_wherever_its_process_dies(
    name: str, recover: Literal["off", "continue"]
) -> None:
    graves: list[asyncio.Future[None]] = []
    stride = 1 if LONG else (4 if recover == "continue" else 16)
    for steps in range(1, 2_000, stride):
        store, framework, works = MemoryStore(), Framework(name), Works()
        mortal, acknowledged = Mortal(store, steps), list[str]()
        victim = doomed(mortal, framework.agent(works, mortal), recover)

        async def scene(victim: Cast = victim, works: Works = works, done: list[str] = acknowledged) -> None:
            async with victim:
                await victim.say("t1", "one")
                done.append("one")
                await works.reaches(works.in_tool)
                for text in ("two", "three"):
                    await victim.say("t1", text, on_busy="steer")
                    done.append(text)
                works.open()
                await idle(victim)

        playing = asyncio.ensure_future(scene())
        died = await mortal.dies_in_scene(playing)
        again = survived()
        agent = framework.agent(again)
        async with Cast(RunLog(store), agents=[agent], recover=recover, recover_every=0.01) as survivor:
            if acknowledged:
                await settled(survivor, recover)
            if recover == "off" and acknowledged:
                await whole(await survivor.say("t1", "last", agent="agent"))
                acknowledged.append("last")
            said = await words(survivor)
            assert sorted(said) == sorted(set(said)), steps
            assert set(acknowledged) <= set(said), (steps, said)
            assert all(is_paired(heard) for heard in [*works.heard, *again.heard]), steps
            state = await survivor.state("t1")
            if state is not None and acknowledged:
                both = shown(state.messages), await framework.held(agent)
                if (name, recover) == ("adk", "off"):  # what a dead run said alone to its session stays there
                    both = people(both[0]), people(both[1])
                assert both[0] == both[1], steps
            entries = await survivor.log.entries("t1")
            for run in await survivor.log.runs("t1"):
                own = [each.event for each in entries if each.run_id == run.run_id]
                assert run.status == "truncated" or not verify(own), steps
        if died:
            graves.append(
                asyncio.ensure_future(buried(mortal, playing, victim))
            )  # now: its scene has a limit
        else:
            await playing
        if not died:
            break
    await asyncio.gather(*graves)
    assert steps > 30
