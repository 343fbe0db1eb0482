"""An answer is the same in LangChain's form and in the protocol's, also with arguments that are no JSON."""

from __future__ import annotations

from ag_ui.core import AssistantMessage, FunctionCall, ToolCall
from langchain_core.messages import AIMessage

from runcast.adapters.langgraph.content.answer import answer_of


def test_arguments_that_are_no_json_stay_text():
    shown = AssistantMessage(
        id="a", tool_calls=[ToolCall(id="c", function=FunctionCall(name="f", arguments="{"))]
    )
    broken = {"type": "invalid_tool_call", "id": "c", "name": "f", "args": "{", "error": None}
    assert answer_of(shown) == answer_of(AIMessage("", id="a", invalid_tool_calls=[broken]))
