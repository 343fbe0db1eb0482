"""Agents that work for others: deepagents, supervisors, swarms, and teams wired by hand."""

from __future__ import annotations

import warnings
from typing import Any

from deepagents import create_deep_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, PIIMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from langgraph.warnings import LangGraphDeprecatedSinceV10
from langgraph_supervisor import create_supervisor
from langgraph_supervisor.handoff import create_forward_message_tool
from langgraph_supervisor.handoff import create_handoff_tool as supervised_handoff
from langgraph_swarm import create_handoff_tool, create_swarm

from tests.adapters.langgraph.scenes.book import add, echo
from tests.adapters.langgraph.wide.book import InMemorySaver, both, call, inner, model, say, scene
from tests.adapters.langgraph.wide.hooks import summing

ADDING = call("add", "a1", a=1, b=2)
APPROVED = {"decisions": [{"type": "approve"}]}


# ------------------------------------------------------------------ deepagents


def helper(*turns: Any, name: str = "helper", **given: Any) -> Any:
    return {
        "name": name,
        "description": f"{name} helps",
        "system_prompt": "x",
        "model": model(*turns),
        **given,
    }


def deep(*turns: Any, **given: Any) -> Any:
    return create_deep_agent(model=model(*turns), checkpointer=InMemorySaver(), name="deep", **given)


def task(id: str, to: str = "helper") -> Any:
    return call("task", id, description="do", subagent_type=to)


@scene("deep: a subagent with tools")
def deep_tools() -> Any:
    return deep(task("t1"), say("fin", "al"), say("bye"), subagents=[helper(ADDING, say("sub"), tools=[add])])


@scene("deep: two subagents at once")
def deep_two() -> Any:
    two = both(task("t1", "one"), task("t2", "two"))
    subagents = [helper(say("o", "ne"), name="one"), helper(say("t", "wo"), name="two")]
    return deep(two, say("fin", "al"), say("bye"), subagents=subagents)


@scene("deep: the same subagent twice at once")
def deep_twice() -> Any:
    two = both(task("t1"), task("t2"))
    return deep(two, say("fin", "al"), say("bye"), subagents=[helper(ADDING, say("sub"), tools=[add])])


@scene("deep: todos and files")
def deep_files() -> Any:
    plan = call("write_todos", "w1", todos=[{"content": "x", "status": "in_progress"}])
    wrote = call("write_file", "w2", file_path="/a.md", content="one\n")
    edit = call("edit_file", "w3", file_path="/a.md", old_string="one", new_string="two")
    read = both(call("read_file", "w4", file_path="/a.md"), call("ls", "w5", path="/"))
    return deep(plan, wrote, edit, read, say("fin", "al"), say("bye"))


@scene("deep: a subagent writes a file")
def deep_sub_files() -> Any:
    wrote = call("write_file", "w2", file_path="/b.md", content="from below\n")
    return deep(task("t1"), say("fin", "al"), say("bye"), subagents=[helper(wrote, say("sub"))])


@scene("deep: the general subagent")
def deep_general() -> Any:
    return deep(task("t1", "general-purpose"), say("fin", "al"), say("bye"))


@scene("deep: a compiled subagent")
def deep_compiled() -> Any:
    made = {"name": "helper", "description": "helps", "runnable": inner(ADDING, say("sub"), tools=[add])}
    return deep(task("t1"), say("fin", "al"), say("bye"), subagents=[made])


@scene("deep: a compiled graph as a subagent")
def deep_graph() -> Any:
    async def work(state: Any) -> Any:
        return {"messages": [AIMessage("by hand")]}

    built = StateGraph(MessagesState).add_node("work", work).add_edge(START, "work").compile()
    made = {"name": "helper", "description": "helps", "runnable": built}
    return deep(task("t1"), say("fin", "al"), say("bye"), subagents=[made])


@scene("deep: an approval", turns=("hi", "yes", "again"), decision=APPROVED)
def deep_approval() -> Any:
    wrote = call("write_file", "w2", file_path="/a.md", content="one\n")
    return deep(wrote, say("fin", "al"), say("bye"), interrupt_on={"write_file": True})


@scene("deep: an approval in a subagent", turns=("hi", "yes", "again"), decision=APPROVED)
def deep_sub_approval() -> Any:
    sub = helper(ADDING, say("sub"), tools=[add], interrupt_on={"add": True})
    return deep(task("t1"), say("fin", "al"), say("bye"), subagents=[sub])


@scene("deep: two subagents one after the other")
def deep_chain() -> Any:
    subagents = [helper(say("o", "ne"), name="one"), helper(ADDING, say("two"), name="two", tools=[add])]
    return deep(task("t1", "one"), task("t2", "two"), say("fin", "al"), say("bye"), subagents=subagents)


# ----------------------------------------------------------------- supervisors


def led(agents: Any, *turns: Any, **given: Any) -> Any:
    with warnings.catch_warnings():  # the package calls what LangGraph has moved
        warnings.simplefilter("ignore", LangGraphDeprecatedSinceV10)
        return create_supervisor(agents, model=model(*turns), **given)


def supervised(agents: Any, *turns: Any, **given: Any) -> Any:
    return led(agents, *turns, **given).compile(checkpointer=InMemorySaver())


def to(name: str, id: str, text: str = "") -> Any:
    return call(f"transfer_to_{name}", id, text)


def alice(**given: Any) -> Any:
    return inner(ADDING, say("al", "pha"), tools=[add], name="alice", **given)


def bob() -> Any:
    return inner(say("be", "ta"), name="bob")


END = (say("all ", "done"), say("no", "thing"))
RACE = "of two handovers at once LangGraph takes the one that comes first"


@scene("supervisor: last message")
def sup_last() -> Any:
    return supervised([alice()], to("alice", "h1"), *END)


@scene("supervisor: full history")
def sup_full() -> Any:
    return supervised([alice()], to("alice", "h1"), *END, output_mode="full_history")


@scene("supervisor: two agents in turn")
def sup_two() -> Any:
    return supervised(
        [alice(), bob()], to("alice", "h1", "let me "), to("alice", "h1"), to("bob", "h2"), *END
    )


@scene("supervisor: two handovers at once", ordered=False, unlike=RACE)
def sup_both() -> Any:
    return supervised([alice(), bob()], both(to("alice", "h1"), to("bob", "h2")), *END)


@scene("supervisor: two handovers at once, full history", ordered=False, unlike=RACE)
def sup_both_full() -> Any:
    made = both(to("alice", "h1"), to("bob", "h2"))
    return supervised([alice(), bob()], made, *END, output_mode="full_history")


@scene("supervisor: a handover beside a tool")
def sup_beside() -> Any:
    made = both(to("alice", "h1"), call("echo", "e1", text="x"))
    return supervised([alice()], made, *END, tools=[echo])


@scene("supervisor: no handover messages")
def sup_quiet() -> Any:
    return supervised([alice()], to("alice", "h1"), *END, add_handoff_messages=False)


@scene("supervisor: no way back")
def sup_no_back() -> Any:
    return supervised([alice()], to("alice", "h1"), *END, add_handoff_back_messages=False)


@scene("supervisor: forwarding")
def sup_forward() -> Any:
    tools = [create_forward_message_tool("supervisor"), supervised_handoff(agent_name="alice")]
    forward = call("forward_message", "f1", from_agent="alice")
    return supervised([alice()], to("alice", "h1"), forward, forward, forward, *END, tools=tools)


@scene("supervisor: tools of its own")
def sup_tools() -> Any:
    return supervised([bob()], call("echo", "e1", text="x"), to("bob", "h1"), *END, tools=[echo])


@scene("supervisor: nested")
def sup_nested() -> Any:
    team = led([alice()], to("alice", "h2"), say("team ", "done"), supervisor_name="lead").compile(
        name="team"
    )
    return supervised([team], to("team", "h1"), *END, supervisor_name="top")


@scene("supervisor: nested, full history")
def sup_nested_full() -> Any:
    team = led(
        [alice()], to("alice", "h2"), say("team ", "done"), supervisor_name="lead", output_mode="full_history"
    ).compile(name="team")
    return supervised([team], to("team", "h1"), *END, supervisor_name="top", output_mode="full_history")


@scene("supervisor: nested twice")
def sup_nested_twice() -> Any:
    team = led([alice()], to("alice", "h3"), say("team ", "done"), supervisor_name="lead").compile(
        name="team"
    )
    unit = led([team], to("team", "h2"), say("unit ", "done"), supervisor_name="chief").compile(name="unit")
    return supervised([unit], to("unit", "h1"), *END, supervisor_name="top")


@scene("supervisor: an agent asks", turns=("hi", "yes", "again"), decision="blue")
def sup_asks() -> Any:
    @tool
    async def ask(q: str = "") -> str:
        """Ask the user."""
        return f"it is {interrupt(q)}"

    asking = inner(call("ask", "q1", q="?"), say("al", "pha"), tools=[ask], name="alice")
    return supervised([asking], to("alice", "h1"), *END)


@scene("supervisor: a nested agent asks", turns=("hi", "yes", "again"), decision=APPROVED)
def sup_nested_asks() -> Any:
    asking = alice(middleware=[HumanInTheLoopMiddleware({"add": True})])
    team = led([asking], to("alice", "h2"), say("team ", "done"), supervisor_name="lead").compile(name="team")
    return supervised([team], to("team", "h1"), *END, supervisor_name="top")


@scene("supervisor: a graph as an agent")
def sup_graph() -> Any:
    one = model(say("one ", "thing"))

    async def work(state: Any) -> Any:
        return {"messages": [await one.ainvoke(state["messages"])]}

    built = StateGraph(MessagesState).add_node("work", work).add_edge(START, "work").compile(name="worker")
    return supervised([built], to("worker", "h1"), *END)


@scene("supervisor: a swarm as an agent", turns=("hi",))
def sup_swarm() -> Any:
    team = create_swarm(
        [swarming("alice", to("bob", "s1"), to=["bob"]), swarming("bob", say("I am ", "bob"))],
        default_active_agent="alice",
    )
    return supervised([team.compile(name="team")], to("team", "h1"), *END)


# ---------------------------------------------------------------------- swarms


def swarm(*agents: Any, first: str = "alice") -> Any:
    return create_swarm(list(agents), default_active_agent=first).compile(checkpointer=InMemorySaver())


def swarming(name: str, *turns: Any, to: Any = (), tools: Any = (), **given: Any) -> Any:
    handoffs = [create_handoff_tool(agent_name=each) for each in to]
    return inner(*turns, name=name, tools=[*handoffs, *tools], **given)


@scene("swarm: there and back", turns=("hi", "again", "more"))
def swarm_back() -> Any:
    one = swarming("alice", to("bob", "s1"), say("x"), say("alice ", "here"), say("alice"), to=["bob"])
    two = swarming("bob", say("never"), say("bob ", "here"), to("alice", "s2"), say("bob"), to=["alice"])
    return swarm(one, two)


@scene("swarm: with words and tools")
def swarm_tools() -> Any:
    one = swarming("alice", to("bob", "s1", "I call bob"), say("x"), to=["bob"])
    two = swarming("bob", say("x"), ADDING, say("bob ", "here"), say("bob"), tools=[add], to=["alice"])
    return swarm(one, two)


@scene("swarm: a tool, then a handover")
def swarm_later() -> Any:
    one = swarming("alice", ADDING, to("bob", "s1"), say("x"), to=["bob"], tools=[add])
    two = swarming("bob", say("x"), say("x"), say("bob ", "here"), say("bob"), to=["alice"])
    return swarm(one, two)


@scene("swarm: a handover beside a tool")
def swarm_beside() -> Any:
    one = swarming("alice", both(to("bob", "s1"), ADDING), say("x"), to=["bob"], tools=[add])
    two = swarming("bob", say("x"), say("bob ", "here"), say("bob"), to=["alice"])
    return swarm(one, two)


@scene("swarm: two handovers at once", ordered=False)
def swarm_both() -> Any:
    one = swarming("alice", both(to("bob", "s1"), to("bob", "s2")), say("x"), to=["bob"])
    two = swarming("bob", say("x"), say("bob ", "here"), say("bob"), to=["alice"])
    return swarm(one, two)


@scene("swarm: an approval", turns=("hi", "yes", "again"), decision=APPROVED)
def swarm_approval() -> Any:
    asking = [HumanInTheLoopMiddleware({"add": True})]
    one = swarming("alice", to("bob", "s1"), say("x"), to=["bob"])
    two = swarming("bob", say("x"), ADDING, say("bob"), to=["alice"], tools=[add], middleware=asking)
    return swarm(one, two)


# --------------------------------------------------------------------- by hand


def around(node: Any, *, state: Any = MessagesState, name: str = "work", **given: Any) -> Any:
    builder = StateGraph(state).add_node(name, node).add_edge(START, name)
    return builder.compile(checkpointer=InMemorySaver(), **given)


for who in ("alice", None):

    @scene(f"by hand: {who or 'an unnamed agent'} in a node, last word kept as a user's")
    def hand_human(who: Any = who) -> Any:
        made = inner(ADDING, say("al", "pha"), tools=[add], name=who)

        async def work(state: Any) -> Any:
            result = await made.ainvoke({"messages": state["messages"]})
            return {"messages": [HumanMessage(result["messages"][-1].text, name="researcher")]}

        return around(work)

    @scene(f"by hand: {who or 'an unnamed agent'} in a node, last word kept")
    def hand_last(who: Any = who) -> Any:
        made = inner(ADDING, say("al", "pha"), tools=[add], name=who)

        async def work(state: Any) -> Any:
            result = await made.ainvoke({"messages": state["messages"]})
            return {"messages": [result["messages"][-1]]}

        return around(work)

    @scene(f"by hand: {who or 'an unnamed agent'} as a node")
    def hand_node(who: Any = who) -> Any:
        made = inner(ADDING, say("al", "pha"), tools=[add], name=who)
        return around(made, name="alice")

    @scene(f"by hand: {who or 'an unnamed agent'} in a tool")
    def hand_tool(who: Any = who) -> Any:
        made = inner(ADDING, say("al", "pha"), tools=[add], name=who)

        @tool
        async def ask(q: str = "") -> str:
            """Ask another."""
            return str((await made.ainvoke({"messages": [("user", q)]}))["messages"][-1].text)

        from tests.adapters.langgraph.wide.book import agent

        return agent(call("ask", "c1", q="x"), say("do", "ne"), say("more"), tools=[ask])

    @scene(f"by hand: {who or 'an unnamed agent'} hands over to its parent")
    def hand_over(who: Any = who) -> Any:
        @tool
        async def leave(q: str = "") -> Any:
            """Hand over."""
            return Command(
                graph=Command.PARENT, goto="other", update={"messages": [AIMessage("I hand over")]}
            )

        made = inner(call("leave", "l1", "bye", q="x"), tools=[leave], name=who)
        other = model(say("other ", "here"))

        async def answer(state: Any) -> Any:
            return {"messages": [await other.ainvoke(state["messages"])]}

        builder = StateGraph(MessagesState).add_node("first", made).add_node("other", answer)
        return builder.add_edge(START, "first").compile(checkpointer=InMemorySaver())


@scene("by hand: an agent below that summarises", turns=("1", "2", "3", "4"))
def hand_summaries() -> Any:
    below = inner(say("an", "swer"), say("next"), middleware=[summing()])
    return (
        StateGraph(MessagesState)
        .add_node("below", below)
        .add_edge(START, "below")
        .compile(checkpointer=InMemorySaver())
    )


@scene("swarm: a guard in each agent", turns=("I am a@b.com", "again"))
def swarm_guarded() -> Any:
    guard = PIIMiddleware("email", apply_to_output=True)
    alice = swarming("alice", to("bob", "s1", "I tell a@b.com"), to=["bob"], middleware=[guard])
    return swarm(alice, swarming("bob", say("write to ", "a@b.com"), middleware=[guard]))


@scene("by hand: a word under a new id")
def hand_other() -> Any:
    one = model(say("one ", "thing"))

    async def work(state: Any) -> Any:
        said = await one.ainvoke(state["messages"])
        return {"messages": [AIMessage(said.text.upper())]}

    return around(work)


@scene("by hand: a router that is not kept")
def hand_router() -> Any:
    router, answerer = model(say('{"to":', '"work"}')), model(say("an", "swer"))

    async def route(state: Any) -> Any:
        await router.ainvoke(state["messages"])
        return Command(goto="work")

    async def work(state: Any) -> Any:
        return {"messages": [await answerer.ainvoke(state["messages"])]}

    builder = (
        StateGraph(MessagesState).add_node("route", route, destinations=("work",)).add_node("work", work)
    )
    return builder.add_edge(START, "route").compile(checkpointer=InMemorySaver())


class Question(MessagesState):
    question: str


@scene("by hand: a subgraph with another state")
def hand_private() -> Any:
    one = model(say("one ", "thing"))

    async def look(state: Any) -> Any:
        return {"messages": [await one.ainvoke([HumanMessage("look")])], "question": "why"}

    below = StateGraph(Question).add_node("look", look).add_edge(START, "look").compile()

    async def work(state: Any) -> Any:
        found = await below.ainvoke({"messages": [], "question": "?"})
        return {"messages": [AIMessage(f"found: {found['question']}")]}

    return around(work)


@scene("by hand: a subgraph in a subgraph")
def hand_deep() -> Any:
    one = model(say("one ", "thing"))

    async def look(state: Any) -> Any:
        return {"messages": [await one.ainvoke(state["messages"])]}

    below = StateGraph(MessagesState).add_node("look", look).add_edge(START, "look").compile()
    middle = StateGraph(MessagesState).add_node("below", below).add_edge(START, "below").compile()
    return around(middle)
