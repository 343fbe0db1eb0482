"""`Broadcaster.sink(thread_id)` behind both drop-ins: programs that run their agents themselves, watched all the same."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
from ag_ui.core import CustomEvent, Event, RunFinishedEvent, RunStartedEvent
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types
from langchain_core.messages import HumanMessage

from runcast.adapters.adk import AdkPlugin
from runcast.adapters.langgraph import LangGraphCallbacks
from runcast.broadcast import Broadcaster, Envelope, MemoryPublisher
from tests.adapters.adk.fakes import agent, text
from tests.adapters.langgraph.fakes import say
from tests.adapters.langgraph.scenes.book import chat
from tests.broadcast.test_broadcaster import CHANNEL, chained

pytestmark = pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")  # ADK's own, once a process


def said(told: list[Envelope]) -> str:
    return "".join(str(each.payload["chunk"]) for each in told if each.type == "agent.stream.chunk")


def whole(told: list[Envelope]) -> bool:
    statuses = [each.payload["status"] for each in told if each.type == "agent.status"]
    return chained(told) and statuses == ["in_progress", "completed"]


async def test_a_graph_that_the_program_awaits_is_watched() -> None:
    target = MemoryPublisher()
    it = Broadcaster(target)
    wiretap = LangGraphCallbacks(it.sink("t1"), thread_id="t1")
    question = {"messages": [HumanMessage("hi")]}
    config = {"callbacks": [wiretap], "configurable": {"thread_id": "t1"}}
    await chat(say("Hel", "lo")).ainvoke(question, config=config)
    assert await wiretap.aflush(5)
    await it.aclose()
    told = target.envelopes(CHANNEL)
    assert whole(told)
    assert said(told) == "Hello"


async def test_a_runner_loop_with_a_plugin_is_watched() -> None:
    target = MemoryPublisher()
    it = Broadcaster(target)
    app = App(name="app", root_agent=agent("root", text("Hel", "lo")), plugins=[AdkPlugin(it.sink("t1"))])
    runner = Runner(app=app, session_service=InMemorySessionService(), auto_create_session=True)
    message = types.Content(role="user", parts=[types.Part(text="hi")])
    async for _ in runner.run_async(user_id="u", session_id="t1", new_message=message):
        pass
    await runner.close()
    await it.aclose()
    told = target.envelopes(CHANNEL)
    assert whole(told)
    assert said(told) == "Hello"


async def test_a_sink_may_be_called_from_any_thread_and_keeps_the_order() -> None:
    target = MemoryPublisher()
    it = Broadcaster(target)
    sink = it.sink("t1")

    def program() -> None:
        sink(RunStartedEvent(thread_id="t1", run_id="r1"))
        for n in range(200):
            sink(CustomEvent(name="n", value=n))
        sink(RunFinishedEvent(thread_id="t1", run_id="r1"))

    thread = threading.Thread(target=program)
    thread.start()
    while thread.is_alive():  # noqa: ASYNC110  a thread offers nothing to await
        await asyncio.sleep(0.001)
    await it.aclose()
    told = target.envelopes(CHANNEL)
    assert whole(told)
    assert [each.payload["value"] for each in told if each.type == "agent.custom"] == list(range(200))


def test_a_sink_whose_loop_is_over_disturbs_nobody() -> None:
    async def make() -> Callable[[Event], None]:
        it = Broadcaster(MemoryPublisher())
        sink = it.sink("t1")
        await it.aclose()
        return sink

    sink = asyncio.run(make())
    late = threading.Thread(target=sink, args=(RunStartedEvent(thread_id="t1", run_id="r1"),))
    late.start()
    late.join()
