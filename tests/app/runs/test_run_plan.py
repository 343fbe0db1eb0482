"""What a run that was cut short had half said is not asked of the next one, and not left standing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import (
    Event,
    MessagesSnapshotEvent,
    RunAgentInput,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallStartEvent,
)
from google.adk.agents import LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types
from langchain_core.messages import AIMessageChunk
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import Field

from runcast.adapters.adk import AdkAdapter
from runcast.app import Cast, Run, RunHandle
from runcast.app.host.event_function import EventFunction
from runcast.app.runs.run_plan import RunPlan, without_unfinished
from runcast.slim import AgentState, MemoryStore, RunLog, verify
from tests.adapters.langgraph.fakes import StreamingModel, say

pytestmark = pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")  # ADK's own, once a process


class Halting:
    """Says one thing to its end, and half of another with a call: there the first runs wait."""

    __name__ = "halting"

    def __init__(self, *, settles: bool = False, halts: int = 1) -> None:
        self.reconciles_history = settles
        self.halts = halts
        self.asked: list[RunAgentInput] = []

    async def __call__(self, input: RunAgentInput) -> AsyncIterator[Event]:
        self.asked.append(input)
        key = input.run_id
        yield TextMessageStartEvent(message_id=f"whole-{key}")
        yield TextMessageContentEvent(message_id=f"whole-{key}", delta="said ")
        yield TextMessageEndEvent(message_id=f"whole-{key}")
        yield TextMessageStartEvent(message_id=f"half-{key}")
        yield TextMessageContentEvent(message_id=f"half-{key}", delta="and ")
        if len(self.asked) <= self.halts:
            yield ToolCallStartEvent(tool_call_id="c1", tool_call_name="add", parent_message_id=f"half-{key}")
            yield ToolCallArgsEvent(tool_call_id="c1", delta='{"a":')
            await asyncio.wait_for(asyncio.Event().wait(), 60)
        yield TextMessageEndEvent(message_id=f"half-{key}")


async def cut(cast: Cast, after: int, text: str = "hi", agent: str | None = None) -> Run:
    """A run whose process dies when so many events are durable."""
    run = await cast.say("t1", text, agent=agent)
    async with asyncio.timeout(60):
        async for entry in cast.attach("t1", 0):
            if entry.seq == after:
                break
    await dies(cast, run)
    return run


async def dies(cast: Cast, run: RunHandle) -> None:
    await cast.run(run.run_id).release_running()
    await cast.log.recovery.mark_truncated("t1")


async def events(cast: Cast, run: Run) -> list[Event]:
    return [entry.event for entry in await cast.log.entries("t1") if entry.run_id == run.run_id]


async def texts(cast: Cast) -> list[Any]:
    state = await cast.state("t1")
    assert state is not None
    return [message.content for message in state.history]


CUT_AT = 8  # RUN_STARTED, three of what is whole, and two each of the half text and the call


@pytest.mark.parametrize("tenant", ["", "acme"])
@pytest.mark.parametrize("text", [None, "never mind"], ids=["resumed", "another message"])
async def test_what_was_half_said_is_taken_back_and_not_asked(tenant: str, text: str | None):
    agent = Halting()
    async with Cast(RunLog(MemoryStore()), agents=[agent]) as host:
        cast = host.for_tenant(tenant) if tenant else host
        await cut(cast, CUT_AT)
        again = await (cast.resume("t1") if text is None else cast.say("t1", text))
        await again.result()
        told = await events(cast, again)
        assert [message.content for message in agent.asked[1].messages] == [
            "hi",
            "said ",
            *filter(None, [text]),
        ]
        assert [event.type.value for event in told][:3] == [
            "RUN_STARTED",
            "TOOL_CALL_RESULT",
            "MESSAGES_SNAPSHOT",
        ]
        assert sum(isinstance(event, MessagesSnapshotEvent) for event in told) == 1
        assert not verify(told)
        assert await texts(cast) == ["hi", "said ", *filter(None, [text]), "said ", "and "]
        state = await cast.state("t1")
        assert state is not None
        assert state.half_said == ()


async def test_it_is_taken_back_though_the_run_that_did_so_was_cut_short_at_once():
    agent = Halting(halts=2)
    async with Cast(RunLog(MemoryStore()), agents=[agent]) as cast:
        await cut(cast, CUT_AT)
        await dies(cast, await cast.resume("t1"))
        last = await cast.resume("t1")
        await last.result()
        assert "and " not in [message.content for message in agent.asked[-1].messages]
        assert (await texts(cast))[-2:] == ["said ", "and "]
        assert [each for each in await texts(cast) if each == "and "] == ["and "]


async def test_an_agent_that_settles_it_is_shown_it():
    agent = Halting(settles=True)
    async with Cast(RunLog(MemoryStore()), agents=[agent]) as cast:
        await cut(cast, CUT_AT)
        again = await cast.resume("t1")
        await again.result()
        assert [message.content for message in agent.asked[1].messages] == ["hi", "said ", "and "]
        assert not [each for each in await events(cast, again) if isinstance(each, MessagesSnapshotEvent)]


async def test_a_graph_without_checkpoints_starts_over_without_it():
    """It cannot know what it had said; that is told once, though graph and host both look."""
    gate = asyncio.Event()

    class Waiting(StreamingModel):
        async def _astream(self, *given: Any, **named: Any) -> AsyncIterator[Any]:
            async for chunk in super()._astream(*given, **named):
                yield chunk
                if chunk.text == "half ":
                    await asyncio.wait_for(gate.wait(), 60)

    half = [AIMessageChunk(content="half "), AIMessageChunk(content="of it")]
    model = Waiting(turns=[half, say("the whole")])

    async def answer(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile()
    async with Cast(RunLog(MemoryStore()), agents=[graph]) as cast:
        run = await cast.say("t1", "hi")
        async with asyncio.timeout(60):
            async for entry in cast.attach("t1", 0):
                if isinstance(entry.event, TextMessageContentEvent):
                    break
        await dies(cast, run)
        again = await cast.resume("t1")
        await again.result()
        told = await events(cast, again)
        assert sum(isinstance(event, MessagesSnapshotEvent) for event in told) == 1
        assert not verify(told)
        assert [message.content for message in model.heard[-1]] == ["hi"]
        assert await texts(cast) == ["hi", "the whole"]


class Speaker(BaseLlm):
    """Half says something and waits; asked again it says it whole."""

    model: str = "speaker"
    heard: list[list[str]] = Field(default_factory=list)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = [part for content in llm_request.contents for part in content.parts or ()]
        self.heard.append([part.text or "" for part in parts])
        if len(self.heard) == 1:
            yield LlmResponse(content=spoken("half "), partial=True)
            await asyncio.wait_for(asyncio.Event().wait(), 60)
        yield LlmResponse(content=spoken("the whole"))


def spoken(text: str) -> types.Content:
    return types.Content(role="model", parts=[types.Part(text=text)])


@pytest.mark.parametrize("text", [None, "never mind"], ids=["resumed", "another message"])
async def test_an_adk_agent_goes_on_by_what_its_session_holds(tmp_path: Path, text: str | None):
    """Another process takes it up: a host, an adapter and a session service that know nothing of the first."""
    url, sessions = f"sqlite:///{tmp_path}/runs.db", str(tmp_path / "sessions.db")
    model = Speaker()

    def agent() -> AdkAdapter:
        root = LlmAgent(name="speaker", model=model)
        app = App(name="app", root_agent=root, resumability_config=ResumabilityConfig(is_resumable=True))
        return AdkAdapter(app, session_service=SqliteSessionService(sessions))

    async with Cast.open(url, agents=[agent()]) as cast:
        run = await cast.say("t1", "hi")
        async with asyncio.timeout(60):
            async for entry in cast.attach("t1", 0):
                if isinstance(entry.event, TextMessageContentEvent):
                    break
        await cast.run(run.run_id).release_running()
    async with Cast.open(url, agents=[agent()]) as cast:
        await cast.log.recovery.mark_truncated("t1")
        assert await texts(cast) == ["hi", "half "]
        again = await (cast.resume("t1") if text is None else cast.say("t1", text))
        assert (await again.result()).status == "completed"
        told = await events(cast, again)
        assert not verify(told)
        assert sum(isinstance(event, MessagesSnapshotEvent) for event in told) == 1
        assert await texts(cast) == ["hi", *filter(None, [text]), "the whole"]
        assert "half " not in model.heard[-1]


def test_who_settles():
    assert not EventFunction(print).reconciles_history  # type: ignore[arg-type]  # it is not called
    assert EventFunction(Halting(settles=True)).reconciles_history
    input = RunAgentInput(thread_id="t", run_id="r", messages=[], state={}, tools=[], context=[])
    point = object()
    torn = AgentState("a", half_said=("m1",))
    plan = RunPlan(input, torn, resume=point)  # type: ignore[arg-type]  # it is passed on unread
    assert without_unfinished(Halting(), plan).resume is point  # type: ignore[arg-type]  # it is not run
    assert without_unfinished(Halting(), RunPlan(input)).corrections([]) == ()  # type: ignore[arg-type]  # likewise
