"""`create_agent` with a tool that asks first: the run ends with an interrupt, its answer starts the next run.

Install: `pip install "runcast[langgraph]" langchain`.

Look at: the outcome of the first run, and the id with which the second one answers.
"""

import asyncio

from ag_ui.core import ResumeEntry, RunAgentInput, UserMessage
from langchain.agents import create_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt

from runcast.adapters.langgraph import LangGraphAdapter


def send_mail(to: str) -> str:
    """Send a mail, once somebody agreed."""
    return "sent" if interrupt({"message": f"Send a mail to {to}?"}) else "not sent"


class Model(FakeMessagesListChatModel):
    def bind_tools(self, tools: object, **kwargs: object) -> "Model":
        return self


call = {"name": "send_mail", "args": {"to": "ada@example.org"}, "id": "call-1", "type": "tool_call"}
model = Model(responses=[AIMessage("", tool_calls=[call]), AIMessage("Done: the mail is out.")])
adapter = LangGraphAdapter(create_agent(model, [send_mail], checkpointer=InMemorySaver()))


async def main() -> None:
    question = [UserMessage(id="u1", content="Write to Ada")]
    events = [e async for e in adapter.run(RunAgentInput(thread_id="t1", run_id="r1", messages=question))]
    asked = events[-1].outcome.interrupts[0]
    print("asked:", asked.message)
    answer = [ResumeEntry(interrupt_id=asked.id, status="resolved", payload=True)]
    async for event in adapter.run(
        RunAgentInput(thread_id="t1", run_id="r2", messages=question, resume=answer)
    ):
        print(event.type.value, getattr(event, "delta", getattr(event, "content", "")))


asyncio.run(main())
