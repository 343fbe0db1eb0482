"""Agent Inbox's questions about a call: they name it, and a call that was decided about is not the client's to answer."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import Tool
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt

from tests.adapters.langgraph.stage import Stage
from tests.e2e.oracle import Oracle

MAIL = Tool(name="mail", description="Send it.", parameters={"type": "object"})


def draft(state: MessagesState) -> dict[str, Any]:
    made = AIMessage("", tool_calls=[{"name": "mail", "args": {"to": "x"}, "id": "c1"}])
    return {"messages": [made]}


def review(state: MessagesState) -> dict[str, Any]:
    (call,) = state["messages"][-1].tool_calls  # type: ignore[union-attr]  # a draft
    config = {"allow_accept": True, "allow_edit": True, "allow_respond": True, "allow_ignore": True}
    request = {"action_request": {"action": call["name"], "args": call["args"]}, "config": config}
    (answer,) = interrupt([request])
    accepted = ToolMessage("sent", tool_call_id=call["id"])
    return {"messages": [accepted] if answer["type"] == "accept" else []}


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("kind", "tools", "pending"),
    [("accept", [], None), ("ignore", [], None), ("ignore", [MAIL], ["c1"])],
)
async def test_a_call_that_was_decided_about_waits_for_nothing(
    oracle: Oracle, kind: str, tools: list[Tool], pending: list[str] | None
):
    builder = StateGraph(MessagesState).add_node("draft", draft).add_node("review", review)
    builder.add_edge(START, "draft").add_edge("draft", "review").add_edge("review", END)
    stage = Stage(oracle).play(builder.compile(checkpointer=InMemorySaver()))
    await stage.send("hi", tools=tools)
    (asked,) = stage.interrupts
    assert asked.tool_call_id == "c1"
    end = (await stage.answer((asked.id, [{"type": kind}]), tools=tools))[-1]
    assert getattr(end, "outcome").pending_tool_call_ids == pending  # noqa: B009  of one kind of event
    await stage.holds()
    if pending is None:
        stage.judge(oracle)
