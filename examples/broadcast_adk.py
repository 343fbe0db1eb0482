"""A wiretap in one line: your runner loop stays as it is, and whoever watches sees it work.

The model is a script, so that this runs without a network: put `"gemini-flash-latest"` in its place.
`MemoryPublisher` stands for where your watchers are: a `Hub`, or `open_publisher("reverb://key:secret@host:8080/1001")`.

Install: `pip install "runcast[adk]"`.

Look at: the envelopes at the end, a status before and after, and the text as one chunk.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from runcast.adapters.adk import AdkPlugin
from runcast.broadcast import Broadcaster, MemoryPublisher


class Scripted(BaseLlm):
    """Says hello."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="Hello!")]))


async def main() -> None:
    watchers = MemoryPublisher()
    broadcaster = Broadcaster(watchers)
    wiretap = AdkPlugin(broadcaster.sink("t1"))  # this is the line

    agent = LlmAgent(name="greeter", model=Scripted(model="scripted"))
    app = App(name="greetings", root_agent=agent, plugins=[wiretap])
    runner = Runner(app=app, session_service=InMemorySessionService(), auto_create_session=True)
    message = types.Content(role="user", parts=[types.Part(text="hi")])
    async for event in runner.run_async(user_id="ada", session_id="t1", new_message=message):
        print("ADK:", event.author)

    await runner.close()  # gives the wiretap a moment to take what waits for it
    await broadcaster.aclose()
    for envelope in watchers.envelopes("private-agent.t1"):
        print(envelope.seq, envelope.type, dict(envelope.payload))


if __name__ == "__main__":
    asyncio.run(main())
