"""Scenes of nodes that give messages in other forms than LangChain's: pairs, dicts, strings, reducers of one's own."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import Annotated, Any

from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, convert_to_messages
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from runcast.adapters.langgraph import LangGraphOptions
from tests.adapters.langgraph.fakes import StreamingModel, say
from tests.adapters.langgraph.scenes.book import agent, scene
from tests.adapters.langgraph.scenes.graphs import tasks
from tests.adapters.langgraph.scenes.interrupts import asker, waiting
from tests.adapters.langgraph.scenes.state import gives, steps
from tests.adapters.langgraph.stage import Stage

CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"what": "it"}'}}


def gave(*forms: Any) -> Any:
    """A node that writes these into the conversation."""

    async def node(state: Any) -> Any:
        return {"messages": deepcopy(list(forms))}

    return node


def texts(stage: Stage) -> list[tuple[str, Any]]:
    """What the client holds, by role."""
    return [(message["role"], message.get("content")) for message in stage.view["messages"]]


@scene("27_messages_in_every_form")
async def every_form(stage: Stage) -> None:
    stage.play(
        steps(
            gave(("ai", "a pair")),
            gave({"role": "assistant", "content": "a dict"}, {"role": "ai", "content": "named", "id": "m1"}),
            gives({"messages": "a string"}),
            gives(Command(update={"messages": [("assistant", "by command")]})),
            gave(("system", "a prompt"), ("ai", [{"type": "text", "text": "in blocks"}])),
            gave({"role": "assistant", "content": "", "tool_calls": [CALL]}),
            gave({"role": "tool", "content": "found", "tool_call_id": "c1"}, ("ai", "that was it")),
        ),
        options=LangGraphOptions(system_messages=False),
    )
    await stage.send("hi")
    await stage.holds()
    if stage.oracle:
        assert texts(stage)[1:4] == [("assistant", "a pair"), ("assistant", "a dict"), ("assistant", "named")]
        assert ("user", "a string") in texts(stage)
        assert ("tool", "found") in texts(stage)


@scene("27_forms_without_a_checkpointer")
async def without_a_checkpointer(stage: Stage) -> None:
    stage.play(steps(gave(("ai", "one")), gave(AIMessage("two")), state=MessagesState, checkpointer=None))
    for _ in range(2):
        await stage.send("hi")
        [final] = [part for part in stage.tapes[-1]["parts"] if part["type"] == "values"][-1:]
        held = [message["fields"]["id"] for message in final["data"]["messages"]]
        if stage.oracle:
            assert [message["id"] for message in stage.view["messages"]] == held
    if stage.oracle:
        assert [text for role, text in texts(stage) if role == "assistant"] == ["one", "two"] * 2


@scene("27_forms_in_a_subgraph")
async def in_a_subgraph(stage: Stage) -> None:
    inner = steps(gave(("ai", "inside")), gave(AIMessage("after")), state=MessagesState, checkpointer=None)
    stage.play(steps(inner, gave(("ai", "outside")), state=MessagesState))
    for _ in range(2):
        await stage.send("hi")
        await stage.holds()


def delegating(inner: Any) -> Any:
    """A tool that is this graph."""

    @tool("task")
    async def delegate(text: str) -> str:
        """Let another graph do it."""
        found = await inner.ainvoke({"messages": [HumanMessage(text)]})
        return str(found["messages"][-1].content)

    return delegate


@scene("27_forms_of_a_subagent")
async def of_a_subagent(stage: Stage) -> None:
    inner = steps(gave(("ai", "a fixed answer")), state=MessagesState, checkpointer=None)
    stage.play(agent([tasks("x")], say("done"), tools=[delegating(inner)]))
    await stage.send("hi")
    await stage.holds()
    if stage.oracle:
        told = [each for each in stage.view["messages"] if each.get("content") == "a fixed answer"]
        owned = {each["role"]: bool(each.get("subagentRunId")) for each in told}
        assert owned == {"tool": False, "assistant": True}


@scene("27_forms_of_a_hidden_agent")
async def of_a_hidden_agent(stage: Stage) -> None:
    writer = agent(say("writ", "ten"), checkpointer=None, name="writer")
    stage.play(
        steps(writer, gave(("ai", "outside")), state=MessagesState),
        options=LangGraphOptions(subagents="hidden"),
    )
    events = await stage.send("hi")
    assert [event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT"] == ["outside"]


@scene("27_removed_and_given_in_a_form")
async def removed_and_given(stage: Stage) -> None:
    async def shorten(state: MessagesState) -> Any:
        gone = [RemoveMessage(id=str(message.id)) for message in state["messages"][:-1]]
        return {"messages": [*gone, ("ai", "in short")]}

    stage.play(steps(gave(("ai", "at length")), shorten, state=MessagesState))
    for _ in range(2):
        await stage.send("hi")
        await stage.holds()


@scene("27_a_reply_kept_as_a_dict")
async def kept_as_a_dict(stage: Stage) -> None:
    model = StreamingModel(turns=[say("Hel", "lo"), say("yes")])

    async def answer(state: MessagesState) -> Any:
        reply = await model.ainvoke(state["messages"])
        return {"messages": [{"role": "assistant", "content": reply.content}]}

    stage.play(steps(answer, state=MessagesState))
    events = await stage.send("hi")
    if stage.oracle:
        assert texts(stage) == [("user", "hi"), ("assistant", "Hello")]
    found = (await stage.graph.aget_state({"configurable": {"thread_id": stage.thread}})).values
    said = next(event.message_id for event in events if event.type == "TEXT_MESSAGE_START")
    noted = events[-1].metadata["runcast"]["framework"]["aliases"]
    assert noted == {said: found["messages"][-1].id}


def nameless(before: list[Any], given: Any) -> list[Any]:
    """A reducer that gives no ids."""
    return before + convert_to_messages(given if isinstance(given, list) else [given])


class Nameless(TypedDict):
    messages: Annotated[list[Any], nameless]


@scene("27_forms_without_an_id")
async def without_an_id(stage: Stage) -> None:
    stage.play(
        steps(gave(("ai", "one")), gave(("ai", "two")), state=Nameless),
        options=LangGraphOptions(snapshot_on_rewrite=False),
    )
    for at in range(2):
        await stage.send("hi")
        if stage.oracle:
            assert texts(stage) == [("user", "hi"), ("assistant", "one"), ("assistant", "two")] * (at + 1)


class Topic(TypedDict):
    topic: str


class Shown(TypedDict):
    messages: Annotated[list[Any], nameless]


class Both(Topic, Shown):
    pass


@scene("27_forms_of_a_state_shown_late")
async def shown_late(stage: Stage) -> None:
    """The input touches no channel of the output: the first values come after the first step."""
    builder = StateGraph(Both, output_schema=Shown, input_schema=Topic)
    builder.add_node("one", gave({"role": "ai", "content": "one", "id": "m1"}))
    builder.add_node("two", gave({"role": "ai", "content": "two", "id": "m2"}))
    builder.add_edge(START, "one").add_edge("one", "two")
    stage.play(
        builder.compile(checkpointer=InMemorySaver()),
        options=LangGraphOptions(forwarded_keys=frozenset({"topic"})),
    )
    await stage.send(None, forwarded_props={"topic": "x"})
    if stage.oracle:
        assert [message["id"] for message in stage.view["messages"]] == ["m1", "m2"]


@scene("43_forms_beside_a_question")
async def beside_a_question(stage: Stage) -> None:
    async def ask(state: MessagesState) -> Any:
        await asyncio.sleep(0.02)  # the other branch is done by then
        return {"messages": [("ai", f"told {interrupt('Really?')}")]}

    stage.play(asker(ask, gave(("ai", "new")), gave({"role": "ai", "content": "named", "id": "m1"})))
    await stage.send("hi")
    if stage.oracle:
        assert texts(stage) == [("user", "hi"), ("assistant", "named")]
    [asked] = waiting(stage)
    await stage.answer((asked.id, "yes"))
    await stage.holds()
    await stage.send("more")


@scene("43_forms_before_a_question")
async def before_a_question(stage: Stage) -> None:
    async def ask(state: MessagesState) -> Any:
        return {"messages": [("ai", f"told {interrupt('Really?')}")]}

    inner = steps(gave(("ai", "inside")), ask, state=MessagesState, checkpointer=None)
    stage.play(steps(gave(("ai", "first")), inner, state=MessagesState))
    await stage.send("hi")
    if stage.oracle:
        assert texts(stage)[1:] == [("assistant", "first"), ("assistant", "inside")]
    [asked] = waiting(stage)
    await stage.answer((asked.id, "yes"))
    await stage.holds()


@scene("46_forms_at_a_breakpoint")
async def at_a_breakpoint(stage: Stage) -> None:
    stage.play(steps(gave(("ai", "one")), gave(("ai", "two")), state=MessagesState, interrupt_before=["n1"]))
    await stage.send("hi")
    await stage.holds()
    [asked] = waiting(stage)
    await stage.answer((asked.id, True))
    await stage.holds()
