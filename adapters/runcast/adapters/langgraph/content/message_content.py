"""The content of messages, in LangChain's form and in the protocol's, and the calls of a whole one.

Knows text and media parts in both forms, and converts them without loss where both have a form. A block without one in
the protocol is kept as text (`to_parts`), never dropped. Does not know roles.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ag_ui.core import (
    AudioPart,
    DataSource,
    DocumentPart,
    FileSource,
    ImagePart,
    TextPart,
    UrlSource,
    VideoPart,
)

from runcast.adapters.langgraph.content.plain_values import listed, plain
from runcast.slim.values.type_guards import as_mapping

PART_IDS = "ag_ui"  # a block's own key for what LangChain has no field for: part id and metadata
ContentPart = TextPart | ImagePart | AudioPart | VideoPart | DocumentPart
Source = DataSource | UrlSource | FileSource
_MEDIA: Mapping[str, type[ImagePart | AudioPart | VideoPart | DocumentPart]] = {
    "image": ImagePart,
    "audio": AudioPart,
    "video": VideoPart,
    "document": DocumentPart,
}
_BLOCK_TYPES = {"image": "image", "audio": "audio", "video": "video", "document": "file"}
_PART_TYPES = {block: part for part, block in _BLOCK_TYPES.items()}


def text_of(content: Any) -> str:
    """All text of a message's content, joined: what the client's one string holds."""
    if isinstance(content, str):
        return content
    return "".join(_text_in(block) for block in listed(content) or ())


def _text_in(block: Any) -> str:
    if isinstance(block, str):
        return block
    held = as_mapping(block)
    if held.get("type") not in ("text", "output_text", "refusal"):
        return ""
    return str(held.get("text") or held.get("refusal") or "")


def to_parts(content: Any) -> str | list[ContentPart]:
    """LangChain content as the protocol's: a string stays one, blocks become parts."""
    if isinstance(content, str):
        return content
    blocks = listed(content)
    if blocks is None:
        return _as_json(content)
    return [_to_part(block) for block in blocks]


def _to_part(block: Any) -> ContentPart:
    if isinstance(block, str):
        return TextPart(text=block)
    held = as_mapping(block)
    kept = as_mapping(held.get(PART_IDS))
    if held.get("type") == "text" and isinstance(held.get("text"), str):
        return TextPart(text=held["text"], **kept)
    media = _media(held)
    if media is None:
        return TextPart(text=_as_json(block))
    kind, source = media
    return _MEDIA[kind](source=source, **kept)


def _as_json(value: Any) -> str:
    return json.dumps(plain(value), ensure_ascii=False)


def _media(block: Mapping[str, Any]) -> tuple[str, Source] | None:
    """The kind and source of a media block: LangChain's standard ones, `source_type` ones and OpenAI's."""
    kind = block.get("type")
    if kind == "image_url":
        held = block.get("image_url")
        url = held if isinstance(held, str) else as_mapping(held).get("url")
        return ("image", _from_url(url, None)) if isinstance(url, str) else None
    if kind not in _PART_TYPES:
        return None
    source = _source(block)
    return None if source is None else (_PART_TYPES[kind], source)


def _source(block: Mapping[str, Any]) -> Source | None:
    mime = block.get("mime_type")
    named = block.get("source_type")
    data = block.get("base64") or (block.get("data") if named == "base64" else None)
    if isinstance(data, str):
        return DataSource(value=data, mime_type=mime or "application/octet-stream")
    if isinstance(block.get("url"), str):
        return UrlSource(value=block["url"], mime_type=mime) if mime else UrlSource(value=block["url"])
    file_id = block.get("file_id") or (block.get("id") if named == "id" else None)
    if isinstance(file_id, str):
        given: dict[str, Any] = {"provider": block.get("provider"), "mime_type": mime}
        return FileSource(value=file_id, **{key: value for key, value in given.items() if value})
    return None


def _from_url(url: str, mime: str | None) -> Source:
    if url.startswith("data:") and ";base64," in url:
        head, _, data = url.partition(";base64,")
        return DataSource(value=data, mime_type=head.removeprefix("data:") or "application/octet-stream")
    return UrlSource(value=url, mime_type=mime) if mime else UrlSource(value=url)


def to_blocks(content: str | Sequence[ContentPart]) -> str | list[dict[str, Any]]:
    """The protocol's content as LangChain's: a string stays one, parts become standard blocks."""
    if isinstance(content, str):
        return content
    return [_to_block(part) for part in content]


def _to_block(part: ContentPart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        block: dict[str, Any] = {"type": "text", "text": part.text}
    else:
        block = {"type": _BLOCK_TYPES[part.type], **_source_fields(part.source)}
    kept = {key: value for key in ("id", "metadata") if (value := getattr(part, key)) is not None}
    if kept:
        block[PART_IDS] = kept
    return block


def _source_fields(source: Source) -> dict[str, Any]:
    fields: dict[str, Any] = {"mime_type": source.mime_type} if source.mime_type is not None else {}
    match source:
        case DataSource():
            return {"base64": source.value, **fields}
        case UrlSource():
            return {"url": source.value, **fields}
        case _:
            if source.provider is not None:
                fields["provider"] = source.provider
            return {"file_id": source.value, **fields}


def streamed_calls(message: Any) -> list[dict[str, Any]]:
    """A whole message's calls as if they had been streamed in one chunk."""
    calls = [(call, json.dumps(plain(call["args"]), ensure_ascii=False)) for call in message.tool_calls]
    calls += [(call, call["args"] or "") for call in message.invalid_tool_calls]
    return [
        {"name": call["name"], "args": args, "id": call["id"], "index": at}
        for at, (call, args) in enumerate(calls)
    ]
