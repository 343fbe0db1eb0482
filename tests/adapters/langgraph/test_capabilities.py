"""The agents inside a graph: in nodes, in tools, in what functions close over; and whose models are held."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from langchain.agents.middleware import PIIMiddleware
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph

from runcast.adapters.langgraph import LangGraphOptions
from runcast.adapters.langgraph.capabilities import completed, graphs_in
from tests.adapters.langgraph.fakes import say
from tests.adapters.langgraph.scenes.book import add, agent


def one(name: str = "", *, redacts: bool = True) -> Any:
    middleware = [PIIMiddleware("email", apply_to_output=redacts)]
    return agent(say("x"), name=name or None, middleware=middleware, checkpointer=None)


everywhere = one("everywhere")


@tool
async def asks_everywhere() -> str:
    """A tool that names an agent of its module."""
    return str(await everywhere.ainvoke({}))


class Team:
    """An application's own object, whose method runs an agent."""

    def __init__(self) -> None:
        self.inner = one("unseen")

    def run(self, state: Any) -> Any:
        """Name the module's agent too."""
        return everywhere.invoke(state)


def held(graph: Any, **options: Any) -> set[str]:
    return set(completed(graph, LangGraphOptions(**options)).hold_text_of)


def test_an_agent_that_redacts_is_held_by_its_own_name():
    assert held(one("alice")) == {"alice/model"}
    assert held(one()) == {"model"}
    assert held(one("alice", redacts=False)) == set()
    assert held(one("alice"), hold_text_of={"other"}) == {"alice/model", "other"}
    assert held(SimpleNamespace()) == set()  # a remote graph


def test_agents_are_found_in_nodes_and_tools():
    members = {"a": [one("alice")], "b": (one("bob", redacts=False), one("carol"))}

    @tool
    async def delegate(name: str) -> str:
        """Ask a member."""
        return str(await members[name][0].ainvoke({}))

    def node(state: Any) -> Any:
        return later(state)

    builder = StateGraph(MessagesState).add_node("boss", agent(say("x"), tools=[delegate, asks_everywhere]))
    builder.add_node("chain", RunnableLambda(node) | Team().run).add_node("dan", one("dan"))
    graph = builder.add_edge(START, "boss").compile()
    assert held(graph) == {f"{name}/model" for name in ("alice", "carol", "dan", "everywhere")}
    later = None  # a function may name what is not bound yet


def test_each_graph_is_visited_once():
    inner = agent(say("x"), tools=[add])
    assert list(graphs_in([inner, {"again": inner}], set())) == [inner]
