"""Spans and counters for OpenTelemetry, where its API package is installed, and the run's ids for log records.

Knows runs from the outside: their ids, agent, length and end. Holds nothing of their content.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any


def _optional(name: str) -> Any:
    try:
        return import_module(f"opentelemetry.{name}")
    except ImportError:
        return None


metrics, trace = _optional("metrics"), _optional("trace")
# Made once: it counts for the provider of the moment, also one that is set later.
RUNS = None if metrics is None else metrics.get_meter("runcast").create_counter("runcast.runs", description="runs by how they ended")  # fmt: skip
RUNNING: ContextVar[tuple[str, str]] = ContextVar("runcast.running", default=("-", "-"))


class RunIds(logging.Filter):
    """Gives each record the `thread_id` and `run_id` that it was logged in, agents' own records included; "-" elsewhere.

    Add it to a handler, and name the two in its format.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Accept every record."""
        record.thread_id, record.run_id = map(_quoted, RUNNING.get())
        return True


def _quoted(id: str) -> str:
    """An id that cannot begin another line of the log."""
    return id if id.isprintable() else repr(id)


class RunSpan:
    """The span of one run."""

    def __init__(self, span: Any) -> None:
        self._span = span

    def ended(self, *, status: str, events: int, code: str | None) -> None:
        """Record its status, its number of entries and its error code."""
        if self._span is None:
            return
        self._span.set_attributes({"runcast.status": status, "runcast.events": events})
        if code is not None:
            self._span.set_attribute("error.type", code)
        if RUNS is not None:
            RUNS.add(1, {"runcast.status": status})


@contextmanager
def run_span(agent: str, thread_id: str, run_id: str, attempt: int) -> Generator[RunSpan]:
    """A span around a run; what the agent's own libraries trace and log is inside it."""
    token = RUNNING.set((thread_id, run_id))
    try:
        yield from _span(agent, thread_id, run_id, attempt)
    finally:
        RUNNING.reset(token)


def _span(agent: str, thread_id: str, run_id: str, attempt: int) -> Generator[RunSpan]:
    if trace is None:
        yield RunSpan(None)
        return
    known = {"gen_ai.agent.name": agent, "gen_ai.conversation.id": thread_id, "runcast.run_id": run_id}
    tracer = trace.get_tracer("runcast")
    with tracer.start_as_current_span(
        "runcast.run", attributes={**known, "runcast.attempt": attempt}
    ) as span:
        yield RunSpan(span)
