"""The host of the React examples: an agent that writes, and asks before it sends a mail.

Start it with `python host.py`; the pages in the folders beside it are of another origin, so `cors` names it.

Look at: `authorize`, where your own check of the user belongs, and at the approval that a page shows.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.checkpoint.memory import InMemorySaver

from runcast.app import Cast

PAGES = ["http://localhost:5173", "http://127.0.0.1:5173"]


class Writer(BaseChatModel):
    """A model without a key: it repeats what it is asked, and calls the tool when a mail is wanted."""

    pause: float = 0.05

    @property
    def _llm_type(self) -> str:
        return "writer"

    def bind_tools(self, tools: Any, **kwargs: Any) -> "Writer":
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self._words(messages)))])

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        last = messages[-1]
        if "mail" in last.text and not isinstance(last, ToolMessage):
            call = {
                "name": "send_mail",
                "args": '{"to": "ada@example.org"}',
                "id": f"call-{len(messages)}",
                "index": 0,
            }
            yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=[call]))
            return
        for word in self._words(messages).split(" "):
            await asyncio.sleep(self.pause)
            yield ChatGenerationChunk(message=AIMessageChunk(f"{word} "))

    def _words(self, messages: list[BaseMessage]) -> str:
        last = messages[-1]
        if isinstance(last, ToolMessage):
            return f"**The mail:** {last.text}"
        return "You said: " + " ".join([last.text] * 12)


def send_mail(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


agent = create_agent(
    Writer(),
    [send_mail],
    middleware=[HumanInTheLoopMiddleware(interrupt_on={"send_mail": True})],
    checkpointer=InMemorySaver(),
    name="writer",
)
cast = Cast.open("sqlite:///react.db", agents=[agent])
app = cast.asgi(authorize=lambda user, thread_id: True, cors=PAGES)  # your own check of the user goes here

if __name__ == "__main__":
    uvicorn.run(app, port=8000)
