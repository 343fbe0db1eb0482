"""Spans and counters of runs, as an OpenTelemetry SDK collects them, and records that say which run they are of."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import Event, RunAgentInput
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from runcast.app import Cast
from runcast.app.telemetry import RunIds, RunSpan
from tests.app.agents import asker, parrot, said


async def test_a_run_is_a_span_that_says_how_it_ended_and_not_what_was_said() -> None:
    exporter = InMemorySpanExporter()
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    async with Cast.open("memory://", agents=[parrot]) as cast:
        run = await cast.say("t1", "a secret")
        await run.result()
    (span,) = [each for each in exporter.get_finished_spans() if each.name == "runcast.run"]
    told = dict(span.attributes or {})
    assert told == {
        "gen_ai.agent.name": "parrot",
        "gen_ai.conversation.id": "t1",
        "runcast.run_id": run.run_id,
        "runcast.attempt": 1,
        "runcast.status": "completed",
        "runcast.events": 8,
    }
    assert "secret" not in str(told)


def test_without_the_package_nothing_is_told() -> None:
    RunSpan(None).ended(status="completed", events=1, code=None)


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
