"""Why a run goes on or stops: the criteria that hold, in the words that all adapters use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

CRITERIA: Mapping[str, str] = {
    "calls_pending": "continue",  # names of tools that run now
    "transfer": "continue",  # agents that the model handed over to
    "next": "continue",  # nodes that a graph runs next
    "interrupt": "stop",  # questions that wait for an answer
    "limit": "stop",  # the model's or the framework's limit that was reached
}


def continuation(
    continues: bool, resolved_by: str, stop_reason: str | None, /, **why: Iterable[str]
) -> dict[str, Any]:
    """A decision as metadata. `why` has the reasons of each criterion; one without a reason does not hold."""
    decided: dict[str, Any] = {"should_continue": continues, "resolved_by": resolved_by}
    if stop_reason is not None:
        decided["stop_reason"] = stop_reason
    evaluations = [
        {"criterion": name, "decision": decision, "reason": ", ".join(reasons)}
        for name, decision in CRITERIA.items()
        if (reasons := list(why.get(name, ())))
    ]
    return decided | ({"evaluations": evaluations} if evaluations else {})
