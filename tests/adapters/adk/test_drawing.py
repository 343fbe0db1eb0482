"""ADK's agents draw themselves: a tree with tools, or a workflow with its edges."""

from __future__ import annotations

from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.workflow import START, Workflow

from runcast.adapters import drawing_of
from runcast.adapters.adk import AdkAdapter, AdkOptions


def look(place: str) -> str:
    """Look somewhere."""
    return place


def shape(agent: object) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    drawn = drawing_of(AdkAdapter(agent, options=AdkOptions(files=("pdf",))))  # type: ignore[arg-type]  # any agent
    names = {each.id: each.name for each in drawn.nodes}
    return {(each.name, each.kind) for each in drawn.nodes}, {
        (names[each.source], names[each.target]) for each in drawn.edges
    }


def test_a_tree_has_its_agents_and_their_tools() -> None:
    root = SequentialAgent(
        name="root", sub_agents=[LlmAgent(name="scout", tools=[look]), LlmAgent(name="writer")]
    )
    nodes, edges = shape(root)
    assert nodes == {("root", "agent"), ("scout", "agent"), ("writer", "agent"), ("look", "tool")}
    assert edges == {("root", "scout"), ("root", "writer"), ("scout", "look")}


def test_a_workflow_has_the_edges_of_its_graph() -> None:
    flow = Workflow(
        name="flow", edges=[(START, LlmAgent(name="scout", tools=[look]), LlmAgent(name="writer"))]
    )
    nodes, edges = shape(flow)
    assert nodes == {("start", "start"), ("scout", "agent"), ("writer", "agent"), ("look", "tool")}
    assert edges == {("start", "scout"), ("scout", "writer"), ("scout", "look")}


def test_a_single_agent_is_one_node() -> None:
    assert shape(LlmAgent(name="only")) == ({("only", "agent")}, set())
