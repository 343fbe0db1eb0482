"""Answers on their way to the graph: JSON sent as text is read, unless the question asks for text."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import Interrupt, ResumeEntry

from runcast.adapters.errors import InvalidInput
from runcast.adapters.langgraph import LangGraphOptions
from runcast.adapters.langgraph.intake.answers import answers

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
