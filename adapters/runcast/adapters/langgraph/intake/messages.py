"""AG-UI messages and LangChain messages, both ways.

The door for LangChain's message types. Lossless: ids, names, content parts, tool calls with their argument text, errors,
encrypted values and metadata (what LangChain has no field for is kept in `additional_kwargs["ag_ui"]`). Activity and
reasoning messages are for display: they go to no model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from ag_ui.core import (
    AssistantMessage,
    DeveloperMessage,
    FunctionCall,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages import SystemMessage as LangChainSystem
from langchain_core.messages import ToolMessage as LangChainTool

from runcast.adapters.errors import InvalidInput
from runcast.adapters.langgraph.content.message_content import PART_IDS, text_of, to_blocks, to_parts
from runcast.adapters.langgraph.content.plain_values import plain
from runcast.slim.values.type_guards import as_mapping

KEPT = PART_IDS  # in `additional_kwargs`: the protocol's own fields


def to_langchain(messages: Iterable[Message]) -> list[BaseMessage]:
    """The client's messages as a graph takes them."""
    return [made for message in messages if (made := _to_langchain(message)) is not None]


def _to_langchain(message: Message) -> BaseMessage | None:
    match message:
        case UserMessage():
            return HumanMessage(content=to_blocks(message.content), **_common(message))  # type: ignore[arg-type]  # list is invariant
        case AssistantMessage():
            return _to_ai(message)
        case ToolMessage():
            return _to_tool(message)
        case SystemMessage() | DeveloperMessage():
            return _to_system(message)
        case _ if message.role in ("activity", "reasoning"):
            return None
        case _:
            raise InvalidInput(f"unknown message role {message.role!r}: send a role of the protocol")


def _common(message: Any, **kept: Any) -> dict[str, Any]:
    """Id and name, and what LangChain has no field for."""
    for field in ("metadata", "encrypted_value", "subagent_run_id"):
        kept[field] = getattr(message, field, None)
    held = {key: value for key, value in kept.items() if value is not None}
    fields: dict[str, Any] = {"id": message.id}
    if getattr(message, "name", None) is not None:
        fields["name"] = message.name
    if held:
        fields["additional_kwargs"] = {KEPT: held}
    return fields


def _to_ai(message: AssistantMessage) -> AIMessage:
    calls: list[Any] = []
    broken: list[Any] = []
    extras: dict[str, Any] = {}
    for call in message.tool_calls or ():
        name, text = call.function.name, call.function.arguments
        args = _object(text)
        if args is None:
            broken.append(
                {"name": name, "args": text, "id": call.id, "error": None, "type": "invalid_tool_call"}
            )
        else:
            calls.append({"name": name, "args": args, "id": call.id, "type": "tool_call"})
        extra = {
            key: value for key in ("encrypted_value", "metadata") if (value := getattr(call, key)) is not None
        }
        if args is not None and text != _args(args):
            extra["arguments"] = text
        if extra:
            extras[call.id] = extra
    order = [call.id for call in message.tool_calls or ()] if calls and broken else None
    silent = True if message.content is None else None
    common = _common(message, calls=extras or None, order=order, silent=silent)
    return AIMessage(content=message.content or "", tool_calls=calls, invalid_tool_calls=broken, **common)


def _object(text: str) -> dict[str, Any] | None:
    """The arguments of a call, when they are what a tool can be called with."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _to_tool(message: ToolMessage) -> LangChainTool:
    status = {} if message.error is None else {"status": "error"}
    common = _common(message, error=message.error)
    return LangChainTool(
        content=to_blocks(message.content),  # type: ignore[arg-type]  # list is invariant
        tool_call_id=message.tool_call_id,
        **status,
        **common,
    )


def _to_system(message: SystemMessage | DeveloperMessage) -> LangChainSystem:
    common = _common(message)
    if message.role == "developer":  # LangChain's own word for OpenAI's developer role
        common.setdefault("additional_kwargs", {})["__openai_role__"] = "developer"
    return LangChainSystem(content=message.content, **common)


# ----------------------------------------------------------------------------- back


def to_agui(messages: Sequence[Any]) -> list[Message]:
    """A graph's messages as the client holds them. A custom role becomes the nearest one."""
    return [made for message in messages if (made := _to_agui(message)) is not None]


def _to_agui(message: Any) -> Message | None:
    match message.type:
        case "human":
            return UserMessage(content=to_parts(message.content), **_back(message))
        case "ai" | "AIMessageChunk":
            return _from_ai(message)
        case "tool":
            return _from_tool(message)
        case "function":
            return ToolMessage(
                tool_call_id=str(message.name),
                content=to_parts(message.content),
                **_back(message, name=False),
            )
        case "system":
            return _from_system(message)
        case "chat":
            return _from_chat(message)
        case "remove":
            return None
        case _:
            return AssistantMessage(content=text_of(message.content), **_back(message))


def _kept(message: Any) -> Mapping[str, Any]:
    return as_mapping(as_mapping(getattr(message, "additional_kwargs", None)).get(KEPT))


def _back(message: Any, *, name: bool = True) -> dict[str, Any]:
    fields: dict[str, Any] = {"id": message.id or ""}
    if name and message.name:
        fields["name"] = message.name
    for field in ("metadata", "encrypted_value", "subagent_run_id"):
        if field in _kept(message):
            fields[field] = _kept(message)[field]
    return fields


def _from_ai(message: Any) -> AssistantMessage:
    kept = _kept(message)
    extras = as_mapping(kept.get("calls"))
    calls = [_call(call, _args(call["args"]), extras) for call in message.tool_calls]
    calls += [_call(call, call["args"] or "", extras) for call in message.invalid_tool_calls]
    order = kept.get("order")
    if order:
        calls.sort(key=lambda call: order.index(call.id) if call.id in order else len(order))
    fields = _back(message)
    if not kept.get("silent"):
        fields["content"] = text_of(message.content)
    if calls:
        fields["tool_calls"] = calls
    return AssistantMessage(**fields)


def _call(call: Mapping[str, Any], text: str, extras: Mapping[str, Any]) -> ToolCall:
    extra = dict(extras.get(call["id"]) or {})
    function = FunctionCall(name=call["name"] or "", arguments=extra.pop("arguments", text))
    return ToolCall(id=call["id"] or "", function=function, **extra)


def _args(args: Any) -> str:
    return json.dumps(plain(args), ensure_ascii=False)


def _from_tool(message: Any) -> ToolMessage:
    fields = _back(message, name=False)
    error = _kept(message).get("error") or (text_of(message.content) if message.status == "error" else None)
    if error is not None:
        fields["error"] = error
    return ToolMessage(tool_call_id=message.tool_call_id, content=to_parts(message.content), **fields)


def _from_system(message: Any) -> SystemMessage | DeveloperMessage:
    developer = message.additional_kwargs.get("__openai_role__") == "developer"
    kind = DeveloperMessage if developer else SystemMessage
    return kind(content=text_of(message.content), **_back(message))


def _from_chat(message: Any) -> Message:
    fields: dict[str, Any] = {"content": text_of(message.content), **_back(message)}
    match message.role:
        case "user" | "human":
            return UserMessage(**fields)
        case "system":
            return SystemMessage(**fields)
        case "developer":
            return DeveloperMessage(**fields)
        case _:
            return AssistantMessage(**fields)
