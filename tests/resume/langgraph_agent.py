"""A LangGraph agent that charges, asks, and answers; its checkpoints are in SQLite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ag_ui.core import Interrupt
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt

from runcast.adapters.langgraph import LangGraphAdapter, LangGraphOptions
from tests.resume.worker import did, shown


class Clerk(BaseChatModel):
    """Does the next thing that the conversation has not seen yet."""

    folder: Path

    @property
    def _llm_type(self) -> str:
        return "clerk"

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **given: Any
    ) -> ChatResult:
        shown(self.folder, [_brief(each) for each in messages])
        done = sum(isinstance(each, ToolMessage) for each in messages)
        calls = (("charge", {"amount": 5}), ("confirm", {"question": "send a receipt?"}))
        answer = AIMessage("all done", id=f"m-{len(messages)}")
        if done < len(calls):
            name, arguments = calls[done]
            answer = AIMessage(
                "", id=f"m-{name}", tool_calls=[{"id": f"c-{name}", "name": name, "args": arguments}]
            )
        return ChatResult(generations=[ChatGeneration(message=answer)])


def _brief(message: BaseMessage) -> Any:
    if isinstance(message, AIMessage):
        return ["assistant", [call["id"] for call in message.tool_calls]]
    return (
        ["tool", message.tool_call_id]
        if isinstance(message, ToolMessage)
        else [message.type, message.content]
    )


def answer(asked: Interrupt) -> Any:
    return "yes"


def graph(folder: Path, tools: list[Any]) -> StateGraph[MessagesState]:
    """A model and its tools, in turns."""
    clerk = Clerk(folder=folder)
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [clerk.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    builder.add_edge("tools", "model")
    return builder


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[LangGraphAdapter]:
    @tool
    def charge(amount: int) -> str:
        """Charge the customer."""
        did(folder, "charge")
        return f"charged {amount}"

    @tool
    def confirm(question: str) -> str:
        """Ask the customer."""
        said = interrupt({"question": question})
        did(folder, "confirm")
        return str(said)

    builder = graph(folder, [charge, confirm])
    async with AsyncSqliteSaver.from_conn_string(str(folder / "threads.db")) as saver:
        yield LangGraphAdapter(
            builder.compile(checkpointer=saver), options=LangGraphOptions(durability="sync")
        )
