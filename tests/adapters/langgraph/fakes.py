"""Fake chat models: scripted turns of chunks, streamed or whole, with pauses and faults. Everything else is real."""

from __future__ import annotations

import asyncio
import functools
import operator
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import Field

Turn = Sequence[AIMessageChunk | BaseException]


class FakeModel(BaseChatModel):
    """Plays `turns` one after the other, from the start again when they are used up."""

    turns: list[Any]
    position: int = 0
    bound: list[Any] = Field(default_factory=list)
    heard: list[Any] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Any, **kwargs: Any) -> FakeModel:
        self.bound.extend(tools)
        return self

    def _next(self, messages: Any) -> Turn:
        turn: Turn = self.turns[self.position % len(self.turns)]
        self.position += 1
        self.heard.append(list(messages))
        return turn

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=whole(self._next(messages)))])


class StreamingModel(FakeModel):
    """Streams each turn chunk by chunk, in synchronous and asynchronous graphs."""

    delay: float = 0

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in self._next(messages):
            yield ChatGenerationChunk(message=_sent(chunk))

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._next(messages):
            await asyncio.sleep(self.delay)
            yield ChatGenerationChunk(message=_sent(chunk))


class CountingModel(FakeModel):
    """Streams the numbers from 0, each with a space. Keeps no script: LangChain prints a model's fields for each call."""

    turns: list[Any] = Field(default_factory=list)
    count: int = 0
    finished: bool = False

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for number in range(self.count):
            await asyncio.sleep(0)
            yield ChatGenerationChunk(message=AIMessageChunk(content=f"{number} "))
        self.finished = True


def _sent(chunk: AIMessageChunk | BaseException) -> AIMessageChunk:
    if isinstance(chunk, BaseException):
        raise chunk
    return chunk.model_copy()


def whole(turn: Turn) -> AIMessage:
    """The message that a model which does not stream would give for this turn."""
    chunks = [_sent(chunk) for chunk in turn]
    merged = functools.reduce(operator.add, chunks)
    return AIMessage(
        content=merged.content,
        tool_calls=merged.tool_calls,
        invalid_tool_calls=merged.invalid_tool_calls,
        additional_kwargs=merged.additional_kwargs,
        response_metadata=merged.response_metadata,
        usage_metadata=merged.usage_metadata,
        id=merged.id,
    )


def say(*pieces: str, usage: tuple[int, int] | None = None, **fields: Any) -> list[AIMessageChunk]:
    """A turn of plain text, a chunk each; `usage` is (input, output) tokens on the last."""
    chunks = [AIMessageChunk(content=piece, **fields) for piece in pieces]
    if usage is not None:
        into, out = usage
        chunks[-1] = AIMessageChunk(
            content=pieces[-1],
            usage_metadata={"input_tokens": into, "output_tokens": out, "total_tokens": into + out},
            response_metadata={"finish_reason": "stop", "model_name": "fake-1"},
            **fields,
        )
    return chunks


def piece(
    name: str | None = None, args: str | None = None, id: str | None = None, index: int | None = 0
) -> dict[str, Any]:
    """One entry of `tool_call_chunks`."""
    return {"name": name, "args": args, "id": id, "index": index, "type": "tool_call_chunk"}


def calls(*pieces: dict[str, Any], content: Any = "", **fields: Any) -> AIMessageChunk:
    """One chunk that carries pieces of tool calls."""
    return AIMessageChunk(content=content, tool_call_chunks=list(pieces), **fields)
