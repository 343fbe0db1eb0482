"""Spans and counters of runs, as an OpenTelemetry SDK collects them."""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from runcast.app import Cast
from runcast.app.telemetry import RunSpan
from tests.app.agents import parrot


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
