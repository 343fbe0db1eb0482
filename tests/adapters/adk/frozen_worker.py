"""A worker in a process of its own that is frozen in a model call, and tells its events.

Each goes out as JSON, and an empty text before it is frozen. SIGCONT lets it go on.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from multiprocessing.connection import Connection
from typing import Any

from ag_ui.core import RunAgentInput, UserMessage
from google.adk.agents import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions.database_session_service import DatabaseSessionService

from runcast.adapters.adk import AdkAdapter
from tests.adapters.adk.fakes import Steady, call, calls, text
from tests.adapters.adk.scenes import look


class Freezes(Steady):
    """Stops its process in its model call of this number."""

    at: int
    pipe: Any
    frozen: bool = False

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        if self.turn_of(llm_request) == self.at and not self.frozen:
            self.frozen = True
            self.pipe.send("")
            os.kill(os.getpid(), signal.SIGSTOP)
        async for each in super().generate_content_async(llm_request, stream):
            yield each


def life(pipe: Connection, url: str, at: int) -> None:
    """One run, frozen in the model call of this number."""
    asyncio.run(_run(pipe, url, at))


async def _run(pipe: Connection, url: str, at: int) -> None:
    script = [calls(call("look", {"q": "x"})), *[text(f"{n} of sleeper") for n in range(1, 6)]]
    root = LlmAgent(name="root", model=Freezes(script=script, at=at, pipe=pipe), tools=[look])
    adapter = AdkAdapter(root, app_name="app", session_service=DatabaseSessionService(url))
    said = [UserMessage(id="asleep", content="hi")]
    async for event in adapter.run(RunAgentInput(thread_id="t1", run_id="r1", messages=said)):
        pipe.send(event.model_dump_json(by_alias=True))
