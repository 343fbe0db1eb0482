"""What a node shows of itself while it works, in the words of AG-UI's own server for LangGraph and of CopilotKit's SDK.

A node dispatches `manually_emit_message`, `manually_emit_tool_call` or `manually_emit_state` (CopilotKit's functions
`copilotkit_emit_message`, `_tool_call` and `_state` dispatch the same under longer names). Decoded here, at the door, into a
message of the graph or a piece of its state; any other dispatched event stays what it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ag_ui.core import AssistantMessage, FunctionCall, ToolCall

from runcast.adapters.langgraph.content.plain_values import plain
from runcast.adapters.langgraph.intake.messages import to_langchain
from runcast.adapters.langgraph.stream.graph_state import as_state
from runcast.adapters.langgraph.stream.parts import Aside
from runcast.slim.values.type_guards import as_mapping

MESSAGE = ("manually_emit_message", "copilotkit_manually_emit_message")
TOOL_CALL = ("manually_emit_tool_call", "copilotkit_manually_emit_tool_call")
STATE = ("manually_emit_state", "copilotkit_manually_emit_intermediate_state")


def dispatched(name: str, data: Any, metadata: Any) -> Aside:
    """A dispatched event as the translator takes it. One with such a name and another content is an event like any other."""
    if name in STATE and (state := as_state(data)) is not None:
        return Aside("manual_state", dict(state))  # its node may change it
    message = _message(name, as_mapping(data))
    if message is not None:
        return Aside("manual_message", {"message": message, "metadata": as_mapping(metadata)})
    return Aside("custom_event", {"name": name, "data": data})


def _message(name: str, data: Mapping[str, Any]) -> Any:
    if name in MESSAGE and isinstance(data.get("message"), str) and data.get("message_id"):
        return _from_agent(AssistantMessage(id=str(data["message_id"]), content=data["message"]))
    if name in TOOL_CALL and isinstance(data.get("name"), str) and data.get("id"):
        id, args = str(data["id"]), data.get("args")
        written = args if isinstance(args, str) else json.dumps(plain(as_mapping(args)), ensure_ascii=False)
        call = ToolCall(id=id, function=FunctionCall(name=data["name"], arguments=written))
        return _from_agent(AssistantMessage(id=id, tool_calls=[call]))  # the ids of AG-UI's own server
    return None


def _from_agent(message: AssistantMessage) -> Any:
    return to_langchain([message])[0]
