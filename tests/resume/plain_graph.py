"""The same LangGraph agent without a checkpointer: it cannot wait for an answer, and remembers nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from langchain_core.tools import tool

from runcast.adapters.langgraph import LangGraphAdapter
from tests.resume.langgraph_agent import answer, graph
from tests.resume.worker import did

__all__ = ["answer", "opened"]


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
        did(folder, "confirm")
        return "yes"

    yield LangGraphAdapter(graph(folder, [charge, confirm]).compile())
