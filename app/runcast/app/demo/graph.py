"""The demo's LangGraph graph: real nodes, tools, a subagent, a retry, a question; only the model is a script.

A node that runs again after a crash streams the same text, so the outcome of a resumed run can be compared.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from typing import Any

try:
    from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]  # its types are partial
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, AIMessageChunk
    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode
    from langgraph.types import RetryPolicy, interrupt
except ImportError as error:
    raise ImportError("for the demo, install runcast[demo]") from error

from runcast.adapters.langgraph import LangGraphAdapter, LangGraphOptions
from runcast.app.demo import script

NAME = "travel-desk"


class Brief(MessagesState):
    """The graph's state."""

    checked: bool
    published: bool


class Scripted(BaseChatModel):
    """Streams its chunks at a reading pace."""

    chunks: list[AIMessageChunk]
    pace: float = 0.04

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Scripted:
        """Nothing to bind."""
        return self

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        whole = self.chunks[0]
        for chunk in self.chunks[1:]:
            whole = whole + chunk
        message = AIMessage(
            content=whole.content, tool_calls=whole.tool_calls, usage_metadata=whole.usage_metadata
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self.chunks:
            await asyncio.sleep(self.pace)
            yield ChatGenerationChunk(message=chunk.model_copy())


def turn(text: str, *, thought: str = "", tokens: tuple[int, int] = (0, 0)) -> list[AIMessageChunk]:
    """A turn: a thought if there is one, then text."""
    chunks = [
        AIMessageChunk(content=[{"type": "reasoning", "reasoning": piece, "index": 0}])
        for piece in (script.words(thought) if thought else ())
    ]
    chunks += [
        AIMessageChunk(content=[{"type": "text", "text": piece, "index": 1}]) for piece in script.words(text)
    ]
    into, out = tokens
    usage: Any = {"input_tokens": into, "output_tokens": out, "total_tokens": into + out}
    end = AIMessageChunk(
        content=[],
        usage_metadata=usage,
        response_metadata={"finish_reason": "stop", "model_name": "scripted-1"},
    )
    return [*chunks, end]


def calls() -> list[AIMessageChunk]:
    """A turn that asks for two tools at once."""
    requested = (("search_archive", '{"route": "Warsaw-Vienna"}'), ("forecast", '{"place": "Bohumín"}'))
    pieces = [
        AIMessageChunk(
            content="",
            tool_call_chunks=[
                {"name": name, "args": args, "id": f"call-{name}", "index": n, "type": "tool_call_chunk"}
            ],
        )
        for n, (name, args) in enumerate(requested)
    ]
    usage: Any = {"input_tokens": 640, "output_tokens": 58, "total_tokens": 698}
    return [
        *pieces,
        AIMessageChunk(content="", usage_metadata=usage, response_metadata={"finish_reason": "tool_calls"}),
    ]


def build(checkpointer: Any, *, pace: float = 0.04) -> LangGraphAdapter:
    """The graph behind its adapter; `pace` is the seconds between two pieces of text."""

    async def search_archive(route: str) -> str:
        """Look a route up in the timetable archive."""
        await asyncio.sleep(pace * 20)
        return script.archive()

    async def forecast(place: str) -> str:
        """The weather on the way."""
        await asyncio.sleep(pace * 10)
        return script.FORECAST

    async def streamed(chunks: list[AIMessageChunk], messages: Sequence[Any]) -> dict[str, Any]:
        return {"messages": [await Scripted(chunks=chunks, pace=pace).ainvoke(messages)]}

    async def plan(state: Brief) -> dict[str, Any]:
        return await streamed(turn(script.PLAN, thought=script.THOUGHT, tokens=(420, 96)), state["messages"])

    async def gather(state: Brief) -> dict[str, Any]:
        return await streamed(calls(), state["messages"])

    failed: set[str] = set()

    async def check(state: Brief, config: RunnableConfig) -> dict[str, Any]:
        thread = str(config.get("configurable", {}).get("thread_id"))
        chunks = turn(script.CHECK, tokens=(1_180, 41))
        if thread not in failed:
            failed.add(thread)
            await streamed(chunks[:9], state["messages"])
            raise ConnectionError("the interlocking plan did not answer")
        return {**await streamed(chunks, state["messages"]), "checked": True}

    async def approve(state: Brief) -> dict[str, Any]:
        answer = interrupt({"question": script.ASK}, response_schema={"type": "boolean", "title": "Publish"})
        return {"published": answer is True}

    async def publish(state: Brief) -> dict[str, Any]:
        text = script.PUBLISHED if state["published"] else script.KEPT
        return await streamed(turn(text, tokens=(1_420, 33)), state["messages"])

    writer: Any = create_agent(  # pyright: ignore[reportUnknownVariableType]  # its types are partial
        Scripted(chunks=turn(script.DRAFT, tokens=(1_300, 88)), pace=pace), [], name="writer"
    )
    graph: Any = StateGraph(Brief)
    graph.add_node("plan", plan)
    graph.add_node("gather", gather)
    graph.add_node("tools", ToolNode([search_archive, forecast]))
    retried = RetryPolicy(max_attempts=3, initial_interval=pace * 12, jitter=False)
    graph.add_node("check", check, retry_policy=retried)
    graph.add_node("write", writer)
    graph.add_node("approve", approve)
    graph.add_node("publish", publish)
    steps = [START, "plan", "gather", "tools", "check", "write", "approve", "publish", END]
    for before, after in pairwise(steps):
        graph.add_edge(before, after)
    # A finished node is on disk before the next begins, so a killed worker repeats only the unfinished one.
    options = LangGraphOptions(durability="sync")
    return LangGraphAdapter(graph.compile(checkpointer=checkpointer), name=NAME, options=options)
