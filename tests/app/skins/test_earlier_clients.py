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
    TextInputContent,
    ToolCallResultEvent,
    ToolMessage,
    UserMessage,
)

from runcast.app.skins.earlier_clients import earlier, form_of, with_on_interrupt
from runcast.slim import decode
from tests.e2e.oracle import Oracle

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
def test_other_events_are_themselves(form: Any):
    plain = [STARTED, finished(RunFinishedSuccessOutcome()), finished(None)]
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
    assert form_of(stated, on_interrupt=True) is form_of(silent, on_interrupt=True) is with_on_interrupt
