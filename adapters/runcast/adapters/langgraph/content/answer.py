"""The answer of a model: its text and calls, read from LangChain's message and from the protocol's, to be compared."""

from __future__ import annotations

import json
from typing import Any

from ag_ui.core import AssistantMessage

from runcast.adapters.langgraph.content.message_content import text_of

Answer = tuple[str, list[tuple[Any, Any, Any]]]


def answer_of(message: Any) -> Answer:
    """The text and the calls of a message."""
    if isinstance(message, AssistantMessage):
        calls = [(it.id, it.function.name, _args(it.function.arguments)) for it in message.tool_calls or ()]
        return message.content or "", calls
    made = (*message.tool_calls, *message.invalid_tool_calls) if message.type == "ai" else ()
    return text_of(message.content), [(call["id"], call["name"], call["args"]) for call in made]


def _args(text: str) -> Any:
    """A call's arguments, as its message has them: text that is no JSON stays text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
