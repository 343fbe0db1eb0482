"""Scenes of graphs that ask, wait, and go on: interrupts, breakpoints, approvals."""

from __future__ import annotations

from typing import Any, Literal

from ag_ui.core import ResumeEntry
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from pydantic import BaseModel

from runcast.adapters.langgraph import LangGraphOptions
from tests.adapters.langgraph.fakes import StreamingModel, calls, piece, say
from tests.adapters.langgraph.scenes.book import add, agent, chat, scene
from tests.adapters.langgraph.stage import Stage, types


def waiting(stage: Stage) -> list[Any]:
    """The interrupts the last run ended with."""
    outcome = stage.runs[-1][-1].outcome
    assert outcome.type == "interrupt", outcome
    return list(outcome.interrupts)


class Decision(BaseModel):
    decision: Literal["yes", "no"]


def asking(*questions: Any, name: str = "ask", **settings: Any) -> Any:
    """A node that asks one question after the other, then says what it was told."""

    async def ask(state: MessagesState) -> Any:
        told = [interrupt(question, **settings) for question in questions]
        return {"messages": [AIMessage(f"{name}: {told}", id=f"{name}-said")]}

    return ask


def asker(*nodes: Any, **settings: Any) -> Any:
    builder = StateGraph(MessagesState)
    for at, node in enumerate(nodes):
        builder.add_node(f"n{at}", node).add_edge(START, f"n{at}")
    return builder.compile(checkpointer=InMemorySaver(), **settings)


@scene("43_one_interrupt")
async def one(stage: Stage) -> None:
    stage.play(
        asker(asking({"question": "Really?", "expires_at": "2999-01-01T00:00:00Z"}, response_schema=Decision))
    )
    await stage.send("hi")
    [asked] = waiting(stage)
    assert asked.message == "Really?"
    assert asked.response_schema["properties"]["decision"]["enum"] == ["yes", "no"]
    assert asked.expires_at.startswith("2999")
    await stage.holds()
    events = await stage.answer((asked.id, {"decision": "yes"}))
    assert events[-1].outcome.type == "success"
    assert events[0].metadata["runcast"]["resumed_from"] == "checkpoint"
    await stage.holds()


@scene("43_two_in_parallel")
async def two_in_parallel(stage: Stage) -> None:
    stage.play(asker(asking("A?", name="a"), asking("B?", name="b")))
    await stage.send("hi")
    first, second = waiting(stage)
    await stage.answer((first.id, 1), (second.id, 2))
    await stage.holds()


@scene("43_two_in_a_row")
async def two_in_a_row(stage: Stage) -> None:
    stage.play(asker(asking("A?", "B?")))
    await stage.send("hi")
    [first] = waiting(stage)
    await stage.answer((first.id, 1))
    [second] = waiting(stage)
    assert second.message == "B?"
    await stage.answer((second.id, 2))
    await stage.holds()


@tool
async def ask_first(text: str = "") -> str:
    """Ask before doing."""
    return f"told {interrupt('Do it?')}"


@scene("43_in_a_tool")
async def in_a_tool(stage: Stage) -> None:
    asked = calls(piece("ask_first", '{"text":"x"}', "c1", 0), piece("add", '{"a":1,"b":2}', "c2", 1))
    stage.play(agent([asked], say("done"), tools=[ask_first, add]))
    await stage.send("hi")
    [question] = waiting(stage)
    assert question.tool_call_id == "c1"
    await stage.holds(held=1)
    events = await stage.answer((question.id, "yes"))
    results = [event.tool_call_id for event in events if event.type == "TOOL_CALL_RESULT"]
    assert results == ["c1", "c2"]
    await stage.holds()


@scene("43_in_a_later_tool")
async def in_a_later_tool(stage: Stage) -> None:
    asked = calls(piece("add", '{"a":1,"b":2}', "c1", 0), piece("ask_first", '{"text":"x"}', "c2", 1))
    stage.play(agent([asked], say("done"), tools=[ask_first, add]))
    events = await stage.send("hi")
    assert "TOOL_CALL_RESULT" in types(events)
    await stage.holds()
    [question] = waiting(stage)
    await stage.answer((question.id, "yes"))
    await stage.holds()


@scene("43_in_a_subgraph")
async def in_a_subgraph(stage: Stage) -> None:
    inner = StateGraph(MessagesState).add_node("ask", asking("Deep?")).add_edge(START, "ask").compile()
    stage.play(asker(inner))
    await stage.send("hi")
    [question] = waiting(stage)
    await stage.answer((question.id, "yes"))
    await stage.holds()


@scene("43_in_a_subagent")
async def in_a_subagent(stage: Stage) -> None:
    inner = agent(
        [calls(piece("ask_first", "{}", "c9"))],
        say("sub"),
        tools=[ask_first],
        checkpointer=None,
        name="helper",
    )

    @tool("task")
    async def delegate(text: str = "") -> str:
        """Let another agent do it."""
        return str((await inner.ainvoke({"messages": [("user", text)]}))["messages"][-1].content)

    stage.play(agent([calls(piece("task", "{}", "c1"))], say("done"), tools=[delegate]))
    events = await stage.send("hi")
    [question] = waiting(stage)
    suspended = next(event for event in events if event.type == "SUBAGENT_FINISHED")
    assert suspended.outcome.interrupt_ids == [question.id]
    assert (question.subagent_run_id, question.tool_call_id) == (suspended.subagent_run_id, "c9")
    events = await stage.answer((question.id, "yes"))
    assert "SUBAGENT_FINISHED" in types(events)
    await stage.holds()


def approving(mode: Any = "batched") -> Any:
    middleware = HumanInTheLoopMiddleware(interrupt_on={"add": True}, interrupt_mode=mode)
    asked = [calls(piece("add", '{"a":1,"b":2}', "c1"), content="let me")]
    return agent(asked, say("done"), tools=[add], middleware=[middleware])


@scene("43_approval_middleware")
async def approval(stage: Stage) -> None:
    stage.play(approving())
    await stage.send("hi")
    [question] = waiting(stage)
    assert (question.reason, question.tool_call_id) == ("tool_approval", "c1")
    await stage.holds()
    await stage.answer((question.id, {"decisions": [{"type": "approve"}]}))
    await stage.holds()


@scene("43_approval_middleware_per_call")
async def approval_per_call(stage: Stage) -> None:
    stage.play(approving("per_call"))
    await stage.send("hi")
    [question] = waiting(stage)
    assert (question.reason, question.tool_call_id) == ("tool_approval", "c1")
    assert question.response_schema
    await stage.answer((question.id, {"type": "reject", "message": "no"}))
    await stage.holds()


@scene("43_approval_with_edit")
async def approval_with_edit(stage: Stage) -> None:
    stage.play(approving())
    await stage.send("hi")
    [question] = waiting(stage)
    edit = {"type": "edit", "edited_action": {"name": "add", "args": {"a": 5, "b": 5}}}
    await stage.answer((question.id, {"decisions": [edit]}))
    await stage.holds()


@scene("44_a_subset")
async def subset(stage: Stage) -> None:
    stage.play(asker(asking("A?", name="a"), asking("B?", name="b")))
    await stage.send("hi")
    first, second = waiting(stage)
    await stage.answer((second.id, 2))
    assert [each.id for each in waiting(stage)] == [first.id]
    await stage.answer((first.id, 1))
    await stage.holds()


@scene("44_null_and_false")
async def null_and_false(stage: Stage) -> None:
    stage.play(asker(asking("A?", name="a"), asking("B?", name="b")))
    await stage.send("hi")
    first, second = waiting(stage)
    await stage.answer((first.id, None))
    await stage.answer((second.id, False))
    assert "[None]" in str(stage.runs)
    assert "[False]" in str(stage.runs)
    await stage.holds()


@scene("44_cancelled")
async def cancelled(stage: Stage) -> None:
    stage.play(asker(asking("A?")))
    await stage.send("hi")
    [asked] = waiting(stage)
    await stage.send(None, resume=[ResumeEntry(interrupt_id=asked.id, status="cancelled")])
    assert "'cancelled': True, '__agui_cancelled__': True" in str(stage.runs[-1])
    await stage.holds()


@scene("44_wrong_id")
async def wrong_id(stage: Stage) -> None:
    stage.play(asker(asking("A?")))
    await stage.send("hi")
    [asked] = waiting(stage)
    for bad in ([("nobody", 1)], [(asked.id, 1), (asked.id, 2)]):
        events = await stage.answer(*bad)
        assert [event.type.value for event in events] == ["RUN_STARTED", "RUN_ERROR"]
        assert events[-1].code == "invalid_input"
    await stage.answer((asked.id, 1))
    await stage.holds()


@scene("44_twice")
async def twice(stage: Stage) -> None:
    stage.play(asker(asking("A?")))
    await stage.send("hi")
    [asked] = waiting(stage)
    await stage.answer((asked.id, 1))
    events = await stage.answer((asked.id, 1))
    assert events[-1].code == "invalid_input"
    await stage.holds()


@scene("44_expired")
async def expired(stage: Stage) -> None:
    stage.play(asker(asking({"message": "Quick!", "expires_at": "2001-01-01T00:00:00Z"})))
    await stage.send("hi")
    [asked] = waiting(stage)
    events = await stage.answer((asked.id, 1))
    assert "expired" in events[-1].message


@scene("45_a_call_is_not_told_twice")
async def not_told_twice(stage: Stage) -> None:
    stage.play(agent([calls(piece("ask_first", '{"text":"x"}', "c1"))], say("done"), tools=[ask_first]))
    await stage.send("hi")
    [asked] = waiting(stage)
    events = await stage.answer((asked.id, "yes"))
    assert not [name for name in types(events) if name in ("TOOL_CALL_START", "TOOL_CALL_ARGS")]
    await stage.holds()


@scene("46_breakpoint")
async def breakpoint_before(stage: Stage) -> None:
    stage.play(chat(say("Hel", "lo"), interrupt_before=["answer"]))
    await stage.send("hi")
    [asked] = waiting(stage)
    assert asked.id.startswith("breakpoint:")
    events = await stage.answer((asked.id, None))
    assert events[-1].outcome.type == "success"
    await stage.holds()


@scene("43_new_message_while_waiting")
async def new_message(stage: Stage) -> None:
    async def ask_once(state: MessagesState) -> Any:
        if len(state["messages"]) < 2:
            interrupt("A?")
        return {"messages": [AIMessage("went on", id="a1")]}

    stage.play(asker(ask_once))
    await stage.send("hi")
    waiting(stage)
    events = await stage.send("never mind")
    assert events[-1].outcome.type == "success"
    await stage.holds()


@scene("43_new_message_refused")
async def new_message_refused(stage: Stage) -> None:
    stage.play(asker(asking("A?")), options=LangGraphOptions(on_new_message="refuse"))
    await stage.send("hi")
    waiting(stage)
    events = await stage.send("never mind")
    assert events[-1].code == "invalid_input"


@scene("50_interrupt_without_a_checkpointer")
async def cannot_resume(stage: Stage) -> None:
    builder = StateGraph(MessagesState).add_node("ask", asking("A?")).add_edge(START, "ask")
    stage.play(builder.compile())
    events = await stage.send("hi")
    assert events[-1].code == "unanswerable"
    assert "compile it with one" in events[-1].message


__all__ = ["StreamingModel", "asker", "asking", "waiting"]
