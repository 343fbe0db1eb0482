"""LangGraph's functional API, with a page.

Start it with `uvicorn app_functional:app` and open http://localhost:8000 with the token that it logs.

Install: `pip install "runcast[langgraph,cli]"`.

Look at: the page after a reload, which shows the conversation again.
"""

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task


@task
def answer(messages: list[AnyMessage]) -> AIMessage:
    return AIMessage(f"You said: {messages[-1].content}")


@entrypoint(checkpointer=InMemorySaver())
def workflow(state: dict[str, list[AnyMessage]]) -> dict[str, list[AnyMessage]]:
    return {"messages": [*state["messages"], answer(state["messages"]).result()]}


# The three lines.
from runcast.app import Cast  # noqa: E402

cast = Cast.open("sqlite:///runcast.db", agents=[workflow])
app = cast.asgi()


if __name__ == "__main__":
    print("Start it with: uvicorn app_functional:app")
