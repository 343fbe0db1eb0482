"""An agent that calls another: what the inner one says is attributed to it (`subagentRunId`).

Install: `pip install "runcast[langgraph]" langchain`.

Look at: the lines of the researcher between those of its boss.
"""

import asyncio

from ag_ui.core import RunAgentInput, UserMessage
from langchain.agents import create_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage

from runcast.adapters.langgraph import LangGraphAdapter


class Model(FakeMessagesListChatModel):
    def bind_tools(self, tools: object, **kwargs: object) -> "Model":
        return self


researcher = create_agent(Model(responses=[AIMessage("It is 42.")]), [], name="researcher")


async def research(question: str) -> str:
    """Ask the researcher."""
    found = await researcher.ainvoke({"messages": [("user", question)]})
    return str(found["messages"][-1].content)


call = {"name": "research", "args": {"question": "What is it?"}, "id": "call-1", "type": "tool_call"}
model = Model(responses=[AIMessage("", tool_calls=[call]), AIMessage("The researcher says 42.")])
adapter = LangGraphAdapter(create_agent(model, [research], name="boss"))


async def main() -> None:
    question = UserMessage(id="u1", content="What is the answer?")
    async for event in adapter.run(RunAgentInput(thread_id="t1", run_id="r1", messages=[question])):
        who = "researcher" if getattr(event, "subagent_run_id", None) else "boss"
        print(f"{who:<12}{event.type.value} {getattr(event, 'delta', '')}")


asyncio.run(main())
