"""Answers on their way to the graph: JSON sent as text is read, unless the question asks for text."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import Interrupt, ResumeEntry

from runcast.adapters.errors import InvalidInput
from runcast.adapters.langgraph import LangGraphOptions
from runcast.adapters.langgraph.intake.answers import answers
from runcast.adapters.langgraph.interrupts import to_interrupt

OPTIONS = LangGraphOptions()


@pytest.mark.parametrize(
    ("payload", "schema", "answer"),
    [
        ('{"a": 1}', None, {"a": 1}),
        ("[1]", {"type": "array"}, [1]),
        ('{"a": 1}', {"type": "string"}, '{"a": 1}'),
        ("{no json", None, "{no json"),
        ("7", None, "7"),
    ],
)
def test_json_that_comes_as_text_is_read_unless_text_was_asked_for(payload: str, schema: Any, answer: Any):
    asked = Interrupt(id="i", reason="r", response_schema=schema)
    given = ResumeEntry(interrupt_id="i", status="resolved", payload=payload)
    assert answers([given], [asked], OPTIONS) == {"i": answer}


def test_a_breakpoint_in_a_log_is_answered_by_its_own_id():
    second = Interrupt(id="breakpoint:root:second", reason="breakpoint")
    first = ResumeEntry(interrupt_id="breakpoint:root:first", status="resolved", payload=True)
    with pytest.raises(InvalidInput, match="no interrupt 'breakpoint:root:first' waits"):
        answers([first], [second], OPTIONS)


def test_a_state_knows_a_breakpoint_by_the_root_alone():
    known = Interrupt(id="breakpoint:root", reason="breakpoint")
    given = ResumeEntry(interrupt_id="breakpoint:root:inside", status="resolved", payload=True)
    assert answers([given], [known], OPTIONS) is None
    with pytest.raises(InvalidInput, match="answered twice"):
        answers([given, given], [known], OPTIONS)


def test_a_question_takes_no_answer_that_leaves_the_breakpoint_beside_it_out():
    asked = Interrupt(id="i", reason="interrupt")
    gate = Interrupt(id="breakpoint:root:inside", reason="breakpoint")
    yes, go = (ResumeEntry(interrupt_id=each.id, status="resolved", payload=True) for each in (asked, gate))
    with pytest.raises(InvalidInput, match="go past 'breakpoint:root:inside'"):
        answers([yes], [asked, gate], OPTIONS)
    assert answers([yes, go], [asked, gate], OPTIONS) == {"i": True}
    assert answers([go], [asked, gate], OPTIONS) is None


APPROVAL = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}},
    "required": ["approved"],
}
TOOL_CALL = {"reason": "tool_call", "toolCallId": "fe-1", "name": "navigate", "args": {"path": "/x"}}


def test_a_question_in_the_protocol_s_own_words_keeps_them():
    """As graphs ask that were written for AG-UI's server for LangGraph: CopilotKit's middleware for tools of the page, say."""
    value = {**TOOL_CALL, "message": "Go?", "responseSchema": APPROVAL, "expiresAt": "2030-01-01T00:00:00Z"}
    made = to_interrupt({"id": "i", "value": value})
    assert (made.reason, made.tool_call_id, made.message) == ("tool_call", "fe-1", "Go?")
    assert (made.response_schema, made.expires_at) == (APPROVAL, "2030-01-01T00:00:00Z")
    snake = {"tool_call_id": "fe-2", "response_schema": APPROVAL, "expires_at": "2031-01-01T00:00:00Z"}
    other = to_interrupt({"id": "i", "value": {**value, **snake}})
    assert (other.tool_call_id, other.expires_at) == ("fe-2", "2031-01-01T00:00:00Z")


def test_the_schema_that_a_question_carries_is_for_answers_and_not_for_a_cancellation():
    asked = to_interrupt({"id": "i", "value": {**TOOL_CALL, "responseSchema": APPROVAL}})
    wrong = ResumeEntry(interrupt_id="i", status="resolved", payload={"approved": "perhaps"})
    with pytest.raises(InvalidInput, match="does not fit its `responseSchema`"):
        answers([wrong], [asked], OPTIONS)
    right = ResumeEntry(interrupt_id="i", status="resolved", payload={"approved": True})
    assert answers([right], [asked], OPTIONS) == {"i": {"approved": True}}
    never = ResumeEntry(interrupt_id="i", status="cancelled")
    assert answers([never], [asked], OPTIONS) == {
        "i": {"cancelled": True, "__agui_cancelled__": True, "interrupt_id": "i"}
    }
    assert answers([never], [asked], LangGraphOptions(cancelled_payload="no")) == {"i": "no"}


def test_a_cancellation_still_fits_the_schema_that_langgraph_knows():
    asked = to_interrupt({"id": "i", "value": "Go?", "response_schema": APPROVAL})
    with pytest.raises(InvalidInput, match="does not fit its `responseSchema`"):
        answers([ResumeEntry(interrupt_id="i", status="cancelled")], [asked], OPTIONS)
