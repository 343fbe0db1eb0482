"""The size of a message: the bytes of its content and arguments."""

from __future__ import annotations

from ag_ui.core import AssistantMessage, Message, TextPart, ToolCall

from runcast.slim.folding.run_metadata import metadata_of
from runcast.slim.values.type_guards import is_list


def text_bytes(text: str) -> int:
    """The length in UTF-8, where a lone surrogate counts like any other character."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def weight(message: Message) -> int:
    """The bytes of text, arguments and inline data in a message; none for an activity, which no model reads."""
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
    """The bytes of the arguments; none for the placeholder of arguments that a snapshot left out."""
    return 0 if metadata_of(call).get("no_arguments") is True else text_bytes(call.function.arguments)
