"""What `ag-ui-validate` says of both frameworks' runs as they come over HTTP: no error but one it is wrong about.

The runs are the demo's: text, reasoning, parallel tools, a subagent or sub-agent, a step that fails once, and a
question. A node or a model that fails comes on top. docs/spec-questions.md tells where it is wrong about other streams.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from ag_ui_validate.pytest_plugin import validate_agui
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from runcast.app import Cast
from runcast.app.demo import adk, graph
from tests.app.serving import Served, post_run, serving

YES = {"langgraph": True, "adk": {"confirmed": True}}


class Gone(BaseLlm):
    model: str = "gone"

    async def generate_content_async(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise RuntimeError("the model is gone")
        yield


def broken_graph() -> Any:
    def fail(state: MessagesState) -> Any:
        raise RuntimeError("the node is gone")

    builder = StateGraph(MessagesState)
    builder.add_node("fail", fail)
    builder.add_edge(START, "fail")
    return builder.compile(checkpointer=InMemorySaver(), name="broken")


@asynccontextmanager
async def host(kind: str, folder: Path) -> AsyncIterator[tuple[Served, str]]:
    if kind == "langgraph":
        agents = [graph.build(InMemorySaver(), pace=0.0), broken_graph()]
    else:
        agents = [adk.build(folder, pace=0.0), LlmAgent(name="broken", model=Gone(model="gone"))]
    cast = Cast.open("memory://", agents=agents)
    async with serving(cast) as it:
        yield it, next(iter(cast.agents))


def errors(events: list[dict[str, Any]]) -> list[str]:
    found = validate_agui(events).diagnostics
    return [f"{each.rule} {each.message}" for each in found if each.severity == "error"]


@pytest.mark.filterwarnings("ignore:SequentialAgent is deprecated:DeprecationWarning")  # what users have
@pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL.*:UserWarning")
@pytest.mark.parametrize("kind", ["langgraph", "adk"])
async def test_runs_questions_answers_and_failures_pass_it(kind: str, tmp_path: Path) -> None:
    async with host(kind, tmp_path) as (it, agent):
        asked = [each.event for each in await post_run(it.http, agent, text="go")]
        kinds = {each["type"] for each in asked}
        assert {"TOOL_CALL_RESULT", "TEXT_MESSAGE_CONTENT", "STEP_STARTED"} <= kinds
        questions = asked[-1]["outcome"]["interrupts"]
        answers = [
            {"interruptId": each["id"], "status": "resolved", "payload": YES[kind]} for each in questions
        ]
        answered = [
            each.event for each in await post_run(it.http, agent, run="r2", resume=answers, messages=[])
        ]
        assert answered[-1]["type"] == "RUN_FINISHED", (questions, answered[-1])
        failed = [each.event for each in await post_run(it.http, "broken", thread="t2", run="r3")]
        assert failed[-1]["type"] == "RUN_ERROR"
        assert errors(asked) == errors(failed) == []
        # A call that waited for its approval has its result in the next run, and was begun in this one.
        assert [each for each in errors(answered) if not each.startswith("AGUI207 ")] == []
