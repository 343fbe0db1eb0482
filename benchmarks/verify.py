"""What judging an event costs, beside what making and encoding it costs anyway."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ag_ui.core import (
    Event,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallStartEvent,
)
from ag_ui.encoder import EventEncoder
from pydantic_core import PydanticSerializationError

from runcast.slim.protocol.verifier import Verifier
from tests.streams import structured

ROUNDS = 7
TAG = {"subagent_run_id": "s1"}


def nanoseconds(work: Callable[[], object], count: int) -> float:
    """The best of a few rounds, for one of the `count` things that the work does."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best / count * 1e9


def judge(streams: Sequence[Sequence[Event]]) -> None:
    for events in streams:
        feed = Verifier("strict").feed
        for event in events:
            feed(event)


def encode(streams: Sequence[Sequence[Event]]) -> None:
    write = EventEncoder().encode
    for events in streams:
        for event in events:
            write(event)


def make(count: int) -> list[TextMessageContentEvent]:
    return [TextMessageContentEvent(message_id="m1", delta="word ") for _ in range(count)]


def deltas(count: int) -> dict[str, list[Event]]:
    """Streams that are nearly all deltas, as a live run is."""
    begun = RunStartedEvent(thread_id="t1", run_id="r1")
    words = [TextMessageContentEvent(message_id="m1", delta="word ") for _ in range(count)]
    tagged = [TextMessageContentEvent(message_id="m1", delta="word ", **TAG) for _ in range(count)]
    pieces = [ToolCallArgsEvent(tool_call_id="c1", delta='{"q": ') for _ in range(count)]
    return {
        "text delta": [begun, TextMessageStartEvent(message_id="m1"), *words],
        "text delta of a subagent": [begun, TextMessageStartEvent(message_id="m1", **TAG), *tagged],
        "args delta": [begun, ToolCallStartEvent(tool_call_id="c1", tool_call_name="f"), *pieces],
    }


def mix(count: int) -> list[list[Event]]:
    """Whole runs of every kind of event; without those that the encoder refuses, which holds no half characters."""
    rng = random.Random(1)
    drawn = (structured(rng) for _ in range(count))
    return [events for events in drawn if all(map(encodable, events))]


def encodable(event: Event) -> bool:
    try:
        event.model_dump_json()
    except PydanticSerializationError:
        return False
    return True


def row(name: str, ours: float, peer: float, bar: float) -> dict[str, Any]:
    ratio = ours / peer
    return {
        "name": name,
        "ours": round(ours),
        "peer": round(peer),
        "ratio": ratio,
        "bar": f"<= {bar}",
        "unit": "ns",
        "ok": ratio <= bar,
    }


def run(quick: bool) -> list[dict[str, Any]]:
    count = 2_000 if quick else 50_000
    construction = nanoseconds(lambda: make(2_000), 2_000)
    rows: list[dict[str, Any]] = []
    for name, events in deltas(count).items():
        ours = nanoseconds(partial(judge, [events]), len(events))
        rows.append(row(f"verify: {name}, to making it", ours, construction, 0.5))
    streams = mix(50 if quick else 1_000)
    count = sum(map(len, streams))
    ours = nanoseconds(lambda: judge(streams), count)
    peer = nanoseconds(lambda: encode(streams), count)
    rows.append(row("verify: short runs of every event, to EventEncoder", ours, peer, 0.5))
    return rows
