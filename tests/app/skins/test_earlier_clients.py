"""Runs as clients before 1.0 read them: their own reader takes every event, and nothing else is changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ag_ui.core import (
    CustomEvent,
    Interrupt,
    MessagesSnapshotEvent,
    RunAgentInput,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextInputContent,
    ToolCallResultEvent,
    ToolMessage,
    UserMessage,
)

from runcast.app.skins.earlier_clients import (
    earlier,
    form_of,
    joined,
    with_on_interrupt,
    without_subagents,
)
from runcast.slim import decode, verify
from tests.e2e.oracle import Oracle
from tests.house.tree import ROOT

STARTED = decode(b'{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1.0"}')


def finished(outcome: Any, **more: Any) -> RunFinishedEvent:
    return RunFinishedEvent(thread_id="t", run_id="r", outcome=outcome, **more)


def asked(id: str = "i", **fields: Any) -> Interrupt:
    return Interrupt(id=id, reason="interrupt", **fields)


@pytest.mark.oracle
def test_the_reader_of_0_0_59_takes_what_it_would_refuse(oracle: Oracle):
    refused = [
        finished(RunFinishedCancelledOutcome(), metadata={"k": 1}),
        finished(RunFinishedSuccessOutcome(pending_tool_call_ids=["c"]), result=7),
        ToolCallResultEvent(message_id="m", tool_call_id="c", content=[TextInputContent(text="å")]),
    ]
    for event in refused:
        end = [] if isinstance(event, RunFinishedEvent) else [finished(None)]
        assert not oracle.earlier([STARTED, event, *end])["ok"]
        (changed,) = earlier(event)
        assert oracle.earlier([STARTED, changed, *end])["ok"]
        same = {"metadata", "result", "tool_call_id"} & event.model_fields_set
        assert all(getattr(changed, name) == getattr(event, name) for name in same)
        if isinstance(changed, ToolCallResultEvent):
            assert json.loads(str(changed.content)) == [{"type": "text", "text": "å"}]


@pytest.mark.oracle
def test_results_of_several_parts_are_text_in_histories_too(oracle: Oracle):
    result = ToolMessage(id="m", tool_call_id="c", content=[TextInputContent(text="x")])
    said = [UserMessage(id="u", content="hi"), result]
    echo = RunAgentInput(thread_id="t", run_id="r", messages=said, tools=[], context=[])
    started = RunStartedEvent(thread_id="t", run_id="r", input=echo)
    stream = [started, MessagesSnapshotEvent(messages=said), finished(None)]
    assert not oracle.earlier(stream)["ok"]
    changed = [each for event in stream for each in earlier(event)]
    assert oracle.earlier(changed)["ok"]
    assert not oracle.earlier([changed[0], *stream[1:]])["ok"]
    assert [each.content for each in said] == ["hi", result.content]  # what is stored stays


@pytest.mark.parametrize("form", [earlier, with_on_interrupt])
def test_success_is_left_out(form: Any):
    """assistant-ui goes on with a page's own tool result only after an end that names no outcome."""
    assert form(finished(RunFinishedSuccessOutcome(), result=7)) == [
        RunFinishedEvent(thread_id="t", run_id="r", result=7)
    ]


@pytest.mark.parametrize("form", [earlier, with_on_interrupt])
def test_other_events_are_themselves(form: Any):
    plain = [STARTED, finished(None)]
    plain.append(ToolCallResultEvent(message_id="m", tool_call_id="c", content="text"))
    assert [form(event) for event in plain] == [[event] for event in plain]
    if form is earlier:
        question = finished(RunFinishedInterruptOutcome(interrupts=[asked()]))
        assert earlier(question) == [question]


@pytest.mark.oracle
def test_questions_are_custom_events_as_ag_ui_langgraph_sends_them(oracle: Oracle):
    """`dump_json_safe`: a text is itself, any other value is JSON."""
    interrupts = [
        asked("a", message="Send?"),
        asked("b", metadata={"runcast": {"value": {"to": ["x"]}}}, subagent_run_id="s"),
        asked("c"),
    ]
    *custom, end = with_on_interrupt(finished(RunFinishedInterruptOutcome(interrupts=interrupts)))
    assert all(isinstance(each, CustomEvent) and each.name == "on_interrupt" for each in custom)
    values = [each.value for each in custom if isinstance(each, CustomEvent)]
    assert values == ["Send?", '{"to":["x"]}', '{"id":"c","reason":"interrupt"}']
    assert [each.subagent_run_id for each in custom if isinstance(each, CustomEvent)] == [None, "s", None]
    assert "outcome" not in end.model_dump(by_alias=True, exclude_unset=True)
    assert oracle.earlier([STARTED, *custom, end])["ok"]


def test_the_form_is_the_clients_own():
    stated = RunAgentInput(thread_id="t", run_id="r", messages=[], protocol_version="1.0")
    silent = stated.model_copy(update={"protocol_version": None})
    assert form_of(stated) is None
    assert form_of(silent) is earlier


RECORDED = sorted((ROOT / "tests" / "adapters").glob("*/recordings/*.events"))


def test_no_recording_has_a_subagent_or_a_step_twice_for_clients_that_know_none():
    """By the rules of 0.0.45, which was asked about all of them: it has one lane of steps, and types that it does not know end it."""
    form = joined(without_subagents, earlier)
    assert form is not None
    hidden = 0
    for path in RECORDED:
        events = [decode(line) for line in path.read_bytes().splitlines() if line]
        shown = [each for event in events for each in form(event)]
        hidden += len(events) - len(shown)
        steps: set[str] = set()
        for event in shown:
            assert not event.type.startswith("SUBAGENT_")
            if event.type in ("RUN_STARTED", "RUN_ERROR"):
                steps.clear()
            elif isinstance(event, StepStartedEvent):
                assert event.step_name not in steps, path.name
                steps.add(event.step_name)
            elif isinstance(event, StepFinishedEvent):
                steps.remove(event.step_name)
        assert verify(shown, "client") == [], path.name
    assert hidden > 100


def test_what_subagents_do_is_hidden_and_what_they_ask_is_not():
    question = finished(RunFinishedInterruptOutcome(interrupts=[asked(subagent_run_id="s")]))
    held = [
        UserMessage(id="u", content="hi"),
        ToolMessage(id="m", tool_call_id="c", content="x", subagent_run_id="s"),
    ]
    snapshot, plain = MessagesSnapshotEvent(messages=held), MessagesSnapshotEvent(messages=held[:1])
    assert without_subagents(question) == [question]
    assert without_subagents(plain) == [plain]
    [cut] = without_subagents(snapshot)
    assert isinstance(cut, MessagesSnapshotEvent)
    assert [each.id for each in cut.messages] == ["u"]
    assert without_subagents(CustomEvent(name="x", value=1, subagent_run_id="s")) == []
    assert joined(None, None) is None
    assert joined(None, earlier) is earlier
