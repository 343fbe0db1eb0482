"""Where the wide scenes are written down: a graph, its turns, and models that answer alike when they are asked again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ag_ui.core import Event, UserMessage
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AIMessageChunk
from langgraph.checkpoint.memory import InMemorySaver

from runcast.adapters.langgraph import LangGraphOptions
from runcast.app.host.launch import to_finish
from runcast.slim import AgentState
from tests.adapters.langgraph.fakes import StreamingModel, calls, piece, say
from tests.adapters.langgraph.stage import MESSAGES, Stage

SECRET = "the-private-note"


class Act(StrEnum):
    """A turn that is more than words."""

    EDIT = "edit the last message"
    AGAIN = "answer the last message again"
    INSTEAD = "say something else"
    NOTHING = "start without a message"


class Steady(StreamingModel):
    """Answers by what it reads: asked again, it answers the same."""

    def _next(self, messages: Any) -> Any:
        answered = sum(isinstance(each, AIMessage) for each in messages)
        self.heard.append(list(messages))
        return self.turns[min(answered, len(self.turns) - 1)]


@dataclass(frozen=True)
class Scene:
    """A graph and its turns. `ordered` is off where branches race. `unlike` is why a broken run may end otherwise."""

    make: Callable[[], Any]
    turns: Sequence[str] = ("hi", "again")
    decision: Any = True
    ordered: bool = True
    unlike: str = ""
    options: LangGraphOptions | None = None
    fails_over_v3: str = ""
    """Why LangGraph's own v3 stream fails on this graph."""


SCENES: dict[str, Scene] = {}


def scene(name: str, **given: Any) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Write a scene down: the function makes its graph."""

    def keep(make: Callable[[], Any]) -> Callable[[], Any]:
        assert name not in SCENES
        SCENES[name] = Scene(make, **given)
        return make

    return keep


class WideStage(Stage):
    """A thread whose questions are answered with `decision`."""

    decision: Any = True
    forks: set[str]  # ids of runs that began with an edit

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.forks = set()

    async def go_on(self) -> list[Event]:
        """As a host does: by the log of this branch."""
        self.open()
        state = AgentState.from_events(event for run in self.lineage for event in run)
        messages = state.to_messages(half_said=True)
        input = self.inputs[-1].model_copy(
            update={"run_id": self.next_run(), "messages": messages, "resume": None, "parent_run_id": None}
        )
        held = self.view  # the client has seen the broken run itself
        events = await self.perform(input, point=to_finish(state))
        self.inputs[-1] = input.model_copy(update={"resume": self.inputs[-2].resume})
        answer = self.oracle.apply(events, messages=held["messages"], state=held["state"])
        self.view = {"messages": answer["messages"], "state": answer["state"]}
        return events

    @property
    def lineage(self) -> list[list[Event]]:
        """The runs of this branch: an edited message leaves out those since the message that it replaces."""
        kept: list[list[Event]] = []
        users: list[int] = []  # how many runs were kept before each user's message
        for run, input in zip(self.runs, self.inputs, strict=True):
            said = sum(each.role == "user" for each in input.messages)
            if run is not None and said <= len(users) and input.run_id in self.forks:
                del kept[users[said - 1] :]
                del users[said - 1 :]
            if said > len(users):
                users.append(len(kept))
            kept.append(run)
        return kept

    async def turn(self, words: str) -> list[Event]:
        if words == Act.INSTEAD or not self.interrupts:
            match words:
                case Act.EDIT | Act.AGAIN:
                    held = MESSAGES.validate_python(self.view["messages"])
                    last = max(at for at, it in enumerate(held) if it.role == "user")
                    edited = UserMessage(id=f"e{len(self.runs)}", content="edited")
                    sent = [*held[:last], edited if words == Act.EDIT else held[last]]
                    self.forks.add(self.next_run())
                    return await self.send(None, messages=sent)
                case Act.NOTHING:
                    return await self.send(None)
                case _:
                    return await self.send(words)
        return await self.answer(*((each.id, self.decision) for each in self.interrupts))


def model(*turns: Any) -> Steady:
    return Steady(turns=list(turns))


def agent(*turns: Any, tools: Any = (), **settings: Any) -> Any:
    """`create_agent` over scripted turns."""
    settings.setdefault("checkpointer", InMemorySaver())
    settings.setdefault("name", "boss")
    return create_agent(model(*turns), list(tools), **settings)


def inner(*turns: Any, tools: Any = (), name: str | None = "helper", **settings: Any) -> Any:
    """An agent to be used inside of another graph."""
    return create_agent(model(*turns), list(tools), name=name, **settings)


def call(name: str, id: str, text: str = "", /, **args: Any) -> list[AIMessageChunk]:
    """A turn that calls one tool."""
    return [calls(piece(name, json.dumps(args), id), content=text)]


def both(*made: list[AIMessageChunk]) -> list[AIMessageChunk]:
    """One turn with the calls of several."""
    entries = [entry for chunks in made for chunk in chunks for entry in chunk.tool_call_chunks]
    return [calls(*({**entry, "index": at} for at, entry in enumerate(entries)))]


__all__ = [
    "SCENES",
    "SECRET",
    "AIMessageChunk",
    "Act",
    "InMemorySaver",
    "Scene",
    "Steady",
    "WideStage",
    "agent",
    "both",
    "call",
    "calls",
    "inner",
    "model",
    "piece",
    "say",
    "scene",
]  # fmt: skip
