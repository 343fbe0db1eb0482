"""Token usage of one run, summed per provider and model.

By the protocol's rule, parts (reasoning, cached) are inside the totals. Does not know where the numbers come from.
"""

from __future__ import annotations

from typing import Any

from ag_ui.core import Event, TextMessageContentEvent, TokenUsage

from runcast.slim.folding.run_metadata import run_metadata

_FIELDS = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "reasoning_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
)


class UsageTally:
    """Adds up what the models of a run report. A number that no model reported stays absent, never 0."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str | None, str | None], dict[str, int]] = {}

    def add(self, *, provider: str | None = None, model: str | None = None, **tokens: int | None) -> None:
        """Count one model call; the keywords are the fields of `TokenUsage`."""
        sums = self._sums.setdefault((provider, model), {})
        for field in _FIELDS:
            count = tokens.get(field)
            if count is not None and count >= 0:
                sums[field] = sums.get(field, 0) + count

    def rows(self) -> list[TokenUsage] | None:
        """One row per provider and model, in order of first use; None when nothing was reported."""
        rows = [_row(provider, model, sums) for (provider, model), sums in self._sums.items() if sums]
        return rows or None

    def total(self) -> int:
        """All tokens so far, for a status line."""
        return sum(sums.get("total_tokens", 0) for sums in self._sums.values())


def counted(events: list[Event], completion: int | None) -> list[Event]:
    """Note the output tokens of a message so far on the last text of these events."""
    if completion:
        for at, event in reversed(list(enumerate(events))):
            if isinstance(event, TextMessageContentEvent):
                note = run_metadata(usage={"completion": completion})
                return [*events[:at], event.model_copy(update={"metadata": note}), *events[at + 1 :]]
    return events


def _row(provider: str | None, model: str | None, sums: dict[str, int]) -> TokenUsage:
    fields: dict[str, Any] = dict(sums)
    if provider is not None:
        fields["provider"] = provider
    if model is not None:
        fields["model"] = model
    return TokenUsage(**fields)
