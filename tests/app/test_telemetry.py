"""Spans and counters of runs, as an OpenTelemetry SDK collects them, and records that say which run they are of."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import (
    Event,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    TokenUsage,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from runcast.app import Cast
from runcast.app.demo.worker import agent as agent_of
from runcast.app.telemetry import JsonLines, RunIds, RunSpan, provider_of, run_span
from runcast.slim.folding.run_metadata import METADATA_KEY
from tests.app.agents import Gated, asker, parrot, said
from tests.app.nodes.stage import ask


@pytest.fixture
def spans() -> Callable[[str], list[ReadableSpan]]:
    """The finished spans of a thread, inner ones after theirs, as an exporter of this process collects them."""
    exporter = InMemorySpanExporter()
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    def found(thread_id: str) -> list[ReadableSpan]:
        every = [  # ADK traces itself, too
            each
            for each in exporter.get_finished_spans()
            if each.instrumentation_scope is not None and each.instrumentation_scope.name == "runcast"
        ]
        runs = [
            each
            for each in every
            if each.name.startswith("invoke_agent")
            and dict(each.attributes or {}).get("gen_ai.conversation.id") == thread_id
        ]
        ids = {each.context.span_id for each in runs if each.context}
        return [*runs, *(each for each in every if each.parent and each.parent.span_id in ids)]

    return found


async def test_a_run_is_a_span_that_says_how_it_ended_and_not_what_was_said(
    spans: Callable[[str], list[ReadableSpan]],
) -> None:
    async with Cast.open("memory://", agents=[parrot]) as cast:
        run = await cast.say("told", "a secret")
        await run.result()
    span, chat = spans("told")
    attributes = dict(span.attributes or {})
    assert span.name == "invoke_agent parrot"
    assert attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "runcast",
        "gen_ai.agent.name": "parrot",
        "gen_ai.conversation.id": "told",
        "runcast.run_id": run.run_id,
        "runcast.attempt": 1,
        "runcast.status": "completed",
        "runcast.events": 8,
    }
    shared = {"gen_ai.agent.name": "parrot", "gen_ai.conversation.id": "told"}
    assert dict(chat.attributes or {}) == {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "runcast", **shared
    }  # fmt: skip
    assert (span.kind, chat.kind) == (trace.SpanKind.INTERNAL, trace.SpanKind.CLIENT)
    assert "secret" not in str((attributes, chat.attributes))


def facts(**values: Any) -> dict[str, Any]:
    return {METADATA_KEY: values}


async def worker(input: RunAgentInput) -> AsyncIterator[Event]:
    """Two model calls: one that calls two tools, of which one fails and one never answers, and one that speaks."""
    yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
    for name in ("look", "fail", "wait"):
        yield ToolCallStartEvent(tool_call_id=name, tool_call_name=name, parent_message_id="m1")
        ended = facts(
            model="large", usage={"prompt": 7, "completion": 3, "total": 10}, finish_reason="tool_calls"
        )
        yield ToolCallEndEvent(tool_call_id=name, metadata=ended)
    yield ToolCallResultEvent(message_id="x1", tool_call_id="look", content="found")
    yield ToolCallResultEvent(message_id="x2", tool_call_id="fail", content="no", metadata=facts(error=True))
    for event in said(input.run_id, "done"):
        yield event
    usage = [TokenUsage(model="large", input_tokens=20, output_tokens=5)]
    yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id, usage=usage)


async def test_model_calls_and_tools_are_spans_inside_the_run(
    spans: Callable[[str], list[ReadableSpan]],
) -> None:
    async with Cast.open("memory://", agents=[worker]) as cast:
        await (await cast.say("working", "go")).result()
    run, *inner = spans("working")
    told = dict(run.attributes or {})
    assert (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"]) == (20, 5)
    named = {each.name: dict(each.attributes or {}) for each in inner}
    assert named.keys() == {
        "chat large",
        "chat",
        "execute_tool look",
        "execute_tool fail",
        "execute_tool wait",
    }
    assert named["chat large"] == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "runcast",
        "gen_ai.agent.name": "worker",
        "gen_ai.conversation.id": "working",
        "gen_ai.response.model": "large",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
    }
    assert named["execute_tool look"] == {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.call.id": "look",
        "gen_ai.tool.type": "function", "gen_ai.agent.name": "worker", "gen_ai.conversation.id": "working",
    }  # fmt: skip
    assert named["execute_tool fail"]["error.type"] == "tool_error"
    assert "error.type" not in named["execute_tool wait"], "a client may answer it"
    states = {each.name: each.status.status_code for each in inner}
    assert [name for name, state in states.items() if state is trace.StatusCode.ERROR] == [
        "execute_tool fail"
    ]
    assert all(each.end_time for each in inner)


async def test_a_resumed_run_is_linked_with_the_attempt_that_was_killed(
    spans: Callable[[str], list[ReadableSpan]],
) -> None:
    gated = Gated(2)
    async with Cast.open("memory://", agents=[gated]) as cast:
        run = await cast.start(gated, ask(thread_id="killed"))
        await run.abandon()
        await cast.log.recovery.abandon("killed")  # as if its lease had expired
        gated.open()
        resumed = await cast.resume("killed")
        assert (await resumed.result()).status == "completed"
        assert (await cast.log.runs("killed"))[-1].attempt == 2
    first, second = sorted(
        (each for each in spans("killed") if each.name.startswith("invoke_agent")),
        key=lambda each: each.start_time or 0,
    )
    (link,) = second.links
    assert first.context is not None
    assert (link.context.trace_id, link.context.span_id) == (first.context.trace_id, first.context.span_id)
    assert first.links == ()


@pytest.mark.parametrize("before", [None, 7, "", "00-0-0-01", "00-" + "0" * 32 + "-" + "0" * 16 + "-zz"])
def test_what_is_no_traceparent_links_nothing(before: object) -> None:
    with run_span("agent", "t", "r", 1, before=before) as span:
        assert span.traceparent is None or len(span.traceparent) == 55


async def test_a_log_line_is_json_with_its_run_and_trace(spans: Callable[[str], list[ReadableSpan]]) -> None:
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    handler = Kept()
    handler.setFormatter(JsonLines())
    own = logging.getLogger("somebody.json")
    own.addHandler(handler)
    try:
        with run_span("agent", "t\n1", "r1", 1) as span:
            try:
                raise ValueError("why")
            except ValueError:
                own.exception("it %s", "broke")
        own.warning("outside")
    finally:
        own.removeHandler(handler)
    inside, outside = map(json.loads, lines)
    assert (inside["level"], inside["logger"], inside["message"]) == ("error", "somebody.json", "it broke")
    assert (inside["thread_id"], inside["run_id"], inside["trace"]) == ("t\n1", "r1", span.traceparent)
    assert "ValueError: why" in inside["error"]
    assert outside.keys() == {"time", "level", "logger", "message"}
    assert all("\n" not in line for line in lines)


def test_without_the_package_nothing_is_told() -> None:
    RunSpan(None).ended(status="completed", events=1, code=None)


def test_without_a_provider_a_run_has_no_span_but_the_place_of_its_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    with run_span("a", "t", "r", 1) as span:
        assert span.traceparent is None
        assert trace.get_current_span() is trace.INVALID_SPAN
    caller = trace.NonRecordingSpan(trace.SpanContext(1, 2, is_remote=True))
    with trace.use_span(caller), run_span("a", "t", "r", 1) as span:
        assert span.traceparent == f"00-{1:032x}-{2:016x}-00"


@pytest.fixture(scope="module")
def reader() -> InMemoryMetricReader:
    """What a process has one of, set after the app was imported, as programs do."""
    it = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider([it]))
    return it


def counted(reader: InMemoryMetricReader) -> Counter[str]:
    """How many runs ended how, so far in this process."""
    data = reader.get_metrics_data()
    found: Counter[str] = Counter()
    for resource in data.resource_metrics if data else ():
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                assert (scope.scope.name, metric.name) == ("runcast", "runcast.runs")
                for point in metric.data.data_points:
                    assert isinstance(point, NumberDataPoint)
                    assert set(point.attributes or {}) == {"runcast.status"}
                    found[str((point.attributes or {})["runcast.status"])] += int(point.value)
    return found


async def broken(input: RunAgentInput) -> AsyncIterator[Event]:
    """Says a word, and fails."""
    for event in said(input.run_id, "so "):
        yield event
    raise ValueError("no more")


async def test_runs_are_counted_by_how_they_ended(
    reader: InMemoryMetricReader, caplog: pytest.LogCaptureFixture
) -> None:
    before = counted(reader)
    async with Cast.open("memory://", agents=[parrot, asker, broken]) as cast:
        for n, name in enumerate(("parrot", "parrot", "asker", "broken")):
            await (await cast.say(f"t{n}", "go on", agent=name)).result()
    assert counted(reader) - before == Counter(completed=2, interrupted=1, failed=1)
    assert "instrument" not in caplog.text  # it is made once


async def test_a_record_says_which_run_it_was_logged_in(caplog: pytest.LogCaptureFixture) -> None:
    own = logging.getLogger("somebody.agent")

    async def talker(input: RunAgentInput) -> AsyncIterator[Event]:
        own.warning("in the run")
        for event in said(input.run_id, "so "):
            yield event

    caplog.handler.addFilter(ids := RunIds())
    try:
        async with Cast.open("memory://", agents=[talker]) as cast:
            runs = [await cast.say(thread, "go on") for thread in ("t1", "t2")]
            for run in runs:
                await run.result()
        own.warning("outside")
    finally:
        caplog.handler.removeFilter(ids)
    found = [
        (record.message, record.__dict__["thread_id"], record.__dict__["run_id"])
        for record in caplog.records
        if record.name == own.name
    ]
    assert sorted(found) == sorted(
        [*(("in the run", run.thread_id, run.run_id) for run in runs), ("outside", "-", "-")]
    )


@pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL:UserWarning")
@pytest.mark.parametrize("kind", ["langgraph", "adk"])
async def test_both_frameworks_have_the_same_kinds_of_spans(
    kind: str, tmp_path: Path, spans: Callable[[str], list[ReadableSpan]]
) -> None:
    async with (
        agent_of(kind, tmp_path, 0) as agent,
        Cast.open("memory://", agents=[agent], watch=False) as cast,
    ):
        await (await cast.say(kind, "A report on night trains")).result()
        state = await cast.state(kind)
        assert state is not None
        await (await cast.resume(kind, {each.id: True for each in state.interrupts})).result()
    found = spans(kind)
    kinds = Counter(dict(each.attributes or {})["gen_ai.operation.name"] for each in found)
    assert (kinds["invoke_agent"], kinds["chat"] > 1, kinds["execute_tool"] > 0) == (2, True, True)
    for each in found:
        told = dict(each.attributes or {})
        assert (told["gen_ai.conversation.id"], told["gen_ai.agent.name"]) == (kind, agent.name)
    broken = {each.name for each in found if each.status.status_code is trace.StatusCode.ERROR}
    assert broken == ({"execute_tool check_connection"} if kind == "adk" else set()), "as its script has it"
    chats = [dict(each.attributes or {}) for each in found if each.name.startswith("chat")]
    assert any(each.get("gen_ai.usage.output_tokens") for each in chats)
    first, second = sorted(
        (each for each in found if each.name.startswith("invoke_agent")),
        key=lambda each: each.start_time or 0,
    )
    assert [link.context.span_id for link in second.links] == [first.context.span_id if first.context else 0]


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("gpt-5-2026-01", "openai"),
        ("models/gemini-2.5-pro", "gcp.gemini"),
        ("Claude-Opus", "anthropic"),
        ("large", "runcast"),
        ("", "runcast"),
    ],
)
def test_a_models_provider_is_known_by_its_name(model: str, provider: str) -> None:
    assert provider_of(model) == provider
