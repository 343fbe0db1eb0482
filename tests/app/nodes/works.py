"""Agents at work, one of each framework: they call two tools, one of which waits for its gate, and then answer.

Their models follow the conversation they are given and no script, so a run that is resumed elsewhere goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from ag_ui.core import Message
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions import InMemorySessionService
from google.genai import types
from langchain.agents import create_agent
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

from runcast.adapters.adk import AdkAdapter
from runcast.adapters.langgraph import LangGraphAdapter
from tests.adapters.langgraph.fakes import FakeModel
from tests.app.mortal import Mortal
from tests.app.nodes.stage import PATIENCE

Heard = list[tuple[str, str]]  # what a model was given: (user | call | result | answer, its text or call id)


@dataclass(slots=True)
class Works:
    """The gates of one agent's tool and answer, and what its model was given."""

    tool: asyncio.Event = field(default_factory=asyncio.Event)
    answer: asyncio.Event = field(default_factory=asyncio.Event)
    in_tool: asyncio.Event = field(default_factory=asyncio.Event)
    in_answer: asyncio.Event = field(default_factory=asyncio.Event)
    quick: asyncio.Event = field(default_factory=asyncio.Event)  # the other tool has returned
    heard: list[Heard] = field(default_factory=list)
    runs_below: int = 0  # of an agent that is a tool
    name: str = "call"  # of its calls

    def open(self) -> None:
        self.tool.set()
        self.answer.set()

    async def reaches(self, event: asyncio.Event) -> None:
        async with asyncio.timeout(PATIENCE):
            await event.wait()

    async def slow(self) -> str:
        """Wait."""
        self.in_tool.set()
        await self.tool.wait()
        return "slow done"

    async def at_once(self) -> str:
        """Do not wait."""
        self.quick.set()
        return "quick done"

    def asked(self, heard: Heard) -> bool:
        """Whether the model calls its tools now: it has not, since its first message."""
        self.heard.append(heard)
        return all(kind != "call" for kind, _ in heard)

    async def pieces(self, heard: Heard) -> AsyncIterator[str]:
        """An answer: its first words, and the rest when its gate is open."""
        yield "saw "
        self.in_answer.set()
        await self.answer.wait()
        yield " and ".join(text for kind, text in heard if kind == "user")


def is_paired(heard: Heard) -> bool:
    """Whether every call has its result, right behind the calls it was made with."""
    made = [key for kind, key in heard if kind == "call"]
    returned = [key for kind, key in heard if kind == "result"]
    kinds = [kind for kind, _ in heard]
    behind = all(kinds[at + 1] in ("call", "result") for at, kind in enumerate(kinds[:-1]) if kind == "call")
    return sorted(made) == sorted(returned) and behind and kinds[-1:] != ["call"]


# ---------------------------------------------------------------- LangGraph


class GraphModel(FakeModel):
    """The model of `Works` for LangGraph."""

    turns: list[Any] = Field(default_factory=list)
    works: Any = None

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        heard = [each for message in messages for each in of_graph(message)]
        if self.works.asked(heard):
            chunks = [
                {"name": name, "args": "{}", "id": f"{name}-{self.works.name}-{len(self.works.heard)}", "index": at, "type": "tool_call_chunk"}
                for at, name in enumerate(("at_once", "slow"))
            ]  # fmt: skip
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=chunks))
            return
        async for piece in self.works.pieces(heard):
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))


def of_graph(message: Any) -> Heard:
    if message.type == "human":
        return [("user", str(message.content))]
    if message.type == "tool":
        return [("result", message.tool_call_id)]
    calls = [("call", call["id"]) for call in getattr(message, "tool_calls", None) or ()]
    return [*([("answer", str(message.content))] if message.content else []), *calls]


def graph(works: Works, saver: Any, make: Callable[..., Any] = create_agent) -> Any:
    """A ready-made agent of LangChain or LangGraph."""
    tools = [tool(works.at_once), tool(works.slow)]
    return make(GraphModel(works=works), tools, checkpointer=saver)


class MortalSaver(InMemorySaver):
    """Another process's way to the same checkpoints; it dies with its store."""

    def __init__(self, shared: InMemorySaver, mortal: Mortal) -> None:
        super().__init__()
        self.storage, self.writes, self.blobs = shared.storage, shared.writes, shared.blobs
        self._mortal = mortal

    async def aget_tuple(self, *args: Any, **kwargs: Any) -> Any:
        await self._mortal.step()
        return await super().aget_tuple(*args, **kwargs)

    async def aput(self, *args: Any, **kwargs: Any) -> Any:
        await self._mortal.step()
        found = await super().aput(*args, **kwargs)
        await self._mortal.step()
        return found

    async def aput_writes(self, *args: Any, **kwargs: Any) -> Any:
        await self._mortal.step()
        await super().aput_writes(*args, **kwargs)
        await self._mortal.step()


# ---------------------------------------------------------------------- ADK


class AdkModel(BaseLlm):
    """The model of `Works` for ADK."""

    model: str = "works"
    works: Any = None

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        heard = [each for content in llm_request.contents for each in _of_adk(content)]
        if self.works.asked(heard):
            calls = [
                types.Part(function_call=types.FunctionCall(name=name, args={}, id=f"{name}-{self.works.name}-{len(self.works.heard)}"))
                for name in ("at_once", "slow")
            ]  # fmt: skip
            yield LlmResponse(content=types.Content(role="model", parts=calls))
            return
        said: list[str] = []
        async for piece in self.works.pieces(heard):
            said.append(piece)
            yield LlmResponse(
                content=types.Content(role="model", parts=[types.Part(text=piece)]), partial=True
            )
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="".join(said))]))


def _of_adk(content: types.Content) -> Heard:
    found: Heard = []
    for part in content.parts or ():
        if part.function_call is not None:
            found.append(("call", str(part.function_call.id)))
        elif part.function_response is not None:
            found.append(("result", str(part.function_response.id)))
        elif part.text:
            found.append(("user" if content.role == "user" else "answer", part.text))
    return found


class MortalSessions:
    """Another process's way to the same sessions; it dies with its store."""

    def __init__(self, shared: InMemorySessionService, mortal: Mortal) -> None:
        self._shared = shared
        self._mortal = mortal

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._shared, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            await self._mortal.step()
            found = await method(*args, **kwargs)
            await self._mortal.step()
            return found

        return call


def adk(works: Works, sessions: Any) -> AdkAdapter:
    """An ADK agent."""
    agent = LlmAgent(name="agent", model=AdkModel(works=works), tools=[works.at_once, works.slow])
    return AdkAdapter(agent, app_name="app", session_service=sessions)


# -------------------------------------------------------------------- either


class Framework:
    """One framework's agent over what it keeps, for one process or several."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kept: Any = InMemorySaver() if name == "langgraph" else InMemorySessionService()

    def agent(self, works: Works, mortal: Mortal | None = None) -> Any:
        if self.name == "langgraph":
            return LangGraphAdapter(
                graph(works, self.kept if mortal is None else MortalSaver(self.kept, mortal))
            )
        return adk(works, self.kept if mortal is None else MortalSessions(self.kept, mortal))

    async def held(self, agent: Any, thread_id: str = "t1") -> Heard:
        """The conversation as the framework keeps it: roles, and user messages by their ids."""
        if self.name == "langgraph":
            state = await agent.graph.aget_state({"configurable": {"thread_id": thread_id}})
            roles = {"human": "user", "ai": "assistant", "tool": "tool"}
            return [(roles[each.type], each.id) for each in state.values.get("messages", [])]
        from runcast.adapters.adk import messages_from_events

        session = await self.kept.get_session(app_name="app", user_id="user", session_id=thread_id)
        return shown(messages_from_events(session.events)) if session is not None else []


def shown(messages: list[Message]) -> Heard:
    return [(each.role, each.id) for each in messages]
