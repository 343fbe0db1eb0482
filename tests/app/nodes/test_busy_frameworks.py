"""A message while a real agent works: stopped before its first step, in a tool, beside a sibling, or taken back whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions import InMemorySessionService
from google.genai import types
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import PrivateAttr

from runcast.adapters.adk import AdkAdapter
from runcast.app import Cast
from runcast.app.nodes.handover import OnBusy
from tests.adapters.langgraph.fakes import StreamingModel, calls, say
from tests.app.nodes.stage import PATIENCE

pytestmark = pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")  # ADK's own, once a process
KEEPING: list[OnBusy] = ["queue", "interrupt", "rollback"]


async def whole(run: Any) -> Any:
    async with asyncio.timeout(PATIENCE):
        return await run.result()


def answered(messages: list[Any]) -> bool:
    """Whether every call that a model would see has its result."""
    made = {call["id"] for each in messages if isinstance(each, AIMessage) for call in each.tool_calls}
    return made == {each.tool_call_id for each in messages if isinstance(each, ToolMessage)}


class Stage:
    """An agent with two tools, one of which waits for its gate."""

    def __init__(self) -> None:
        self.gate, self.entered = asyncio.Event(), asyncio.Event()

        @tool
        async def slow() -> str:
            """Wait."""
            self.entered.set()
            await self.gate.wait()
            return "slow done"

        @tool
        async def quick() -> str:
            """Do not wait."""
            return "quick done"

        both = calls(
            {"name": "quick", "args": "{}", "id": "c1", "index": 0},
            {"name": "slow", "args": "{}", "id": "c2", "index": 1},
        )
        self.model = StreamingModel(turns=[[both], say("well "), say("yes ")])
        self.graph = create_agent(self.model, [slow, quick], checkpointer=InMemorySaver())


async def history(graph: Any, thread: str = "t1") -> list[Any]:
    found: list[Any] = (await graph.aget_state({"configurable": {"thread_id": thread}})).values.get(
        "messages", []
    )
    return found


@pytest.mark.parametrize("on_busy", KEEPING)
async def test_no_model_sees_a_call_without_its_result(on_busy: OnBusy) -> None:
    it = Stage()
    async with Cast.open("memory://", agents=[it.graph], watch=False) as cast:
        first = await cast.say("t1", "one")
        async with asyncio.timeout(PATIENCE):
            await it.entered.wait()
        second = await cast.say("t1", "two", on_busy=on_busy)
        if on_busy == "queue":
            it.gate.set()
        assert (await whole(second)).status == "completed"
        assert all(answered(heard) for heard in it.model.heard)
        heard = it.model.heard[-1]
        people = [each.content for each in heard if isinstance(each, HumanMessage)]
        assert people == (["two"] if on_busy == "rollback" else ["one", "two"])
        await asyncio.wait_for(first.over(), PATIENCE)
        state = await cast.state("t1")
        assert state is not None
        assert [each.id for each in state.messages if each.role == "user"] == [
            each.id for each in await history(it.graph) if isinstance(each, HumanMessage)
        ]


async def test_a_siblings_finished_result_is_kept_by_an_interrupt() -> None:
    it = Stage()
    async with Cast.open("memory://", agents=[it.graph], watch=False) as cast:
        first = await cast.say("t1", "one")

        async def quick_is_done() -> bool:
            entries = [each.event for each in await cast.log.entries("t1")]
            return any("quick done" in str(getattr(each, "content", "")) for each in entries)

        async with asyncio.timeout(PATIENCE):
            await it.entered.wait()
            while not await quick_is_done():  # noqa: ASYNC110  entries are read, not announced
                await asyncio.sleep(0.01)
        second = await cast.say("t1", "two", on_busy="interrupt")
        assert (await whole(second)).status == "completed"
        assert (await whole(first)).status == "cancelled"
        results = [each.content for each in it.model.heard[-1] if isinstance(each, ToolMessage)]
        assert "quick done" in results
        assert answered(it.model.heard[-1])


@pytest.mark.parametrize("on_busy", ["interrupt", "rollback"])
async def test_a_run_that_is_stopped_before_its_first_step_keeps_its_message(on_busy: OnBusy) -> None:
    entered, gate, seen = asyncio.Event(), asyncio.Event(), []

    async def node(state: MessagesState) -> dict[str, Any]:
        seen.append([each.content for each in state["messages"]])
        entered.set()
        if len(seen) == 1:
            await gate.wait()
        return {"messages": [AIMessage("done")]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    async with Cast.open(
        "memory://", agents=[graph.compile(checkpointer=InMemorySaver())], watch=False
    ) as cast:
        await cast.say("t1", "one")
        async with asyncio.timeout(PATIENCE):
            await entered.wait()
        second = await cast.say("t1", "two", on_busy=on_busy)
        assert (await whole(second)).status == "completed"
        assert seen[-1] == (["one", "two"] if on_busy == "interrupt" else ["two"])


class HeldSaver(InMemorySaver):
    """Lets some writes pass, and holds the next until it is cancelled or let go."""

    def __init__(self, passing: int) -> None:
        super().__init__()
        self.passing = passing
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    async def _hold(self) -> None:
        self.passing -= 1
        if self.passing == -1:
            self.reached.set()
            await self.go.wait()

    async def aput(self, *args: Any, **kwargs: Any) -> Any:
        await self._hold()
        found = await super().aput(*args, **kwargs)
        await self._hold()
        return found

    async def aput_writes(self, *args: Any, **kwargs: Any) -> None:
        await self._hold()
        await super().aput_writes(*args, **kwargs)
        await self._hold()


@pytest.mark.parametrize("passing", range(6))
async def test_a_run_that_is_stopped_at_a_write_of_its_saver_keeps_its_message(passing: int) -> None:
    seen: list[list[Any]] = []

    async def node(state: MessagesState) -> dict[str, Any]:
        seen.append([each.content for each in state["messages"] if isinstance(each, HumanMessage)])
        return {"messages": [AIMessage("done")]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    saver = HeldSaver(passing)
    async with Cast.open("memory://", agents=[graph.compile(checkpointer=saver)], watch=False) as cast:
        await cast.say("t1", "one")
        async with asyncio.timeout(PATIENCE):
            await saver.reached.wait()
        sending = asyncio.ensure_future(cast.say("t1", "two", on_busy="interrupt"))
        asyncio.get_running_loop().call_later(0.1, saver.go.set)  # a write that no cancellation reaches
        assert (await whole(await sending)).status == "completed"
        assert seen[-1] == ["one", "two"]


async def test_a_node_that_swallows_its_cancellation_writes_nothing_after_the_rollback() -> None:
    entered, seen = asyncio.Event(), []

    async def stubborn(state: MessagesState) -> dict[str, Any]:
        seen.append([each.content for each in state["messages"]])
        if len(seen) > 1:
            return {"messages": [AIMessage("done")]}
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)
        return {"messages": [AIMessage("written all the same")]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("node", stubborn)
    graph.add_edge(START, "node")
    compiled = graph.compile(checkpointer=InMemorySaver())
    async with Cast.open("memory://", agents=[compiled], watch=False) as cast:
        await cast.say("t1", "one")
        async with asyncio.timeout(PATIENCE):
            await entered.wait()
        await whole(await cast.say("t1", "two", on_busy="rollback"))
        await whole(await cast.say("t1", "three"))
        assert seen[1:] == [["two"], ["two", "done", "three"]]
        assert [each.content for each in await history(compiled)] == ["two", "done", "three", "done"]


class Waiting(BaseLlm):
    """A model of ADK that waits in its first call, and answers in every later one."""

    model: str = "waiting"
    _entered: asyncio.Event = PrivateAttr(default_factory=asyncio.Event)
    _gate: asyncio.Event = PrivateAttr(default_factory=asyncio.Event)
    _heard: list[list[str]] = PrivateAttr(default_factory=list)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        texts = [
            part.text or ""
            for each in llm_request.contents
            for part in each.parts or ()
            if each.role == "user"
        ]
        self._heard.append(texts)
        if len(self._heard) == 1:
            self._entered.set()
            await self._gate.wait()
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="well")]))


@pytest.mark.parametrize("on_busy", KEEPING)
async def test_adk_has_the_same_outcomes(on_busy: OnBusy) -> None:
    model = Waiting()
    adapter = AdkAdapter(
        LlmAgent(name="helper", model=model), app_name="app", session_service=InMemorySessionService()
    )
    async with Cast.open("memory://", agents=[adapter], watch=False) as cast:
        await cast.say("t1", "one")
        async with asyncio.timeout(PATIENCE):
            await model._entered.wait()
        second = await cast.say("t1", "two", on_busy=on_busy)
        if on_busy == "queue":
            model._gate.set()
        assert (await whole(second)).status == "completed"
        people = [each for each in model._heard[-1] if each in ("one", "two")]
        assert people == (["two"] if on_busy == "rollback" else ["one", "two"])
