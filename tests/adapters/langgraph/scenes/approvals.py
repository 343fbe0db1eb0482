"""Approvals in the forms people use: langchain's middleware and Agent Inbox, answered well, badly, and not at all."""

from __future__ import annotations

import json
from typing import Any

from ag_ui.core import Event, ResumeEntry
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from tests.adapters.langgraph.fakes import calls, piece, say
from tests.adapters.langgraph.scenes.book import InMemorySaver, add, agent, scene
from tests.adapters.langgraph.scenes.interrupts import waiting
from tests.adapters.langgraph.stage import Stage

TWO = calls(piece("add", '{"a":1,"b":2}', "c1", 0), piece("add", '{"a":3,"b":4}', "c2", 1), content="let me")


def approving(*decisions: Any, mode: Any = "batched") -> Any:
    config: Any = {"allowed_decisions": list(decisions or ("approve", "edit", "reject"))}
    middleware = HumanInTheLoopMiddleware(interrupt_on={"add": config}, interrupt_mode=mode)
    return agent([TWO], say("done"), say("done again"), tools=[add], middleware=[middleware])


async def refused(stage: Stage, *answers: tuple[str, Any]) -> str:
    """The error of an answer that the graph must not see."""
    events = await stage.answer(*answers)
    assert [each.type.value for each in events] == ["RUN_STARTED", "RUN_ERROR"]
    assert events[-1].code == "invalid_input"  # type: ignore[union-attr]
    return str(events[-1].message)  # type: ignore[union-attr]


async def cancelled(stage: Stage, questions: Any = None) -> list[Event]:
    asked = waiting(stage) if questions is None else questions
    entries = [ResumeEntry(interrupt_id=each.id, status="cancelled") for each in asked]
    return await stage.send(None, resume=entries)


@scene("63_approval_with_a_wrong_answer")
async def wrong_answer(stage: Stage) -> None:
    stage.play(approving())
    await stage.send("hi")
    [question] = waiting(stage)
    assert question.response_schema["properties"]["decisions"]["minItems"] == 2
    kinds = [
        each["properties"]["type"]["const"]
        for each in question.response_schema["properties"]["decisions"]["items"]["oneOf"]
    ]
    assert kinds == ["approve", "edit", "reject"]
    approve = {"type": "approve"}
    wrong = [
        "yes",
        {"decisions": [approve]},
        {"decisions": [approve, {"type": "respond", "message": "7"}]},
        {"approved": True},
    ]
    for answer in wrong:
        assert "does not fit its `responseSchema`" in await refused(stage, (question.id, answer))
    await stage.answer((question.id, {"decisions": [approve, {"type": "reject", "message": "no"}]}))
    await stage.holds()
    await stage.send("and again")
    await stage.holds()


@scene("63_approval_answered_as_text")
async def answered_as_text(stage: Stage) -> None:
    stage.play(approving())
    await stage.send("hi")
    [question] = waiting(stage)
    await stage.answer((question.id, json.dumps({"decisions": [{"type": "approve"}, {"type": "approve"}]})))
    await stage.holds()


@scene("63_approval_cancelled")
async def approval_cancelled(stage: Stage) -> None:
    stage.play(approving())
    await stage.send("hi")
    events = await cancelled(stage)
    assert events[-1].outcome.type == "success"  # type: ignore[union-attr]
    await stage.holds()
    await stage.send("and again")
    await stage.holds()


@scene("63_approval_cancelled_per_call")
async def cancelled_per_call(stage: Stage) -> None:
    stage.play(approving(mode="per_call"))
    await stage.send("hi")
    questions = waiting(stage)
    assert len(questions) == 2
    assert "does not fit" in await refused(stage, *[(each.id, {"type": "respond"}) for each in questions])
    events = await cancelled(stage, questions)
    assert events[-1].outcome.type == "success"  # type: ignore[union-attr]
    await stage.holds()


@scene("63_approval_that_allows_no_rejection")
async def no_rejection(stage: Stage) -> None:
    stage.play(approving("approve"))
    await stage.send("hi")
    [question] = waiting(stage)
    events = await cancelled(stage)
    assert events[-1].code == "invalid_input"  # type: ignore[union-attr]
    await stage.answer((question.id, {"decisions": [{"type": "approve"}] * 2}))
    await stage.holds()


def inbox(**allowed: bool) -> Any:
    """A node that asks in Agent Inbox's form, and repeats the answer."""
    request = {
        "action_request": {"action": "send", "args": {"to": "a"}},
        "config": {f"allow_{way}": allowed.get(way, True) for way in ("accept", "edit", "respond", "ignore")},
        "description": "Send it?",
    }

    async def ask(state: MessagesState) -> Any:
        [answer] = interrupt([request])
        return {"messages": [AIMessage(f"{answer['type']}: {answer['args']}", id="a1")]}

    return (
        StateGraph(MessagesState)
        .add_node("ask", ask)
        .add_edge(START, "ask")
        .compile(checkpointer=InMemorySaver())
    )


@scene("63_agent_inbox")
async def agent_inbox(stage: Stage) -> None:
    stage.play(inbox(edit=False))
    await stage.send("hi")
    [question] = waiting(stage)
    assert question.reason == "tool_approval"
    edit = {"type": "edit", "args": {"action": "send", "args": {}}}
    for wrong in ("yes", [], [edit], [{"type": "response", "args": 7}]):
        assert "does not fit" in await refused(stage, (question.id, wrong))
    await stage.answer((question.id, [{"type": "response", "args": "later"}]))
    assert stage.view["messages"][-1]["content"] == "response: later"
    await stage.holds()


@scene("63_agent_inbox_cancelled")
async def inbox_cancelled(stage: Stage) -> None:
    stage.play(inbox())
    await stage.send("hi")
    await cancelled(stage)
    assert stage.view["messages"][-1]["content"] == "ignore: None"
    await stage.holds()
