"""Which questions a plain yes or no answers, and how: the AI SDK's approvals know nothing else. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ag_ui.core import Interrupt

from runcast.adapters.json_schema import mismatch
from runcast.slim.values.type_guards import as_mapping

APPROVALS = ("tool_approval", "tool_confirmation", "approval", "confirmation")  # reasons without a schema


def answer_to(asked: Interrupt, approved: bool, reason: str | None = None) -> Any:
    """The payload that says yes or no, with the reason where its schema has a place; None where neither fits."""
    schema = asked.response_schema
    if schema is None:
        return approved if asked.reason in APPROVALS else None
    if any(mismatch(anything, schema) is None for anything in ("", {"": ""}, [""])):
        return None  # an answer in words, or of any shape
    fitting = (each for each in _answers(schema, approved, reason) if mismatch(each, schema) is None)
    return next(fitting, None)


def _answers(schema: Any, approved: bool, reason: str | None) -> Iterator[Any]:
    """The known forms of a decision: a switch, a confirmation, one decision, and one for each of several actions."""
    yield approved
    properties = as_mapping(as_mapping(schema).get("properties"))
    named = {"reason": reason} if reason and "reason" in properties else {}
    for name in ("confirmed", "approved", "accepted"):
        if name in properties:
            yield {name: approved, **named}
    for yes, no, text in (("approve", "reject", "message"), ("accept", "ignore", "args")):
        decision = {"type": yes if approved else no}
        more = {text: reason} if reason and not approved else {}
        for one in ({**decision, **more}, decision):
            yield one
            for count in range(1, 21):
                yield {"decisions": [one] * count}
                yield [one] * count
