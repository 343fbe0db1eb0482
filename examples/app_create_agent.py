"""An agent made by LangChain's `create_agent`, with a page. The model is a script, so that this needs no key.

Start it with `uvicorn app_create_agent:app` and open http://localhost:8000 with the token that it logs.

Install: `pip install "runcast[langgraph,cli]" langchain`.

Look at: the tool call as a card, with its arguments and its result.
"""

from typing import Any
from uuid import uuid4

from langchain.agents import create_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatResult
from langgraph.checkpoint.memory import InMemorySaver


class Model(FakeMessagesListChatModel):
    def bind_tools(self, tools: object, **kwargs: object) -> "Model":
        return self

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        """The next message of the script, with ids of its own: LangGraph takes a known id for a known message."""
        (generation,) = super()._generate(*args, **kwargs).generations
        calls = [{**call, "id": f"call-{uuid4()}"} for call in getattr(generation.message, "tool_calls", ())]
        generation.message = generation.message.model_copy(update={"id": None, "tool_calls": calls})
        return ChatResult(generations=[generation])


def weather(city: str) -> str:
    """The weather in a city."""
    return f"Sun over {city}."


call = {"name": "weather", "args": {"city": "Vienna"}, "id": "call-1", "type": "tool_call"}
model = Model(responses=[AIMessage("", tool_calls=[call]), AIMessage("It is sunny.")])
agent = create_agent(model, [weather], name="weatherman", checkpointer=InMemorySaver())

# The three lines.
from runcast.app import Cast  # noqa: E402

cast = Cast.open("sqlite:///runcast.db", agents=[agent])
app = cast.asgi()


if __name__ == "__main__":
    print("Start it with: uvicorn app_create_agent:app")
