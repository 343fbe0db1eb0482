"""A plain StateGraph as AG-UI events: give the graph to an adapter, run it, print what a client would get.

Install: `pip install "runcast[langgraph]"`.

Look at: one TEXT_MESSAGE_CONTENT for each word that the model streams.
"""

import asyncio

from ag_ui.core import RunAgentInput, UserMessage
from langchain_core.language_models import GenericFakeChatModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from runcast.adapters.langgraph import LangGraphAdapter

model = GenericFakeChatModel(messages=iter(["Hello, I stream word by word."]))


async def answer(state: MessagesState) -> dict[str, object]:
    return {"messages": [await model.ainvoke(state["messages"])]}


graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
adapter = LangGraphAdapter(graph.compile(checkpointer=InMemorySaver()))


async def main() -> None:
    question = UserMessage(id="u1", content="Hi!")
    async for event in adapter.run(RunAgentInput(thread_id="t1", run_id="r1", messages=[question])):
        print(event.type.value, getattr(event, "delta", ""))


asyncio.run(main())
