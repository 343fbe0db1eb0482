"""An ADK agent that charges, asks, and answers; its sessions are in SQLite."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ag_ui.core import Interrupt
from google.adk.agents import LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools import LongRunningFunctionTool
from google.genai import types

from runcast.adapters.adk import AdkAdapter
from tests.resume.worker import did, shown


class Clerk(BaseLlm):
    """Does the next thing that the conversation has not seen yet."""

    folder: Path
    model: str = "clerk"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        told = [line for content in llm_request.contents for line in _brief(content)]
        shown(self.folder, told)
        done = sum(role == "tool" for role, _ in told)
        calls = (("charge", {"amount": 5}), ("confirm", {"question": "send a receipt?"}))
        part = types.Part(text="all done")
        if done < len(calls):
            name, arguments = calls[done]
            part = types.Part(function_call=types.FunctionCall(id=f"c-{name}", name=name, args=arguments))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def _brief(content: types.Content) -> list[Any]:
    parts = content.parts or []
    results = [part.function_response for part in parts if part.function_response]
    if results:
        return [["tool", result.name] for result in results]
    calls = [part.function_call.name for part in parts if part.function_call]
    return [
        ["assistant", calls]
        if content.role == "model"
        else ["user", "".join(part.text or "" for part in parts)]
    ]


def answer(asked: Interrupt) -> Any:
    return {"answer": "yes"}


def clerk(folder: Path, confirm: Any) -> AdkAdapter:
    """An agent that charges by itself, and comes to `confirm` next."""

    def charge(amount: int) -> dict[str, Any]:
        """Charge the customer."""
        did(folder, "charge")
        return {"charged": amount}

    root = LlmAgent(name="clerk", model=Clerk(folder=folder), tools=[charge, confirm])
    app = App(name="app", root_agent=root, resumability_config=ResumabilityConfig(is_resumable=True))
    return AdkAdapter(app, session_service=SqliteSessionService(str(folder / "sessions.db")))


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[AdkAdapter]:
    def confirm(question: str) -> None:
        """Ask the customer."""
        did(folder, "confirm")

    yield clerk(folder, LongRunningFunctionTool(confirm))
