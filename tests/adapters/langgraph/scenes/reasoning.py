"""Scenes of reasoning: six ways to write it down, with signatures, cut off, mixed with speech and calls."""

from __future__ import annotations

from functools import partial
from typing import Any

from langchain_core.messages import AIMessageChunk

from tests.adapters.langgraph.fakes import calls, piece, say
from tests.adapters.langgraph.scenes.book import agent, chat, echo, scene
from tests.adapters.langgraph.stage import Stage, types


def blocks(*content: Any, provider: str | None = None, **fields: Any) -> AIMessageChunk:
    """A chunk of blocks, marked as its provider's integration marks it."""
    marked = {"response_metadata": {"model_provider": provider}} if provider else {}
    return AIMessageChunk(content=list(content), **marked, **fields)


anthropic = partial(blocks, provider="anthropic")
openai = partial(blocks, provider="openai")
bedrock = partial(blocks, provider="bedrock_converse")


def summary(text: str) -> dict[str, Any]:
    parts = [{"type": "summary_text", "text": text, "index": 0}]
    return {"type": "reasoning", "summary": parts, "index": 0}


FORMATS: dict[str, list[AIMessageChunk]] = {
    "anthropic": [
        anthropic({"type": "thinking", "thinking": "hm", "index": 0}),
        anthropic({"type": "thinking", "thinking": "mm", "index": 0}),
        anthropic({"type": "text", "text": "so", "index": 1}),
    ],
    "standard": [
        blocks({"type": "reasoning", "reasoning": "hm", "index": 0}),
        blocks({"type": "reasoning", "reasoning": "mm", "index": 0}),
        blocks({"type": "text", "text": "so", "index": 1}),
    ],
    "responses": [
        openai(id="resp_1"),
        openai({"type": "reasoning", "id": "rs_1", "summary": [], "index": 0}),
        openai(summary("hm")),
        openai(summary("mm")),
        openai({"type": "text", "text": "so", "index": 1}),
    ],
    "bedrock": [
        bedrock({"type": "reasoning_content", "reasoning_content": {"text": "hm"}, "index": 0}),
        bedrock({"type": "reasoning_content", "reasoning_content": {"text": "mm"}, "index": 0}),
        bedrock({"type": "text", "text": "so", "index": 1}),
    ],
    "deepseek": [
        AIMessageChunk(content="", additional_kwargs={"reasoning_content": "hm"}),
        AIMessageChunk(content="", additional_kwargs={"reasoning_content": "mm"}),
        AIMessageChunk(content="so"),
    ],
    "openai_legacy": [
        AIMessageChunk(content="", additional_kwargs={"reasoning": {"summary": [{"text": "hm"}]}}),
        AIMessageChunk(content="", additional_kwargs={"reasoning": {"summary": [{"text": "mm"}]}}),
        AIMessageChunk(content="so"),
    ],
}


def thoughts(events: list[Any]) -> str:
    return "".join(event.delta for event in events if event.type == "REASONING_MESSAGE_CONTENT")


def format_scene(name: str) -> None:
    @scene(f"21_reasoning_{name}")
    async def play(stage: Stage) -> None:
        stage.play(chat(FORMATS[name]))
        events = await stage.send("hi")
        assert thoughts(events) == "hmmm"
        ends = types(events)
        assert ends.index("REASONING_END") < ends.index("TEXT_MESSAGE_START")
        assert ends.count("REASONING_START") == 1
        await stage.holds()


for each in FORMATS:
    format_scene(each)


@scene("22_signature_in_its_own_chunk")
async def signature(stage: Stage) -> None:
    signed = anthropic({"type": "thinking", "thinking": "", "signature": "SIG", "index": 0})
    thought, more, speech = FORMATS["anthropic"]
    stage.play(chat([thought, more, signed, speech]))
    events = await stage.send("hi")
    sealed = next(event for event in events if event.type == "REASONING_ENCRYPTED_VALUE")
    opened = next(event for event in events if event.type == "REASONING_START")
    assert (sealed.encrypted_value, sealed.entity_id) == ("SIG", opened.message_id)
    await stage.holds()


@scene("22_redacted_thinking")
async def redacted(stage: Stage) -> None:
    hidden = anthropic({"type": "redacted_thinking", "data": "sealed", "index": 0})
    stage.play(chat([hidden, anthropic({"type": "text", "text": "so", "index": 1})]))
    events = await stage.send("hi")
    assert "REASONING_ENCRYPTED_VALUE" in types(events)
    assert thoughts(events) == ""
    await stage.holds()


@scene("22_signature_of_a_call")
async def signed_call(stage: Stage) -> None:
    kwargs = {"__gemini_function_call_thought_signatures__": {"c1": "SIG"}}
    asked = calls(piece("echo", '{"text":"x"}', "c1", None), additional_kwargs=kwargs)
    stage.play(agent([asked], say("ok"), tools=[echo]))
    events = await stage.send("hi")
    sealed = next(event for event in events if event.type == "REASONING_ENCRYPTED_VALUE")
    assert (sealed.subtype, sealed.entity_id, sealed.encrypted_value) == ("tool-call", "c1", "SIG")
    await stage.holds()


@scene("23_reasoning_cut_by_max_tokens")
async def cut_short(stage: Stage) -> None:
    first, second, _ = FORMATS["anthropic"]
    cut = second.model_copy(
        update={"response_metadata": {**second.response_metadata, "stop_reason": "max_tokens"}}
    )
    stage.play(chat([first, cut]))
    events = await stage.send("hi")
    end = next(event for event in events if event.type == "TEXT_MESSAGE_END")
    assert end.metadata["runcast"]["finish_reason"] == "max_tokens"
    await stage.holds()


@scene("24_reasoning_and_text_in_one_chunk")
async def mixed(stage: Stage) -> None:
    both = anthropic(
        {"type": "thinking", "thinking": "hm", "index": 0}, {"type": "text", "text": "so", "index": 1}
    )
    stage.play(chat([both]))
    events = await stage.send("hi")
    assert thoughts(events) == "hm"
    await stage.holds()


@scene("25_reasoning_then_call_then_reasoning")
async def reasoning_then_tool(stage: Stage) -> None:
    asked = calls(piece("echo", '{"text":"x"}', "c1", 1))
    again = anthropic({"type": "thinking", "thinking": "oh", "index": 2})
    stage.play(agent([FORMATS["anthropic"][0], asked, again], say("ok"), tools=[echo]))
    events = await stage.send("hi")
    assert types(events).count("REASONING_START") == 2
    await stage.holds()


@scene("25_blocks_messages_cannot_hold")
async def carried(stage: Stage) -> None:
    image = {"type": "image", "base64": "aGk=", "mime_type": "image/png", "index": 0}
    cited = {"type": "text", "text": "said", "citations": [{"url": "https://example.org"}], "index": 1}
    searched = {"type": "server_tool_use", "name": "web_search", "id": "s1", "input": {}, "index": 2}
    stage.play(chat([blocks(image), blocks(cited), blocks(searched)]))
    events = await stage.send("hi")
    told = [event.value["block"]["type"] for event in events if event.type == "CUSTOM"]
    assert told == ["image", "text", "server_tool_use"]
    await stage.holds()
