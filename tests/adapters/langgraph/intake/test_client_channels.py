"""Channels in which graphs made for AG-UI expect what a client sends."""

from __future__ import annotations

import operator
from typing import Annotated, Any

import pytest
from ag_ui.core import RunAgentInput
from langchain_core.tools import BaseTool
from langgraph.graph import START, MessagesState, StateGraph
from typing_extensions import TypedDict

from runcast.adapters.langgraph import LangGraphAdapter, LangGraphOptions
from runcast.adapters.langgraph.intake.client_channels import A2UI_SCHEMA, client_channels, client_values

TOOL = {"name": "paint", "description": "Paint it.", "parameters": {"type": "object", "properties": {}}}
BOB = {"description": "user", "value": "Bob"}


def sent(**fields: Any) -> RunAgentInput:
    return RunAgentInput.model_validate({"threadId": "t", "runId": "r", "messages": [], **fields})


def state(kind: Any) -> Any:
    return TypedDict("state", {"tools": kind})  # type: ignore[operator, unused-ignore]  # a schema made in a test


@pytest.mark.parametrize("kind", [list, list[Any], list[dict[str, Any]], Any])
def test_tools_is_the_clients_channel_where_its_type_takes_the_protocols_tools(kind: Any) -> None:
    assert client_channels(["messages", "tools"], state(kind)) == {"tools"}


@pytest.mark.parametrize("kind", [list[str], dict[str, int], list[BaseTool], "Nowhere"])
def test_any_other_channel_of_that_name_is_the_graphs_own(kind: Any) -> None:
    assert client_channels(["messages", "tools"], state(kind)) == frozenset()


def test_the_other_two_are_known_by_their_names() -> None:
    assert client_channels(["ag-ui", "copilotkit", "steps"], None) == {"ag-ui", "copilotkit"}
    assert client_channels(["ag-ui", "tools"], None) == {"ag-ui"}


def test_each_has_the_form_that_its_maker_gives_it() -> None:
    catalog = {"description": A2UI_SCHEMA, "value": "{}"}
    input = sent(tools=[TOOL], context=[BOB, catalog], forwardedProps={"injectA2UITool": True})
    assert client_values(input, {"tools", "ag-ui", "copilotkit"}) == {
        "ag-ui": {"tools": [TOOL], "context": [BOB], "a2ui_schema": "{}", "inject_a2ui_tool": True},
        "copilotkit": {"actions": [TOOL], "context": [BOB]},
        "tools": [TOOL],
    }


def test_without_tools_and_context_they_are_empty_and_not_absent() -> None:
    assert client_values(sent(), {"tools", "ag-ui"}) == {"ag-ui": {"tools": [], "context": []}, "tools": []}


class Channels(MessagesState):
    tools: Annotated[list[Any], operator.add]
    copilotkit: dict[str, Any]
    recipe: dict[str, Any]
    log: Annotated[list[str], operator.add]


def graph() -> Any:
    return StateGraph(Channels).add_node("work", lambda _: {}).add_edge(START, "work").compile()


def test_forms_and_the_state_leave_out_what_the_client_itself_sends() -> None:
    known = LangGraphAdapter(graph(), options=LangGraphOptions(client_config=True)).schemas()
    for part in ("input", "state"):
        assert set(known[part]["schema"]["properties"]) == {"tools", "recipe", "log"}  # type: ignore[literal-required]


async def test_a_channel_that_adds_up_is_not_written_from_a_state_that_a_client_repeats() -> None:
    adapter = LangGraphAdapter(graph(), options=LangGraphOptions(client_config=True))
    shared = {"log": ["x"], "recipe": {"egg": 1}, "tools": [TOOL]}
    events = [each async for each in adapter.run(sent(state=shared, tools=[TOOL]))]
    (snapshot,) = [each.snapshot for each in events if each.type == "STATE_SNAPSHOT"]
    assert snapshot == {"log": [], "recipe": {"egg": 1}, "tools": []}
    closed = LangGraphAdapter(graph())
    events = [each async for each in closed.run(sent(state=shared))]
    assert [each.snapshot for each in events if each.type == "STATE_SNAPSHOT"] == [{"log": [], "tools": []}]
