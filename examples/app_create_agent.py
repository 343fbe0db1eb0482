"""An agent made by LangChain's `create_agent`, with a page. The model is a script, so that this needs no key.

Start it with `uvicorn app_create_agent:app` and open the page at http://localhost:8000.
"""

from langchain.agents import create_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver


class Model(FakeMessagesListChatModel):
    def bind_tools(self, tools: object, **kwargs: object) -> "Model":
        return self


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
