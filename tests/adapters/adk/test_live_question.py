"""A thread with an open question takes a new message, and nothing that a stopped run left blocks it."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import ResumeEntry, RunAgentInput, UserMessage
from google.adk.tools import FunctionTool, LongRunningFunctionTool

from runcast.adapters.adk import AdkOptions
from tests.adapters.adk.fakes import agent, call, calls, model_of, text
from tests.adapters.adk.stage import Stage, kinds, strict, texts
from tests.e2e.oracle import Oracle

pytestmark = pytest.mark.oracle


def ask(q: str = "") -> None:
    """Ask somebody, who takes a while."""


def danger(x: int = 0) -> dict[str, int]:
    """Do something that needs leave."""
    return {"did": x}


ASK = LongRunningFunctionTool(ask)
DANGER = FunctionTool(danger, require_confirmation=True)


def asking(tool: str, **options: Any) -> Stage:
    root = agent("root", calls(call(tool)), text("here I am"), text("and on"), tools=[ASK, DANGER])
    return Stage(root, options=AdkOptions(**options))


def heard(stage: Stage) -> list[Any]:
    """The parts of the last model call."""
    return [part for content in model_of(stage.root).calls[-1].contents for part in content.parts or ()]


async def with_cancel(stage: Stage, words: str) -> list[Any]:
    entries = [ResumeEntry(interrupt_id=it.id, status="cancelled") for it in stage.interrupts]
    return await stage.say(words, resume=entries)


@pytest.mark.parametrize("how", ["abandon", "refuse"])
@pytest.mark.parametrize("tool", ["ask", "danger"])
async def test_case_64_a_cancelled_question_and_a_new_message_go_into_one_run(
    oracle: Oracle, tool: str, how: Any
):
    stage = asking(tool, on_new_message=how)
    await stage.say("hi")
    run = await with_cancel(stage, "something else")
    assert run[-1].outcome.type == "success"
    client = await stage.check(oracle)
    assert texts(client)[-2:] == [("user", "something else"), ("assistant", "here I am")]
    assert "something else" in [part.text for part in heard(stage)]
    assert len(model_of(stage.root).calls) == 2
    await stage.say("more")
    await stage.check(oracle)


async def test_case_64_the_model_reads_that_the_question_was_cancelled(oracle: Oracle):
    stage = asking("ask")
    await stage.say("hi")
    await with_cancel(stage, "something else")
    answers = [it.function_response for it in heard(stage) if it.function_response is not None]
    assert [it.response for it in answers] == [{"error": "The user cancelled this request."}]


@pytest.mark.parametrize("tool", ["ask", "danger"])
async def test_case_65_a_new_message_alone_lets_the_question_go(oracle: Oracle, tool: str):
    stage = asking(tool)
    await stage.say("hi")
    run = await stage.say("something else")
    strict([event for events in stage.runs for event in events])
    assert run[-1].outcome.type == "success"  # type: ignore[union-attr]
    assert (await stage.messages())[-1].content == "here I am"
    stage.keep()
    late = await stage.answer({"adk-id-4": True})
    assert kinds(late)[-1] in ("RUN_FINISHED", "RUN_ERROR")
    await stage.say("more")
    assert (await stage.messages())[-1].content == "and on"


@pytest.mark.parametrize("tool", ["ask", "danger"])
@pytest.mark.parametrize("hard", [True, False], ids=["hard", "soft"])
async def test_a_stop_at_the_start_of_an_answering_run_blocks_nothing(oracle: Oracle, tool: str, hard: bool):
    stage = asking(tool)
    await stage.say("hi")
    asked = stage.interrupts[0]
    entry = ResumeEntry(interrupt_id=asked.id, status="resolved", payload=True)
    given = RunAgentInput(thread_id="t1", run_id="r2", messages=await stage.messages(), resume=[entry])
    events = []
    async for event in stage.adapter.run(given):
        events.append(event)
        if event.type.value == "RUN_STARTED":
            await stage.adapter.stop("r2", hard=hard)
    stage.runs.append(events)
    stage.inputs.append(given)
    strict(events)
    await stage.check(oracle)
    view = oracle.run(*({"events": run} for run in stage.runs))["messages"]
    news = [RunAgentInput.model_validate({"threadId": "t1", "runId": "x", "messages": view}).messages, []]
    run = await stage.send([*news[0], UserMessage(id="u9", content="and now?")])
    assert run[-1].type.value == "RUN_FINISHED", run[-1]
    await stage.check(oracle)
    assert (await stage.messages())[-1].role == "assistant"
