"""The steps of a run, as a person would count them."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import StepStartedEvent
from langchain.agents.middleware import after_model, before_model

from runcast.adapters.langgraph import LangGraphOptions
from tests.adapters.langgraph.fakes import calls, piece, say
from tests.adapters.langgraph.scenes.book import add, agent
from tests.adapters.langgraph.stage import Stage

MODEL = ["note.before_model", "model", "count.after_model"]


@before_model
def note(state: Any, runtime: Any) -> None:
    """Look at what the model is asked."""


@after_model
def count(state: Any, runtime: Any) -> None:
    """Look at what the model answered."""


@pytest.mark.parametrize(
    ("hooks", "steps"), [(False, ["model", "tools", "model"]), (True, [*MODEL, "tools", *MODEL])]
)
async def test_hooks_are_part_of_their_agents_step_or_steps_of_their_own(hooks: bool, steps: list[str]):
    adding = [calls(piece("add", '{"a":1,"b":2}', "c1"))]
    graph = agent(adding, say("three"), tools=[add], middleware=[note, count])
    stage = Stage().play(graph, options=LangGraphOptions(middleware_steps=hooks))
    events = await stage.send("hi")
    assert [each.step_name for each in events if isinstance(each, StepStartedEvent)] == steps
