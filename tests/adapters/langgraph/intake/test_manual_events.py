"""What nodes show by hand, where it is not shown: inside a hidden subagent, or not in one of the known forms."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import Event, RunAgentInput, UserMessage
from langchain.agents import create_agent
from langchain_core.callbacks import adispatch_custom_event
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph

from runcast.adapters.langgraph import LangGraphAdapter, LangGraphOptions
from runcast.adapters.langgraph.intake.manual_events import dispatched
from tests.adapters.langgraph.fakes import FakeModel, StreamingModel, calls, piece, say


async def played(graph: Any, options: LangGraphOptions | None = None) -> list[Event]:
    asked = RunAgentInput(thread_id="t", run_id="r", messages=[UserMessage(id="u1", content="hi")])
    return [event async for event in LangGraphAdapter(graph, options=options).run(asked)]


@pytest.mark.parametrize("subagents", ["hidden", "attributed"])
async def test_a_hidden_subagent_shows_nothing_by_hand(subagents: Any) -> None:
    @tool
    async def look(config: RunnableConfig) -> str:
        """Look."""
        message = {"message": "By hand.", "message_id": "m1"}
        await adispatch_custom_event("manually_emit_message", message, config=config)
        await adispatch_custom_event("manually_emit_state", {"messages": [], "seen": 1}, config=config)
        return "seen"

    asking = calls(piece("look", "{}", "c1"))
    inner = create_agent(StreamingModel(turns=[[asking], say("inner")]), [look], name="inner")

    @tool
    async def ask_inner() -> str:
        """Ask the other agent."""
        found = await inner.ainvoke({"messages": [("user", "look")]})
        return str(found["messages"][-1].content)

    asking_inner = calls(piece("ask_inner", "{}", "c0"))
    boss = create_agent(StreamingModel(turns=[[asking_inner], say("outer")]), [ask_inner], name="boss")
    events = await played(boss, LangGraphOptions(subagents=subagents))
    assert ("By hand." in str(events)) == (subagents == "attributed")
    assert "outer" in str(events)


async def test_a_model_that_does_not_stream_is_withheld_too() -> None:
    quiet, loud = FakeModel(turns=[say("inner")]), FakeModel(turns=[say("outer")])

    async def work(state: MessagesState) -> Any:
        await quiet.ainvoke(state["messages"], {"metadata": {"emit-messages": False}})
        return {"messages": [await loud.ainvoke(state["messages"])]}

    events = await played(StateGraph(MessagesState).add_node("work", work).add_edge(START, "work").compile())
    assert "inner" not in str(events)
    assert "outer" in str(events)


def test_a_known_name_with_another_content_is_an_event_like_any_other() -> None:
    for name, data in (
        ("manually_emit_state", "done"),
        ("manually_emit_message", {"message": 1, "message_id": "m"}),
        ("manually_emit_message", {"message": "no id"}),
        ("manually_emit_tool_call", {"name": "look"}),
        ("anything", {"message": "x", "message_id": "m"}),
    ):
        assert dispatched(name, data, None).data == {"name": name, "data": data}


def test_a_call_has_its_arguments_as_they_were_given() -> None:
    given = {"name": "look", "id": "c1"}
    for args, expected in (({"at": 1}, {"at": 1}), ('{"at": 1}', {"at": 1}), (None, {}), ("{", None)):
        message = dispatched("manually_emit_tool_call", {**given, "args": args}, {}).data["message"]
        assert isinstance(message, AIMessage)
        held = message.tool_calls[0]["args"] if message.tool_calls else None
        assert held == expected
