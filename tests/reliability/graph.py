"""A LangGraph graph that counts, over PostgreSQL's saver: four nodes, each says its two tokens when it ends.

A node writes down that it begins (see `counting.py`), and takes the number of its attempt from what is written there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import START, MessagesState, StateGraph

from runcast.adapters.langgraph import LangGraphAdapter, LangGraphOptions

NODES = 4
TOKENS = 2
PAUSE = 0.8  # seconds that a node takes


@asynccontextmanager
async def counting_graph(url: str, effects: Path) -> AsyncIterator[LangGraphAdapter]:
    """The graph as an agent, as long as its saver is connected."""
    async with AsyncPostgresSaver.from_conn_string(url) as saver:
        await saver.setup()
        builder = StateGraph(MessagesState)
        names = [f"n{number}" for number in range(NODES)]
        for number, name in enumerate(names):
            builder.add_node(name, _node(number, effects))
        for before, name in zip([START, *names], names, strict=False):
            builder.add_edge(before, name)
        graph = builder.compile(checkpointer=saver)
        yield LangGraphAdapter(graph, name="graph", options=LangGraphOptions(durability="sync"))


def _node(number: int, effects: Path) -> Any:
    async def count(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        attempt = _begin(effects, f"{config['configurable']['thread_id']} {number} ")
        await asyncio.sleep(PAUSE)
        text = f"{number}.{attempt}.0 {number}.{attempt}.1! "
        return {"messages": [AIMessage(content=text, id=f"said-{number}-{attempt}")]}

    return count


def _begin(effects: Path, mine: str) -> int:
    before = effects.read_text().splitlines() if effects.exists() else []
    attempt = 1 + sum(line.startswith(mine) for line in before)
    with effects.open("a") as file:
        file.write(f"{mine}{attempt}\n")
    return attempt
