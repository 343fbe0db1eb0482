"""What ADK itself ends otherwise when a run is torn and resumed: no runcast here, so no adapter can end it as it would.

README.md names them under its limits; when a release of ADK mends one, its test fails and the sentence goes.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.artifacts import InMemoryArtifactService
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools import LongRunningFunctionTool
from google.adk.workflow import START, Workflow
from google.genai import types

from tests.adapters.adk.fakes import call, calls, steady, text
from tests.adapters.adk.scenes import Adds, looking
from tests.adapters.adk.wide.agents import DONE
from tests.adapters.adk.wide.combos import coder, loop, many, sequence

HI = types.Content(role="user", parts=[types.Part(text="hi")])


class Checks(BaseAgent):
    """Ends its loop the second time, by a number in the session's state."""

    async def _run_async_impl(self, ctx: Any) -> Any:
        times = ctx.session.state.get("times", 0) + 1
        actions = EventActions(escalate=times >= 2, state_delta={"times": times})
        yield Event(author=self.name, invocation_id=ctx.invocation_id, branch=ctx.branch, actions=actions)


def begins(q: str = "") -> dict[str, Any]:
    """Begin something that takes long."""
    return {"status": "pending"}


async def told(root: Any, *, torn: int | None = None, **app: Any) -> list[str]:
    """What plain ADK stores of one run: the texts, and the names of results; torn behind so many stored events."""
    config = ResumabilityConfig(is_resumable=True)
    service = InMemorySessionService()
    runner = Runner(
        app=App(name="app", root_agent=root, resumability_config=config, **app),
        session_service=service,
        artifact_service=InMemoryArtifactService(),
    )
    where: Any = {"user_id": "user", "session_id": "t"}
    await service.create_session(app_name="app", **where)
    stored, invocation = 0, ""
    async with aclosing(runner.run_async(**where, new_message=HI)) as events:
        async for event in events:
            stored, invocation = stored + (not event.partial), event.invocation_id
            if stored == torn:
                break
    if torn is not None:
        async for _ in runner.run_async(**where, invocation_id=invocation):
            pass
    session = await service.get_session(app_name="app", **where)
    assert session is not None
    parts = [
        part for event in session.events for part in (event.content.parts if event.content else None) or ()
    ]
    return [
        part.text or f"result of {part.function_response.name}"
        for part in parts
        if part.text or part.function_response
    ]


def nested() -> Workflow:
    team = sequence(looking(DONE, name="one"), many("two"), name="team")
    return Workflow(name="root", edges=[(START, team, many("last"))])


async def test_a_sequence_in_a_workflow_is_taken_for_finished() -> None:
    assert await told(nested()) == ["hi", "result of look", "done", "two0", "last0"]
    assert await told(nested(), torn=3) == ["hi", "last0"]


async def test_an_agent_without_a_model_is_run_again_and_counts_twice() -> None:
    def counted() -> Any:
        return loop(many("writer"), Checks(name="checks"), most=4)

    assert await told(counted()) == ["hi", "writer0", "writer1"]
    assert await told(counted(), torn=5) == ["hi", "writer0"]


async def test_a_sequence_goes_past_a_long_tool_that_gave_a_first_result() -> None:
    def long() -> Any:
        tool = LongRunningFunctionTool(begins)
        return sequence(steady("one", calls(call("begins")), text("wait"), tools=[tool]), many("two"))

    assert await told(long()) == ["hi", "result of begins", "wait"]
    assert await told(long(), torn=3) == ["hi", "result of begins", "wait", "two0"]


async def test_a_loop_goes_past_a_long_tool_that_gave_a_first_result() -> None:
    def long() -> Any:
        tool = LongRunningFunctionTool(begins)
        turns = [calls(call("begins")), text("wait"), calls(call("begins")), text("wait again")]
        return loop(steady("one", *turns, tools=[tool]), many("two"))

    begun = ["hi", "result of begins", "wait"]
    assert await told(long()) == begun
    assert await told(long(), torn=3) == [*begun, "two0", "result of begins", "wait again"]


async def test_a_workflow_asks_for_the_result_of_a_long_tool_that_had_not_begun() -> None:
    def long() -> Any:
        tool = LongRunningFunctionTool(begins)
        return Workflow(
            name="root", edges=[(START, steady("one", calls(call("begins")), text("wait"), tools=[tool]))]
        )

    assert await told(long()) == ["hi", "result of begins", "wait"]
    assert await told(long(), torn=2) == ["hi"]


async def test_a_word_behind_a_workflows_node_is_an_error_of_adk() -> None:
    with pytest.raises(ValueError, match="Output already set"):
        await told(Workflow(name="root", edges=[(START, many("one"))]), plugins=[Adds("a")])


async def test_code_in_a_workflows_node_is_an_error_of_adk() -> None:
    with pytest.raises(ValueError, match="Output already set"):
        await told(Workflow(name="root", edges=[(START, coder("one"))]))


async def test_callbacks_before_an_agent_are_called_again() -> None:
    begun: list[str] = []

    def before(callback_context: Any) -> None:
        begun.append(callback_context.agent_name)

    def team() -> Any:
        return sequence(looking(DONE, name="one", before_agent_callback=before))

    assert await told(team()) == ["hi", "result of look", "done"]
    assert begun == ["one"]
    assert await told(team(), torn=3) == ["hi", "result of look", "done"]
    assert begun == ["one", "one", "one"]
