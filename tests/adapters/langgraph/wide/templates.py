"""Graphs as public templates build them: routers, reviews and rewrites by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from tests.adapters.langgraph.wide.book import Act, InMemorySaver, both, call, model, scene
from tests.adapters.langgraph.wide.shapes import ONE, TWO, chain, saying


@scene("an answer that a subgraph rewrites, behind a question", turns=("hi", "yes"), decision="blue")
def rewritten_below() -> Any:
    """As the e-mail assistants do with an edited call."""

    async def rewrite(state: Any) -> Any:
        last = state["messages"][-1]
        made = [{**each, "args": {"colour": interrupt("which?")}} for each in last.tool_calls]
        result = {"role": "tool", "content": "painted", "tool_call_id": made[0]["id"]}
        return {"messages": [last.model_copy(update={"tool_calls": made}), result]}

    builder = (
        StateGraph(MessagesState)
        .add_node("say", saying(call("paint", "p1", colour="red"), ONE))
        .add_node("rewrite", rewrite)
    )
    return chain(("below", builder.add_edge(START, "say").add_edge("say", "rewrite").compile()))


@scene("an answer that a subgraph rewrites")
def rewritten_below_at_once() -> Any:
    async def rewrite(state: Any) -> Any:
        last = state["messages"][-1]
        return {"messages": [last.model_copy(update={"content": last.text.upper()})]}

    builder = StateGraph(MessagesState).add_node("say", saying(ONE, TWO)).add_node("rewrite", rewrite)
    return chain(("below", builder.add_edge(START, "say").add_edge("say", "rewrite").compile()))


@scene("a router before a question, without a message", turns=(Act.NOTHING, "yes"))
@scene("a router before a question, and a node that writes as the user", turns=("hi", "yes", "again"))
def routed_question() -> Any:
    router = model(call("Route", "r1", to="ask"))

    async def route(state: Any) -> Any:
        await router.ainvoke(state["messages"])
        return Command(goto="ask")

    async def ask(state: Any) -> Any:
        interrupt("go on?")
        return {"messages": [{"role": "user", "content": "an e-mail came"}]}

    builder = StateGraph(MessagesState).add_node("route", route, destinations=("ask",))
    builder.add_node("ask", ask).add_node("work", saying(ONE, TWO))
    builder.add_edge(START, "route").add_edge("ask", "work")
    return builder.compile(checkpointer=InMemorySaver())


@scene("a node that takes calls out of its model's message", turns=("hi",))
def pruned() -> Any:
    """As a template does whose model submits its result beside other calls."""
    submits = model(both(call("submit", "s1"), call("search", "s2")))

    async def ask(state: Any) -> Any:
        answer = await submits.ainvoke(state["messages"])
        answer.tool_calls = answer.tool_calls[:1]
        return {"messages": [answer]}

    async def check(state: Any) -> Any:
        made = state["messages"][-1].tool_calls[0]
        return {"messages": [{"role": "tool", "content": "fine", "tool_call_id": made["id"]}]}

    return chain(("ask", ask), ("check", check))


@dataclass
class Report:
    text: str


@scene(
    "an output that is a class of its own, and a subgraph with another state",
    fails_over_v3="it makes the output's class of all values",
)
def narrow() -> Any:
    @dataclass
    class Research:
        messages: Annotated[list[Any], add_messages] = field(default_factory=list[Any])
        topic: str = ""
        text: str = ""

    class Look(TypedDict):
        topic: str
        found: str

    async def find(state: Any) -> Any:
        return {"found": "much"}

    async def write(state: Any) -> Any:
        return {"text": "a report", "messages": [AIMessage("here it is")]}

    below = StateGraph(Look).add_node("find", find).add_edge(START, "find").compile()
    builder = StateGraph(Research, output_schema=Report).add_node("below", below).add_node("write", write)
    builder.add_edge(START, "below").add_edge("below", "write")
    return builder.compile(checkpointer=InMemorySaver())
