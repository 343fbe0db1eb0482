"""Graphs that wait for files, for two hosts: LangGraph's own development server and runcast. Imports nothing of runcast.

`BUSY_DIR` names a folder; a thread's node touches `THREAD/in` when it is there, and goes on when `THREAD/open` exists.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.config import get_config
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import create_react_agent
from langgraph.types import interrupt


async def gate() -> None:
    place = Path(os.environ["BUSY_DIR"]) / str(get_config()["configurable"]["thread_id"])
    await asyncio.to_thread(place.mkdir, parents=True, exist_ok=True)
    await asyncio.to_thread((place / "in").touch)
    while not await asyncio.to_thread((place / "open").exists):  # noqa: ASYNC110  another process makes it
        await asyncio.sleep(0.02)


def saw(messages: list[Any]) -> AIMessage:
    return AIMessage("saw " + " and ".join(str(each.content) for each in messages if each.type == "human"))


class Model(BaseChatModel):
    """Calls two tools once in a conversation, and then answers."""

    @property
    def _llm_type(self) -> str:
        return "busy"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        made = any(getattr(each, "tool_calls", None) for each in messages)
        calls = [{"name": name, "args": {}, "id": name} for name in ("quick", "slow")]
        said = saw(messages) if made else AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=said)])


@tool
async def quick() -> str:
    """Do not wait."""
    return "quick done"


@tool
async def slow() -> str:
    """Wait."""
    await gate()
    return "slow done"


def one_node(work: Any) -> Any:
    made: Any = StateGraph(MessagesState)
    made.add_node("node", work)
    made.add_edge(START, "node")
    return made


async def _first(state: MessagesState) -> dict[str, Any]:
    await gate()
    return {"messages": [saw(state["messages"])]}


async def _asks(state: MessagesState) -> dict[str, Any]:
    await gate()
    answer = interrupt("well?")
    return {"messages": [AIMessage(f"answered {answer}")]}


async def _stubborn(state: MessagesState) -> dict[str, Any]:
    try:
        await gate()
    except asyncio.CancelledError:
        await asyncio.sleep(0.3)
        return {"messages": [AIMessage("written all the same")]}
    return {"messages": [saw(state["messages"])]}


with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    react = create_react_agent(Model(), [quick, slow])
first = one_node(_first).compile()
asks = one_node(_asks).compile()
stubborn = one_node(_stubborn).compile()
NAMES = ("first", "react", "asks", "stubborn")
