"""What both sides are given to do: the same graphs, over a model that costs next to nothing.

Imported by this project's interpreter and by the peer's, so it knows LangGraph alone.
"""

from __future__ import annotations

import asyncio
import operator
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

DOCUMENT = 100_000
STEPS = 80
RESULT = 34_000


class CountingModel(BaseChatModel):
    """Streams `count` tokens. It keeps no script: LangChain prints a model's fields for every call, at a price."""

    count: int = 1

    @property
    def _llm_type(self) -> str:
        return "counting"

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage("tok " * self.count))])

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for _ in range(self.count):
            await asyncio.sleep(0)
            yield ChatGenerationChunk(message=AIMessageChunk(content="tok "))


def talking(count: int) -> Any:
    """One node, one model, so many tokens."""
    model = CountingModel(count=count)

    async def answer(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    return (
        StateGraph(MessagesState)
        .add_node("answer", answer)
        .add_edge(START, "answer")
        .compile(checkpointer=InMemorySaver())
    )


class Document(MessagesState):
    document: str
    notes: Annotated[list[str], operator.add]
    round: int


def writing(steps: int) -> Any:
    """A document of 100 KB that stays, and a list that grows by 1 KB a step."""

    async def start(state: Document) -> Any:
        return {"document": "d" * DOCUMENT, "round": 0}

    async def write(state: Document) -> Any:
        return {"notes": [f"{state['round']:04d}" + "n" * 1_020], "round": state["round"] + 1}

    builder = StateGraph(Document).add_node("start", start).add_node("write", write).add_edge(START, "start")
    builder.add_edge("start", "write")
    builder.add_conditional_edges(
        "write", lambda state: "write" if state["round"] < steps else "__end__", ["write", "__end__"]
    )
    return builder.compile(checkpointer=InMemorySaver())


def looking_up() -> Any:
    """A tool call whose result is 34 KB."""

    async def ask(state: MessagesState) -> Any:
        call = {"name": "look", "args": {"at": "all"}, "id": "call-1", "type": "tool_call"}
        return {"messages": [AIMessage("", tool_calls=[call], id="asked")]}

    async def look(state: MessagesState) -> Any:
        return {"messages": [ToolMessage("r" * RESULT, tool_call_id="call-1", name="look", id="result")]}

    async def end(state: MessagesState) -> Any:
        return {"messages": [AIMessage("done", id="done")]}

    builder = StateGraph(MessagesState).add_node("ask", ask).add_node("look", look).add_node("end", end)
    return (
        builder.add_edge(START, "ask")
        .add_edge("ask", "look")
        .add_edge("look", "end")
        .compile(checkpointer=InMemorySaver())
    )


async def raw(graph: Any, thread: str) -> None:
    """The measure: the graph's own token stream."""
    config = {"configurable": {"thread_id": thread}}
    async for _ in graph.astream({"messages": [HumanMessage("hi")]}, config, stream_mode="messages"):
        pass


async def compared(ways: dict[str, Callable[[int], Awaitable[None]]], rounds: int) -> dict[str, float]:
    """CPU seconds of each way, taken in turns: the mean of the rounds, for a full collection falls into one of several."""
    for way in ways.values():
        await way(-1)
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for at in range(rounds):
        for name, way in ways.items():
            began = time.process_time()
            await way(at)
            taken[name].append(time.process_time() - began)
    return {name: statistics.fmean(times) for name, times in taken.items()}
