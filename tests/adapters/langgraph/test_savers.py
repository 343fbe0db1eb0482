"""Case 60, and the checkpointers people use: ids by durability, and the same scenes over SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from runcast.adapters.langgraph import LangGraphAdapter, LangGraphOptions
from tests.adapters.langgraph.fakes import StreamingModel, calls, piece, say
from tests.adapters.langgraph.scenes.book import add, agent
from tests.adapters.langgraph.stage import Stage
from tests.servers import own_schema, postgres_server

__all__ = ["postgres_server"]


def conversation(saver: Any) -> Any:
    """A model, then a question, then the end."""
    model = StreamingModel(turns=[say("answer ", str(n)) for n in range(1, 9)])

    async def answer(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    async def check(state: MessagesState) -> Any:
        told = interrupt("Good?") if "ask" in str(state["messages"][-2].content) else "-"
        return {"messages": [AIMessage(f"told {told}", id=f"check-{len(state['messages'])}")]}

    builder = StateGraph(MessagesState).add_node("answer", answer).add_node("check", check)
    return builder.add_edge(START, "answer").add_edge("answer", "check").compile(checkpointer=saver)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_60_the_checkpoint_told_is_one_that_is_stored(durability: Any):
    saver = InMemorySaver()
    stage = Stage().play(conversation(saver), options=LangGraphOptions(durability=durability))
    for text in ("hi", "ask me"):
        events = await stage.send(text, messages=stage.input(text).messages)
        told = events[-1].metadata["runcast"]["framework"]["checkpoint_id"]
        stored = await saver.aget_tuple(
            {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": told}}
        )
        assert stored is not None
        newest = await saver.aget_tuple({"configurable": {"thread_id": "t"}})
        assert newest.config["configurable"]["checkpoint_id"] == told


async def tells_a_whole_story(saver: Any, oracle: Any) -> None:
    """Talk, ask and answer, answer again, edit, and go on in another adapter."""
    stage = Stage(oracle).play(conversation(saver))
    for text in ("hi", "ask me"):
        await stage.send(text)
        await stage.holds()
    [asked] = stage.runs[-1][-1].outcome.interrupts
    await stage.answer((asked.id, None))
    await stage.holds()
    stage.view["messages"] = stage.view["messages"][:1]
    events = await stage.send(None)
    assert events[0].metadata["runcast"]["resumed_from"] == "fork"
    await stage.holds()
    stage.adapter = LangGraphAdapter(conversation(saver))  # another process, the same store
    await stage.send("and on")
    await stage.holds()


@asynccontextmanager
async def sqlite(path: Path) -> AsyncIterator[Any]:
    async with AsyncSqliteSaver.from_conn_string(str(path / "threads.db")) as saver:
        yield saver


@pytest.mark.oracle
async def test_over_sqlite(tmp_path: Path, oracle: Any):
    async with sqlite(tmp_path) as saver:
        await tells_a_whole_story(saver, oracle)


@pytest.mark.oracle
async def test_tools_over_sqlite(tmp_path: Path, oracle: Any):
    async with sqlite(tmp_path) as saver:
        asked = [calls(piece("add", '{"a":1,"b":2}', "c1"))]
        stage = Stage(oracle).play(agent(asked, say("three"), tools=[add], checkpointer=saver))
        await stage.send("hi")
        await stage.holds()


@pytest.mark.oracle
@pytest.mark.server
async def test_over_postgresql(postgres_server: str, oracle: Any):
    async with AsyncPostgresSaver.from_conn_string(own_schema(postgres_server)) as saver:
        await saver.setup()
        await tells_a_whole_story(saver, oracle)
