"""A wiretap in one line: your program calls its graph as ever, and whoever watches sees it work.

`MemoryPublisher` stands for where your watchers are: a `Hub`, or `open_publisher("reverb://key:secret@host:8080/1001")`.

Install: `pip install "runcast[langgraph]"`.

Look at: the envelopes at the end, a status before and after each step.
"""

import asyncio

from langchain_core.language_models import GenericFakeChatModel
from langgraph.graph import START, MessagesState, StateGraph

from runcast.adapters.langgraph import LangGraphCallbacks
from runcast.broadcast import Broadcaster, MemoryPublisher

model = GenericFakeChatModel(messages=iter(["Hello from a plain invoke."]))


def answer(state: MessagesState) -> dict[str, object]:
    return {"messages": [model.invoke(state["messages"])]}


graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile()


async def main() -> None:
    watchers = MemoryPublisher()
    broadcaster = Broadcaster(watchers)
    wiretap = LangGraphCallbacks(broadcaster.sink("t1"), thread_id="t1")  # this is the line

    await graph.ainvoke({"messages": [("user", "Hi!")]}, config={"callbacks": [wiretap]})

    await wiretap.aflush()
    await broadcaster.aclose()
    for envelope in watchers.envelopes("private-agent.t1"):
        print(envelope.seq, envelope.type, dict(envelope.payload))


asyncio.run(main())
