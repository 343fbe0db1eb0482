"""A LangGraph graph with a page: the graph stays as it is, three lines come after it.

Start it with `uvicorn app_langgraph:app` and open http://localhost:8000 with the token that it logs.

Install: `pip install "runcast[langgraph,cli]"`.

Look at: the page after a reload, and the same thread in another tab.
"""

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph


def greet(state: MessagesState) -> dict[str, list[AIMessage]]:
    return {"messages": [AIMessage("Hello from a node.")]}


builder = StateGraph(MessagesState)
builder.add_node("greet", greet)
builder.add_edge(START, "greet")
builder.add_edge("greet", END)
graph = builder.compile(checkpointer=InMemorySaver())

# The three lines.
from runcast.app import Cast  # noqa: E402

cast = Cast.open("sqlite:///runcast.db", agents=[graph])
app = cast.asgi()


if __name__ == "__main__":
    print("Start it with: uvicorn app_langgraph:app")
