"""Where scenes are written down, and the small graphs many of them share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from tests.adapters.langgraph.fakes import FakeModel, StreamingModel
from tests.adapters.langgraph.stage import Stage

Scene = Callable[[Stage], Awaitable[None]]
SCENES: dict[str, Scene] = {}


def scene(name: str) -> Callable[[Scene], Scene]:
    """Write a scene down under `<number>_<what happens>`."""

    def keep(play: Scene) -> Scene:
        assert name not in SCENES
        SCENES[name] = play
        return play

    return keep


def answering(model: Any, state: Any = MessagesState, **settings: Any) -> Any:
    """A graph of one node, which asks one model."""

    async def answer(values: Any) -> Any:
        return {"messages": [await model.ainvoke(values["messages"])]}

    settings.setdefault("checkpointer", InMemorySaver())
    return StateGraph(state).add_node("answer", answer).add_edge(START, "answer").compile(**settings)


def chat(*turns: Any, streams: bool = True, **settings: Any) -> Any:
    """The same, over scripted turns."""
    kind = StreamingModel if streams else FakeModel
    return answering(kind(turns=list(turns)), **settings)


def agent(*turns: Any, tools: Any = (), streams: bool = True, **settings: Any) -> Any:
    """`create_agent` over scripted turns."""
    kind = StreamingModel if streams else FakeModel
    settings.setdefault("checkpointer", InMemorySaver())
    settings.setdefault("name", "boss")
    return create_agent(kind(turns=list(turns)), list(tools), **settings)


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def echo(text: str = "") -> str:
    """Say it back."""
    return f"echo {text}"


__all__ = ["END", "SCENES", "START", "Scene", "add", "agent", "answering", "chat", "echo", "scene"]
