"""Spans and counters for OpenTelemetry, where its API package is installed, and the run's ids for log records.

Spans follow OpenTelemetry's conventions for generative AI: `invoke_agent` around a run, `chat` and `execute_tool` inside it.
Knows a run's ids, agent, length, models, tools, tokens and end. Holds nothing of its content.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from ag_ui.core import (
    Event,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.slim.folding.run_metadata import RunMetadata, metadata_of
from runcast.slim.values.type_guards import is_mapping


def _optional(name: str) -> Any:
    try:
        return import_module(f"opentelemetry.{name}")
    except ImportError:
        return None


PROVIDERS = {  # by how a model's name begins: the well-known values of `gen_ai.provider.name`
    "claude": "anthropic",
    "command": "cohere",
    "deepseek": "deepseek",
    "gemini": "gcp.gemini",
    "gpt": "openai",
    "grok": "x_ai",
    "mistral": "mistral_ai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "sonar": "perplexity",
}
OWN = "runcast"  # the provider where no other is known
BROKEN = ("failed", "cancelled", "truncated")

metrics, trace = _optional("metrics"), _optional("trace")
# Made once: it counts for the provider of the moment, also one that is set later.
RUNS = None if metrics is None else metrics.get_meter("runcast").create_counter("runcast.runs", description="runs by how they ended")  # fmt: skip
TRACEPARENT = re.compile("00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
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


class JsonLines(logging.Formatter):
    """A log record as one line of JSON: time, level, logger, message, thread, run, trace, and the error's text."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        thread_id, run_id = RUNNING.get()
        found: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "thread_id": None if thread_id == "-" else thread_id,
            "run_id": None if run_id == "-" else run_id,
            "trace": None if trace is None else traceparent(trace.get_current_span()),
            "error": self.formatException(record.exc_info) if record.exc_info else None,
        }
        return json.dumps({name: value for name, value in found.items() if value is not None})


class RunSpan:
    """The span of one run, and those of its model calls and tools, which its events begin and end."""

    def __init__(self, span: Any, context: Any = None, shared: Mapping[str, str] | None = None) -> None:
        self._span = span
        self._context = context  # in which the inner spans are
        self._shared = shared or {}  # attributes of every one of them
        self._chats: dict[str, Any] = {}  # by the id of the message that the call writes
        self._writing: dict[str, set[str]] = {}  # its message and calls that are open
        self._calls: dict[str, tuple[str, str]] = {}  # a call's tool, and its message
        self._tools: dict[str, Any] = {}  # by call

    @property
    def traceparent(self) -> str | None:
        """The run's place in its trace, as W3C Trace Context writes it; None where nothing is traced."""
        return None if self._span is None else traceparent(self._span)

    def feed(self, event: Event) -> None:
        """Begin or end the span that this event is about."""
        if self._span is None or not self._span.is_recording():
            return
        match event:
            case TextMessageStartEvent() if event.role not in ("user", "system", "developer"):
                self._write(event.message_id, event.message_id)
            case TextMessageEndEvent():
                self._written(event.message_id, event.message_id, metadata_of(event))
            case ToolCallStartEvent():
                message = event.parent_message_id or event.tool_call_id
                self._calls[event.tool_call_id] = (event.tool_call_name, message)
                self._write(message, event.tool_call_id)
            case ToolCallEndEvent() if event.tool_call_id in self._calls:
                name, message = self._calls.pop(event.tool_call_id)
                self._written(message, event.tool_call_id, metadata_of(event))
                known = {"name": name, "call.id": event.tool_call_id, "type": "function"}
                tool = {f"gen_ai.tool.{each}": value for each, value in known.items()}
                self._tools[event.tool_call_id] = self._begin("execute_tool", name, tool)
            case ToolCallResultEvent():
                self._close_chats()
                tool = self._tools.pop(event.tool_call_id, None)
                if tool is not None:
                    if metadata_of(event).get("error") is True:
                        _failed(tool, "tool_error")
                    tool.end()
            case _:
                pass

    def _begin(self, operation: str, name: str, known: dict[str, Any]) -> Any:
        attributes = {"gen_ai.operation.name": operation, **self._shared, **known}
        kind = trace.SpanKind.CLIENT if operation == "chat" else trace.SpanKind.INTERNAL
        return trace.get_tracer("runcast").start_span(
            f"{operation} {name}".rstrip(), context=self._context, kind=kind, attributes=attributes
        )

    def _write(self, message: str, part: str) -> None:
        """A model writes a message or a call of one."""
        for other in [each for each in self._chats if each != message and not self._writing[each]]:
            self._chats.pop(other).end()
        if message not in self._chats:
            self._chats[message] = self._begin("chat", "", {"gen_ai.provider.name": OWN})
            self._writing[message] = set()
        self._writing[message].add(part)

    def _written(self, message: str, part: str, facts: RunMetadata) -> None:
        chat = self._chats.get(message)
        if chat is None:
            return
        self._writing[message].discard(part)
        model, usage, reason = (facts.get(each) for each in ("model", "usage", "finish_reason"))
        if isinstance(model, str):
            chat.update_name(f"chat {model}")
            chat.set_attribute("gen_ai.response.model", model)
            chat.set_attribute("gen_ai.provider.name", provider_of(model))
        if isinstance(reason, str):
            chat.set_attribute("gen_ai.response.finish_reasons", [reason])
        for name, count in zip(("input", "output"), _counts(usage), strict=False):
            chat.set_attribute(f"gen_ai.usage.{name}_tokens", count)

    def _close_chats(self) -> None:
        for chat in self._chats.values():
            chat.end()
        self._chats.clear()

    def ended(
        self, *, status: str, events: int, code: str | None, usage: Sequence[TokenUsage] | None = None
    ) -> None:
        """Record its status, its number of entries, its error code and its tokens; end what is open."""
        if RUNS is not None:
            RUNS.add(1, {"runcast.status": status})
        if self._span is None:
            return
        self._close_chats()
        for tool in self._tools.values():  # no result came: a client answers, or the run broke
            if status in BROKEN:
                _failed(tool, status)
            tool.end()
        self._span.set_attributes({"runcast.status": status, "runcast.events": events})
        for name in ("input_tokens", "output_tokens") if usage else ():
            total = sum(getattr(each, name) or 0 for each in usage or ())
            self._span.set_attribute(f"gen_ai.usage.{name}", total)
        if code is not None:
            _failed(self._span, code)


def provider_of(model: str) -> str:
    """The well-known provider of a model, as far as its name tells; a path before the name is left out."""
    name = model.rpartition("/")[2].lower()
    return next((known for begins, known in PROVIDERS.items() if name.startswith(begins)), OWN)


def _failed(span: Any, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(trace.StatusCode.ERROR)


def _counts(usage: Any) -> list[int]:
    """Tokens in and out, of a message's usage."""
    found: list[Any] = [usage.get(name) for name in ("prompt", "completion")] if is_mapping(usage) else []
    return [each for each in found if isinstance(each, int)] if None not in found else []


def traceparent(span: Any) -> str | None:
    """A span as W3C Trace Context writes it; None when it belongs to no trace."""
    found = span.get_span_context()
    if not found.is_valid:
        return None
    return f"00-{found.trace_id:032x}-{found.span_id:016x}-{int(found.trace_flags):02x}"


def _is_traced() -> bool:
    """Whether a span would have a place in a trace: a program has set a provider, or is in a trace of another's."""
    if trace is None:
        return False
    if type(trace.get_tracer_provider()) is not trace.ProxyTracerProvider:
        return True
    return trace.get_current_span() is not trace.INVALID_SPAN


@contextmanager
def run_span(
    agent: str,
    thread_id: str,
    run_id: str,
    attempt: int,
    *,
    before: object = None,
) -> Generator[RunSpan]:
    """A span around a run; what the agent's own libraries trace and log is inside it. It is linked with the span
    `before`, a traceparent: the attempt that this run resumes."""
    token = RUNNING.set((thread_id, run_id))
    try:
        if not _is_traced():
            yield RunSpan(None)
            return
        known = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": OWN,
            **(shared := {"gen_ai.agent.name": agent, "gen_ai.conversation.id": thread_id}),
            "runcast.run_id": run_id,
            "runcast.attempt": attempt,
        }
        tracer = trace.get_tracer("runcast")
        with tracer.start_as_current_span(
            f"invoke_agent {agent}", attributes=known, links=_links(before)
        ) as span:
            yield RunSpan(span, trace.set_span_in_context(span), shared)
    finally:
        RUNNING.reset(token)


def _links(before: object) -> list[Any]:
    """A link with the span that a traceparent names; none for any other value."""
    found = TRACEPARENT.fullmatch(before) if isinstance(before, str) else None
    if found is None:
        return []
    trace_id, span_id, flags = (int(each, 16) for each in found.groups())
    context = trace.SpanContext(trace_id, span_id, is_remote=True, trace_flags=trace.TraceFlags(flags))
    return [trace.Link(context, {"runcast.link": "resumes"})]
