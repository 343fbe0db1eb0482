"""A tool that returned keeps its result when a slower one beside it is stopped, as the session and the next model see it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from ag_ui.core import RunAgentInput, UserMessage
from google.adk.agents import LlmAgent
from google.adk.sessions import InMemorySessionService
from google.adk.tools.tool_context import ToolContext

from runcast.adapters.adk import AdkAdapter
from tests.app.nodes.works import AdkModel, Works

pytestmark = pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")  # ADK's own, once a process
ERROR = {"error": "Invocation was aborted by client."}


async def stopped(**callbacks: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The results in the session, and its state, of a run that is stopped in the slower of two tools."""
    works, returned = Works(), asyncio.Event()

    async def at_once(tool_context: ToolContext) -> str:
        """Do not wait."""
        tool_context.state["noted"] = 1
        returned.set()
        return "quick done"

    sessions: Any = InMemorySessionService()
    agent = LlmAgent(name="agent", model=AdkModel(works=works), tools=[at_once, works.slow], **callbacks)
    adapter = AdkAdapter(agent, app_name="app", session_service=sessions)
    said = [UserMessage(id="u", content="one")]
    input = RunAgentInput(thread_id="t", run_id="r", messages=said, tools=[], context=[])

    async def run() -> None:
        async for _ in adapter.run(input):
            pass

    running = asyncio.ensure_future(run())
    await works.reaches(works.in_tool)
    await works.reaches(returned)
    for _ in range(100):  # until ADK has taken the result
        await asyncio.sleep(0)
    await adapter.stop("r", hard=True)
    async with asyncio.timeout(60):
        await running
    session = await sessions.get_session(app_name="app", user_id="user", session_id="t")
    results = {
        each.name: each.response for event in session.events for each in event.get_function_responses()
    }
    return results, dict(session.state)


async def test_what_returned_stays_with_the_state_it_changed() -> None:
    results, state = await stopped()
    assert results == {"at_once": {"result": "quick done"}, "slow": ERROR}
    assert state["noted"] == 1


async def test_a_result_that_the_agents_callback_would_change_is_not_stored_unchanged() -> None:
    def hides(**_: Any) -> dict[str, Any]:
        return {"result": "hidden"}

    results, _ = await stopped(after_tool_callback=hides)
    assert results == {"at_once": ERROR, "slow": ERROR}
