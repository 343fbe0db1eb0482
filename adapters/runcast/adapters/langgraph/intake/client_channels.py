"""The channels in which graphs made for AG-UI expect what a client sends beside messages: its tools and its context.

AG-UI's own server for LangGraph fills `tools` and `ag-ui`; CopilotKit's SDK declares `copilotkit` (`CopilotKitState`,
`CopilotKitMiddleware`). A graph that declares one of them reads it without asking whether it is there. Pure: knows schemas
and their names, not graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, get_type_hints

from ag_ui.core import RunAgentInput
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from runcast.slim.values.type_guards import as_mapping

A2UI_SCHEMA = (  # the description by which AG-UI's A2UI middleware marks its entry of the context
    "A2UI Component Schema — available components for generating UI surfaces. "
    "Use these component names and properties when creating A2UI operations."
)
A_TOOL: dict[str, Any] = {
    "name": "ask",
    "description": "Ask.",
    "parameters": {"type": "object", "properties": {}},
}


def client_channels(channels: Collection[str], schema: Any) -> frozenset[str]:
    """Those of a graph's input channels that take what a client sends.

    `tools` is an ordinary word: it counts where its type takes the protocol's tools as they are.
    """
    named = {name for name in ("ag-ui", "copilotkit") if name in channels}
    return frozenset(named | {"tools"} if "tools" in channels and _takes_tools(schema) else named)


def client_values(input: RunAgentInput, channels: Collection[str]) -> dict[str, Any]:
    """What the client sent, for each of these channels. Without tools and context they are empty, not absent."""
    return {name: CHANNELS[name](input) for name in sorted(channels)}


def _takes_tools(schema: Any) -> bool:
    try:
        hint: Any = get_type_hints(schema, include_extras=True).get("tools")
        return bool(TypeAdapter(hint).validate_python([A_TOOL]) == [A_TOOL])
    except (NameError, TypeError, ValidationError, PydanticUserError):
        return False


def _tools(input: RunAgentInput) -> list[dict[str, Any]]:
    return [tool.model_dump(by_alias=True, exclude_unset=True) for tool in input.tools or ()]


def _context(input: RunAgentInput) -> list[dict[str, Any]]:
    return [each.model_dump(by_alias=True, exclude_unset=True) for each in input.context or ()]


def _for_ag_ui(input: RunAgentInput) -> Mapping[str, Any]:
    """A2UI's component schema stands apart from the context: its tools read it, and no prompt shows it."""
    context = _context(input)
    schemas = [each["value"] for each in context if each["description"] == A2UI_SCHEMA]
    inject = as_mapping(input.forwarded_props).get("injectA2UITool")
    return {
        "tools": _tools(input),
        "context": [each for each in context if each["description"] != A2UI_SCHEMA],
        **({"a2ui_schema": schemas[0]} if schemas else {}),
        **({} if inject is None else {"inject_a2ui_tool": inject}),
    }


def _for_copilotkit(input: RunAgentInput) -> Mapping[str, Any]:
    given = _for_ag_ui(input)
    return {"actions": given["tools"], "context": given["context"]}


CHANNELS: Mapping[str, Callable[[RunAgentInput], Any]] = {
    "ag-ui": _for_ag_ui,
    "copilotkit": _for_copilotkit,
    "tools": _tools,
}
