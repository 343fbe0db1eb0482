"""Answers in `forwardedProps.command.resume`: to the question that the client shows, checked like any other."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import Interrupt, ResumeEntry, RunAgentInput
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from runcast.adapters.errors import InvalidInput
from runcast.adapters.langgraph.intake.command import with_answers
from runcast.slim.folding.run_metadata import run_metadata
from tests.adapters.langgraph.stage import Stage
from tests.e2e.oracle import Oracle

TEXT = Interrupt(id="i1", reason="interrupt", message="Send?")
FORM = Interrupt(id="i2", reason="interrupt", metadata=run_metadata(value={"to": "x"}))


def asking(**props: Any) -> RunAgentInput:
    return RunAgentInput(thread_id="t", run_id="r", messages=[], forwarded_props=props)


def given(command: dict[str, Any], *pending: Interrupt) -> dict[str, Any]:
    entries = with_answers(asking(command=command), pending).resume or []
    return {entry.interrupt_id: entry.payload for entry in entries}


@pytest.mark.parametrize(
    ("answer", "read"), [("yes", "yes"), ('{"a": 1}', {"a": 1}), ("true", True), (False, False), ([1], [1])]
)
def test_the_only_question_is_meant_and_json_is_read(answer: Any, read: Any):
    assert given({"resume": answer}, TEXT) == {"i1": read}


def test_of_several_the_one_is_meant_that_the_client_shows():
    assert given({"resume": 1, "interruptEvent": '{"to": "x"}'}, TEXT, FORM) == {"i2": 1}
    assert given({"resume": 1, "interruptEvent": {"to": "x"}}, TEXT, FORM) == {"i2": 1}
    assert given({"resume": 1, "interruptEvent": "Send?"}, TEXT, FORM) == {"i1": 1}
    number = Interrupt(id="i3", reason="interrupt", message="7")
    assert given({"resume": 1, "interruptEvent": "7"}, TEXT, number) == {"i3": 1}
    assert given({"resume": {"i1": 1, "i2": 2}}, TEXT, FORM) == {"i1": 1, "i2": 2}
    with pytest.raises(
        InvalidInput, match="one answer to several questions: send `resume` entries for i1, i2"
    ):
        given({"resume": 1}, TEXT, FORM)


def test_what_is_no_answer_changes_nothing():
    entry = ResumeEntry(interrupt_id="i1", status="resolved", payload=1)
    own = asking(command={"resume": 2}).model_copy(update={"resume": [entry]})
    for input in (own, asking(command={"resume": None}), asking(command="resume"), asking()):
        assert with_answers(input, [TEXT]) is input
    with pytest.raises(InvalidInput, match=r"nothing waits for `command\.resume`"):
        given({"resume": 1})


def ask(state: MessagesState) -> dict[str, Any]:
    return {"messages": [("ai", f"got {interrupt({'question': 'Which?'})}")]}


@pytest.mark.oracle
async def test_a_graph_gets_the_answer(oracle: Oracle):
    builder = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask")
    stage = Stage(oracle).play(builder.compile(checkpointer=InMemorySaver()))
    await stage.send("hi")
    command = {"resume": '{"colour": "red"}', "interruptEvent": '{"question": "Which?"}'}
    events = await stage.send(None, forwarded_props={"command": command})
    assert events[-1].type == "RUN_FINISHED"
    await stage.holds()
    assert stage.view["messages"][-1]["content"] == "got {'colour': 'red'}"
    late = await stage.send(None, forwarded_props={"command": command})
    assert [event.type for event in late] == ["RUN_STARTED", "RUN_ERROR"]
