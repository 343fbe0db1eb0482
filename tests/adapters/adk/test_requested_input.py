"""Answers to a workflow's questions: what the schema lets pass reaches the node, what it does not is refused."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.events.request_input import RequestInput
from google.adk.workflow import START, Workflow

from runcast.adapters.adk.requested_input import refusal, requested
from tests.adapters.adk.stage import Act, Stage
from tests.e2e.oracle import Oracle

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "more": {}},
    "required": ["name"],
}


def asking(schema: dict[str, Any]) -> Workflow:
    def who(node_input: Any) -> Any:
        yield RequestInput(message="Who?", response_schema=schema)

    def told(node_input: Any) -> str:
        return f"{node_input!r}"

    return Workflow(name="wf", edges=[(START, who, told)])


@pytest.mark.parametrize(
    ("schema", "payload", "told"),
    [
        ({"type": "string"}, "42", "'42'"),  # ADK alone reads a number, and fails
        ({"type": "string"}, "Bob", "'Bob'"),
        ({"type": "boolean"}, "true", "True"),
        (PERSON, '{"name": "Bob"}', "{'name': 'Bob', 'age': None, 'more': None}"),
        ({"type": "integer"}, "42", "42"),
        (PERSON, {"name": "Bob"}, "{'name': 'Bob', 'age': None, 'more': None}"),
    ],
)
async def test_an_answer_reaches_the_node_as_the_schema_says(schema: Any, payload: Any, told: str):
    stage = Stage(asking(schema))
    await stage.say("hi")
    run = await stage.answer({stage.interrupts[0].id: payload})
    assert run[-1].result == told  # type: ignore[union-attr]


@pytest.mark.oracle
async def test_an_answer_that_does_not_fit_leaves_the_question_open(oracle: Oracle):
    stage = Stage(asking(PERSON))
    await stage.say("hi")
    (asked,) = stage.interrupts
    before = await stage.session()
    run = await stage.answer({asked.id: {"age": 3}})
    assert run[-1].type.value == "RUN_ERROR"
    assert "does not fit its `responseSchema`: 'name' is missing" in run[-1].message  # type: ignore[union-attr]
    assert await stage.session() == before
    again = await stage.answer({asked.id: {"name": "Bob"}})
    assert "Bob" in again[-1].result  # type: ignore[union-attr]
    stage.judge(oracle)


async def test_a_cancelled_question_of_yes_or_no_is_answered_with_no():
    stage = Stage(asking({"type": "boolean"}))
    await stage.say("hi")
    run = await stage.turn(Act.CANCEL)
    assert run[-1].result == "False"  # type: ignore[union-attr]


async def test_a_question_without_a_form_for_a_refusal_is_let_go_by_a_message():
    stage = Stage(asking({"type": "string"}))
    await stage.say("hi")
    (asked,) = stage.interrupts
    run = await stage.turn(Act.CANCEL)
    assert "answer it, or send a message" in run[-1].message  # type: ignore[union-attr]
    run = await stage.say("hi again", resume=[{"interruptId": asked.id, "status": "cancelled"}])
    assert [it.message for it in stage.interrupts] == ["Who?"]
    assert stage.interrupts[0].id != asked.id


@pytest.mark.parametrize(
    ("payload", "schema", "why"),
    [
        ("x", {"type": "integer"}, "it is no integer"),
        ({"name": 3}, PERSON, "'name' is no string"),
        ({"name": None}, PERSON, "'name' is no string"),
        ({"result": "x"}, {"type": "boolean"}, "it is no boolean"),
        ([], PERSON, "it is no object"),
    ],
)
def test_what_does_not_fit(payload: Any, schema: Any, why: str):
    with pytest.raises(ValueError, match=f"^{why}$"):
        requested(payload, schema)


@pytest.mark.parametrize(
    ("payload", "schema", "body"),
    [
        ("x", None, {"result": "x"}),
        ({"a": 1}, None, {"a": 1}),
        (None, {"type": ["string", "null"]}, {"result": None}),
        ("x", {"type": "anything"}, {"result": "x"}),
        ({"name": "x", "age": None}, PERSON, {"name": "x", "age": None}),
        ({"a": 1}, {"type": "object", "required": ["b"]}, {"a": 1}),  # as ADK: no properties, no check
        ("true", {"type": "string"}, {"result": '"true"'}),
        ({"result": "Bob"}, {"type": "string"}, {"result": "Bob"}),
    ],
)
def test_what_fits(payload: Any, schema: Any, body: Any):
    assert requested(payload, schema) == body


@pytest.mark.parametrize(
    ("schema", "body"),
    [
        (None, {"error": "The user cancelled this request."}),
        ({"type": "object"}, {"error": "The user cancelled this request."}),
        ({"type": "boolean"}, {"result": False}),
        ({"type": "integer"}, None),
        (PERSON, None),
    ],
)
def test_refusals(schema: Any, body: Any):
    assert refusal(schema) == body
