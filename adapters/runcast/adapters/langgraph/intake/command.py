"""Answers in the form of clients that know LangGraph and not the protocol's `resume`: `forwardedProps.command.resume`.

CopilotKit's `useLangGraphInterrupt` and `useInterrupt` send it, as they do to ag-ui-langgraph, with the question's value
beside it (`interruptEvent`). Pure: turns it into the protocol's entries, which are checked like any others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ag_ui.core import Interrupt, ResumeEntry, RunAgentInput

from runcast.adapters.errors import InvalidInput
from runcast.adapters.langgraph.interrupts import asked_value
from runcast.slim.values.type_guards import as_mapping, is_object


def with_answers(input: RunAgentInput, pending: Sequence[Interrupt]) -> RunAgentInput:
    """The input with its command's answer as `resume`. The protocol's own field counts first; null is no answer.

    Raises `InvalidInput` for an answer without a question, and for one that may be to several.
    """
    command = as_mapping(as_mapping(input.forwarded_props).get("command"))
    if input.resume or command.get("resume") is None:
        return input
    if not pending:  # without this, the messages beside it would be answered again
        raise InvalidInput("nothing waits for `command.resume` in this thread: send a message instead")
    answer = _parsed(command["resume"])
    waiting = [each.id for each in pending]
    if (
        is_object(answer) and answer.keys() and answer.keys() <= set(waiting)
    ):  # as `Command(resume={id: value})`
        given: Mapping[str, Any] = answer
    else:
        given = {_meant(command.get("interruptEvent"), pending): answer}
    entries = [
        ResumeEntry(interrupt_id=key, status="resolved", payload=value) for key, value in given.items()
    ]
    return input.model_copy(update={"resume": entries})


def _meant(asked: Any, pending: Sequence[Interrupt]) -> str:
    """The question that the client shows: the only one, or the one with this value. Equal ones are answered in turn."""
    meant = [
        each.id for each in pending if asked is not None and asked_value(each) in (asked, _parsed(asked))
    ]
    if meant or len(pending) == 1:
        return meant[0] if meant else pending[0].id
    waiting = ", ".join(each.id for each in pending)
    raise InvalidInput(
        f"`command.resume` is one answer to several questions: send `resume` entries for {waiting}"
    )


def _parsed(value: Any) -> Any:
    """Clients send values as JSON text too; other text is itself."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
