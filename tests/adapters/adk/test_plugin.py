"""The plugin: the user's own runner loop, the same events."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App, ResumabilityConfig
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.adk.workflow import START, Workflow
from google.genai import types

from runcast.adapters.adk import AdkPlugin, messages_from_events
from tests.adapters.adk.fakes import agent, call, calls, text
from tests.adapters.adk.stage import Stage, kinds, strict, texts, wire
from tests.e2e.oracle import Oracle

SSE = RunConfig(streaming_mode=StreamingMode.SSE)


def look(q: str = "") -> dict[str, Any]:
    """Look something up."""
    return {"found": q}


def ask(q: str = "") -> None:
    """Ask somebody, who takes a while."""


def danger(x: int) -> dict[str, Any]:
    """Do something dangerous."""
    return {"did": x}


class Loop:
    """Somebody's own program around a runner."""

    def __init__(self, root: Any, sink: Any = None, **given: Any) -> None:
        self.seen: list[Any] = []
        self.waits = sink is None
        self.plugin = AdkPlugin(sink or self.seen.append, **given)
        self.service = InMemorySessionService()
        app = App(
            name="app",
            root_agent=root,
            plugins=[self.plugin],
            resumability_config=ResumabilityConfig(is_resumable=True),
        )
        self.runner = Runner(app=app, session_service=self.service, auto_create_session=True)

    async def send(self, *parts: types.Part, session: str = "s") -> list[Any]:
        content = types.Content(role="user", parts=list(parts))
        given = self.runner.run_async(user_id="u", session_id=session, new_message=content, run_config=SSE)
        try:
            return [event async for event in given]
        finally:
            if self.waits:
                await self.plugin.aflush(10)

    async def messages(self, session: str = "s") -> list[Any]:
        held = await self.service.get_session(app_name="app", user_id="u", session_id=session)
        assert held is not None
        return messages_from_events(held.events, root=self.runner.agent.name)


def reply(call_id: str, name: str, response: dict[str, Any]) -> types.Part:
    return types.Part(function_response=types.FunctionResponse(id=call_id, name=name, response=response))


@pytest.mark.oracle
async def test_a_loop_of_ones_own_gives_the_same_events_as_the_adapter(oracle: Oracle):
    def make() -> Any:
        return agent(
            "root", calls(call("look", {"q": "x"})), text("do", "ne"), tools=[look], output_key="out"
        )

    loop = Loop(make())
    await loop.send(types.Part(text="hi"))
    stage = Stage(make())
    assert kinds(loop.seen) == kinds(await stage.say("hi"))
    strict(loop.seen)
    client = oracle.run(loop.seen)
    assert client["ok"], client["errors"]
    assert client["messages"] == [wire(it) for it in await loop.messages()]
    assert client["state"] == {"out": "done"}
    assert loop.seen[0].thread_id == "s"
    started = loop.seen[0].run_id
    events = (await loop.service.get_session(app_name="app", user_id="u", session_id="s")).events  # type: ignore[union-attr]
    assert {event.invocation_id for event in events} == {started}


@pytest.mark.oracle
async def test_an_answer_goes_on_in_a_run_of_its_own(oracle: Oracle):
    root = agent(
        "root",
        calls(call("ask"), call("danger", {"x": 1})),
        text("done"),
        tools=[LongRunningFunctionTool(ask), FunctionTool(danger, require_confirmation=True)],
    )
    loop = Loop(root)
    await loop.send(types.Part(text="hi"))
    waiting = loop.seen[-1].outcome.interrupts
    assert {it.reason for it in waiting} == {"tool", "tool_approval"}
    first = loop.seen[0].run_id
    parts = [
        reply(it.id, "ask", {"result": "yes"})
        if it.reason == "tool"
        else reply(it.id, "adk_request_confirmation", {"confirmed": True})
        for it in waiting
    ]
    count = len(loop.seen)
    await loop.send(*parts)
    assert loop.seen[count].run_id == f"{first}:2"
    strict(loop.seen)
    assert loop.seen[-1].outcome.type == "success"
    entries = [{"interruptId": it.id, "status": "resolved"} for it in waiting]
    client = oracle.run({"events": loop.seen[:count]}, {"events": loop.seen[count:], "resume": entries})
    assert client["ok"], client["errors"]
    assert client["messages"] == [wire(it) for it in await loop.messages()]
    assert texts(client)[-1] == ("assistant", "done")


async def test_a_workflow_is_followed_without_being_named():
    loop = Loop(Workflow(name="wf", edges=[(START, agent("leaf", text("x")))]))
    await loop.send(types.Part(text="hi"))
    strict(loop.seen)
    assert [it.name for it in loop.seen if it.type.value == "SUBAGENT_STARTED"] == ["leaf"]


async def test_a_run_that_breaks_is_told():
    loop = Loop(agent("root", [*text("half")[:1], ValueError("boom key=sk-1234567890abcdef")]))
    with pytest.raises(ValueError, match="boom"):
        await loop.send(types.Part(text="hi"))
    assert loop.seen[-1].type.value == "RUN_ERROR"
    assert "sk-1234567890abcdef" not in str(loop.seen)
    strict(loop.seen)


async def test_a_cancelled_run_is_told_at_the_next_one_and_at_close():
    loop = Loop(agent("root", text(*["x "] * 50), pace=0.01))
    for _ in range(2):
        task = asyncio.create_task(loop.send(types.Part(text="hi")))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await loop.plugin.close()
    ends = [it for it in loop.seen if it.type.value == "RUN_FINISHED"]
    assert [it.outcome.type for it in ends] == ["cancelled", "cancelled"]
    strict(loop.seen)


async def test_sessions_that_run_at_once_do_not_mix():
    loop = Loop(agent("root", text(*["x "] * 20), pace=0.002))
    await asyncio.gather(*(loop.send(types.Part(text="hi"), session=f"s{n}") for n in range(5)))
    runs = {it.thread_id for it in loop.seen if it.type.value == "RUN_STARTED"}
    assert runs == {f"s{n}" for n in range(5)}
    assert kinds(loop.seen).count("RUN_FINISHED") == 5


async def test_a_sink_that_raises_hurts_nobody(caplog: pytest.LogCaptureFixture):
    def sink(event: Any) -> None:
        raise RuntimeError("disk full")

    loop = Loop(agent("root", text("fine")), sink)
    with caplog.at_level(logging.WARNING, logger="runcast"):
        events = await loop.send(types.Part(text="hi"))
        await loop.plugin.aflush(10)
    assert events
    assert "a sink failed on RUN_STARTED" in caplog.text
    assert loop.plugin.stats()["failed"] > 3
    assert loop.plugin.stats()["delivered"] == 0


async def test_a_slow_coroutine_sink_gets_everything_in_order_and_holds_nothing_up():
    seen: list[Any] = []

    async def sink(event: Any) -> None:
        await asyncio.sleep(0.005)
        seen.append(event)

    loop = Loop(agent("root", text(*["x "] * 20)), sink)
    await loop.send(types.Part(text="hi"))
    assert len(seen) < 20
    await loop.runner.close()
    strict(seen)
    assert kinds(seen)[-1] == "RUN_FINISHED"
    assert loop.plugin.stats()["dropped"] == 0


async def test_a_sink_too_slow_for_a_run_gets_its_beginning_and_no_gap():
    going = threading.Event()
    seen: list[Any] = []

    def sink(event: Any) -> None:
        going.wait(10)
        seen.append(event)

    def look() -> str:
        """Look."""
        return "x"

    loop = Loop(agent("root", calls(call("look")), text("x"), tools=[look]), sink, max_waiting=4)
    await loop.send(types.Part(text="hi"))
    going.set()
    assert loop.plugin.flush(10)
    assert kinds(seen)[:2] == ["RUN_STARTED", "STEP_STARTED"]
    assert "RUN_FINISHED" not in kinds(seen)
    assert loop.plugin.stats()["dropped"] > 0
