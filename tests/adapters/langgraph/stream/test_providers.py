"""Chunks as three integrations make them: their own code, fed with recorded wire formats by a server on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI

from tests.adapters.langgraph.scenes.book import add, answering
from tests.adapters.langgraph.stage import Stage, types

pytestmark = pytest.mark.oracle


@asynccontextmanager
async def serving(lines: Sequence[str]) -> AsyncIterator[str]:
    """Answers every request with these server-sent events."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        await reader.readexactly(int(lengths[0].split(b":")[1]) if lengths else 0)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        for line in lines:
            writer.write(line.encode() + b"\n\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()[:2]
        yield f"http://{host}:{port}"


def data(*payloads: dict[str, Any]) -> list[str]:
    return [f"data: {json.dumps(payload)}" for payload in payloads]


def named(*payloads: dict[str, Any]) -> list[str]:
    return [f"event: {payload['type']}\ndata: {json.dumps(payload)}" for payload in payloads]


async def heard(model: Any, oracle: Any) -> list[Any]:
    stage = Stage(oracle).play(answering(model))
    events = await stage.send("hi")
    assert events[-1].type == "RUN_FINISHED", events[-1]
    await stage.holds()
    return events


def thoughts(events: list[Any]) -> str:
    return "".join(event.delta for event in events if event.type == "REASONING_MESSAGE_CONTENT")


def text(events: list[Any]) -> str:
    return "".join(event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT")


def arguments(events: list[Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for event in events:
        if event.type == "TOOL_CALL_ARGS":
            found[event.tool_call_id] = found.get(event.tool_call_id, "") + event.delta
    return found


def anthropic_stream() -> list[str]:
    def delta(index: int, **fields: Any) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": index, "delta": fields}

    def start(index: int, **fields: Any) -> dict[str, Any]:
        return {"type": "content_block_start", "index": index, "content_block": fields}

    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": []}
    usage = {"input_tokens": 10, "output_tokens": 1}
    return named(
        {
            "type": "message_start",
            "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage},
        },
        start(0, type="thinking", thinking="", signature=""),
        delta(0, type="thinking_delta", thinking="let me "),
        delta(0, type="thinking_delta", thinking="think"),
        delta(0, type="signature_delta", signature="SIG"),
        {"type": "content_block_stop", "index": 0},
        start(1, type="text", text=""),
        delta(1, type="text_delta", text="Hel"),
        delta(1, type="text_delta", text="lo"),
        {"type": "content_block_stop", "index": 1},
        start(2, type="tool_use", id="toolu_1", name="add", input={}),
        delta(2, type="input_json_delta", partial_json='{"a": 1'),
        delta(2, type="input_json_delta", partial_json=', "b": 2}'),
        {"type": "content_block_stop", "index": 2},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"input_tokens": 10, "output_tokens": 20},
        },
        {"type": "message_stop"},
    )


async def test_anthropic(oracle: Any):
    async with serving(anthropic_stream()) as url:
        thinking = {"type": "enabled", "budget_tokens": 1024}
        model = ChatAnthropic(
            model="claude-x",
            api_key="none",
            base_url=url,
            streaming=True,
            max_retries=0,
            max_tokens=2048,
            thinking=thinking,
        )
        events = await heard(model.bind_tools([add]), oracle)
    assert thoughts(events) == "let me think"
    assert (
        next(event.encrypted_value for event in events if event.type == "REASONING_ENCRYPTED_VALUE") == "SIG"
    )
    assert text(events) == "Hello"
    assert arguments(events) == {"toolu_1": '{"a": 1, "b": 2}'}
    assert events[-1].usage[0].input_tokens == 10
    end = next(event for event in events if event.type == "TEXT_MESSAGE_END")
    assert end.metadata["runcast"]["finish_reason"] == "tool_use"
    assert types(events).index("REASONING_END") < types(events).index("TEXT_MESSAGE_START")


def openai_chunk(delta: dict[str, Any] | None, **fields: Any) -> dict[str, Any]:
    choices = (
        [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": fields.pop("finish", None)}]
    )
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-x"}
    return {**head, "choices": choices, **fields}


def call_piece(index: int, args: str, **fields: Any) -> dict[str, Any]:
    name = fields.pop("name", None)
    function = {"arguments": args, **({"name": name} if name else {})}
    return {"tool_calls": [{"index": index, "function": function, **fields}]}


async def test_openai_chat(oracle: Any):
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    lines = data(
        openai_chunk({"role": "assistant", "content": ""}),
        openai_chunk({"content": "Hel"}),
        openai_chunk({"content": "lo"}),
        openai_chunk(call_piece(0, "", id="call_1", type="function", name="add")),
        openai_chunk(call_piece(1, "", id="call_2", type="function", name="echo")),
        openai_chunk(call_piece(0, '{"a":1,')),
        openai_chunk(call_piece(1, '{"text":"x"}')),
        openai_chunk(call_piece(0, '"b":2}')),
        openai_chunk({}, finish="tool_calls"),
        openai_chunk(None, usage=usage),
    )
    async with serving([*lines, "data: [DONE]"]) as url:
        model = ChatOpenAI(
            model="gpt-x", api_key="none", base_url=url, streaming=True, stream_usage=True, max_retries=0
        )
        events = await heard(model, oracle)
    assert text(events) == "Hello"
    assert arguments(events) == {"call_1": '{"a":1,"b":2}', "call_2": '{"text":"x"}'}
    assert events[-1].usage[0].total_tokens == 12


def responses_stream() -> list[str]:
    def response(status: str, **fields: Any) -> dict[str, Any]:
        head = {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": "gpt-x",
            "status": status,
            "output": [],
        }
        return {
            **head,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "error": None,
            **fields,
        }

    details = {"input_tokens_details": {"cached_tokens": 2}, "output_tokens_details": {"reasoning_tokens": 3}}
    usage = {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12, **details}
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "add",
        "status": "in_progress",
    }
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
    part = {"type": "output_text", "text": "", "annotations": []}
    at = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    thought = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
    called = {"item_id": "fc_1", "output_index": 2}
    steps: list[dict[str, Any]] = [
        {"type": "response.created", "response": response("in_progress")},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"type": "reasoning", "id": "rs_1", "summary": []},
        },
        {
            "type": "response.reasoning_summary_part.added",
            **thought,
            "part": {"type": "summary_text", "text": ""},
        },
        {"type": "response.reasoning_summary_text.delta", **thought, "delta": "let me "},
        {"type": "response.reasoning_summary_text.delta", **thought, "delta": "think"},
        {"type": "response.output_item.added", "output_index": 1, "item": message},
        {"type": "response.content_part.added", **at, "part": part},
        {"type": "response.output_text.delta", **at, "delta": "Hel", "logprobs": []},
        {"type": "response.output_text.delta", **at, "delta": "lo", "logprobs": []},
        {"type": "response.output_item.added", "output_index": 2, "item": {**call, "arguments": ""}},
        {"type": "response.function_call_arguments.delta", **called, "delta": '{"a":1,'},
        {"type": "response.function_call_arguments.delta", **called, "delta": '"b":2}'},
        {"type": "response.completed", "response": response("completed", usage=usage)},
    ]
    return named(*({**step, "sequence_number": number} for number, step in enumerate(steps)))


async def test_openai_responses(oracle: Any):
    async with serving(responses_stream()) as url:
        model = ChatOpenAI(
            model="gpt-x",
            api_key="none",
            base_url=url,
            streaming=True,
            use_responses_api=True,
            output_version="responses/v1",
            max_retries=0,
        )
        events = await heard(model, oracle)
    assert {event.message_id for event in events if event.type == "TEXT_MESSAGE_START"} == {"resp_1"}
    assert thoughts(events) == "let me think"
    assert text(events) == "Hello"
    assert arguments(events) == {"call_1": '{"a":1,"b":2}'}
    used = events[-1].usage[0]
    assert (used.total_tokens, used.reasoning_tokens, used.cached_input_tokens) == (12, 3, 2)


async def test_gemini(oracle: Any):
    def candidate(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
        return {
            "candidates": [{"content": {"role": "model", "parts": list(parts)}, "index": 0, **fields}],
            "modelVersion": "gemini-x",
        }

    usage = {"promptTokenCount": 4, "candidatesTokenCount": 6, "totalTokenCount": 10}
    call = {"functionCall": {"name": "add", "args": {"a": 1, "b": 2}}, "thoughtSignature": "U0lH"}
    lines = data(
        candidate({"text": "let me think", "thought": True}),
        candidate({"text": "Hel"}),
        {**candidate({"text": "lo"}, call, finishReason="STOP"), "usageMetadata": usage},
    )
    async with serving(lines) as url:
        model = ChatGoogleGenerativeAI(
            model="gemini-x", google_api_key="none", base_url=url, streaming=True, max_retries=1
        )
        events = await heard(model, oracle)
    assert thoughts(events) == "let me think"
    assert text(events) == "Hello"
    assert [json.loads(args) for args in arguments(events).values()] == [{"a": 1, "b": 2}]
    sealed = next(event for event in events if event.type == "REASONING_ENCRYPTED_VALUE")
    assert (sealed.subtype, sealed.encrypted_value) == ("tool-call", "U0lH")
    assert events[-1].usage[0].total_tokens == 10
