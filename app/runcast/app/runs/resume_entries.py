"""Answers to an agent's questions: parsed, and checked against the open questions. Pure; does not know runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ag_ui.core import ResumeEntry

from runcast.app.errors import BadRequest

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
