"""What a message weighs: the bytes of its content and arguments. Knows the protocol's messages, nothing else."""

from __future__ import annotations

from ag_ui.core import AssistantMessage, Message, TextPart, ToolCall

from runcast.slim.jsonlike import is_list
from runcast.slim.steps import notes

__all__ = ["text_bytes", "weight"]


def text_bytes(text: str) -> int:
    """The length in UTF-8, counting half a surrogate pair like any other character."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def weight(message: Message) -> int:
    """The bytes of text, arguments and inline data in a message; an activity has none that a model would see."""
    content: object = message.content
    size = 0
    if isinstance(content, str):
        size = text_bytes(content)
    elif is_list(content):
        size = sum(map(_part, content))
    if isinstance(message, AssistantMessage):
        size += sum(map(_arguments, message.tool_calls or ()))
    return size


def _part(part: object) -> int:
    text = part.text if isinstance(part, TextPart) else getattr(getattr(part, "source", None), "value", "")
    return text_bytes(text)


def _arguments(call: ToolCall) -> int:
    """A call that a snapshot kept without its arguments carries a stand-in for them, which weighs nothing."""
    return 0 if notes(call).get("no_arguments") is True else text_bytes(call.function.arguments)
