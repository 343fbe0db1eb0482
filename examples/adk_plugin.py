"""Your own runner loop, and its runs as AG-UI events beside it: one plugin, nothing else changes.

The model is a script, so that this runs without a network: put `"gemini-flash-latest"` in its place.

Install: `pip install "runcast[adk]"`.

Look at: the AG-UI events between the lines of your own loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from ag_ui.core import Event
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from runcast.adapters.adk import AdkPlugin


class Scripted(BaseLlm):
    """Says hello."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="Hello!")]))


def sink(event: Event) -> None:
    """Where the events go: a log, a queue, a socket."""
    print(event.type.value)


async def main() -> None:
    agent = LlmAgent(name="greeter", model=Scripted(model="scripted"))
    app = App(name="greetings", root_agent=agent, plugins=[AdkPlugin(sink)])
    runner = Runner(app=app, session_service=InMemorySessionService(), auto_create_session=True)
    message = types.Content(role="user", parts=[types.Part(text="hi")])
    async for event in runner.run_async(
        user_id="ada", session_id="t1", new_message=message, run_config=RunConfig()
    ):
        print("ADK:", event.author)
    await runner.close()  # gives the sink a moment to take what waits for it


if __name__ == "__main__":
    asyncio.run(main())
