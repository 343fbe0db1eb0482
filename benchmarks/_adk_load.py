"""The work both sides of the ADK benchmark do: a model that streams, raw `run_async`, and how runs are compared."""

from __future__ import annotations

import time
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from statistics import median
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App, ResumabilityConfig
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

Way = Callable[[str], Awaitable[Any]]


class Streaming(BaseLlm):
    """Streams so many chunks, then says all of it."""

    chunks: int = 1

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        words = [f"word{number % 10} " for number in range(self.chunks)]
        for word in words:
            yield says(word, partial=True)
        yield says("".join(words), partial=False, finish_reason=types.FinishReason.STOP)


def says(text: str, **given: Any) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), **given)


class CountedSessions(InMemorySessionService):
    """Counts the full loads of a session."""

    reads = 0

    async def get_session(self, **given: Any) -> Any:
        self.reads += 1
        return await super().get_session(**given)


def app(chunks: int) -> App:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        resumable = ResumabilityConfig(is_resumable=True)
    agent = LlmAgent(name="root", model=Streaming(model="streaming", chunks=chunks))
    return App(name="bench", root_agent=agent, resumability_config=resumable)


def runner(chunks: int, sessions: InMemorySessionService | None = None) -> Runner:
    return Runner(
        app=app(chunks), session_service=sessions or InMemorySessionService(), auto_create_session=True
    )


async def raw(runner: Runner, thread: str) -> int:
    sse = RunConfig(streaming_mode=type(RunConfig().streaming_mode).SSE)
    message = types.Content(role="user", parts=[types.Part(text="hi")])
    count = 0
    async for _ in runner.run_async(user_id="user", session_id=thread, new_message=message, run_config=sse):
        count += 1
    return count


async def compared(ways: Mapping[str, Way], rounds: int) -> dict[str, float]:
    """CPU seconds of each way, the median of rounds in which they take turns; the first is the measure of the rest."""
    for name, way in ways.items():
        await way(f"warm-{name}")
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds):
        order = list(ways.items())
        for name, way in order if turn % 2 == 0 else order[::-1]:
            begun = time.process_time()
            await way(f"{name}-{turn}")
            taken[name].append(time.process_time() - begun)
    first = next(iter(ways))
    ratios = {
        f"{name}_ratio": median(own / base for own, base in zip(taken[name], taken[first], strict=True))
        for name in ways
    }
    return {name: median(times) for name, times in taken.items()} | ratios
