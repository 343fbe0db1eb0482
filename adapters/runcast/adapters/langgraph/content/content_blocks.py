"""What a model's message is made of, whichever provider sent it.

Knows the content blocks of LangChain's integrations: text, six forms of reasoning, signatures, server tools, media.
Does not know the protocol, nor which blocks are open. Tool calls are not read here: LangChain gives them separately, in
`tool_call_chunks` and `tool_calls`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from runcast.adapters.langgraph.content.plain_values import listed
from runcast.slim.values.type_guards import as_mapping, is_object

Kind = Literal["text", "reasoning", "signature", "text-signature", "call-signature", "other"]

_TEXTS = {"text": "text", "output_text": "text", "text_delta": "text", "refusal": "refusal"}
_CALLS = frozenset(
    ("tool_use", "input_json_delta", "function_call", "tool_call", "tool_call_chunk", "invalid_tool_call")
)
GEMINI_SIGNATURES = "__gemini_function_call_thought_signatures__"


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of a message. `slot` separates blocks of one kind, or names the call of a signature."""

    kind: Kind
    text: str = ""
    slot: Hashable = None
    block: Any = None


def pieces(content: Any, extra: Mapping[str, Any] | None = None) -> Iterator[Piece]:
    """The pieces of a message's or a chunk's content, and of the reasoning some providers put beside it."""
    if extra:
        yield from _beside(extra)
    if isinstance(content, str):
        if content:
            yield Piece("text", content)
        return
    for block in listed(content) or ():
        if isinstance(block, str):
            if block:
                yield Piece("text", block)
        elif isinstance(block, Mapping):
            yield from _block(as_mapping(block))


def _block(block: Mapping[str, Any]) -> Iterator[Piece]:
    kind = block.get("type")
    if kind in _TEXTS:
        yield from _text(block, block.get(_TEXTS[kind]))
    elif kind in _CALLS:
        return
    elif kind in _REASONING:
        yield from _REASONING[kind](block)
    elif kind == "non_standard" and is_object(
        block.get("value")
    ):  # a provider's own block, as LangChain wraps it
        yield from _block({"index": block.get("index"), **block["value"]})
    else:  # media, server tools, code that ran: the protocol's messages have no place for them
        yield Piece("other", block=block)


def _text(block: Mapping[str, Any], text: Any) -> Iterator[Piece]:
    if text:
        yield Piece("text", str(text))
    if block.get("citations") or block.get("annotations"):
        yield Piece("other", block=block)
    signature = _signature(block)
    if signature:
        yield Piece("text-signature", signature)


def _signature(block: Mapping[str, Any]) -> str | None:
    held = block.get("signature") or as_mapping(block.get("extras")).get("signature")
    return held if isinstance(held, str) else None


def _reasoning(text: Any, signature: Any, slot: Hashable) -> Iterator[Piece]:
    yield Piece("reasoning", text if isinstance(text, str) else "", slot)
    if isinstance(signature, str) and signature:
        yield Piece("signature", signature, slot)


def _anthropic(block: Mapping[str, Any]) -> Iterator[Piece]:
    return _reasoning(block.get("thinking"), block.get("signature"), block.get("index"))


def _redacted(block: Mapping[str, Any]) -> Iterator[Piece]:
    return _reasoning("", block.get("data"), block.get("index", "redacted"))


def _bedrock(block: Mapping[str, Any]) -> Iterator[Piece]:
    held = block.get("reasoning_content")
    inner = as_mapping(held) if isinstance(held, Mapping) else {"text": held}
    return _reasoning(inner.get("text"), inner.get("signature"), block.get("index"))


def _standard(block: Mapping[str, Any]) -> Iterator[Piece]:
    """LangChain's own `reasoning` block, and OpenAI Responses', whose text is in `summary` or `content`."""
    text = block.get("reasoning")
    if not isinstance(text, str):
        text = _joined(block.get("summary")) + _joined(block.get("content"))
    return _reasoning(text, block.get("encrypted_content") or _signature(block), block.get("index"))


def _joined(parts: Any) -> str:
    return "".join(str(as_mapping(part).get("text") or "") for part in listed(parts) or ())


_REASONING = {
    "thinking": _anthropic,
    "redacted_thinking": _redacted,
    "reasoning_content": _bedrock,
    "reasoning": _standard,
}


def _beside(extra: Mapping[str, Any]) -> Iterator[Piece]:
    """Reasoning in `additional_kwargs`: DeepSeek, Qwen and xAI as text, OpenAI's older form as summary parts."""
    text = extra.get("reasoning_content")
    if isinstance(text, str) and text:
        yield Piece("reasoning", text, "beside")
    held = extra.get("reasoning")
    older = held if isinstance(held, str) else _joined(as_mapping(held).get("summary"))
    if older:
        yield Piece("reasoning", older, "beside")
    for call_id, value in as_mapping(extra.get(GEMINI_SIGNATURES)).items():
        yield Piece("call-signature", str(value), str(call_id))
