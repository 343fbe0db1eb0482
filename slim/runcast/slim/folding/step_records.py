"""Keeps the steps of an agent: what each did, how long it took, what it cost.

Reads STEP_*, the events between them, and runcast's metadata where an adapter set some; without it, steps are counted here.
Numbers go on through all runs of a thread: a run's first step follows the last one of the run before. Does not know
messages or state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ag_ui.core import TokenUsage

from runcast.slim.folding.run_metadata import RunMetadata
from runcast.slim.values.type_guards import is_mapping

MOST = 2**53 - 1  # the largest number that every JSON reader reads exactly


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of the prompt, of the completion, and of both."""

    prompt: int = 0
    completion: int = 0
    total: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.prompt + other.prompt, self.completion + other.completion, self.total + other.total)

    def __sub__(self, other: Usage) -> Usage:
        return Usage(
            max(0, self.prompt - other.prompt),
            max(0, self.completion - other.completion),
            max(0, self.total - other.total),
        )

    def row(self) -> dict[str, int]:
        """As JSON."""
        return {"prompt": self.prompt, "completion": self.completion, "total": self.total}

    @classmethod
    def of_metadata(cls, value: Any) -> Usage | None:
        """From metadata `{"prompt", "completion", "total"}`; None for any other value."""
        if not is_mapping(value):
            return None
        prompt, completion = count(value.get("prompt")), count(value.get("completion"))
        return cls(prompt, completion, count(value.get("total"), prompt + completion))

    @classmethod
    def of_rows(cls, rows: Iterable[TokenUsage]) -> Usage:
        """From the rows of a terminal event, all models together."""
        total = cls()
        for row in rows:
            prompt, completion = row.input_tokens or 0, row.output_tokens or 0
            total += cls(
                prompt, completion, prompt + completion if row.total_tokens is None else row.total_tokens
            )
        return total


def count(value: Any, default: int = 0) -> int:
    """A number of 0 or more; the default for any other value."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return default
    return min(value, MOST)


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One finished step."""

    number: int
    type: str  # tool_execution, final, error
    name: str | None = None
    has_tool_calls: bool = False
    finish_reason: str | None = None
    errors: int = 0
    usage: Usage | None = None
    duration_ms: float | None = None
    tool_calls: tuple[tuple[str, str], ...] = ()  # id and name
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])  # fields of a newer writer


@dataclass(slots=True)
class _Open:
    """An open step."""

    number: int
    name: str
    at: int | None
    calls: dict[str, str] = field(default_factory=dict[str, str])
    results: int = 0
    errors: int = 0
    finish_reason: str | None = None
    usage: Usage | None = None


class StepBook:
    """Keeps the steps of a thread, run after run."""

    def __init__(self, records: Iterable[StepRecord] = (), count: int = 0) -> None:
        self.records = list(records)
        self.count = count  # finished so far
        self._before = count  # finished in earlier runs
        self._started = 0  # in this run
        self._open: dict[tuple[str | None, str], _Open] = {}

    def run_started(self) -> None:
        """Continue the count; steps that the run before left open are dropped."""
        self._before, self._started = self.count, 0
        self._open.clear()

    def run_ended(self, metadata: RunMetadata, at: int | None, *, failed: bool) -> None:
        """A failed run takes its open steps with it, as errors."""
        if failed:
            for key in list(self._open):
                self._close(key, {"errors": max(1, self._open[key].errors)}, at)
        self.count = max(self.count, self._before + count(metadata.get("step_count")))

    def started(self, owner: str | None, name: str, metadata: RunMetadata, at: int | None) -> None:
        """A step begins."""
        self._started += 1
        number = self._before + count(metadata.get("step_number"), self._started)
        self._open[owner, name] = _Open(number, name, at)

    def finished(self, owner: str | None, name: str, metadata: RunMetadata, at: int | None) -> None:
        """A step ends."""
        if (owner, name) in self._open:
            self._close((owner, name), metadata, at)

    def called(self, call_id: str, name: str) -> None:
        """The agent calls a tool."""
        if step := self._latest():
            step.calls[call_id] = name

    def answered(self, *, error: bool) -> None:
        """A tool has answered."""
        if step := self._latest():
            step.results += 1
            step.errors += error

    def message_ended(self, metadata: RunMetadata) -> None:
        """A message is complete; its end has the reason and the cost."""
        if step := self._latest():
            step.finish_reason = _text(metadata.get("finish_reason")) or step.finish_reason
            usage = Usage.of_metadata(metadata.get("usage"))
            if usage is not None:
                step.usage = usage if step.usage is None else step.usage + usage

    def _latest(self) -> _Open | None:
        return next(reversed(self._open.values()), None)

    def _close(self, key: tuple[str | None, str], metadata: RunMetadata, at: int | None) -> None:
        step = self._open.pop(key)
        errors = count(metadata.get("errors"), step.errors)
        calls = metadata.get("has_tool_calls")
        has_calls = calls if isinstance(calls, bool) else bool(step.calls)
        working = has_calls or step.results > 0
        self.count += 1
        self.records.append(
            StepRecord(
                number=step.number,
                type="error" if errors else "tool_execution" if working else "final",
                name=step.name,
                has_tool_calls=has_calls,
                finish_reason=_text(metadata.get("finish_reason")) or step.finish_reason,
                errors=errors,
                usage=Usage.of_metadata(metadata.get("usage")) or step.usage,
                duration_ms=None if at is None or step.at is None else float(max(0, at - step.at)),
                tool_calls=tuple(step.calls.items()),
            )
        )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
