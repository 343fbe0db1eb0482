"""A LangGraph and an ADK agent that write the same: three parts a question, with a tool between them.

What they write is known beforehand, so that nothing missing or double goes unseen. Asked again after a crash, a model
answers by what it reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from runcast.adapters.adk import AdkAdapter
from runcast.adapters.langgraph import LangGraphAdapter, LangGraphOptions
from tests.adapters.adk.fakes import FakeGemini, call, chunk

PARTS = 3
WORDS = 20
PAUSE = 0.03


def words(turn: int, part: int) -> list[str]:
    """One part of the answer to one question."""
    return [f"w{turn}-{part}-{number} " for number in range(WORDS)]


def answer(turn: int) -> list[str]:
    """The whole answer, as a page shows it: a message a part."""
    return ["".join(words(turn, part)).strip() for part in range(PARTS)]


def look(part: int) -> str:
    """Look something up."""
    return f"seen {part}"


class Writer(BaseChatModel):
    """The model of the LangGraph agent."""

    @property
    def _llm_type(self) -> str:
        return "writer"

    def bind_tools(self, tools: Any, **given: Any) -> Writer:
        return self

    def _generate(self, messages: list[BaseMessage], *given: Any, **more: Any) -> ChatResult:
        raise TypeError("this model streams")

    async def _astream(
        self, messages: list[BaseMessage], *given: Any, **more: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        asked = [at for at, each in enumerate(messages) if isinstance(each, HumanMessage)]
        part = sum(isinstance(each, ToolMessage) for each in messages[asked[-1] :])
        for word in words(len(asked) - 1, part):
            await asyncio.sleep(PAUSE)
            yield ChatGenerationChunk(message=AIMessageChunk(word))
        if part < PARTS - 1:
            wish = {"name": "look", "args": f'{{"part": {part}}}', "id": f"c{len(asked)}-{part}", "index": 0}
            yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=[wish]))


class Gemini(FakeGemini):
    """The model of the ADK agent."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = [
            part for content in llm_request.contents if content.role == "user" for part in content.parts or []
        ]
        asked = [at for at, each in enumerate(parts) if each.text]
        part = sum(each.function_response is not None for each in parts[asked[-1] :])
        turn = len(asked) - 1
        last = part == PARTS - 1
        said = [chunk(types.Part(text=word)) for word in words(turn, part)]
        wish = [] if last else [call("look", {"part": part}, id=f"c{turn}-{part}")]
        self.script = [[*said, chunk(*wish, finish="STOP", usage=True)]]
        async for each in super().generate_content_async(llm_request, stream):
            yield each


@asynccontextmanager
async def writer(framework: str, url: str, folder: Path) -> AsyncIterator[Any]:
    """The agent, as long as what it remembers is open."""
    if framework == "langgraph":
        async with AsyncPostgresSaver.from_conn_string(url) as saver:
            await saver.setup()
            graph = create_agent(Writer(), [look], checkpointer=saver, name="writer")
            yield LangGraphAdapter(graph, name="writer", options=LangGraphOptions(durability="sync"))
        return
    root = LlmAgent(name="writer", model=Gemini(pace=PAUSE), tools=[look])
    app = App(name="writer", root_agent=root, resumability_config=ResumabilityConfig(is_resumable=True))
    yield AdkAdapter(app, session_service=SqliteSessionService(str(folder / "sessions.db")))
