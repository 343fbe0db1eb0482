"""A graph draws itself: its nodes by the names of their steps; what cannot be drawn is empty."""

from __future__ import annotations

from typing import Any

from langgraph.graph import END, START, MessagesState, StateGraph

from runcast.adapters import Drawable, Drawing, DrawnEdge, DrawnNode, drawing_of
from runcast.adapters.langgraph import LangGraphAdapter, LangGraphOptions


def node(state: MessagesState) -> dict[str, Any]:
    return {}


def route(state: MessagesState) -> str:
    return END


def test_a_graph_has_its_nodes_and_its_conditional_edges() -> None:
    graph = StateGraph(MessagesState).add_node("plan", node).add_node("write", node)
    graph.add_edge(START, "plan").add_conditional_edges("plan", route, {"go": "write", END: END})
    adapter = LangGraphAdapter(graph.compile(), options=LangGraphOptions(files=("image",)))
    assert isinstance(adapter, Drawable)
    drawn = adapter.drawing()
    assert [(each.id, each.name, each.kind) for each in drawn.nodes] == [
        ("__start__", "start", "start"),
        ("plan", "plan", "node"),
        ("write", "write", "node"),
        ("__end__", "end", "end"),
    ]
    edges = {(each.source, each.target, each.label, each.conditional) for each in drawn.edges}
    assert ("__start__", "plan", "", False) in edges
    assert ("plan", "write", "go", True) in edges
    assert adapter.capabilities().multimodal.input.image is True  # type: ignore[union-attr]  # it is there


def test_a_graph_that_fails_to_draw_itself_is_empty(monkeypatch: Any) -> None:
    compiled = StateGraph(MessagesState).add_node("plan", node).add_edge(START, "plan").compile()
    monkeypatch.setattr(type(compiled), "get_graph", lambda self: 1 / 0)
    assert drawing_of(LangGraphAdapter(compiled)) == Drawing()
    assert drawing_of(object()) == Drawing()


def test_a_drawing_is_read_from_plain_values() -> None:
    plain = {"nodes": [{"id": "a", "name": "a", "kind": "agent"}], "edges": [{"source": "a", "target": "a"}]}
    assert Drawing.read(plain) == Drawing([DrawnNode("a", "a", "agent")], [DrawnEdge("a", "a")])
