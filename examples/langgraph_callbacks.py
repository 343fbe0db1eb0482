"""Callbacks only: the program keeps calling `graph.invoke` itself, and its runs are told all the same.

Install: `pip install "runcast[langgraph]"`.

Look at: the events, though the program still calls `graph.invoke`.
"""

from langchain_core.language_models import GenericFakeChatModel
from langgraph.graph import START, MessagesState, StateGraph

from runcast.adapters.langgraph import LangGraphCallbacks

model = GenericFakeChatModel(messages=iter(["Hello from a plain invoke."]))


def answer(state: MessagesState) -> dict[str, object]:
    return {"messages": [model.invoke(state["messages"])]}


graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile()
callbacks = LangGraphCallbacks(lambda event: print(event.type.value), thread_id="t1")

result = graph.invoke({"messages": [("user", "Hi!")]}, config={"callbacks": [callbacks]})
callbacks.flush()
print(result["messages"][-1].content)
