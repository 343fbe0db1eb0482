"""Models without a network: a script of turns, fed through ADK's own streaming aggregator.

A turn is a list of `GenerateContentResponse` chunks, as Gemini would send them. What an agent sees of them (partials
that share one id, the aggregated final, signatures, streamed arguments) is made by ADK, not here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.utils.streaming_utils import StreamingResponseAggregator
from google.genai import types
from pydantic import Field

Chunk = types.GenerateContentResponse
Turn = list[Any]


class FakeGemini(BaseLlm):
    """Plays one turn a call, the last one again when the script is over. An exception in a turn is raised."""

    model: str = "fake"
    script: list[Turn] = Field(default_factory=list)
    calls: list[LlmRequest] = Field(default_factory=list)
    sent: list[int] = Field(default_factory=list)
    pace: float | None = None

    def turn_of(self, llm_request: LlmRequest) -> int:
        """Which turn answers this request."""
        return len(self.calls) - 1

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.calls.append(llm_request)
        turn = self.script[min(self.turn_of(llm_request), len(self.script) - 1)]
        aggregator = StreamingResponseAggregator()
        parts: list[LlmResponse] = []
        for chunk in turn:
            if isinstance(chunk, Exception):
                raise chunk
            if isinstance(chunk, LlmResponse):
                yield chunk
                continue
            if self.pace is not None:
                await asyncio.sleep(self.pace)
            async for response in aggregator.process_response(chunk.model_copy(deep=True)):
                self.sent.append(1)
                if stream:
                    yield response
                else:
                    parts.append(response)
        final = aggregator.close()
        if final is not None:
            yield final


class Steady(FakeGemini):
    """Answers by what it reads: as many turns as the conversation has of its own. Asked again, it answers the same."""

    def turn_of(self, llm_request: LlmRequest) -> int:
        return sum(content.role == "model" for content in llm_request.contents)


def llm(*script: Turn, model: str = "fake", pace: float | None = None) -> FakeGemini:
    return FakeGemini(model=model, script=list(script), calls=[], sent=[], pace=pace)


def chunk(*parts: types.Part, finish: str | None = None, usage: bool = False, model: str = "fake-1") -> Chunk:
    candidate = types.Candidate(
        content=types.Content(role="model", parts=list(parts)) if parts else None,
        finish_reason=None if finish is None else types.FinishReason(finish),
    )
    return Chunk(
        candidates=[candidate],
        model_version=model,
        usage_metadata=tokens() if usage else None,
    )


def tokens(**given: int) -> types.GenerateContentResponseUsageMetadata:
    numbers = {"prompt_token_count": 5, "candidates_token_count": 3, "total_token_count": 8} | given
    return types.GenerateContentResponseUsageMetadata(**numbers)


def text(*deltas: str, model: str = "fake-1") -> Turn:
    """A turn of plain text."""
    last = len(deltas) - 1
    return [
        chunk(types.Part(text=delta), finish="STOP" if n == last else None, usage=n == last, model=model)
        for n, delta in enumerate(deltas)
    ]


def thinks(thoughts: tuple[str, ...], *deltas: str) -> Turn:
    """Thought deltas, then text deltas."""
    parts = [types.Part(text=it, thought=True) for it in thoughts] + [types.Part(text=it) for it in deltas]
    return turn(*parts)


def turn(*parts: types.Part, finish: str = "STOP") -> Turn:
    """A turn with one part a chunk."""
    last = len(parts) - 1
    return [
        chunk(part, finish=finish if n == last else None, usage=n == last) for n, part in enumerate(parts)
    ]


def call(name: str, args: dict[str, Any] | None = None, *, id: str | None = None, **more: Any) -> types.Part:
    return types.Part(function_call=types.FunctionCall(id=id, name=name, args=args), **more)


def calls(*parts: types.Part) -> Turn:
    """A turn whose last chunk holds these calls."""
    return [chunk(*parts, finish="STOP", usage=True)]


def blocked(code: str = "SAFETY", message: str | None = None) -> Chunk:
    """A chunk by which Gemini says that it will not go on."""
    candidate = types.Candidate(finish_reason=types.FinishReason(code), finish_message=message)
    return Chunk(candidates=[candidate], usage_metadata=tokens(), model_version="fake-1")


def agent(name: str, *script: Turn, pace: float | None = None, **given: Any) -> LlmAgent:
    """An agent over a script of turns."""
    return LlmAgent(name=name, model=llm(*script, pace=pace), **given)


def steady(name: str, *script: Turn, **given: Any) -> LlmAgent:
    """An agent that answers alike when it is asked again."""
    return LlmAgent(name=name, model=Steady(script=list(script)), **given)


def model_of(agent: LlmAgent) -> FakeGemini:
    """The fake behind an agent."""
    assert isinstance(agent.model, FakeGemini)
    return agent.model
