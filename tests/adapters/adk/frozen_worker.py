"""A worker in a process of its own that is frozen in a model call, and writes its events to its output.

Run with the URL of a database and the number of the model call. SIGCONT lets it go on.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator

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
    frozen: bool = False

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        if self.turn_of(llm_request) == self.at and not self.frozen:
            self.frozen = True
            print(flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)
        async for each in super().generate_content_async(llm_request, stream):
            yield each


async def main(url: str, at: int) -> None:
    script = [calls(call("look", {"q": "x"})), *[text(f"{n} of sleeper") for n in range(1, 6)]]
    root = LlmAgent(name="root", model=Freezes(script=script, at=at), tools=[look])
    adapter = AdkAdapter(root, app_name="app", session_service=DatabaseSessionService(url))
    said = [UserMessage(id="asleep", content="hi")]
    async for event in adapter.run(RunAgentInput(thread_id="t1", run_id="r1", messages=said)):
        print(event.model_dump_json(by_alias=True), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
