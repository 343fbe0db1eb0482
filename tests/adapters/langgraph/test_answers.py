"""Answers on their way to the graph: JSON sent as text is read, unless the question asks for text."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import Interrupt, ResumeEntry

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
