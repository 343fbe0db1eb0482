"""What graphs can do: commands, sends, branches, the functional API, caches, retries, reducers, questions."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.cache.memory import InMemoryCache
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.types import CachePolicy, Command, RetryPolicy, Send, interrupt
from pydantic import BaseModel

from runcast.adapters.langgraph import LangGraphOptions
from tests.adapters.langgraph.wide.book import SECRET, Act, InMemorySaver, call, inner, model, say, scene


def saying(*turns: Any) -> Any:
    one = model(*turns)

    async def work(state: Any) -> Any:
        held = state["messages"] if isinstance(state, dict) else state.messages
        return {"messages": [await one.ainvoke(held)]}

    return work


def chain(*nodes: tuple[str, Any], state: Any = MessagesState, **given: Any) -> Any:
    builder = StateGraph(state)
    for name, node in nodes:
        builder.add_node(name, node)
    builder.add_edge(START, nodes[0][0])
    for (before, _), (after, _) in pairwise(nodes):
        builder.add_edge(before, after)
    return builder.compile(checkpointer=InMemorySaver(), **given)


ONE, TWO = say("one ", "thing"), say("another ", "thing")


@scene("two nodes")
def two_nodes() -> Any:
    return chain(("a", saying(ONE, TWO)), ("b", saying(ONE, TWO)))


@scene("a question in a node", turns=("hi", "yes", "again", "yes"), decision="blue")
def node_asks() -> Any:
    async def ask(state: Any) -> Any:
        return {"messages": [HumanMessage(f"it is {interrupt('which?')}")]}

    return chain(("ask", ask), ("work", saying(ONE, TWO)))


@scene("a question behind words", turns=("hi", "yes", "again", "yes"), decision="blue")
def words_then_asks() -> Any:
    one = model(ONE, TWO)

    async def ask(state: Any) -> Any:
        said = await one.ainvoke(state["messages"])
        return {"messages": [said, HumanMessage(f"it is {interrupt('which?')}")]}

    return chain(("ask", ask), ("work", saying(ONE, TWO)), ("more", saying(TWO)))


@scene("a question in a subgraph", turns=("hi", "yes", "again", "yes"), decision="blue")
def subgraph_asks() -> Any:
    async def ask(state: Any) -> Any:
        return {"messages": [HumanMessage(f"it is {interrupt('which?')}")]}

    below = StateGraph(MessagesState).add_node("say", saying(ONE, TWO)).add_node("ask", ask)
    below.add_edge(START, "say").add_edge("say", "ask")
    return chain(("below", below.compile()), ("work", saying(ONE, TWO)))


@scene(
    "a question in a subgraph behind a tool that answers with a dict",
    turns=("hi", "yes", "yes", "again"),
    decision="blue",
    options=LangGraphOptions(input_state_keys=("topic",)),
)
def dicts_then_two_questions() -> Any:
    """As a page does, the client sends the state with every answer."""

    class Topic(MessagesState):
        topic: str

    async def answer(state: Any) -> Any:
        result = {"role": "tool", "content": "3", "tool_call_id": state["messages"][-1].tool_calls[0]["id"]}
        return {"messages": [result, {"role": "user", "content": "go on"}]}

    async def ask(state: Any) -> Any:
        return {"messages": [HumanMessage(f"it is {interrupt('which?')} and {interrupt('what?')}")]}

    async def choose(state: Any) -> Any:
        return {"topic": "colours"}

    builder = StateGraph(Topic).add_node("say", saying(call("add", "a1"), call("add", "a2")))
    builder.add_node("answer", answer).add_node("ask", ask)
    builder.add_edge(START, "say").add_edge("say", "answer").add_edge("answer", "ask")
    return chain(("choose", choose), ("below", builder.compile()), ("work", saying(TWO)), state=Topic)


@scene("synchronous nodes, and an edge that decides")
def synchronous() -> Any:
    one = model(call("add", "a1"), call("add", "a2"))

    def say_it(state: Any) -> Any:
        return {"messages": [one.invoke(state["messages"])]}

    def answer(state: Any) -> Any:
        calls = state["messages"][-1].tool_calls
        return {"messages": [{"role": "tool", "content": "3", "tool_call_id": each["id"]} for each in calls]}

    def calls_tools(state: Any) -> str:
        return "answer" if state["messages"][-1].tool_calls else END

    builder = StateGraph(MessagesState).add_node("say", say_it).add_node("answer", answer)
    builder.add_edge(START, "say").add_conditional_edges("say", calls_tools)
    return builder.compile(checkpointer=InMemorySaver())


@scene("a question in a subgraph that a node runs", turns=("hi", "yes", "again"), decision="blue")
def run_subgraph_asks() -> Any:
    async def ask(state: Any) -> Any:
        return {"messages": [HumanMessage(f"it is {interrupt('which?')}")]}

    made = StateGraph(MessagesState).add_node("say", saying(ONE, TWO)).add_node("ask", ask)
    below = made.add_edge(START, "say").add_edge("say", "ask").compile()

    async def work(state: Any) -> Any:
        found = await below.ainvoke({"messages": state["messages"][-1:]})
        return {"messages": [AIMessage(f"so {found['messages'][-1].content}")]}

    return chain(("work", work))


@scene("two questions at once", turns=("hi", "yes", "again", "yes"), decision="blue", ordered=False)
def two_questions() -> Any:
    def asking(name: str) -> Any:
        async def ask(state: Any) -> Any:
            return {"messages": [AIMessage(f"{name}: {interrupt(name)}")]}

        return ask

    builder = StateGraph(MessagesState).add_node("a", asking("a")).add_node("b", asking("b"))
    builder.add_node("c", saying(ONE, TWO)).add_edge(START, "a").add_edge(START, "b").add_edge(
        ["a", "b"], "c"
    )
    return builder.compile(checkpointer=InMemorySaver())


@scene("a question beside words", turns=("hi", "yes", "again", "yes"), decision="blue", ordered=False)
def question_beside() -> Any:
    async def ask(state: Any) -> Any:
        return {"messages": [AIMessage(f"it is {interrupt('?')}")]}

    builder = StateGraph(MessagesState).add_node("a", ask).add_node("b", saying(ONE, TWO))
    builder.add_node("c", saying(TWO)).add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "c")
    return builder.compile(checkpointer=InMemorySaver())


@scene("questions one after the other", turns=("hi", "yes", "yes", "again"), decision="blue")
def questions_in_turn() -> Any:
    async def ask(state: Any) -> Any:
        if len(state["messages"]) > 3:
            return {}
        return {"messages": [HumanMessage(f"{interrupt('first?')} and {interrupt('second?')}")]}

    return chain(("say", saying(ONE, TWO)), ("ask", ask))


@scene("a breakpoint", turns=("hi", "yes", "again", "yes"))
def breakpoint_before() -> Any:
    return chain(("a", saying(ONE)), ("b", saying(TWO)), interrupt_before=["b"])


@scene("a breakpoint behind", turns=("hi", "yes", "again", "yes"))
def breakpoint_after() -> Any:
    return chain(("a", saying(ONE)), ("b", saying(TWO)), interrupt_after=["a"])


@scene("a question let go", turns=("hi", Act.INSTEAD, "yes"), decision="blue")
def question_let_go() -> Any:
    async def ask(state: Any) -> Any:
        return {"messages": [AIMessage(f"it is {interrupt('which?')}")]}

    return chain(("say", saying(ONE, TWO)), ("ask", ask))


@scene("commands that go on")
def commands() -> Any:
    class Loop(MessagesState):
        round: int

    one = model(ONE, TWO, say("thi", "rd"))

    async def work(state: Any) -> Any:
        said, number = await one.ainvoke(state["messages"]), state.get("round", 0) + 1
        return Command(update={"messages": [said], "round": number}, goto="work" if number % 3 else END)

    return chain(("work", work), state=Loop)


@scene("sends", ordered=False)
def sends() -> Any:
    class Branches(MessagesState):
        done: Annotated[list[int], operator.add]

    one = model(ONE)

    async def work(values: Any) -> Any:
        said = await one.ainvoke(values["messages"])
        return {"messages": [said], "done": [values["number"]]}

    def fan(values: Any) -> list[Send]:
        return [Send("work", {"messages": values["messages"][-1:], "number": number}) for number in range(3)]

    builder = StateGraph(Branches).add_node("work", work).add_conditional_edges(START, fan, ["work"])
    builder.add_node("sum", saying(TWO)).add_edge("work", "sum")
    return builder.compile(checkpointer=InMemorySaver())


@scene("sends to agents", ordered=False)
def sends_agents() -> Any:
    made = inner(ONE, name="worker")

    async def work(values: Any) -> Any:
        return {"messages": (await made.ainvoke({"messages": values["messages"]}))["messages"][-1:]}

    def fan(values: Any) -> list[Send]:
        return [Send("work", {"messages": [HumanMessage(f"part {number}")]}) for number in range(2)]

    builder = StateGraph(MessagesState).add_node("work", work).add_conditional_edges(START, fan, ["work"])
    builder.add_node("sum", saying(TWO)).add_edge("work", "sum")
    return builder.compile(checkpointer=InMemorySaver())


@scene("branches", ordered=False)
def branches() -> Any:
    builder = StateGraph(MessagesState).add_node("a", saying(ONE)).add_node("b", saying(TWO))
    builder.add_node("c", saying(say("joi", "ned"))).add_edge(START, "a").add_edge(START, "b")
    return builder.add_edge(["a", "b"], "c").compile(checkpointer=InMemorySaver())


@scene("a branch that waits", ordered=False)
def deferred() -> Any:
    builder = StateGraph(MessagesState).add_node("a", saying(ONE)).add_node("b", saying(TWO))
    builder.add_node("b2", saying(TWO)).add_node("c", saying(say("joi", "ned")), defer=True)
    builder.add_edge(START, "a").add_edge(START, "b").add_edge("b", "b2").add_edge("b2", "c").add_edge(
        "a", "c"
    )
    return builder.compile(checkpointer=InMemorySaver())


def failing(good: Any) -> Any:
    tried: list[int] = []

    async def work(state: Any) -> Any:
        said = await good.ainvoke(state["messages"])
        tried.append(1)
        if len(tried) % 2:
            raise ConnectionError("net")
        return {"messages": [said]}

    return work


@scene("a node tried again")
def retried() -> Any:
    builder = StateGraph(MessagesState)
    policy = RetryPolicy(initial_interval=0.001, jitter=False, retry_on=ConnectionError)
    builder.add_node("work", failing(model(ONE, TWO)), retry_policy=policy).add_edge(START, "work")
    return builder.compile(checkpointer=InMemorySaver())


@scene("a node from a cache", turns=("hi", "hi", "hi"))
def cached() -> Any:
    builder = StateGraph(MessagesState)
    policy = CachePolicy(key_func=lambda state: str(len(state["messages"]) % 2))
    builder.add_node("work", saying(ONE, TWO), cache_policy=policy).add_node("more", saying(TWO))
    builder.add_edge(START, "work").add_edge("work", "more")
    return builder.compile(checkpointer=InMemorySaver(), cache=InMemoryCache())


@scene("messages removed", turns=("1", "2", "3"))
def removed() -> Any:
    async def forget(state: Any) -> Any:
        return {"messages": [RemoveMessage(id=each.id) for each in state["messages"][:-2]]}

    return chain(("say", saying(ONE, TWO)), ("forget", forget))


@scene("all messages replaced", turns=("1", "2"))
def all_replaced() -> Any:
    async def compress(state: Any) -> Any:
        last = state["messages"][-1]
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("in short"), last]}

    return chain(("say", saying(ONE, TWO)), ("compress", compress))


@scene("the user's message rewritten", turns=("1", "2"))
def user_rewritten() -> Any:
    async def better(state: Any) -> Any:
        last = state["messages"][-1]
        return {"messages": [HumanMessage(f"better: {last.content}", id=last.id)]}

    return chain(("better", better), ("say", saying(ONE, TWO)))


def window(left: Any, right: Any) -> Any:
    return add_messages(left, right)[-3:]  # type: ignore[index]


@scene("messages kept by another reducer", turns=("1", "2", "3"))
def windowed() -> Any:
    class Windowed(TypedDict):
        messages: Annotated[list[AnyMessage], window]

    return chain(("say", saying(ONE, TWO)), state=Windowed)


@scene("a state of its own kind")
def dataclass_state() -> Any:
    @dataclass
    class Kept:
        messages: Annotated[list[AnyMessage], add_messages] = field(default_factory=list)
        count: int = 0

    async def count(state: Any) -> Any:
        return {"count": state.count + 1}

    return chain(("say", saying(ONE, TWO)), ("count", count), state=Kept)


@scene("a checked state")
def pydantic_state() -> Any:
    class Kept(BaseModel):
        messages: Annotated[list[AnyMessage], add_messages] = []
        tags: dict[str, Any] = {}

    async def tag(state: Any) -> Any:
        return {"tags": {**state.tags, f"n{len(state.tags)}": [1, None]}}

    return chain(("say", saying(ONE, TWO)), ("tag", tag), state=Kept)


@scene("private channels")
def private() -> Any:
    class Open(MessagesState):
        answer: str

    class All(Open):
        secret: str

    async def think(state: Any) -> Any:
        return {"secret": SECRET, "answer": "42"}

    builder = StateGraph(All, output_schema=Open).add_node("think", think).add_node("say", saying(ONE, TWO))
    return builder.add_edge(START, "think").add_edge("think", "say").compile(checkpointer=InMemorySaver())


@scene("the functional API")
def functional() -> Any:
    one = model(ONE, TWO)

    @task
    async def answer(messages: Any) -> Any:
        return await one.ainvoke(messages)

    @entrypoint(checkpointer=InMemorySaver())
    async def flow(inputs: Any, *, previous: Any = None) -> Any:
        held = add_messages((previous or {}).get("messages", []), inputs["messages"])
        said = await answer(held)
        return {"messages": add_messages(held, [said])}

    return flow


@scene("the functional API with an answer of its own")
def functional_own() -> Any:
    one = model(ONE, TWO)

    @task
    async def think(messages: Any) -> str:
        return (await one.ainvoke(messages)).text

    @entrypoint(checkpointer=InMemorySaver())
    async def flow(inputs: Any, *, previous: Any = None) -> Any:
        held = (previous or {}).get("messages", [])
        found = await think(inputs["messages"])
        return {"messages": add_messages(held, [*inputs["messages"], AIMessage(f"found {found}")])}

    return flow


@scene("the functional API with a question", turns=("hi", "yes"), decision="blue")
def functional_asks() -> Any:
    one = model(ONE, TWO)

    @task
    async def answer(messages: Any) -> Any:
        return await one.ainvoke(messages)

    @entrypoint(checkpointer=InMemorySaver())
    async def flow(inputs: Any) -> Any:
        said = await answer(inputs["messages"])
        return {"messages": [*inputs["messages"], said, HumanMessage(str(interrupt("which?")))]}

    return flow


@scene("edited", turns=("hi", "again", Act.EDIT, "on"))
def edited() -> Any:
    return chain(("a", saying(ONE, TWO, say("third"))), ("b", saying(ONE, TWO)))


@scene("asked again", turns=("hi", "again", Act.AGAIN, "on"))
def again() -> Any:
    return chain(("a", saying(ONE, TWO, say("third"))))


@scene("results of calls without ids", turns=("hi", "again", "more"))
def nameless_results() -> Any:
    """Their channel's reducer gives none either."""

    class Added(TypedDict):
        messages: Annotated[list[AnyMessage], operator.add]

    async def tools(state: Any) -> Any:
        made = state["messages"][-1].tool_calls
        return {"messages": [ToolMessage("done", tool_call_id=each["id"]) for each in made]}

    turns = saying(call("look", "c1"), ONE, call("look", "c2"), TWO, call("look", "c3"), say("last"))
    return chain(("ask", turns), ("tools", tools), ("answer", turns), state=Added)


@scene("stateful agents by name", turns=("hi", "again", "more"))
def stateful() -> Any:
    kept = inner(ONE, TWO, say("third"), name="helper", checkpointer=True)

    async def work(state: Any) -> Any:
        found = await kept.ainvoke({"messages": state["messages"][-1:]})
        return {"messages": [AIMessage(f"helper says {found['messages'][-1].content}")]}

    return chain(("work", work))


@scene("a stateful agent as a node", turns=("hi", "again", "more"))
def stateful_node() -> Any:
    return chain(("helper", inner(ONE, TWO, say("third"), name="helper", checkpointer=True)))


@scene("words that no state keeps")
def unkept() -> Any:
    class Answer(MessagesState):
        answer: str

    one = model(ONE, TWO)

    async def work(state: Any) -> Any:
        return {"answer": str((await one.ainvoke(state["messages"])).content)}

    return chain(("work", work), state=Answer)


@scene("no conversation")
def no_messages() -> Any:
    class Answer(TypedDict, total=False):
        answer: str

    one = model(ONE, TWO)

    async def work(state: Any) -> Any:
        return {"answer": str((await one.ainvoke([HumanMessage("x")])).content)}

    return chain(("work", work), state=Answer)
