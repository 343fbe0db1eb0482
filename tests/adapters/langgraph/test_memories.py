"""Graphs with a memory of their own that had not begun when the process died: their message is answered, not their last one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from tests.adapters.langgraph.fakes import say
from tests.adapters.langgraph.wide.book import Steady, WideStage, call, inner

pytestmark = pytest.mark.oracle


class Failing(InMemorySaver):
    """Keeps nothing of the graph in this namespace, for as long as one is named."""

    namespace: str | None = None

    async def aput(self, config: Any, *given: Any) -> Any:
        if config["configurable"]["checkpoint_ns"] == self.namespace:
            raise ConnectionError("the store is gone")
        return await super().aput(config, *given)


class Consulting(Steady):
    """Asks its tool about what the user says, and repeats what that answers."""

    def _next(self, messages: Any) -> Any:
        last = messages[-1]
        return call("consult", f"c{len(messages)}") if last.type == "human" else say("it says ", last.text)


def helper() -> Any:
    return inner(say("fi", "rst"), say("second"), say("third"), checkpointer=True)


def around(node: Any, name: str, **settings: Any) -> Any:
    builder = StateGraph(MessagesState).add_node(name, node).add_edge(START, name)
    return builder.compile(**settings)


def consulting(**settings: Any) -> Any:
    kept = helper()

    @tool
    async def consult() -> str:
        """Ask the helper."""
        return str((await kept.ainvoke({"messages": [("user", "why?")]}))["messages"][-1].text)

    return create_agent(Consulting(turns=[]), [consult], **settings)


def as_a_node(saver: Any) -> Any:
    return around(helper(), "helper", checkpointer=saver)


def in_a_tool(saver: Any) -> Any:
    return consulting(checkpointer=saver)


def two_levels_down(saver: Any) -> Any:
    return around(around(helper(), "helper"), "middle", checkpointer=saver)


@pytest.mark.parametrize(
    ("made", "namespace"), [(as_a_node, "helper"), (in_a_tool, "tools"), (two_levels_down, "middle|helper")]
)
async def test_it_begins_with_its_message(made: Callable[[Any], Any], namespace: str, oracle: Any):
    whole = WideStage(oracle)
    whole.play(made(InMemorySaver()))
    saver, stage = Failing(), WideStage(oracle)
    stage.play(made(saver))
    for words in ("hi", "again"):
        await whole.turn(words)
        saver.namespace = namespace if words == "again" else None
        await stage.turn(words)
    assert stage.runs[-1][-1].type == "RUN_ERROR"
    saver.namespace = None
    await stage.go_on()
    await stage.holds()
    shown = [[(each["role"], each.get("content")) for each in it.view["messages"]] for it in (stage, whole)]
    assert shown[0] == shown[1]
