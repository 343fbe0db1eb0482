"""Answers against the schemas that questions have."""

from __future__ import annotations

from typing import Any

import pytest

from runcast.adapters.json_schema import mismatch
from runcast.adapters.langgraph.interrupts import rejection, schema_of

NAMED = {"$defs": {"n": {"const": 1}}, "properties": {"a": {"$ref": "#/$defs/n"}}}
LOOP = {"$ref": "#/a", "a": {"$ref": "#/a"}}
DEEP: Any = {"properties": {"a": {"$ref": "#"}}, "type": "object"}
NESTED: Any = {}
for _ in range(100):
    NESTED = {"a": NESTED}


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ({"a": 1}, NAMED),
        ({"a": 1}, LOOP),
        (NESTED, DEEP),
        (1.0, {"type": "integer"}),
        (True, {"type": ["null", "boolean"]}),
        ("x", {"type": "unheard of"}),
        ("x", {"$ref": "elsewhere"}),
        ("x", True),
        ("x", {"enum": ["x", "y"]}),
        ({"b": 1}, {"properties": {"a": False}}),
        ([1, "x"], {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}),
        (None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (2, {"allOf": [{"type": "integer"}, {"enum": [2]}]}),
    ],
)
def test_what_fits(value: Any, schema: Any):
    assert mismatch(value, schema) is None


@pytest.mark.parametrize(
    ("value", "schema", "why"),
    [
        ({"a": 2}, NAMED, "the answer['a'] is not 1"),
        (True, {"type": "integer"}, "the answer is not of type integer"),
        (1, {"type": ["string", "null"]}, "the answer is not of type string or null"),
        ("z", {"enum": ["x", "y"]}, "the answer is not one of 'x', 'y'"),
        ({}, {"required": ["a"]}, "the answer has no 'a'"),
        ({"b": 1}, {"additionalProperties": False}, "the answer['b'] is not expected"),
        ([1], {"minItems": 2, "maxItems": 2}, "the answer has 1 items instead of 2"),
        ([1], {"minItems": 2, "maxItems": 3}, "the answer has 1 items instead of 2 to 3"),
        ([1, 2], {"prefixItems": [{}], "items": False}, "the answer[1] is not expected"),
        (1, {"oneOf": [{"type": "string"}, {"type": "null"}]}, "the answer is not of type string; or the answer is not of type null"),
        (3, {"allOf": [{"type": "integer"}, {"enum": [2]}]}, "the answer is not one of 2"),
    ],
)  # fmt: skip
def test_why_a_value_does_not_fit(value: Any, schema: Any, why: str):
    assert mismatch(value, schema) == why


def test_actions_with_different_decisions_have_a_schema_each():
    schema = schema_of(
        {
            "action_requests": [{"name": "a"}, {"name": "b"}],
            "review_configs": [{"action_name": "a", "allowed_decisions": ["approve"]}],
        }
    )
    assert schema is not None
    first, second = schema["properties"]["decisions"]["prefixItems"]
    assert first["properties"]["type"] == {"const": "approve"}
    assert len(second["oneOf"]) == 4


def test_other_questions_have_no_schema_and_no_rejection():
    for value in ("text", [], {"question": 1}, [{"action_request": {}}]):
        assert schema_of(value) is None
        assert rejection(value) is None
