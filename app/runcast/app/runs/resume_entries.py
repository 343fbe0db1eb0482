"""Answers to an agent's questions: parsed, and checked against the open questions. Pure; does not know runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ag_ui.core import ResumeEntry, RunAgentInput

from runcast.app.errors import BadRequest
from runcast.slim import RunInfo
from runcast.slim.values.type_guards import as_mapping

NAMED = 5  # ids in one error
Answers = Mapping[str, Any] | Sequence[ResumeEntry | Mapping[str, Any]]


def entries_in(answers: Answers | None) -> list[ResumeEntry]:
    """The answers as the protocol's resume entries."""
    if answers is None:
        return []
    if isinstance(answers, Mapping):
        return [
            ResumeEntry(interrupt_id=name, status="resolved", payload=payload)
            for name, payload in answers.items()
        ]
    try:
        return [
            each if isinstance(each, ResumeEntry) else ResumeEntry.model_validate(each) for each in answers
        ]
    except ValueError as error:
        raise BadRequest(
            'an answer is {"interruptId": …, "status": "resolved" or "cancelled", "payload": …}'
        ) from error


def under_its_own_id(
    input: RunAgentInput, runs: Sequence[RunInfo], new_id: Callable[[], str]
) -> RunAgentInput:
    """The input; an answer under the id of the run that asks, as CopilotKit's pages send it, begins a run of another id."""
    command = as_mapping(as_mapping(input.forwarded_props).get("command"))
    asks = bool(runs) and runs[-1].status == "interrupted" and runs[-1].run_id == input.run_id
    if asks and (input.resume or "resume" in command):
        return input.model_copy(update={"run_id": new_id()})
    return input


def check(entries: Sequence[ResumeEntry], waiting: set[str]) -> None:
    """Raise unless every open question is answered once, and no other."""
    given = [entry.interrupt_id for entry in entries]
    if len(set(given)) != len(given):
        raise BadRequest("a question is answered twice; answer each once")
    unknown, missing = set(given) - waiting, waiting - set(given)
    if unknown:
        raise BadRequest(
            f"no open question is called {', '.join(sorted(unknown)[:NAMED])}; "
            f"open questions: {', '.join(sorted(waiting)) or 'none'}"
        )
    if missing:
        raise BadRequest(f"answer these questions too, or cancel them: {', '.join(sorted(missing))}")
