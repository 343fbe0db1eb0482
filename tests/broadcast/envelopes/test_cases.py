"""Cases that several parts hold together: late joiners, old readers, clocks, snapshots cut short."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest
from ag_ui.core import (
    CustomEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunStartedEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from runcast.broadcast import (
    BroadcastConfig,
    Broadcaster,
    Envelope,
    EnvelopeMapper,
    LogHistory,
    MemoryPublisher,
    Position,
    Reader,
    Stretch,
    Take,
    TooLarge,
)
from runcast.slim import RunLog, open_store
from tests.broadcast.entries import START, Thread, mapped, payloads
from tests.streams import structured

CHANNEL = "private-agent.t1"


class Screen:
    """What a watcher has in front of it, and nothing of how it got there."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.tools: dict[str, object] = {}
        self.steps: dict[object, object] = {}
        self.status: dict[str, object] = {}

    def apply(self, envelope: Envelope) -> None:
        payload = envelope.payload
        match envelope.type:
            case "agent.stream.chunk":
                before = "" if payload.get("replace") else self.texts.get(payload["message_id"], "")
                self.texts[payload["message_id"]] = before + payload["chunk"]
            case "agent.tool.started" | "agent.tool.completed":
                self.tools[payload["tool_call_id"]] = payload.get("success", "running")
            case "agent.step.started" | "agent.step.completed":
                key = (envelope.execution_id, payload["step_name"], payload["step_number"])
                self.steps[key] = payload.get("duration_ms", "running")
            case "agent.status":
                self.status[envelope.execution_id] = payload["status"]
            case _:
                pass

    def state(self) -> dict[str, Any]:
        return vars(self)


@pytest.mark.parametrize("seed", range(6))
async def test_case_22_a_late_joiner_sees_what_everybody_sees_whenever_it_comes(seed: int) -> None:
    """A screen that was saved at n, and the envelopes after n from history, are the screen from the start."""
    async with RunLog(open_store("memory://"), verify="off", derive="manual") as log:
        for event in structured(random.Random(seed), chunks=seed % 2 == 0):
            await log.append("t1", event)
        await log.flush()
        entries = await log.entries("t1")
        history = LogHistory(log)
        mapper = EnvelopeMapper()
        live = [envelope for entry in entries for envelope in mapper.feed(entry)]
        whole = Screen()
        for envelope in live:
            whole.apply(envelope)
        epoch = entries[0].epoch
        for place in range(len(entries) + 1):
            late = Screen()
            for envelope in live:
                if envelope.seq <= place:
                    late.apply(envelope)
            rest = await history.read("t1", Position(epoch, place), most=10_000)
            assert isinstance(rest, Stretch)
            assert rest.recovered
            reader = Reader(last=place, epoch=epoch)
            for envelope in rest.envelopes:
                assert reader.take(envelope, fetched=True) is Take.APPLY
                late.apply(envelope)
            assert late.state() == whole.state(), place


def test_case_38_an_old_reader_takes_what_a_newer_writer_sends() -> None:
    """Unknown keys at every level, unknown types and a later version are read, placed and passed over."""
    wires: list[dict[str, Any]] = [
        {
            "type": "agent.status",
            "seq": 1,
            "prev": 0,
            "v": 2,
            "payload": {"status": "in_progress", "mood": 1},
        },
        {
            "type": "agent.hologram",
            "seq": 4,
            "prev": 1,
            "v": 2,
            "payload": {"beam": True},
            "trace": {"id": "x"},
        },
        {"type": "agent.status", "seq": 5, "prev": 4, "v": 2, "payload": {"status": "completed"}},
    ]
    common = {"session_id": "t1", "execution_id": "r1", "epoch": "e", "timestamp": "2026-01-16T10:05:00.123Z"}
    reader, screen = Reader(last=0, epoch="e"), Screen()
    for wire in wires:
        envelope = Envelope.from_dict({**common, **wire})
        assert reader.take(envelope) is Take.APPLY
        screen.apply(envelope)
    assert screen.status == {"r1": "completed"}
    assert reader.last == 5


@pytest.fixture
def new_york() -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "America/New_York"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.usefixtures("new_york")
def test_case_39_times_are_utc_wherever_the_machine_stands() -> None:
    assert time.localtime(START / 1000).tm_hour == 5
    assert mapped([RunStartedEvent(thread_id="t1", run_id="r1")])[0].timestamp == "2026-01-16T10:05:05.133Z"
    stamped = RunStartedEvent(thread_id="t1", run_id="r1", timestamp=1_751_364_000_007)  # summer time there
    assert mapped([stamped])[0].timestamp == "2025-07-01T10:00:00.007Z"


async def test_case_39_a_clock_that_is_set_back_changes_times_and_no_place() -> None:
    now = [START]
    async with RunLog(open_store("memory://"), clock=lambda: now[0], lease_ms=10_000_000) as log:
        target = MemoryPublisher()
        it = Broadcaster(target)
        for event in (
            RunStartedEvent(thread_id="t1", run_id="r1"),
            StepStartedEvent(step_name="s"),
            CustomEvent(name="n", value=1),
            StepFinishedEvent(step_name="s"),
            RunFinishedEvent(thread_id="t1", run_id="r1"),
        ):
            entry = await log.append("t1", event)
            assert entry is not None
            await it.publish(entry)
            now[0] -= 60_000
        assert await it.flush(5)
        await it.aclose()
    told = target.envelopes(CHANNEL)
    assert [(each.prev, each.seq) for each in told] == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    assert told[1].timestamp < told[0].timestamp
    assert told[3].payload["duration_ms"] == 0


def test_case_42_step_numbers_stay_absolute_and_calls_stay_with_their_results_within_any_budget() -> None:
    start: Any = {"runcast": {"step_number": 41}}
    big = "x" * 50_000
    events = [
        RunStartedEvent(thread_id="t1", run_id="r1"),
        StepStartedEvent(step_name="s", metadata=start),
        ToolCallStartEvent(tool_call_id="c1", tool_call_name="search"),
        ToolCallArgsEvent(tool_call_id="c1", delta=json.dumps({"q": big})),
        ToolCallEndEvent(tool_call_id="c1"),
        ToolCallResultEvent(message_id="m", tool_call_id="c1", content=big),
        StepFinishedEvent(step_name="s"),
    ]
    envelopes = mapped(events, BroadcastConfig(include_args=True, max_envelope_bytes=512))
    for envelope in envelopes:
        assert json.loads(envelope.encode())
        assert len(envelope.encode()) <= 512
    started, done = (
        payloads(envelopes, "agent.tool.started")[0],
        payloads(envelopes, "agent.tool.completed")[0],
    )
    assert started["tool_call_id"] == done["tool_call_id"] == "c1"
    assert started["truncated"] is True
    numbers = [each.payload["step_number"] for each in envelopes if each.type.startswith("agent.step.")]
    assert numbers == [41, 41]


async def test_case_25_a_run_cancelled_inside_the_window_loses_no_word() -> None:
    target = MemoryPublisher()
    it = Broadcaster(target, config=BroadcastConfig(rollup_ms=10_000))
    thread = Thread()
    for event in (
        RunStartedEvent(thread_id="t1", run_id="r1"),
        TextMessageStartEvent(message_id="m"),
        *(TextMessageContentEvent(message_id="m", delta=piece) for piece in ("a", "b\ud83d", "\ude00c")),
        TextMessageEndEvent(message_id="m"),
        RunFinishedEvent(thread_id="t1", run_id="r1", outcome=RunFinishedCancelledOutcome()),
    ):
        await it.publish(thread.entry(event))
    assert await it.flush(5)
    await it.aclose()
    told = target.envelopes(CHANNEL)
    assert "".join(str(each.payload.get("chunk", "")) for each in told) == "ab😀c"
    assert told[-1].payload["status"] == "cancelled"


def test_a_target_that_is_too_small_is_an_error_of_its_own() -> None:
    assert TooLarge("413").retry is False
