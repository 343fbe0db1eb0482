"""The demo's ADK workflow: three real agents, tools at once, one that fails once, a confirmation; a scripted model.

The model's text follows from its request alone, so a worker that starts again streams the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Literal

try:
    from google.adk.agents import LlmAgent
    from google.adk.apps import App, ResumabilityConfig
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.runners import Runner
    from google.adk.sessions.sqlite_session_service import SqliteSessionService
    from google.adk.tools.function_tool import FunctionTool
    from google.adk.tools.tool_context import ToolContext
    from google.adk.workflow import START, Workflow
    from google.genai import types
except ImportError as error:
    raise ImportError("for the demo with ADK, install runcast[adk]") from error

from runcast.adapters.adk import AdkAdapter
from runcast.app.demo import script
from runcast.app.demo.shared import NAMES

Part = types.Part
USAGE = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=640, candidates_token_count=72, total_token_count=712
)


class Scripted(BaseLlm):
    """Streams its role's next turn."""

    model: str = "scripted"
    role: Literal["planner", "writer", "publisher"]
    pace: float = 0.04

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """The next turn: pieces of thought and text, then all of it with its calls."""
        thought, text, calls = _turn(self.role, llm_request)
        for piece, thinks in [
            *((each, True) for each in script.words(thought) if thought),
            *((each, False) for each in script.words(text) if text),
        ]:
            await asyncio.sleep(self.pace)
            yield _response([Part(text=piece, thought=thinks or None)], partial=True)
        whole = [Part(text=thought, thought=True)] if thought else []
        whole += [Part(text=text)] if text else []
        yield _response([*whole, *calls], partial=False)


def _response(parts: list[Part], *, partial: bool) -> LlmResponse:
    content = types.Content(role="model", parts=parts)
    if partial:
        return LlmResponse(content=content, partial=True)
    return LlmResponse(
        content=content,
        usage_metadata=USAGE,
        finish_reason=types.FinishReason.STOP,
        model_version="scripted-1",
    )


def _turn(role: str, request: LlmRequest) -> tuple[str, str, list[Part]]:
    if role == "writer":
        return "", script.DRAFT, []
    answered = [
        part.function_response
        for content in request.contents
        for part in content.parts or ()
        if part.function_response is not None
    ]
    if role == "publisher":
        last = request.contents[-1].parts or []
        result = next((part.function_response for part in last if part.function_response is not None), None)
        if result is None:
            return "", "", [_call("publish", {"title": "The night train"})]
        done = "published" in (result.response or {})
        return "", script.PUBLISHED if done else script.KEPT, []
    match len(answered):
        case 0:
            calls = [
                _call("search_archive", {"route": "Warsaw-Vienna"}),
                _call("forecast", {"place": "Bohumín"}),
            ]
            return script.THOUGHT, script.PLAN, calls
        case 2 | 3:
            return "", "", [_call("check_connection", {"try_number": len(answered) - 1})]
        case _:
            return "", script.CHECK, []


def _call(name: str, args: dict[str, Any]) -> Part:
    return Part(function_call=types.FunctionCall(name=name, args=args))


def build(folder: Path, *, pace: float = 0.04) -> AdkAdapter:
    """The agents behind their adapter, with sessions in the folder."""

    async def search_archive(route: str) -> dict[str, str]:
        """Look a route up in the timetable archive."""
        await asyncio.sleep(pace * 20)
        return {"rows": script.archive()}

    async def forecast(place: str) -> dict[str, str]:
        """The weather on the way."""
        await asyncio.sleep(pace * 10)
        return {"forecast": script.FORECAST}

    async def check_connection(try_number: int) -> dict[str, str]:
        """Ask the interlocking plan; it does not answer the first time."""
        await asyncio.sleep(pace * 5)
        return {"error": "no answer; ask again"} if try_number == 1 else {"connection": "holds"}

    async def publish(title: str, tool_context: ToolContext) -> dict[str, str]:
        """Publish the brief, once it is confirmed."""
        return {"published": title}

    def agent(name: Literal["planner", "writer", "publisher"], *tools: Any) -> LlmAgent:
        return LlmAgent(name=name, model=Scripted(role=name, pace=pace), tools=list(tools))

    desk = Workflow(
        name=NAMES["adk"],
        edges=[
            (
                START,
                agent("planner", search_archive, forecast, check_connection),
                agent("writer"),
                agent("publisher", FunctionTool(publish, require_confirmation=True)),
            )
        ],
    )
    app = App(name=desk.name, root_agent=desk, resumability_config=ResumabilityConfig(is_resumable=True))
    sessions = SqliteSessionService(str(folder / "sessions.db"))
    return AdkAdapter(Runner(app=app, session_service=sessions))
