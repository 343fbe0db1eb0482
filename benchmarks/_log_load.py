"""What the log is given: a LangGraph run recorded through the adapter, and threads of any depth.

The run talks in English prose and calls a search tool twice; a result is a page of 34 KB, as one that was read from
the web is. All of it is drawn by a seeded generator, so that every measurement weighs the same.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from typing import Any

from ag_ui.core import (
    Event,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    StateDeltaEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    UserMessage,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from runcast.adapters.langgraph import LangGraphAdapter
from runcast.slim.wire.codec import AnyEvent

RESULT = 34_000
PROSE = (
    "the of and to in a is that for it as was with be by on not he his but at are this have from or had an "
    "which they you were her all she there would their we him been has when who will more no if out so said "
    "what up its about into than them can only other new some could time these two may then do first any my "
    "now such like our over man me even most made after also did many before must through back years where "
    "much your way well down should because each just those people how too little state good very make world "
    "still own see men work long get here between both life being under never day same another know while "
    "last might us great old year off come since against go came right used take three weather document "
    "report harbour question market engine station"
)
WORDS = PROSE.split()


def prose(rng: random.Random, length: int) -> str:
    """About so many characters of English words in sentences."""
    out: list[str] = []
    size = 0
    while size < length:
        sentence = " ".join(rng.choices(WORDS, k=rng.randint(6, 18))).capitalize() + ". "
        out.append(sentence)
        size += len(sentence)
    return "".join(out)[:length]


class Talking(BaseChatModel):
    """Asks the tool twice, then answers at length, all of it streamed."""

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage("not streamed"))])

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        asked = sum(isinstance(message, ToolMessage) for message in messages)
        rng = random.Random(asked)
        for word in prose(rng, 300 if asked < 2 else 4_000).split(" "):
            yield ChatGenerationChunk(message=AIMessageChunk(content=f"{word} "))
        if asked < 2:
            pieces = ['{"query": "', *prose(rng, 60).split(" "), '", "limit": 10}']
            for n, piece in enumerate(pieces):
                chunk = {
                    "name": "search" if n == 0 else None,
                    "args": piece,
                    "id": f"call{asked}" if n == 0 else None,
                }
                part = AIMessageChunk(
                    content="", tool_call_chunks=[{**chunk, "index": 0, "type": "tool_call_chunk"}]
                )  # type: ignore[list-item]  # a plain dict will do
                yield ChatGenerationChunk(message=part)

    @property
    def _llm_type(self) -> str:
        return "talking"


def graph() -> Any:
    """A model and a tool, in turns."""
    model = Talking()

    async def ask(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    async def search(state: MessagesState) -> Any:
        (call,) = state["messages"][-1].tool_calls
        page = prose(random.Random(call["id"]), RESULT)
        return {"messages": [ToolMessage(page, tool_call_id=call["id"], name="search")]}

    builder = StateGraph(MessagesState).add_node("ask", ask).add_node("search", search)
    builder.add_edge(START, "ask").add_edge("search", "ask")
    builder.add_conditional_edges(
        "ask",
        lambda state: "search" if state["messages"][-1].tool_calls else "__end__",
        ["search", "__end__"],
    )
    return builder.compile(checkpointer=InMemorySaver())


def recorded() -> list[AnyEvent]:
    """The run as the adapter tells it."""
    asked = UserMessage(id="u1", role="user", content="What was the weather like?")
    given = RunAgentInput(
        thread_id="t", run_id="r", messages=[asked], state={}, tools=[], context=[], forwarded_props={}
    )

    async def play() -> list[AnyEvent]:
        return [event async for event in LangGraphAdapter(graph()).run(given)]

    return asyncio.run(play())


def turn(run_id: str, words: int) -> Iterator[Event]:
    """A run of `words` + 12 events: an answer, a call and its result, a bit of state."""
    message, call = f"{run_id}-m", f"{run_id}-c"
    yield RunStartedEvent(thread_id="t", run_id=run_id)
    yield TextMessageStartEvent(message_id=message, role="assistant")
    for n in range(words):
        yield TextMessageContentEvent(message_id=message, delta=f"{WORDS[n % len(WORDS)]} ")
    yield TextMessageEndEvent(message_id=message)
    yield ToolCallStartEvent(tool_call_id=call, tool_call_name="search", parent_message_id=message)
    for n in range(4):
        yield ToolCallArgsEvent(tool_call_id=call, delta='{"q":' if n == 0 else "1}" if n == 3 else '"w"')
    yield ToolCallEndEvent(tool_call_id=call)
    yield ToolCallResultEvent(message_id=f"{run_id}-x", tool_call_id=call, content="found")
    yield StateDeltaEvent(delta=[{"op": "add", "path": "/last", "value": run_id}])
    yield RunFinishedEvent(thread_id="t", run_id=run_id)
